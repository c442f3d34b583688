"""Files that are written: whole or not at all, and never in the place of another."""
