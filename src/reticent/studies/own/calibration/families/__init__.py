"""Families of estimators, each with its cells and how one is tried."""
