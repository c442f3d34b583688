"""The grid: every estimator over data laws × n × ε, and whether its answers can be believed."""
