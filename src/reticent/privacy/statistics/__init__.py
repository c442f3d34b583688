"""Statistics: sums, Gram matrices and counts, exact on integers, with enforced sensitivity."""
