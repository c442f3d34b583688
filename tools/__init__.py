"""Programs for those who work on reticent; nothing here is installed."""
