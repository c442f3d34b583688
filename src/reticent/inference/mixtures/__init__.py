"""Mixtures, k-means, adaptive grids and factor models from noisy moments."""
