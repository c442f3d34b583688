"""Studies of private labels and binned data (Smith et al. 2018)."""
