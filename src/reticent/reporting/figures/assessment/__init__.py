"""Figures of how good a result is: attacks on it, its calibration, and the search for it."""
