"""Models: one method per file, each with the same three parts (statistic, learn, use) and its proof beside it."""
