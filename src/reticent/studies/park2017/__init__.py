"""Studies of DP-EM (Park et al. 2017)."""
