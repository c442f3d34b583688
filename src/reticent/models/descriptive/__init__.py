"""Means, histograms and covariances."""
