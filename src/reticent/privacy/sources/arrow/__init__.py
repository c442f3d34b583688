"""Arrow: columns of record batches as numbers, and whatever gives record batches."""
