"""Studies of private GP bandits (Dubey 2021)."""
