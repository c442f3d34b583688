"""Peers: our models against what a user could pick today, on real data.

Same records, bounds, ε and δ, in one run.
"""
