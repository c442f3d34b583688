"""Joint and separate fits: what the separate ones cost together, and what the study claims."""

import math

import numpy as np
import pytest

from reticent.privacy.row_maps.features.basis_features import FeatureMap
from reticent.privacy.row_maps.features.polynomial_basis import Basis
from reticent.privacy.row_maps.input_marginals import InputCounts, InputMoments
from reticent.privacy.row_maps.residual_gram import stage
from reticent.privacy.statistics.enforced import enforce
from reticent.studies.own import words


def price(statistic, records):
    """Most that a record which changes its level moves, squared, by the squared sensitivity.

    One fit loses the record, and another one gains a record.
    """
    enforced = enforce(statistic)
    lengths2 = []
    for one in records:
        total = np.asarray(enforced.block_sum(one[None, :]), dtype=np.float64)
        if total.ndim == 2:  # a Gram matrix, of which one triangle is released
            total = total[np.triu_indices(len(total))]
        lengths2.append(float(enforced.coordinate_multiplicity() @ total**2))
    return 2 * max(lengths2) / enforced.sensitivity2


def test_separate_fits_together_cost_what_the_study_says():
    """Of 24 releases 22 are stages; moments and counts, or moments alone, have the others."""
    rng = np.random.default_rng(0)
    extreme = np.array([[u, y] for u in (-1.0, 0.0, 1.0) for y in (-64.0, 0.0, 64.0)])
    records = np.vstack([extreme, rng.uniform(-1, 1, (50, 2)) * [1, 64]])
    powers = np.eye(5, 32, dtype=int) * 2**22
    basis = Basis((tuple(map(tuple, powers.tolist())),), tuple((k,) for k in range(5)))
    feature_map = FeatureMap(basis, (1.0,) * 5, 1.0)
    of_stage = price(stage(feature_map, np.zeros((1, 5)), [0.1]), records)
    of_counts = price(InputCounts(1, 16), records)
    of_moments = price(InputMoments(1), records)
    assert 0.99 < of_stage <= 1
    assert of_counts == 1
    assert 1.99 < of_moments <= 2
    assert 22 * of_stage + of_counts + of_moments <= 25
    assert 22 * of_stage + 2 * of_moments <= 26


@pytest.mark.parametrize(
    ("effect", "between", "alike"), [("none", 0, 0), ("shift", 1, 0), ("shapes", 1, 1)]
)
def test_effects_of_a_word(effect, between, alike):
    truth = words._Truth(effect, 2, np.random.default_rng(1))
    age = np.linspace(0, 100, 11)
    difference = truth(age, np.zeros(11, dtype=int)) - truth(age, np.ones(11, dtype=int))
    assert bool(np.abs(difference).max() > 0.01) is bool(between)
    assert bool(difference.std() > 0.01) is bool(alike)


@pytest.mark.parametrize(
    ("ratio", "coverage", "kept"),
    [
        (1.0, 0.93, [True, True, True]),
        (1.01, 0.95, [False, False, True]),
        (0.9, 0.929, [True, True, False]),
    ],
)
def test_claims_are_about_ratio_and_coverage(ratio, coverage, kept):
    same = [words._Trial(ratio, 1.0, coverage, 0.95)] * 3
    claims = words._claims((2, "none"), {(2, "none", 1000, 1.0): same})
    assert [claim.kept for claim in claims] == kept
    other = words._claims((2, "none"), {(2, "none", 1000, 1.0): same, (5, "none", 1, 1.0): []})
    assert [claim.found for claim in other] == [claim.found for claim in claims]
    assert math.isclose(same[0].log_ratio, math.log(ratio))


def test_one_setting_that_is_worse_is_named_whatever_the_others_are():
    good = [words._Trial(0.5, 1.0, 0.95, 0.95)] * 3
    bad = [words._Trial(1.2, 1.0, 0.95, 0.95)] * 3
    trials = {(2, "none", 1000, 1.0): good, (2, "none", 10_000, 3.0): bad}
    average, everywhere, _ = words._claims((2, "none"), trials)
    assert average.kept
    assert not everywhere.kept
    assert everywhere.found == "10,000 records, ε=3: 1.20 ± 0.00"


def test_a_quick_run_compares_on_the_same_records(tmp_path, monkeypatch):
    fits = []

    class StandIn:
        def __init__(self, **options):
            self.options = options

        def fit(self, x, y):
            fits.append((self.options, x, y))
            return self

        def predict(self, at, return_std):
            return np.zeros(len(at)), np.ones(len(at))

    monkeypatch.setattr(words, "GPRegressor", StandIn)
    found = words.run(tmp_path, repeats=1, quick=True, seed=3, progress=lambda *args: None)
    assert not found.claims
    assert [record["log_ratio"] for record in found.records] == [0.0] * 3
    joint, first, second = (y for _, _, y in fits[:3])
    assert len(joint) == len(first) == len(second) == 1000
    parts = np.where(np.isnan(first), second, first)
    assert (parts == joint).all()  # each record in one part, the others missing there
    assert {options["epsilon"] for options, _, _ in fits} == {1.0}
    assert len({options["random_state"] for options, _, _ in fits[:3]}) == 3
