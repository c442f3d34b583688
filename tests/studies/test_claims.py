"""Claims of studies.

Each is kept just at its limit and not kept just beyond it, whatever the study happened to find.
"""

import numpy as np
import pytest

from reticent.studies.dubey2021 import context_distribution as gpucb_contexts
from reticent.studies.dubey2021 import joint_regret as gpucb_regret
from reticent.studies.dubey2021 import local_regret as gpucb_local
from reticent.studies.honkela2021 import calibration as honkela_calibration
from reticent.studies.honkela2021 import hyperparameters_free as gp_hyperparameters
from reticent.studies.honkela2021 import hyperparameters_selected as honkela_hyperparameters
from reticent.studies.honkela2021 import nine_candidates as honkela_choices
from reticent.studies.honkela2021.data import SETUPS
from reticent.studies.honkela2021.nine_candidates import LENGTHS, SIGMAS, SelectionTrial
from reticent.studies.own import classification as gp_classes
from reticent.studies.own import dimensions as gp_dimensions
from reticent.studies.park2017 import kmeans as dpem_kmeans
from reticent.studies.park2017 import mixtures as dpem_mixture
from reticent.studies.smith2018 import fig1c_integral_kernel as smith_lengthscales
from reticent.studies.smith2018 import label_regression as gp_labels

RIGHT = (1.0, 0.1)
WRONG = (3.0, 0.3)
LENGTH_ONLY = (1.0, 0.3)
MORE = 1 + 1e-6


def kept(claims):
    return [claim.kept for claim in claims]


@pytest.fixture
def drawn(monkeypatch):
    """Pictures take longest, and are not asked here."""
    for module in (gpucb_regret, smith_lengthscales, honkela_choices):
        monkeypatch.setattr(module, "draw", lambda path, panels: path)


def regret(share, name="gp-sum", wrong=()):
    asked = dict(zip(gpucb_regret.PROMISES, gpucb_regret.ASKED[name], strict=True))
    found = {(name, "ours", promise): [share * most] for promise, most in asked.items()}
    found |= {
        (name, "ours", promise): [most * MORE]
        for promise, most in asked.items()
        if promise in wrong
    }
    return gpucb_regret.judge(found, (name,))


@pytest.mark.parametrize("name", gpucb_regret.ASKED)
def test_regret_is_held_to_what_was_asked_at_each_promise(name):
    assert kept(regret(1.0, name)) == [True] * 4
    assert kept(regret(MORE, name)) == [False] * 4
    assert kept(regret(0.5, name, wrong=[(1.0, 1e-5)])) == [True, True, True, False]
    assert regret(0.5, name)[0].found.endswith("± 0.000")
    assert f"{name}, ε=0.1, δ=0.1" in regret(0.5, name)[0].claim


def contexts(monkeypatch, tmp_path, share):
    monkeypatch.setattr(gpucb_contexts, "_share", share)
    found = gpucb_contexts.run(
        tmp_path, repeats=4, quick=False, seed=1, progress=lambda *told: None
    )
    return kept(found.claims), found


def test_another_law_may_cost_half_as_much_again_and_order_nothing(monkeypatch, tmp_path):
    def share(law, told, permuted, seed, rounds):
        return 0.1 * (1.5 if law == "heaps" and not told else 1.0) + 0.001 * (seed % 2)

    found, findings = contexts(monkeypatch, tmp_path, share)
    assert found == [True, True, True]
    assert [row[:2] for row in findings.tables[0].rows][:2] == [
        ("even", "assumed even"),
        ("even", "permuted"),
    ]
    assert contexts(monkeypatch, tmp_path, lambda law, told, *_: 0.1 if told else 0.151)[0] == [
        False,
        False,
        True,
    ]
    order = contexts(
        monkeypatch, tmp_path, lambda law, told, permuted, *_: 0.2 if permuted else 0.1
    )[0]
    assert order == [True, True, False]


@pytest.mark.parametrize(("share", "well"), [(0.2, True), (0.2001, False)])
def test_the_local_bandit_is_judged_by_the_longer_horizon(monkeypatch, tmp_path, share, well):
    monkeypatch.setattr(
        gpucb_local, "_share", lambda seed, rounds: share if rounds == 16_384 else 0.9
    )
    found = gpucb_local.run(tmp_path, repeats=2, quick=False, seed=1, progress=lambda *told: None)
    assert kept(found.claims) == [well]
    assert found.tables[0].rows[0] == ("1,024", ".900±.000")


def test_clusters_are_held_to_one_two_and_three_per_cent():
    def claims(places, strict, at_one, at_less):
        excess = {}
        for data in dpem_kmeans.MAPS:
            excess[data, 0.01, dpem_kmeans.OURS] = [places]
            excess[data, 0.01, dpem_kmeans.STRICT] = [strict]
        for columns in dpem_kmeans.COLUMNS:
            excess[f"{columns} columns", 1.0, dpem_kmeans.OURS] = [at_one]
            excess[f"{columns} columns", 0.3, dpem_kmeans.OURS] = [at_less]
        return kept(dpem_kmeans.judge(excess))

    assert claims(0.01, 0.01, 0.02, 0.03) == [True] * 10
    assert claims(0.011, 0.01, 0.02, 0.03) == [False] * 2 + [True] * 8
    assert claims(0.01, 0.011, 0.02, 0.03) == [True] * 8 + [False] * 2
    assert claims(0.01, 0.01, 0.021, 0.03) == [True] * 2 + [False] * 3 + [True] * 5
    assert claims(0.01, 0.01, 0.02, 0.031) == [True] * 5 + [False] * 3 + [True] * 2


def test_mixtures_are_held_to_a_level_and_to_one_normal_law():
    def claims(more, one):
        trials = {}
        for name, asked in dpem_mixture.LEAST.items():
            for epsilon, least in zip(dpem_mixture.EPSILONS, asked, strict=True):
                trials[name, dpem_mixture.OURS, epsilon] = [(least or 0) + more]
                trials[name, dpem_mixture.ONE_NORMAL, epsilon] = [(least or 0) + one]
        return dpem_mixture.judge(trials)

    assert kept(claims(0, 0)) == [True] * 22  # none for the one that was not asked for
    assert kept(claims(-0.01, -1)) == [False, True] * 11
    assert kept(claims(1, 1.01)) == [True, False] * 11


def test_classifiers_are_held_to_accuracies_and_one_to_its_calibration():
    def claims(more, gap):
        trials = {}
        for task in gp_classes.TASKS:
            for epsilon, least in zip(gp_classes.EPSILONS, task.asked, strict=True):
                trials[task.name, "softmax", epsilon] = [
                    gp_classes.Trial((least or 0) + more, gap, 0.1)
                ] * 2
        return kept(gp_classes.judge(trials))

    *accuracies, calibrated = claims(0, 0.05)
    assert all(accuracies)
    assert calibrated
    *accuracies, calibrated = claims(-0.001, 0.0501)
    assert not any(accuracies)
    assert not calibrated
    assert len(accuracies) == sum(
        least is not None for task in gp_classes.TASKS for least in task.asked
    )


def test_the_worst_single_fit_decides_about_dimensions():
    def claims(worst):
        trials = {}
        for kernel in gp_dimensions.KERNELS:
            for epsilon in gp_dimensions.EPSILONS:
                fits = [gp_dimensions.Trial(0.1, relative, 0.95) for relative in (0.2, worst)]
                trials[2, 2000, epsilon, kernel] = fits
        return gp_dimensions.judge({**trials, **compared_with_the_mean(0.1)})[:-1]

    assert kept(claims(gp_dimensions.MOST)) == [True] * len(gp_dimensions.KERNELS)
    assert kept(claims(gp_dimensions.MOST * MORE)) == [False] * len(gp_dimensions.KERNELS)
    assert "2 inputs, 2,000 records" in claims(0.3)[0].found


def compared_with_the_mean(error, inputs=2):
    """Trials with learned and mean kernels.

    With so many inputs the mean's error is this, and the learned kernel's 0.1.
    """
    trials = {}
    place = gp_dimensions.compared(gp_dimensions.RECORDS)
    for d in gp_dimensions.DIMENSIONS:
        for kernel in (*gp_dimensions.KERNELS, gp_dimensions.AVERAGE):
            rmse = (error if d == inputs else 0.2) if kernel == gp_dimensions.AVERAGE else 0.1
            trials[(d, *place, kernel)] = [gp_dimensions.Trial(rmse, 0.2, 0.95)] * 2
    return trials


@pytest.mark.parametrize("inputs", gp_dimensions.DIMENSIONS)
def test_a_learned_kernel_must_beat_the_mean_with_any_number_of_inputs(inputs):
    assert gp_dimensions.judge(compared_with_the_mean(0.1001, inputs))[-1].kept
    lost = gp_dimensions.judge(compared_with_the_mean(0.0999, inputs))[-1]
    assert not lost.kept
    assert f"1.00 with {inputs}" in lost.found


def chosen(share, of=100, seconds=0.1, otherwise=WRONG):
    """Trials of which a share chose the right pair."""
    right = round(share * of)
    return [SelectionTrial(*RIGHT, 0.1, seconds)] * right + [
        SelectionTrial(*otherwise, 0.3, seconds)
    ] * (of - right)


def test_hyperparameters_are_found_as_often_as_asked_and_in_time():
    def claims(less=0.0, seconds=0.3):
        trials = {
            ("reticent", e): chosen(share - less, seconds=seconds)
            for e, share in gp_hyperparameters.WANTED.items()
        }
        return kept(gp_hyperparameters.judge({**trials, ("paper", 1.0): chosen(0, seconds=99)}))

    assert claims() == [True] * 4
    assert claims(less=0.01) == [False] * 3 + [True]
    assert claims(seconds=0.31) == [True] * 3 + [False]


def searches(paper=(0.1, 0.2, 0.4, 0.6, 0.7), ours=0.7, seconds=0.1):
    epsilons = honkela_hyperparameters.EPSILONS
    trials = {}
    for epsilon, share in zip(epsilons, paper[-len(epsilons) :], strict=True):
        trials["paper", epsilon] = chosen(share, seconds=seconds)
        trials["papernot-steinke", epsilon] = chosen(ours, seconds=seconds)
        trials["evidence", epsilon] = chosen(1.0)
    return kept(honkela_hyperparameters.judge(trials))


def test_the_papers_searches_need_more_budget_and_ours_are_no_worse():
    slow = honkela_hyperparameters.SECONDS / 400 * MORE
    count = len(honkela_hyperparameters.EPSILONS)
    assert searches() == [True, True, *[True] * count, True, True]
    assert searches(seconds=slow)[-2:] == [False, False]
    assert searches(paper=(0.5,) * 5)[0] is False
    assert searches(paper=(0.1, 0.2, 0.4, 0.9, 0.7))[1] is False
    assert searches(ours=0.1)[2:-2].count(False) >= count - 2
    assert searches(paper=(0.1, 0.2, 0.4, 0.6, 0.73))[2:-2] == [True] * count
    assert searches(paper=(0.1, 0.2, 0.4, 0.6, 0.74))[2:-2][-1] is False


def test_right_means_both_or_the_one_that_is_asked_about():
    trials = chosen(0.25, of=4, otherwise=LENGTH_ONLY)
    assert [honkela_choices.right(trials, what) for what in (None, 0, 1)] == [0.25, 1.0, 0.25]
    assert honkela_choices.selected_fraction(trials, 1.0, 0.3) == 0.75
    record = honkela_choices.record("ours", 3.0, trials)
    assert (
        record["both_right"],
        record["length_right"],
        record["sigma_right"],
        record["repeats"],
    ) == (
        0.25,
        1.0,
        0.25,
        4,
    )
    assert record["rmse"] == pytest.approx(0.25)
    (row,) = honkela_choices.selection_table({("ours", 3.0): trials}, "runs").rows
    assert row[:5] == ("ours", "3", "0.25", "1.00", "0.25")


def test_the_picture_of_choices_has_a_point_for_each_pair(monkeypatch, tmp_path):
    seen = []
    monkeypatch.setattr(honkela_choices, "draw", lambda path, rows: seen.append(rows))
    honkela_choices.picture(
        tmp_path, {("ours", 1.0): chosen(0.75, of=4), ("paper", 1.0): chosen(0, of=4)}, "runs"
    )
    (((ours,), (paper,)),) = seen
    lines = {line.label: list(line.y) for line in ours.parts}
    assert list(lines) == [f"σ={sigma:.2g}" for sigma in SIGMAS]
    assert lines["σ=0.1"] == [0, 0.75, 0]
    assert lines["σ=0.3"] == [0, 0, 0.25]
    assert ours.options["xticklabels"] == [f"{length:.2g}" for length in LENGTHS]
    assert paper.title == "paper, ε=1"


@pytest.mark.parametrize(("off", "well"), [(0.05, True), (0.0501, False), (-0.0501, False)])
def test_calibration_is_judged_at_high_levels_of_the_function(off, well):
    levels = np.array(honkela_calibration.LEVELS)
    setups = [setup for setup in SETUPS if setup.section == "6.2"]
    shares = {}
    for setup in setups:
        for method in honkela_calibration.METHODS:
            for epsilon in (0.1, 1.0):
                shares[setup.name, method, epsilon, "function"] = [
                    np.where(levels < 0.9, 0.0, levels)
                ] * 2
                shares[setup.name, method, epsilon, "outputs"] = [0 * levels] * 2
    moved = levels + np.where(levels == 0.9, off, 0)
    shares[setups[1].name, "reticent", 1.0, "function"] = [moved - 1e-9 * np.sign(off)] * 2
    (claim,) = honkela_calibration.judge(shares, setups, (0.1, 1.0))
    assert claim.kept is well
    table = honkela_calibration.coverage_table("function", shares, setups, (0.1, 1.0))
    assert table.rows[0] == (setups[0].name, "reticent", "0.950", "0.950")


def test_errors_of_labels_are_held_to_the_reference_the_cloak_and_no_privacy():
    def claims(one=1.0, plain=1.1, free=0.7, best=0.9):
        errors = {}
        for epsilon, most in zip(gp_labels.EPSILONS, gp_labels.REFERENCE, strict=True):
            errors["reticent: cloak, one release", epsilon] = [one * most]
            errors["trace cloak", epsilon] = [plain * most]
            errors["without privacy", epsilon] = [free * most]
            errors["reticent: cloak", epsilon] = [best * most]
        return kept(gp_labels.judge(errors, gp_labels.EPSILONS))

    assert claims() == [True] * 4
    assert claims(one=1.001) == [False, True, True, True]
    assert claims(plain=1.0) == [True, False, True, True]
    assert claims(free=0.59) == [True, True, False, False]


def lengthscales(tmp_path, gain=(0.5, 0.1), histogram=2.0, error=1.0):
    lengths = smith_lengthscales.LENGTHSCALES[:2]
    errors = {}
    for length, more in zip(lengths, gain, strict=True):
        errors["integral", length] = [1.0, 1.1]
        errors["point", length] = [1.0 + more, 1.1 + more]
        errors["histogram", length] = [histogram, histogram]
    found = {
        epsilon: [(error * most, 0.95)] for epsilon, most in smith_lengthscales.REGRESSION.items()
    }
    return smith_lengthscales.findings(tmp_path, lengths, errors, found, 2)


def test_the_integral_kernel_gains_most_at_short_lengths(drawn, tmp_path):
    assert kept(lengthscales(tmp_path).claims) == [True] * 6
    assert kept(lengthscales(tmp_path, gain=(0.1, 0.5)).claims)[:2] == [False, True]
    assert kept(lengthscales(tmp_path, gain=(0.5, -0.1)).claims)[0] is False
    assert kept(lengthscales(tmp_path, histogram=1.04).claims)[1] is False
    assert kept(lengthscales(tmp_path, error=1.001).claims)[2:] == [False] * 4
    found = lengthscales(tmp_path)
    assert found.tables[0].rows[0] == ("4", "1.050±.050", "1.550±.050", "2.000±.000")
    assert [record["part"] for record in found.records] == ["ages"] * 6 + ["regression"] * 4
