"""Posteriors that grow batch by batch, and noise for running sums."""
