"""Kernels: the ANOVA prior, integral kernels, eigenbases, and projections onto a basis."""
