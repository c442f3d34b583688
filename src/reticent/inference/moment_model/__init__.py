"""The linear model in a feature space, learned from noisy moments in stages."""
