"""Parts of a mixture with the noise of their shares."""

import numpy as np
import pytest

import reticent
from reticent.reporting.presenter import PAGE
from reticent.reporting.presenters.mixture import MixturePresenter

BOUNDS = reticent.Bounds(x=(-10, 10))


def fitted(n, epsilon):
    random = np.random.default_rng(0)
    centres = random.choice([-4.0, 4.0], size=n, p=[0.4, 0.6])
    records = centres[:, None] + random.normal(size=(n, 3))
    model = reticent.GaussianMixture(2, bounds=BOUNDS, epsilon=epsilon, delta=1e-6)
    return model.fit(records)


def test_clear_parts_have_an_error_and_no_note():
    presenter = MixturePresenter(fitted(20_000, 3.0))
    results = presenter.results()
    assert 0 < results["weights_noise_sd"] < 0.05
    assert results["clear_components"] == 2
    assert presenter.notes(PAGE) == []
    shares = [row[0] for row in presenter.sections()[0].tables[0].rows]
    assert all("±" in share and "may not exist" not in share for share in shares)


def test_a_part_within_the_noise_is_marked_and_told():
    model = fitted(20_000, 3.0)
    noise = MixturePresenter(model).results()["weights_noise_sd"]
    model.weights_ = np.array([1 - noise / 4, noise / 4])  # a part that noise has made up
    presenter = MixturePresenter(model)
    assert presenter.results()["weights_within_noise"] == [False, True]
    shares = [row[0] for row in presenter.sections()[0].tables[0].rows]
    assert shares[1].endswith("(within the noise: may not exist)")
    (note,) = presenter.notes(PAGE)
    assert note.startswith("only 1 of 2 parts is clear of the noise")


@pytest.mark.parametrize("seed", [0, 1])
def test_parts_of_a_histogram_have_an_error_too(seed):
    random = np.random.default_rng(seed)
    records = random.choice([-4.0, 4.0], size=2000)[:, None] + random.normal(size=(2000, 1))
    bounds = reticent.Bounds(x=[(-10, 10)])
    model = reticent.GaussianMixture(2, bounds=bounds, epsilon=1.0, delta=1e-6).fit(records)
    noise = MixturePresenter(model).results()["weights_noise_sd"]
    assert (noise > 0) == (model.n_components_ > 1)
