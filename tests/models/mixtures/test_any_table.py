"""Whatever is in a table, and whatever the noise, a fit ends with finite numbers."""

import numpy as np
import pytest

import reticent

TABLES = {
    "normal": lambda random, n, d: random.normal(0, 0.3, size=(n, d)),
    "constant": lambda random, n, d: np.full((n, d), random.uniform(-1, 1)),
    "missing": lambda _, n, d: np.full((n, d), np.nan),
    "corners": lambda random, n, d: random.choice([-1.0, 0.0, 1.0], size=(n, d)),
    "long tails": lambda random, n, d: random.standard_t(1.2, size=(n, d)),
    "one record elsewhere": lambda _, n, d: np.eye(n, 1) * np.ones(d),
    "two heaps": lambda random, n, d: (
        random.choice([-0.8, 0.8], size=(n, 1)) + random.normal(0, 0.01, size=(n, d))
    ),
}
MODELS = {
    "PCA": lambda **given: reticent.PCA(n_components=1, **given),
    "FactorAnalysis": lambda **given: reticent.FactorAnalysis(n_components=1, **given),
    "KMeans": lambda **given: reticent.KMeans(n_clusters=4, **given),
    "GaussianMixture": lambda **given: reticent.GaussianMixture(**given),
    "GaussianMixture of five": lambda **given: reticent.GaussianMixture(5, **given),
}


@pytest.mark.filterwarnings("ignore::reticent.models.base.IncompleteRecords")
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("table", TABLES)
def test_a_fit_ends_with_finite_numbers(model, table):
    random = np.random.default_rng(0)
    for seed, (n, d, epsilon) in enumerate([(1, 1, 0.1), (60, 1, 1.0), (600, 3, 0.5)]):
        given = {"bounds": reticent.Bounds(x=[(-1, 1)] * d), "epsilon": epsilon, "delta": 1e-6}
        fitted = MODELS[model](**given, random_state=seed).fit(TABLES[table](random, n, d))
        numbers = [value for value in vars(fitted).values() if isinstance(value, np.ndarray)]
        assert numbers
        assert all(np.isfinite(value).all() for value in numbers if value.dtype.kind == "f")
