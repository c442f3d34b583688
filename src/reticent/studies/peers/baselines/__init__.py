"""Baselines that other packages have: diffprivlib, and DP-SGD."""
