"""Gaussian processes on public inputs with noisy linear maps of the labels."""
