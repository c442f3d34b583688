"""Figures of released models."""
