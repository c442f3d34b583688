"""Studies of privacy-aware Gaussian processes (Tuo & Bhattacharya 2023)."""
