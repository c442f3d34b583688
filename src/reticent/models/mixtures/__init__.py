"""Gaussian mixtures, k-means, factor analysis and principal components."""
