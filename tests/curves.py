"""What tests of obfuscated curves share: a curve, its prior, and the attacker's own formula."""

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from reticent.maths.obfuscation import between

K = RBF(0.2, "fixed")
X = np.linspace(0, 1, 21)
Y = np.sin(6 * X)
COMMON = {"sensitive": [0.4, 0.6], "variance": 0.5, "mean": 0.0}


def variance(model, at):
    """The attacker's, by the formula and nothing of ours: K, X and Σ are public."""
    x, at = model.X_, np.asarray(at, dtype=float).reshape(-1, model.n_features_in_)
    a = between(model.kernel_, x, x) + model.covariance_
    a += model.noise_ if np.ndim(model.noise_) == 2 else np.diag(np.broadcast_to(model.noise_, len(x)))
    c = between(model.kernel_, x, at)
    return between(model.kernel_, at[:1], at[:1])[0, 0] - np.einsum("ij,ij->j", c, np.linalg.solve(a, c))
