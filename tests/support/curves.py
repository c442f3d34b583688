"""What tests of obfuscated curves share: a curve, its prior, and the attacker's own formula."""

import numpy as np
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    ExpSineSquared,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)

from reticent.obfuscation.solver.covariance import between

K = RBF(0.2, "fixed")
X = np.linspace(0, 1, 21)
Y = np.sin(6 * X)
COMMON = {"sensitive": [0.4, 0.6], "variance": 0.5, "mean": 0.0}


def variance(model, at):
    """The attacker's, by the formula and nothing of ours: K, X and Σ are public."""
    x = model.X_
    at = np.asarray(at, dtype=float).reshape(-1, model.n_features_in_)
    a = between(model.kernel_, x, x) + model.covariance_ + model.noise_covariance_
    c = between(model.kernel_, x, at)
    return between(model.kernel_, at[:1], at[:1])[0, 0] - np.einsum(
        "ij,ij->j", c, np.linalg.solve(a, c)
    )


def falling_kernels():
    """Kernels that fall with distance, at random.

    Functions of the number of inputs and of the farthest distance.
    """
    size = st.floats(-1.5, 0.7).map(lambda power: 10.0**power)

    def rbf(length):
        return lambda columns, farthest: RBF(length * np.linspace(0.5, 2, columns))

    def matern(length, nu):
        return lambda columns, farthest: Matern(length * np.linspace(2, 0.5, columns), nu=nu)

    def rational(length, alpha):
        return lambda columns, farthest: RationalQuadratic(length, alpha)

    def periodic(length, period):
        def made(columns, farthest):
            if columns > 1:
                return RBF(length)
            return ExpSineSquared(length + 0.3, max(period, 4.001 * farthest))

        return made

    def flat(variance):
        return lambda columns, farthest: ConstantKernel(variance)

    def white(variance):
        return lambda columns, farthest: WhiteKernel(variance)

    def joined(parts):
        first, second, how, exponent = parts

        def made(columns, farthest):
            one = first(columns, farthest)
            two = second(columns, farthest)
            return {
                "sum": one + two,
                "product": one * two,
                "power": one**exponent,
                "part": one + 0.1 * two,
            }[how]

        return made

    varying = (
        st.builds(rbf, size)
        | st.builds(matern, size, st.sampled_from([0.5, 1.5, 2.5, np.inf]))
        | st.builds(rational, size, size)
        | st.builds(periodic, size, size)
    )
    any_of_them = varying | st.builds(flat, size) | st.builds(white, size)
    hows = st.sampled_from(["sum", "product", "power", "part"])
    pairs = st.tuples(varying, any_of_them, hows, st.integers(1, 3)).map(joined)
    return varying | pairs | st.tuples(pairs, varying, hows, st.integers(1, 2)).map(joined)
