"""DPLloyd: k-means with noise in every step (Blum, Dwork, McSherry and Nissim), as DP-EM compares with it. For comparison only.

Starts at random points. Each step releases the number of records of each cluster and the sums of their coordinates, with
Laplace noise: adding or removing a record in [−1, 1]ᵈ moves them by at most 1 + d, and each of T steps may spend ε/T.
"""

import numpy as np
from numpy.typing import NDArray

from reticent.maths.clusters import nearest

__all__ = ["dp_lloyd"]

Array = NDArray[np.float64]


def dp_lloyd(X: Array, k: int, epsilon: float, seed: int, steps: int = 5) -> Array:
    """K centres after ``steps`` noisy steps."""
    random = np.random.default_rng(seed)
    d, centres = X.shape[1], random.uniform(-1, 1, size=(k, X.shape[1]))
    scale = (1 + d) * steps / epsilon
    for _ in range(steps):
        which = np.concatenate([nearest(block, centres)[0] for block in np.array_split(X, max(len(X) // 50_000, 1))])
        counts = np.bincount(which, minlength=k) + random.laplace(size=k) * scale
        sums = np.stack([np.bincount(which, column, k) for column in X.T], axis=1) + random.laplace(size=(k, d)) * scale
        centres = np.where(counts[:, None] > 1, np.clip(sums / np.maximum(counts, 1)[:, None], -1, 1), centres)
    return centres
