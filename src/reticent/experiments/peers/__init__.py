"""Our models against what a user could pick today, on real data: same records, bounds, ε and δ, in one run."""
