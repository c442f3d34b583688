"""Reporting: from a fitted model to plain values, and from these to a page or a figure."""
