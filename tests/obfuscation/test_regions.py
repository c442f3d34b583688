"""Regions: the least posterior variance anywhere in them, by a search of the attacker's own,
against what was promised.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    ExpSineSquared,
    Matern,
    RationalQuadratic,
)

from reticent import BadInput, Obfuscator, ReleaseRefused
from reticent.obfuscation.solver.covariance import prior_variance
from tests.support.curves import falling_kernels, variance

TOLERANCE = 1e-8  # of the prior's variance: what the attacker's own arithmetic may lose


def least_variance(model, box, rng, *, points=4000, starts=6):
    """The least variance that is found in a box (d, 2).

    Random points, the records, and descents from the lowest.
    """
    low, high = np.array(box, dtype=float).T
    at = rng.uniform(low, high, (points, len(low)))
    at = np.vstack([at, np.clip(model.X_, low, high)])
    values = variance(model, at)
    found = float(values.min())
    for start in at[np.argsort(values)[:starts]]:
        step = 1e-3 * np.maximum(high - low, 1e-12)
        descent = minimize(
            lambda s: float(variance(model, np.clip(s, low, high))[0]),
            start,
            method="Nelder-Mead",
            options={"initial_simplex": start + np.vstack([0 * step, np.diag(step)]), "maxfev": 60},
        )
        found = min(found, float(descent.fun))
    return found


def released(kernel, box, how, rng, records):
    """A release of records near the box and in it; None if the promise is refused as too much."""
    low, high = np.array(box, dtype=float).T
    reach = high - low
    x = rng.uniform(low - reach, high + reach, (records, len(low)))
    model = Obfuscator(kernel, sensitive=[box], mean=0.0, **how)
    try:
        model.obfuscate(x, np.sin(x).sum(axis=1))
    except (BadInput, ReleaseRefused) as refusal:
        assert "smaller region" in str(refusal) or "prior variance" in str(refusal)  # noqa: PT017
        return None
    return model


@settings(max_examples=12, deadline=None)
@given(
    kernel=falling_kernels(),
    columns=st.integers(1, 2),
    width=st.floats(0.02, 2.0),
    share=st.floats(0.02, 0.9),
    noise=st.sampled_from([None, 0.0, 0.05, 0.5]),
    seed=st.integers(0, 10**6),
)
def test_all_of_a_region_keeps_its_promise(kernel, columns, width, share, noise, seed):
    rng = np.random.default_rng(seed)
    box = [(one, one + width) for one in rng.uniform(-1, 1, columns)]
    made = kernel(columns, width)
    prior = float(prior_variance(made, np.zeros((1, columns)))[0])
    if not prior > 0:  # white noise alone
        return
    model = released(
        made, box, {"variance": share * prior, "noise": noise}, rng, int(rng.integers(3, 25))
    )
    if model is None:
        return
    assert model.certificate_.held
    least = least_variance(model, box, rng)
    assert least >= share * prior - TOLERANCE * prior
    assert least >= model.certificate_.attained - TOLERANCE * prior


@pytest.mark.parametrize(
    "kernel",
    [
        RBF(0.2),
        2.0 * Matern(0.3, nu=1.5),
        ConstantKernel(0.5) * ExpSineSquared(0.8, 0.3) * RBF(0.5)
        + ConstantKernel(0.2) * RationalQuadratic(0.1, 0.5),
        (RBF(0.5) + Matern(0.1, nu=2.5)) ** 2,
    ],
    ids=["rbf", "matern", "periodic", "power"],
)
def test_the_least_variance_is_near_the_promise_and_never_below(kernel):
    rng = np.random.default_rng(1)
    prior = float(prior_variance(kernel, np.zeros((1, 1)))[0])
    model = Obfuscator(kernel, sensitive=[(0.4, 0.6)], share=0.3, mean=0.0)
    x = np.linspace(0, 1, 41)
    model.obfuscate(x, np.sin(6 * x))
    least = least_variance(model, [(0.4, 0.6)], rng, points=40_000, starts=20)
    assert least >= 0.3 * prior - TOLERANCE * prior
    assert least < 0.33 * prior
