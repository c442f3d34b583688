"""Planning: the error to expect, by fits to simulated records, before any record is read."""
