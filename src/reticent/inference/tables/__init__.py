"""Tables by group: estimates from noisy cells, and a model of the groups."""
