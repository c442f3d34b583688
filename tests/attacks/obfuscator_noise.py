"""`noise` of a curve: given as in every other model, as a standard deviation."""

import numpy as np
from sklearn.gaussian_process.kernels import RBF

import reticent
from tests.attacks.harness import Outcome, attack


@attack("8c", "noise=0.05 for a measurement error of standard deviation 0.05")
def standard_deviation() -> Outcome:
    kernel = RBF(0.2, "fixed")
    x = np.linspace(0, 1, 41)
    at = np.array([[0.5]])
    hide = reticent.Obfuscator(kernel, sensitive=[0.5], variance=0.01, mean=0.0, noise=0.05)
    hide.obfuscate(x, np.sin(6 * x))
    a = kernel(x[:, None]) + 0.05**2 * np.eye(41) + hide.covariance_
    cross = kernel(x[:, None], at)[:, 0]
    variance = float(1 - cross @ np.linalg.solve(a, cross))
    return Outcome(variance < 0.01 * (1 - 1e-9), f"promised 0.01, kept {variance:.6f}")
