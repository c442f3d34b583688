"""What changes as stages go: clip thresholds, and kernels that are refined.

Refined kernels have less error, a basis of their own, and the same model from its releases.
"""

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from reticent import Bounds, GPRegressor


def feature_maps(model):
    """Of all stages; the number of complete records has none."""
    return [one.statistic["head"] for one in model.releases_ if "head" in one.statistic]


def test_kernels_are_refined_and_the_basis_with_them():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (20_000, 2))
    at = rng.uniform(-1, 1, (500, 2))

    def truth(x):
        return np.sin(5 * x[:, 0]) * np.cos(x[:, 1])

    y = truth(X) + 0.1 * rng.normal(size=len(X))
    given = RBF([1.6, 1.6], (0.3, 6.0))

    def fitted(kernel, **params):
        params = {
            "bounds": Bounds(x=[(-1, 1)] * 2, y=(-2, 2)),
            "epsilon": 1,
            "delta": 1e-6,
            "random_state": 1,
            **params,
        }
        return GPRegressor(kernel, **params).fit(X, y)

    def error(model):
        return np.sqrt(np.mean((model.predict(at) - truth(at)) ** 2))

    learned = fitted(given)
    average = fitted(given, learn_kernel="average")
    short, long = learned.kernel_.length_scale
    assert short < 0.8 < long
    assert error(learned) < 0.7 * error(average)
    heads = feature_maps(learned)
    assert heads[0] != heads[-1]
    assert heads[-1] == heads[12]
    again = GPRegressor.from_releases(learned.releases_, **learned.get_params(deep=False))
    assert (again.predict(at) == learned.predict(at)).all()
    mean, std = learned.predict(at, return_std=True)
    assert np.mean(np.abs(mean - truth(at)) < 1.96 * std) > 0.9
    for others in ({"learn_kernel": False}, {"stages": 6}):
        asked = feature_maps(fitted(given, **others))
        assert asked[0] == asked[-1]


def test_clips_narrow_to_less_than_the_noise():
    """`GPRegressor._clip_thresholds`, as the releases have it."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 5, (1000, 1))
    noise = 0.3
    y = np.sin(x[:, 0]) + noise * rng.normal(size=1000)

    def thresholds(**params):
        bounds = Bounds(x=[(0, 5)], y=(-2, 2))
        model = GPRegressor(bounds=bounds, epsilon=0.5, delta=1e-6, random_state=1, **params)
        statistics = [release.statistic for release in model.fit(x, y).releases_]
        half_ranges = [one["reach"][0] for one in statistics if "reach" in one]
        return 2 * np.array(half_ranges)  # in the units of y

    for params in ({}, {"kernel": RBF(1.5, "fixed")}):
        for known in ({}, {"noise": noise}):
            found = thresholds(**params, **known)
            assert found[0] > 3 * noise
            assert (np.diff(found[:3]) < 0).all()
            assert (found[5:] < noise).all()
