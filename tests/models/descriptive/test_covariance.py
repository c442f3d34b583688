"""PrivateCovariance: right on average, positive semi-definite for every draw."""

import numpy as np
import pandas as pd
import pytest

from reticent import BadInput, Bounds, PrivateCovariance

TRUTH = np.array([[4.0, 3.0], [3.0, 9.0]])


def test_right_on_average_and_as_noisy_as_stated():
    data = np.random.default_rng(0).multivariate_normal([1, -2], TRUTH, size=20_000)
    bounds = Bounds(x=(-20, 20))
    models = [PrivateCovariance(bounds=bounds, epsilon=2, delta=1e-5).fit(data) for _ in range(100)]
    covariances = np.array([model.covariance_ for model in models])
    means = np.array([model.mean_ for model in models])
    first = models[0]
    assert np.abs(means.mean(axis=0) - data.mean(axis=0)).max() < 5 * first.mean_sd_.max() / 10
    assert means.std(axis=0) == pytest.approx(first.mean_sd_, rel=0.3)
    error = covariances.mean(axis=0) - np.cov(data.T, bias=True)
    assert np.abs(error).max() < 5 * first.covariance_sd_.max() / 10
    assert covariances.std(axis=0) == pytest.approx(first.covariance_sd_, rel=0.35)
    assert first.correlation_[0, 1] == pytest.approx(0.5, abs=0.1)


def test_positive_semi_definite_however_large_the_noise():
    data = np.random.default_rng(0).normal(size=(20, 5))
    for _ in range(30):
        model = PrivateCovariance(bounds=Bounds(x=(-3, 3)), epsilon=0.1, delta=1e-6).fit(data)
        values = np.linalg.eigvalsh(model.covariance_)
        assert values[0] >= -1e-9 * max(values[-1], 1.0)
        assert (np.abs(model.correlation_) <= 1).all()
        assert np.isfinite(model.correlation_).all()


@pytest.mark.parametrize("delta", [0, 0.0, None, "1e-6"])
def test_a_rebuild_promises_what_a_fit_can(delta):
    params = {"bounds": Bounds(x=(-3, 3)), "epsilon": 1.0}
    model = PrivateCovariance(**params, delta=1e-6).fit(np.zeros((20, 2)))
    with pytest.raises(BadInput, match="delta"):
        PrivateCovariance.from_releases(model.releases_, **params, delta=delta)


def test_score_is_highest_where_the_records_are():
    data = np.random.default_rng(0).multivariate_normal([1, -2], TRUTH, size=20_000)
    model = PrivateCovariance(bounds=Bounds(x=(-20, 20)), epsilon=2, delta=1e-5).fit(data)
    own = model.score(data)
    exact = (
        -np.log(2 * np.pi) - np.linalg.slogdet(TRUTH / 400)[1] / 2 - 1
    )  # of the true law, on the scale of the box
    assert own == pytest.approx(exact, abs=0.1)
    assert own > model.score(data + 3)
    assert own > model.score(data[:, ::-1])


def test_stated_noise_of_covariances_far_from_the_middle():
    data = np.full((50, 2), 0.9)
    models = [
        PrivateCovariance(bounds=Bounds(x=(-1, 1)), epsilon=50, delta=1e-5) for _ in range(400)
    ]
    seen = np.array([model.fit(data).releases_[0].matrix() for model in models])
    seen /= seen[:, :1, :1]  # by the released number of complete records
    raw = (
        seen[:, 1:, 1:] - seen[:, 0, 1:, None] * seen[:, 0, None, 1:]
    )  # before the projection to the cone
    assert raw.std(axis=0) == pytest.approx(models[0].covariance_sd_, rel=0.12)


def test_records_that_lack_a_value_are_left_out():
    data = np.random.default_rng(0).multivariate_normal([1, -2], TRUTH, size=20_000)
    whole = data[:8000].copy()
    data[8000:14_000, 0] = np.nan
    data[14_000:, 1] = np.nan
    model = PrivateCovariance(bounds=Bounds(x=(-20, 20)), epsilon=3, delta=1e-5).fit(data)
    assert abs(model.count_ - 8000) < 6 * model.count_sd_
    assert (np.abs(model.mean_ - whole.mean(axis=0)) < 6 * model.mean_sd_).all()
    error = np.abs(model.covariance_ - np.cov(whole.T, bias=True))
    assert (error < 6 * model.covariance_sd_).all()


def test_words_have_no_covariance():
    bounds = Bounds(x={"sex": ["F", "M"], "age": (0, 110)})
    frame = pd.DataFrame({"sex": ["F", "M"], "age": [1, 2]})
    with pytest.raises(BadInput, match="PrivateHistogram"):
        PrivateCovariance(bounds=bounds, epsilon=1, delta=1e-6).fit(frame)
