"""Private selection: runs of a search, random splits, and the exponential mechanism."""
