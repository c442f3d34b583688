"""Gaussian processes seen through sums over bins or regions."""
