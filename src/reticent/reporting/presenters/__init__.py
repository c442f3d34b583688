"""Presenters: what each model says, in words and plain numbers."""
