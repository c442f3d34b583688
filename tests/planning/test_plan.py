"""``reticent.plan`` and ``reticent plan``.

Made-up records like real ones, fits like real ones, and answers to questions.
"""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

import reticent
from reticent.planning import simulated_fits as planning
from reticent.planning import synthetic_records as simulation
from reticent.planning.plan import Plan, Row, plan
from reticent.planning.prior_draws import Function
from reticent.planning.simulated_fits import DrawnFunction, Planner, Trial
from reticent.planning.synthetic_records import MadeUp, evenly, fit_made_up, inputs, records
from tests.support.prose import says

BOX = reticent.Bounds(x=[(-1, 1)], y=(-3, 3))


def small(kernel=None, **options):
    kernel = RBF(0.7, "fixed") if kernel is None else kernel
    options = {"bounds": BOX, "delta": 1e-6, "basis": 8, "stages": 2, "noise": 0.3} | options
    return reticent.GPRegressor(kernel, **options)


def rng(seed=0):
    return np.random.default_rng(seed)


# ---- records


@pytest.mark.parametrize(
    ("x", "norm"), [([(-1, 1)] * 3, 1.2), ([(0, 100), (-0.1, 0.1)], 3.0), ([(0, 2)] * 2, 50.0)]
)
def test_inputs_fill_the_box_as_far_as_the_norm_allows(x, norm):
    bounds = reticent.Bounds(x=x, norm=norm)
    unit = inputs(bounds, 2000, rng())
    natural = bounds.unscale(unit)
    low, high = np.array(x).T
    assert unit.shape == (2000, len(x))
    assert (natural >= low - 1e-9).all()
    assert (natural <= high + 1e-9).all()
    assert (np.linalg.norm(natural - (low + high) / 2, axis=1) <= norm * (1 + 1e-9)).all()
    assert (
        np.abs(natural.mean(axis=0) - (low + high) / 2) < 4 * natural.std(axis=0) / 2000**0.5
    ).all()
    reached = np.minimum((high - low) / 2, norm)
    assert (np.abs(natural - (low + high) / 2).max(axis=0) > 0.8 * reached).all()


def test_a_few_outputs_stand_for_many():
    """Sums over all records have the mean and the variance that they would have over n of them."""
    n = 6400
    places = 64
    noise = 0.5
    values = np.linspace(-1, 1, places)
    sums = []
    spreads = []
    for i in range(400):
        place, outputs = records(values, noise, n, rng(i))
        assert len(place) == places * simulation.SPREAD
        sums.append((n / len(place)) * outputs.sum())
        spreads.append(np.mean((outputs - values[place]) ** 2))
    assert np.std(sums) == pytest.approx(noise * n**0.5, rel=0.12)
    assert np.mean(sums) == pytest.approx(0, abs=4 * noise * n**0.5 / 20)
    assert np.mean(spreads) == pytest.approx(noise**2, rel=0.03)
    place, outputs = records(values, noise, places, rng())
    assert (place == np.arange(places)).all()
    assert outputs.shape == (places,)


def test_noise_and_sums_are_those_of_a_real_fit():
    x = rng().uniform(-1, 1, (300, 1))
    y = np.sin(3 * x[:, 0]) + 0.3 * rng(1).normal(size=300)
    model = small(records_per_person=2)
    for epsilon in (1.0, 1e6):
        real = small(records_per_person=2, epsilon=epsilon, random_state=1).fit(x, y)
        priors = model._make_prior(BOX)
        made_up = fit_made_up(model, MadeUp(x, y, 300), BOX, epsilon, priors, [0])
        for one, other in zip(real.releases_, made_up.releases_, strict=True):
            assert other.scale == pytest.approx(one.scale, rel=1e-6)
            assert not other.private
    away = np.abs(made_up.releases_[0].value - real.releases_[0].value)
    assert (away < 6 * 2**0.5 * made_up.releases_[0].scale).all()
    assert made_up.releases_[0].scale.max() < 0.02  # of sums over 300 records
    assert made_up.predict(x) == pytest.approx(real.predict(x), abs=0.01)


def test_records_that_stand_for_others_count_as_many():
    x = rng().uniform(-1, 1, (200, 1))
    y = rng(1).normal(size=200)
    model = small()
    one, ten = (
        fit_made_up(model, MadeUp(x, y, n), BOX, 1e6, model._make_prior(BOX), [0])
        for n in (200, 2000)
    )
    assert ten.releases_[0].n == 2000
    assert ten.releases_[0].value == pytest.approx(10 * one.releases_[0].value, abs=0.5)
    assert ten.releases_[0].value[0] > 100
    assert (ten.releases_[0].scale == one.releases_[0].scale).all()


def test_many_records_are_planned_as_if_they_were_there(monkeypatch):
    model = small()
    whole = plan(model, 3000, [0.3, 1], draws=16)
    monkeypatch.setattr(planning, "PLACES", 256)
    few = plan(model, 3000, [0.3, 1], draws=16)
    for a, b in zip(whole.rows, few.rows, strict=True):
        assert b.rmse == pytest.approx(a.rmse, rel=0.15)
        assert b.coverage == pytest.approx(a.coverage, abs=0.08)
        assert b.rmse != a.rmse


# ---- plans


def test_a_plan_is_what_fits_then_do():
    expected = plan(small(), 1000, [0.3, 3], draws=20)
    for row in expected.rows:
        errors = []
        for i in range(20):
            random = rng([7, i])
            truth = Function(RBF(0.7), evenly(BOX, 600, random), random)
            x = random.uniform(-1, 1, (1000, 1))
            at = random.uniform(-1, 1, (300, 1))
            y = truth(x, random) + 0.3 * random.normal(size=1000)
            f = truth(at, random)
            model = small(epsilon=row.epsilon, random_state=i).fit(x, y)
            errors.append(np.sqrt(np.mean((model.predict(at) - f) ** 2)))
        error = np.hypot(row.rmse_se, np.std(errors) / 20**0.5)
        assert row.rmse == pytest.approx(np.mean(errors), abs=3 * error)
        assert error < 0.2 * row.rmse


def test_rows_say_what_was_simulated():
    steps = []
    found = reticent.plan(small(), [200, 2000], [10, 0.1], draws=3, progress=steps.append)
    assert sum(steps) == 2 * 3 * 3
    assert [np.mean([one.rmse for one in trials]) for trials in found.trials] == [
        row.rmse for row in found.rows
    ]
    assert [(row.n, row.epsilon) for row in found.rows] == [
        (200, 10.0),
        (200, 0.1),
        (2000, 10.0),
        (2000, 0.1),
    ]
    for row in found.rows:
        assert (row.basis, row.stages) == (8, 2)
        assert 0 < row.non_private_rmse < row.rmse * 1.05
        assert row.output_error == pytest.approx(np.hypot(row.rmse, 0.3), rel=0.05)
        assert 0 <= row.coverage <= 1
    assert found.rows[3].rmse < found.rows[1].rmse < found.rows[1].prior_sd * 1.3
    assert found.rows[2].rmse < found.rows[3].rmse
    assert found.rows[0].prior_sd == found.rows[2].prior_sd
    assert found.noise == pytest.approx(0.3)
    assert "2,000      8     0.1" in str(found)
    again = reticent.plan(small(), [200, 2000], [10, 0.1], draws=3)
    assert again.rows == found.rows
    assert reticent.plan(small(), 200, [10], draws=3, seed=1).rows[0] != found.rows[0]


def test_every_value_of_epsilon_sees_the_same_world():
    alone = plan(small(), 300, [1], draws=2)
    together = plan(small(), 300, [0.1, 1], draws=2)
    assert alone.rows[0] == together.rows[1]


def test_bases_are_compared_in_the_same_world():
    found = plan(small(), 500, [0.1, 10], draws=3, basis=[2, 8])
    assert [(row.basis, row.epsilon) for row in found.rows] == [
        (2, 0.1),
        (2, 10),
        (8, 0.1),
        (8, 10),
    ]
    few = found.rows[1]
    many = found.rows[3]
    assert (
        many.rmse < 0.7 * few.rmse
    )  # two functions cannot follow it, however many records there are
    assert many.non_private_rmse < 0.7 * few.non_private_rmse
    assert (
        found.rows[2:] == plan(small(), 500, [0.1, 10], draws=3).rows
    )  # eight are the model's own
    best = min(few.rmse, many.rmse)
    assert found.epsilon_for(best * 1.0001).value == pytest.approx(
        10, rel=0.01
    )  # for the best of them
    axes = found.figure().axes[0]
    assert {"2 functions", "8 functions"} <= set(axes.get_legend_handles_labels()[1])
    for basis in (0, 2.5, [8, 501], []):
        with pytest.raises(reticent.BadInput, match="basis must be"):
            plan(small(), 500, [1], draws=1, basis=basis)


def test_without_privacy_few_stages_say_all():
    """The fits that stand for no privacy save stages, and lose nothing by it."""
    planner = Planner(small(stages=12), 2, 0, lambda fits: None)
    (few,) = planner.expect(500, [planning.NO_PRIVACY])
    assert few[0].stages == 2
    (all_of_them,) = planner.expect(500, [0.99 * planning.NO_PRIVACY])
    assert all_of_them[0].stages == 12
    assert [one.rmse for one in few] == pytest.approx([one.rmse for one in all_of_them], rel=0.02)


def test_the_spread_of_outputs_is_given_or_the_kernels_or_a_tenth_of_the_range():
    white = RBF(1.0, "fixed") + WhiteKernel(0.25, "fixed")
    assert plan(small(white, noise=None), 50, [1], draws=1).noise == pytest.approx(0.5)
    assert plan(small(noise=None), 50, [1], draws=1).noise == pytest.approx(0.6)


def test_hyperparameters_are_drawn_where_they_are_learned():
    planner = Planner(small(ConstantKernel(1.0) * RBF(1.0, (0.5, 2.0))), 1, 0, lambda fits: None)
    lengths = np.exp([planner._kernel(i).theta[1] for i in range(40)])
    assert 0.5 <= lengths.min() < 0.6
    assert 1.8 < lengths.max() <= 2.0
    assert np.abs(np.log2(lengths[:6]).mean()) < 0.3  # evenly, from the first few on
    default = Planner(small().set_params(kernel=None), 1, 0, lambda fits: None)
    assert len({str(default._kernel(i)) for i in range(10)}) == 10
    lengths = np.log([default._kernel(i).length for i in range(40)])
    assert (
        np.log(1.4) < lengths.max() < np.log(1.6)
    )  # all that there are, not only those that are weighed
    fixed = Planner(small(RBF(1.0), learn_kernel=False), 1, 0, lambda fits: None)
    assert fixed._kernel(0) == fixed._kernel(1) == RBF(1.0)
    assert fixed.places.shape == (1, 0)


def test_kernels_of_functions_that_are_kept_have_the_law_they_have_inside_the_bounds(monkeypatch):
    """Half of all kernels make functions that leave the bounds.

    The others are then taken evenly, none of them twice.
    """
    planner = Planner(small(RBF(1.0, (0.5, 2.0))), 40, 0, lambda fits: None)
    kept = []

    def judged(points, turn):
        length = planner._kernel(turn).length_scale
        kept.append(length)
        return DrawnFunction(
            lambda at, random: np.full(len(at), length),
            0.1,
            float(length > 1),
            planner._place(turn),
        )

    monkeypatch.setattr(planner, "_draw", judged)
    lengths = [float(one.function(np.zeros((1, 1)), None)[0]) for one in planner._drawn]
    assert len(lengths) == len(set(lengths)) == 40
    assert max(lengths) <= 1
    assert np.log2(lengths).mean() == pytest.approx(-0.5, abs=0.05)
    assert np.corrcoef(planner.places[:, 0], np.log(lengths))[0, 1] == pytest.approx(1)
    assert len(kept) == pytest.approx(80, abs=3)


def test_nothing_is_charged_and_the_model_stays_as_it_was(tmp_path):
    ledger = reticent.Ledger(tmp_path / "budget.db")
    ledger.open("people", epsilon=1, delta=1e-5)
    model = small(ledger=str(tmp_path / "budget.db"), dataset="people", epsilon=0.5)
    before = model.get_params()
    plan(model, 100, [1], draws=1)
    assert ledger.history("people") == []
    assert model.get_params() == before
    assert not hasattr(model, "releases_")


def test_functions_outside_the_bounds_are_noted():
    wild = plan(small(ConstantKernel(400.0, "fixed") * RBF(0.3, "fixed")), 100, [1], draws=1)
    assert "lies outside the output's bounds" in wild.notes[0]
    assert plan(small(), 100, [1], draws=1).notes == ()
    assert "not below 1/n" in plan(small(delta=0.01), 100, [1], draws=1).notes[0]


@pytest.mark.parametrize(
    ("model", "arguments", "words"),
    [
        (reticent.PrivateMean(bounds=BOX), {}, "takes a GPRegressor"),
        (small(bounds=None), {}, "no bounds"),
        (small(bounds=reticent.Bounds(x=(0, 1), y=(0, 1))), {}, "a range for each"),
        (small(bounds=reticent.Bounds(x=[(0, 1)], y=[(0, 1), (0, 2)])), {}, "one output"),
        (small(), {"n": 1.5}, "whole numbers"),
        (small(), {"n": []}, "n must be"),
        (small(), {"epsilons": [1, -1]}, "epsilons must be"),
        (small(), {"draws": 0}, "draws must be"),
        (small(delta=0), {}, "above 0"),
        (small(RBF([1.0, 1.0])), {}, "cannot be used for 1 inputs"),
    ],
)
def test_refusals(model, arguments, words):
    with pytest.raises(reticent.ReticentError, match=words):
        plan(model, **{"n": 100, "epsilons": [1], "draws": 1, **arguments})


# ---- answers


class Line:
    """A planner whose error is 10/(nε), and 0.01 at least."""

    def __init__(self):
        self.asked = []

    def error(self, n, epsilon):
        return max(10 / (n * epsilon), 0.01)

    def expect(self, n, epsilons, basis=None):
        self.asked.append(n)
        return [[Trial(self.error(n, epsilon), 0, 0, 9, 3, 1)] for epsilon in epsilons]

    def plan(self, sizes, epsilons):
        rows = [
            Row(e, n, 9, 3, self.error(n, e), 0, 1, 0.95, 0.01, 1, 0, 1)
            for n in sizes
            for e in epsilons
        ]
        return Plan(tuple(rows), 0.1, 1, (), self)


def test_which_epsilon():
    found = Line().plan([100], [0.1, 1, 10])
    value, reason = found.epsilon_for(0.5)
    assert value == pytest.approx(0.2)
    assert says(reason, "ε=0.1 leaves 1", "ε=1 leaves 0.1")
    assert found.epsilon_for(0.03).value == pytest.approx(10 / 3)
    value, reason = found.epsilon_for(2.0)
    assert value == 0.1
    assert says(reason, "smallest")
    assert found.epsilon_for(0.005).value is None
    assert says(found.epsilon_for(0.005).reason, "without privacy", "100 records", "0.01")
    assert says(Line().plan([100], [0.1, 1]).epsilon_for(0.05).reason, "ε=1", "largest", "0.1")
    several = Line().plan([100, 1000], [0.1, 1])
    assert several.epsilon_for(0.05, n=1000).value == pytest.approx(0.2)
    for n, words in ((None, "say which"), (7, "not for n=7")):
        with pytest.raises(reticent.BadInput, match=words):
            several.epsilon_for(0.05, n=n)
    with pytest.raises(reticent.BadInput, match="positive number"):
        found.epsilon_for(-1)


def test_how_many_records():
    line = Line()
    value, reason = line.plan([100, 300], [1]).records_for(0.05, 1)
    assert value == 200
    assert says(reason, "100 records leave 0.1", "300 records leave 0.0333")
    assert line.asked == []  # it was planned
    assert line.plan([100], [1]).records_for(0.02, 1).value == pytest.approx(500, rel=0.05)
    assert line.plan([100], [1]).records_for(0.02, 0.5).value == pytest.approx(
        1000, rel=0.05
    )  # another ε
    assert line.plan([5000], [1]).records_for(0.5, 1).value == pytest.approx(20, abs=1)  # fewer
    assert line.plan([100], [1]).records_for(50, 1).value == 10  # there is a limit to that
    value, reason = line.plan([100], [1]).records_for(0.005, 1)
    assert value is None
    assert says(reason, "100,000,000 records", "0.01")
    with pytest.raises(reticent.BadInput, match="positive"):
        line.plan([100], [1]).records_for(0.1, -1)


def test_figures():
    axes = Line().plan([100, 1000], [0.1, 1, 10]).figure().axes[0]
    assert axes.get_xlabel() == "ε"
    labels = axes.get_legend_handles_labels()[1]
    assert {"100 records", "1,000 records"} <= set(labels)
    lines = [list(line.get_ydata()) for line in axes.lines]
    assert [1.0, 0.1, 0.01] in [pytest.approx(line) for line in lines]
    against_n = Line().plan([100, 1000], [1]).figure().axes[0]
    assert against_n.get_xlabel() == "number of records"


def test_the_same_question_has_the_same_answer():
    assert plan(small(), 200, [3], draws=1) == plan(small(), 200, [3], draws=1)
