"""The grid: its laws are what they say, every family gives trials, and faults are caught."""

import math
from dataclasses import replace

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from reticent.errors import BadInput
from reticent.studies.own.calibration.cells import FREE, Cell, Family, Trial, generator, ranks
from reticent.studies.own.calibration.comparison import compare, compare_parts, paired_ratio
from reticent.studies.own.calibration.judging import clearly_above, judge_cells
from reticent.studies.own.calibration.laws import (
    CLASSES,
    FACTOR_TABLES,
    HALF,
    INPUTS,
    OUTPUTS,
    REWARDS,
    TABLES,
    places,
    smooth_function,
)
from reticent.studies.own.calibration.page import write_page
from reticent.studies.own.calibration.real_laws import REAL_LAWS
from reticent.studies.own.calibration.references import (
    clusters_cost,
    mixture_log_likelihood,
    regression_mean,
    upper_confidence_choices,
)
from reticent.studies.own.calibration.study import FAMILIES, judge_families, report, run_trials
from reticent.studies.own.calibration.trial_files import read_trials, write_trials

CELL = Cell("regression", "model", "law", 1000, 1.0)
PLACES = 16


# --- laws ---


@pytest.mark.parametrize("name", OUTPUTS)
def test_outputs_have_the_mean_noise_and_bounds_that_they_state(name):
    law = OUTPUTS[name]
    rng = np.random.default_rng(0)
    n = 400_000
    f = np.full(n, 0.5)
    y = law.draw(f, rng.uniform(-HALF, HALF, n), rng)
    noise = y - law.mean(f)
    if name in ("t2", "outliers 10 %"):  # no variance, or one that says nothing of most records
        assert np.quantile(np.abs(noise), 0.5) == pytest.approx(0.6745 * law.noise, rel=0.15)
        noise = np.clip(noise, -5, 5)
    elif not name.startswith("0/1"):  # whose spread at f = .5 is not that on average
        assert noise.std() == pytest.approx(law.noise, rel=0.15)
    assert abs(noise.mean()) < 5 * noise.std() / math.sqrt(n)
    low, high = law.bounds
    assert np.mean((y < low) | (y > high)) < 0.01


@pytest.mark.parametrize("name", OUTPUTS)
def test_centre_and_spread_of_outputs_are_those_over_functions(name):
    law = OUTPUTS[name]
    means = law.mean(np.random.default_rng(0).normal(size=100_000))
    assert means.mean() == pytest.approx(law.centre, abs=0.02 * law.spread)
    assert means.std() == pytest.approx(law.spread, rel=0.03)


@pytest.mark.parametrize("name", INPUTS)
def test_inputs_lie_in_their_box_and_places_where_records_are(name):
    law = INPUTS[name]
    x = law.draw(20_000, np.random.default_rng(1))
    assert np.abs(x).max() <= HALF <= law.half
    at = places(law, 16)
    distances = np.abs(at[:, None] - x).min(axis=1)
    assert distances.max() < 0.01
    assert (np.diff(at) >= 0).all()


def test_functions_have_variance_one_and_are_smooth():
    rng = np.random.default_rng(0)
    values = np.array([smooth_function(rng)(np.array([0.0, 0.05, 1.0])) for _ in range(4000)])
    assert values.std(axis=0) == pytest.approx([1, 1, 1], rel=0.05)
    assert np.abs(values[:, 0] - values[:, 1]).max() < 0.3
    assert np.corrcoef(values[:, 0], values[:, 2])[0, 1] == pytest.approx(math.exp(-0.5), abs=0.05)


@pytest.mark.parametrize("name", CLASSES)
def test_chances_are_chances(name):
    x = np.linspace(-HALF, HALF, 50)
    chance = CLASSES[name](np.sin(x), x)
    assert chance.shape == x.shape
    assert ((chance >= 0) & (chance <= 1)).all()


@pytest.mark.parametrize(("tables", "columns"), [(TABLES, 2), (FACTOR_TABLES, 6)])
def test_tables_have_their_columns_and_bounds(tables, columns):
    for law in tables.values():
        X = law.draw(2000, np.random.default_rng(0))
        assert X.shape == (2000, columns)
        assert np.mean(np.clip(X, *law.bounds) != X) < 0.01


@pytest.mark.parametrize("name", REWARDS)
def test_rewards_scatter_around_their_function(name):
    law = REWARDS[name]
    rng = np.random.default_rng(0)
    values = law.function(rng)(np.full(50_000, 0.3))
    assert 0 <= values[0] <= 1
    assert law.draw(values, rng).mean() == pytest.approx(values[0], abs=0.01)


@pytest.mark.parametrize("name", REAL_LAWS)
def test_outputs_near_records_of_a_real_table_have_the_mean_that_is_stated(name):
    law = REAL_LAWS[name]
    x, y = law.draw(200_000, np.random.default_rng(0))
    assert law.x_bounds[0] <= x.min() < x.max() <= law.x_bounds[1]
    assert law.y_bounds[0] <= y.min() < y.max() <= law.y_bounds[1]
    at = np.unique(law.places(8))
    assert np.isin(at, x).all()
    truth = law.mean(at)
    for place, mean in zip(at, truth, strict=True):
        here = y[x == place]
        assert here.mean() == pytest.approx(mean, abs=5 * y.std() / math.sqrt(len(here)))
    assert y.std() == pytest.approx(law.spread, rel=0.1)
    assert np.ptp(truth) > 0.02 * law.spread


# --- trials ---


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_has_cells_of_its_own_and_gives_trials(name):
    family = FAMILIES[name]
    assert {cell.family for cell in (*family.cells, *family.quick)} == {name}
    assert len(set(family.cells)) == len(family.cells)
    assert any(cell.epsilon == FREE for cell in family.cells)
    cell = next(cell for cell in family.quick if cell.epsilon == FREE)
    heard = []
    [trial] = run_trials([cell], range(1), seed=0, progress=lambda *told: heard.append(told))[cell]
    assert heard == [(0, 1, str(cell))]
    assert math.isfinite(trial.loss)
    assert math.isfinite(trial.reference)
    assert trial.truth.shape == trial.estimate.shape == trial.sd.shape == trial.z.shape
    assert (trial.sd > 0).all()
    assert not np.isinf(trial.z).any()
    assert ((trial.ranks >= 0) & (trial.ranks <= 1)).all()


def test_cells_of_a_law_see_the_same_records():
    other = CELL._replace(model="another", n=50, epsilon=FREE)
    assert generator(CELL, 1, 2).random() == generator(other, 1, 2).random()
    drawn = {
        generator(cell, seed, repeat).random()
        for cell in (CELL, CELL._replace(law="another"), CELL._replace(family="another"))
        for seed in (1, 2)
        for repeat in (1, 2)
    }
    assert len(drawn) == 12


def test_errors_of_rounding_are_not_judged_and_larger_ones_are():
    sd = np.array([0.01, 0.01, 4.0])
    trial = Trial(1.0, math.nan, np.zeros(3), np.array([1.5, 20.0, 8.0]), sd, resolution=2.0)
    assert np.array_equal(trial.z, [math.nan, 10.0, 2.0], equal_nan=True)
    found = judge_cells(family(), {CELL: [trial, trial, trial]})[0]
    assert found.worst_z == 10.0
    assert found.coverage[0.95] == 0.0
    rounded = Trial(1.0, math.nan, np.zeros(3), np.ones(3), np.full(3, 0.01), resolution=2.0)
    found = judge_cells(family(), {CELL: [rounded, rounded]})[0]
    assert math.isnan(found.coverage[0.95])
    assert found.faults == ""


@pytest.mark.parametrize("place", ["loss", "estimate", "sd"])
def test_an_answer_that_is_no_number_is_never_passed_over(place):
    given = {"loss": 1.0, "truth": np.zeros(2), "estimate": np.zeros(2), "sd": np.ones(2)}
    Trial(**given)
    given[place] = given[place] * math.nan
    with pytest.raises(ValueError, match="not a number"):
        Trial(**given)


def test_ranks_are_shares_of_draws_below_the_truth():
    draws = np.array([[0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 2.0, 3.0]])
    assert ranks(draws, np.array([-1.0, 2.5])).tolist() == [0.0, 0.75]


# --- judging ---


def family(**options):
    return Family("regression", (), (), lambda cell, rng: Trial(0.0), "loss", **options)


def made_up(rng, *, repeats=20, shift=0.0, stated=1.0, loss=1.0, reference=math.nan):
    """Trials of an estimator with errors N(shift, 1) that states standard errors ``stated``."""
    found = []
    for _ in range(repeats):
        truth = rng.normal(size=PLACES)
        estimate = truth + shift + rng.normal(size=PLACES)
        draws = estimate[:3, None] + stated * rng.normal(size=(3, 400))
        found.append(
            Trial(
                loss * rng.uniform(0.9, 1.1),
                reference,
                truth,
                estimate,
                np.full(PLACES, stated),
                ranks(draws, truth[:3]),
            )
        )
    return found


def faults(trials, **options):
    return {one.cell: one.faults for one in judge_cells(family(**options), trials)}


@pytest.mark.parametrize("seed", range(5))
def test_an_honest_estimator_has_no_fault(seed):
    assert faults({CELL: made_up(np.random.default_rng(seed))}) == {CELL: ""}


@pytest.mark.parametrize(
    ("options", "letters"),
    [
        ({"shift": 3.0}, "BNU"),
        ({"shift": 0.8}, "B"),
        ({"stated": 0.5}, "N"),
        ({"stated": 2.0}, "W"),
    ],
)
def test_biased_narrow_and_wide_estimators_are_caught(options, letters):
    found = faults({CELL: made_up(np.random.default_rng(0), **options)})[CELL]
    assert set(letters) <= set(found)
    assert ("W" in found) == ("W" in letters)


def test_a_bias_at_one_place_is_caught():
    trials = [
        Trial(1.0, math.nan, np.zeros(PLACES), np.append(3.0, np.zeros(PLACES - 1)), one.sd)
        for one in made_up(np.random.default_rng(0))
    ]
    assert "B" in faults({CELL: trials})[CELL]


@pytest.mark.parametrize(("axis", "larger", "letter"), [("epsilon", 10.0, "E"), ("n", 9000, "R")])
def test_an_error_that_rises_is_caught_and_one_that_falls_is_not(axis, larger, letter):
    rng = np.random.default_rng(0)
    higher = CELL._replace(**{axis: larger})
    rising = {CELL: made_up(rng), higher: made_up(rng, loss=1.2)}
    assert faults(rising) == {CELL: "", higher: letter}
    assert faults({CELL: made_up(rng, loss=1.2), higher: made_up(rng)})[higher] == ""
    # other laws, models and families are not compared
    other = higher._replace(law="another")
    assert faults({CELL: made_up(rng), other: made_up(rng, loss=1.2)})[other] == ""


def test_only_the_model_without_privacy_is_asked_at_the_largest_epsilon():
    rng = np.random.default_rng(0)
    free = CELL._replace(epsilon=FREE)
    assert faults({free: made_up(rng, reference=0.9)}) == {free: "P"}
    assert faults({free: made_up(rng, reference=1.0)}) == {free: ""}
    assert faults({CELL: made_up(rng, reference=0.5)}) == {CELL: ""}
    assert faults({free: made_up(rng, reference=0.9)}, negligible=0.2) == {free: ""}


def test_losses_in_nats_are_compared_by_differences():
    rng = np.random.default_rng(0)
    free = CELL._replace(epsilon=FREE)
    trials = [Trial(-4.9 + 0.01 * rng.normal(), -5.0) for _ in range(10)]
    found = judge_cells(family(in_nats=True), {free: trials})[0]
    assert found.faults == "P"
    assert found.ratio == pytest.approx(math.exp(0.1), rel=0.02)
    trials[:4] = [Trial(1e5, -5.0)] * 4  # catastrophes do not hide the others
    found = judge_cells(family(in_nats=True), {free: trials})[0]
    assert found.faults == "P"
    assert found.ratio < math.exp(10)


def test_clearly_above_is_as_sure_as_two_standard_errors():
    rng = np.random.default_rng(0)
    for repeats in (3, 20):
        found = np.mean([clearly_above(rng.normal(size=repeats)) for _ in range(1000)])
        assert found == pytest.approx(0.0228, abs=0.015)
    assert not clearly_above(np.array([1.0]))
    assert clearly_above(np.array([0.1, 0.1]))
    assert not clearly_above(np.array([0.1, 0.1]), least_error=0.1)


# --- files, reports and comparisons ---


def test_trials_are_read_as_they_were_written_and_joined(tmp_path):
    trials = {CELL: made_up(np.random.default_rng(0), repeats=3)}
    trials[CELL][0].estimate[2] = trials[CELL][0].truth[2]
    trials[CELL][0].sd[2] = 0.0  # says nothing
    path = write_trials(tmp_path / "records.json", trials, seed=5)
    read, seed = read_trials([path, path])
    assert seed == 5
    assert len(read[CELL]) == 6
    assert read[CELL][4].loss == trials[CELL][1].loss
    assert math.isnan(read[CELL][0].reference)
    assert read[CELL][0].z == pytest.approx(trials[CELL][0].z, abs=1e-4, nan_ok=True)
    assert read[CELL][0].ranks == pytest.approx(trials[CELL][0].ranks, abs=1e-4)
    other = write_trials(tmp_path / "other.json", trials, seed=6)
    with pytest.raises(BadInput, match="different seeds"):
        read_trials([path, other])


def test_the_report_has_failing_cells_first_a_picture_and_claims(tmp_path):
    rng = np.random.default_rng(0)
    free = CELL._replace(epsilon=FREE)
    bad = CELL._replace(law="bad")
    trials = {
        CELL: made_up(rng),
        free: made_up(rng, reference=1.0),
        bad: made_up(rng, shift=3.0),
        Cell("mixtures", "mixture", "law", 1000, FREE): [Trial(1.0, 1.0), Trial(1.1, 1.1)],
    }
    findings = report(tmp_path, trials, seed=1)
    assert findings.tables[0].title == "Cells that fail: 1 of 4"
    assert [row[1] for row in findings.tables[0].rows] == ["bad"]
    kept = {claim.claim: claim.kept for claim in findings.claims}
    assert not kept["regression: no cell is biased"]
    assert kept["regression: no error rises with ε or n"]
    assert kept["mixtures: at ε = 10⁶ within 2 % of the model without privacy"]
    assert not any(claim.startswith("mixtures: no cell is biased") for claim in kept)
    assert (tmp_path / "grid.png").read_bytes()[:4] == b"\x89PNG"
    assert len(read_trials([tmp_path / "records.json"])[0]) == 4


def test_cells_with_and_without_intervals_of_outputs_are_in_one_report(tmp_path):
    rng = np.random.default_rng(0)
    [first] = made_up(rng, repeats=1)
    inside = np.array([0.95, 0.94, 0.93])
    trials = {CELL: [first], CELL._replace(law="outputs"): [replace(first, outputs=inside)]}
    report(tmp_path, trials, seed=1)
    lines = (tmp_path / "results.csv").read_text().splitlines()
    assert "outputs_3" in lines[0]
    assert ",0.95,0.94,0.93," in lines[2]


def test_cells_that_are_worse_together_do_not_keep_the_claim(tmp_path):
    """One trial of each tells nothing by itself."""
    cells = [CELL._replace(law=str(law), epsilon=FREE) for law in range(8)]
    for loss, kept in ((1.5, False), (1.0, True)):
        trials = {cell: [Trial(loss + 0.1 * place, 1.3)] for place, cell in enumerate(cells)}
        claims = report(tmp_path, trials, seed=1).claims
        [found] = [claim for claim in claims if "without privacy" in claim.claim]
        assert found.found.startswith("0 of 8 clearly are not")
        assert found.kept is kept


def test_results_are_written_between_the_marks_of_a_page(tmp_path):
    trials = {CELL: made_up(np.random.default_rng(0), shift=3.0)}
    findings = report(tmp_path, trials, seed=1)
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- results -->\nstale\n<!-- end of results -->\nafter\n")
    for _ in range(2):  # the same again
        write_page(page, judge_families(trials), findings.claims, findings.notes)
    text = page.read_text()
    assert text.startswith("before\n<!-- results -->\n")
    assert text.endswith("\n<!-- end of results -->\nafter\n")
    assert "stale" not in text
    assert "| 1 of 1 |" in text  # cells of the model that fail
    assert (tmp_path / "page.png").exists()
    page.write_text("no marks")
    with pytest.raises(BadInput, match="has no lines"):
        write_page(page, judge_families(trials), findings.claims, findings.notes)


def test_two_versions_are_compared_in_pairs():
    rng = np.random.default_rng(0)
    old = rng.uniform(1, 3, 30)
    ratio, error = paired_ratio(old, 0.9 * old, in_nats=False)
    assert ratio == pytest.approx(0.9)
    assert error < 1e-9
    ratio, _ = paired_ratio(old, old[:10] + 0.1, in_nats=True)
    assert ratio == pytest.approx(math.exp(0.1))
    before = {CELL: made_up(rng), CELL._replace(law="gone"): made_up(rng)}
    after = {CELL: made_up(rng, loss=0.5), CELL._replace(law="new"): made_up(rng)}
    table = compare(judge_families(before), judge_families(after))
    assert [(row[1], row[5]) for row in table.rows] == [("law", "better")]
    assert {len(row) for row in table.rows} == {len(table.headings)}


def test_parts_are_compared_by_cells_that_fail_and_losses_in_pairs(tmp_path):
    rng = np.random.default_rng(0)
    cells = [CELL._replace(law=law) for law in "abc"]
    before = judge_families({cell: made_up(rng, shift=3.0) for cell in cells})
    after = judge_families(
        {
            cells[0]: made_up(rng, loss=0.5),
            cells[1]: made_up(rng, loss=1.5),
            CELL._replace(law="new"): made_up(rng),
        }
    )
    table = compare_parts(before, after)
    [row] = table.rows
    assert row[:4] == ("regression", "2", "2", "0")
    assert row[6:] == ("1", "1", "1")
    assert float(row[4]) < 0.5 < float(row[5])
    page = tmp_path / "page.md"
    page.write_text("<!-- results -->\n\n<!-- end of results -->")
    write_page(page, after, [], ["note"], before)
    assert "fail, before" in page.read_text()


# --- models without privacy ---


def test_regression_without_privacy_is_an_exact_gaussian_process():
    rng = np.random.default_rng(0)
    x = rng.uniform(-HALF, HALF, 300)
    y = 2 + np.sin(2 * x) + 0.5 * rng.normal(size=300)
    at = np.linspace(-2.8, 2.8, 9)
    given = {"constant": 2.0, "spread": 1.0, "noise": 0.5}
    found = regression_mean(x, y, at, **given, length=1.0, learn_noise=False)
    kernel = RBF(1.0, "fixed") + ConstantKernel(4.0, "fixed")
    exact = GaussianProcessRegressor(kernel, alpha=0.25, optimizer=None).fit(x[:, None], y)
    assert found == pytest.approx(exact.predict(at[:, None]), abs=1e-4)
    wrong = given | {"noise": 4.0}
    learned = regression_mean(x, y, at, **wrong, length=None, learn_noise=True)
    assert learned == pytest.approx(2 + np.sin(2 * at), abs=0.3)


def test_one_component_without_privacy_is_sample_mean_and_covariance():
    rng = np.random.default_rng(0)
    X = rng.exponential(size=(500, 2))
    covariance = np.cov(X.T, bias=True)
    centred = X - X.mean(axis=0)
    squares = np.sum(centred @ np.linalg.inv(covariance) * centred, axis=1)
    exact = -0.5 * np.mean(squares + np.log(np.linalg.det(2 * math.pi * covariance)))
    assert mixture_log_likelihood(X, X, 1, seed=0) == pytest.approx(exact, abs=1e-6)


def test_clusters_without_privacy_are_found():
    X = np.repeat([[0.0, 0.0], [5.0, 0.0], [0.0, 5.0]], 50, axis=0)
    assert clusters_cost(X + 0.1 * np.random.default_rng(0).normal(size=X.shape), 3, 0) < 0.03


def test_upper_confidence_without_privacy_finds_the_best():
    rng = np.random.default_rng(0)
    candidates = rng.uniform(-HALF, HALF, (400, 10))
    values = np.exp(-((candidates - 1) ** 2))
    chosen = upper_confidence_choices(
        candidates,
        values + 0.1 * rng.normal(size=values.shape),
        constant=0.5,
        spread=0.5,
        noise=0.1,
        length=1.0,
        weight=2.0,
    )
    regret = values.max(axis=1) - values[np.arange(400), chosen]
    assert regret[200:].mean() < 0.02
