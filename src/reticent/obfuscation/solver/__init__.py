"""The noise covariance: constraints, closed forms, semidefinite programs and certificates."""
