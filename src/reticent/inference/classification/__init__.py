"""Posteriors of classifiers, and bands of probabilities."""
