"""Studies of our own claims."""
