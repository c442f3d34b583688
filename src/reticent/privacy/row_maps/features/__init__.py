"""What rows are made of: basis functions of inputs, and codes of mixed columns as numbers."""
