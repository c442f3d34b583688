"""Studies of Gaussian processes with differential privacy (Honkela et al. 2021)."""
