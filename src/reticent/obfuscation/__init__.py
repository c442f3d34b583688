"""Obfuscated curves: inferential privacy, NOT differential privacy (Tuo & Bhattacharya 2023)."""
