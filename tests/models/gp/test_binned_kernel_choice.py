"""A histogram's kernel chosen by the exponential mechanism.

What it costs, what it finds, what is refused.
"""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import reticent
from reticent.reporting.release_table import release_groups

LINE = reticent.Bounds(x=[(0, 10)], y=(-2, 2))


def sines(n):
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 10, size=(n, 1))
    return x, np.sin(x[:, 0]) + 0.1 * rng.normal(size=n)


@pytest.mark.parametrize(
    "how", [{}, {"protect": "labels"}, {"kind": "count"}, {"regions": [0, 0, -1, 1, 1, 2]}], ids=str
)
def test_a_kernel_chosen_by_the_exponential_mechanism(how, tmp_path):
    """It takes a quarter of μ²; with a large budget it is the likeliest one.

    And it is rebuilt from its number.
    """
    x, y = sines(300)
    given = {"bins": 6, "noise": 0.5, "bounds": LINE, "learn_kernel": "exponential", **how}
    kernel = ConstantKernel(0.5, (0.1, 1.0)) * RBF(1.5, (0.1, 50.0))
    model = reticent.BinnedGPRegressor(
        kernel, epsilon=5000, delta=1e-6, random_state=0, **given
    ).fit(x, y)
    assert model.guarantee_.epsilon <= 5000
    assert [one.shares_spent for one in model.releases_] == [3, 1]
    if "kind" not in how and "regions" not in how:
        assert 0.5 < model.kernel_.k1.k2.length_scale < 5
        assert np.sqrt(np.mean((model.predict(x[:50]) - np.sin(x[:50, 0])) ** 2)) < 0.6
    model.save(tmp_path / "m")
    assert [(one.kind, one.most_size) for one in release_groups(model.releases_)][1] == (
        "exponential",
        1,
    )
    assert "exponential mechanism" in release_groups(model.releases_)[1].title
    again = reticent.load(tmp_path / "m")
    assert again.kernel_ == model.kernel_
    assert np.array_equal(again.predict(x[:9]), model.predict(x[:9]))
    chosen = {
        str(reticent.BinnedGPRegressor(kernel, epsilon=0.01, delta=1e-6, **given).fit(x, y).kernel_)
        for _ in range(4)
    }
    assert len(chosen) > 1  # with hardly any budget, by chance


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"delta": 0}, "delta > 0"),
        ({"bins": 1500}, "up to 1,000 bins"),
        ({"learn_kernel": "evidence"}, "'exponential'"),
    ],
    ids=str,
)
def test_what_cannot_be_chosen_by_scores_is_refused_before_the_charge(wrong, says):
    params = {
        "bins": 4,
        "bounds": LINE,
        "epsilon": 1,
        "delta": 1e-6,
        "learn_kernel": "exponential",
        **wrong,
    }
    with pytest.raises(reticent.BadInput, match=says):
        reticent.BinnedGPRegressor(**params).fit(*sines(20))
