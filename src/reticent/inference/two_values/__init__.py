"""Outputs that are all at an end of the range of y: whether they are, and the function then."""
