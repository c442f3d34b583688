"""Columns: their kinds, and how one cell becomes a number."""
