"""Sentences of reports: where other inputs are held, and what a prior takes for usual."""
