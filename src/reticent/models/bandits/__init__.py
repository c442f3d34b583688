"""Gaussian-process bandits with joint and local differential privacy."""
