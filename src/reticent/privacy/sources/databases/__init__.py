"""Databases: tables and queries, read in one snapshot and never written to."""
