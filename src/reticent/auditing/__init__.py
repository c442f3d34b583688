"""Auditing: attacks on everything that a model releases, and what they prove."""
