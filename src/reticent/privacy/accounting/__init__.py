"""Accounting: events, the exact cost of Gaussian releases, composition, and the guarantee."""
