"""Densities of the inputs, and maps that spread the inputs evenly."""
