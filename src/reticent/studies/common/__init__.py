"""What studies share: results, figures, environments and data."""
