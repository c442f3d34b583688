"""Private search over candidates."""
