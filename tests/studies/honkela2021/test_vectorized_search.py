"""Many runs of the paper's search at once are the runs of the paper's search.

And the study of Fig 3 keeps its claims.
"""

import math

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from reticent.studies import STUDIES
from reticent.studies.honkela2021 import hyperparameters_selected as honkela_hyperparameters
from reticent.studies.honkela2021.algorithm1_as_printed import LiteralGP
from reticent.studies.honkela2021.algorithm2_as_printed import coinpress_mean, selection_budget
from reticent.studies.honkela2021.data import SETUPS, noisy_sinc, sinc
from reticent.studies.honkela2021.vectorized_search import (
    Halves,
    Scheme,
    liu_talwar,
    papernot_steinke,
)

LENGTHS = (1 / 3, 1.0, 3.0)
SIGMAS = (0.1 / 3, 0.1, 0.3)
AT = np.linspace(-4, 4, 50)
INDUCING = np.array(SETUPS[0].inducing)


class Silent:
    """Noise that is zero, and choices that are the first."""

    def normal(self, *args, size=None):
        return np.zeros(size) if size is not None else 0.0

    def integers(self, high, size):
        return np.full(size, 1)

    def geometric(self, stop):
        return 3


def test_a_run_without_noise_is_the_papers_fit():
    x, y = noisy_sinc(600, 0.1, np.random.default_rng(0))
    share = selection_budget(10.0, 1e-5)
    found = Halves(x, y, LENGTHS, INDUCING, AT, 1.3).select(
        SIGMAS, liu_talwar(10.0, 1e-5), Silent()
    )
    literal = LiteralGP(RBF(1.0), INDUCING, 0.1, 1.3, share.epsilon, share.delta).fit(
        x[:300], y[:300], Silent()
    )
    assert (found.length, found.sigma) == (1.0, 0.1)
    assert found.mean == pytest.approx(literal.predict(AT)[0], abs=1e-9)


def test_scores_are_the_papers():
    values = np.random.default_rng(0).normal(3.0, 1.0, size=(2, 500))
    centre = np.array([0.0, -80.0])
    radius = np.array([5.0, 100.0])
    found = coinpress_mean(values, centre, radius, 2.0, Silent())
    for i in range(2):
        assert found[i] == pytest.approx(
            coinpress_mean(values[i], centre[i], radius[i], 2.0, Silent()), rel=1e-12
        )


def test_noise_of_a_batch_is_that_of_single_fits():
    """The same spread of fitted means over many runs."""
    x, y = noisy_sinc(400, 0.1, np.random.default_rng(0))
    share = selection_budget(30.0, 1e-5)
    one = Halves(x, y, (1.0,), INDUCING, AT, 1.3)
    rng = np.random.default_rng(1)
    scheme = liu_talwar(30.0, 1e-5)
    weights, _ = one._attempts(one._lengths[1.0], np.full(400, 0.1), scheme, rng)
    batch = weights @ one._lengths[1.0].to_at
    single = np.array(
        [
            LiteralGP(RBF(1.0), INDUCING, 0.1, 1.3, share.epsilon, share.delta)
            .fit(x[:200], y[:200], rng)
            .predict(AT)[0]
            for _ in range(400)
        ]
    )
    assert batch.mean(axis=0) == pytest.approx(single.mean(axis=0), abs=6 * single.std() / 20)
    assert batch.std() == pytest.approx(single.std(), rel=0.1)


def test_schemes():
    theirs = liu_talwar(1.0, 1e-5)
    ours = papernot_steinke(1.0, 1e-5, 100)
    assert theirs.multiplier == pytest.approx(23.36, rel=1e-3)
    assert ours.multiplier < 0.4 * theirs.multiplier
    assert ours.rho == pytest.approx(0.5 / ours.multiplier**2)
    drawn = [Scheme(1.0, 1.0, 0.01, 150).runs(np.random.default_rng(i)) for i in range(400)]
    assert max(drawn) == 150
    assert 60 < np.mean(drawn) < 95  # 100 without the limit


def test_no_score_in_range_finds_nothing():
    x, y = noisy_sinc(40, 0.1, np.random.default_rng(0))
    hopeless = Scheme(1e6, 1e-12, 1.0, 1)
    found = [
        Halves(x, y, LENGTHS, INDUCING, AT, 1.3).select(SIGMAS, hopeless, np.random.default_rng(i))
        for i in range(20)
    ]
    assert any(math.isnan(one.length) for one in found)


def test_the_study(tmp_path, monkeypatch):
    class Quick:
        def __init__(self, *args, **options):
            assert options["scoring"] == "likelihood"
            self.best_candidate_ = {"kernel": RBF(1.0), "noise": 0.1}

        def fit(self, x, y):
            return self

        def predict(self, at):
            return sinc(at[:, 0])

    monkeypatch.setattr(honkela_hyperparameters, "PrivateSearch", Quick)
    monkeypatch.setitem(
        honkela_hyperparameters.METHODS,
        "evidence",
        lambda x, y, e, rng: (1.0, 0.1, sinc(honkela_hyperparameters.AT)),
    )
    found = STUDIES["dpgp-hyperparameters"].run(
        tmp_path, repeats=20, quick=False, seed=5, progress=lambda done, total, what: None
    )
    assert {claim.claim.split(":")[0]: claim.kept for claim in found.claims}["paper"]
    assert [claim for claim in found.claims if not claim.kept] == []
    assert (tmp_path / "choices.png").exists()
    assert "23.4, 7.96, 2.47, 0.873" in found.notes[0]
    assert len(found.records) == 16
