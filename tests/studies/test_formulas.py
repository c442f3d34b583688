"""Made-up data have the law that is said, seeds give the same again, and the papers' formulas the
numbers that a hand finds.
"""

import math

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.optimize import brentq, minimize

from reticent.privacy.accounting.composition import calibrate
from reticent.studies.common import figures as pictures
from reticent.studies.common.bandit_environments import (
    camel,
    environment,
    michalewicz,
    styblinski,
)
from reticent.studies.common.cluster_data import CONTINENTS, VISITS, clouds, places
from reticent.studies.common.figures import Band, Line, Panel, draw
from reticent.studies.common.results import Claim, Findings, ResultTable, plus_minus
from reticent.studies.honkela2021 import data as honkela_data
from reticent.studies.honkela2021.algorithm1_as_printed import feature_radius2, sensitivity
from reticent.studies.honkela2021.algorithm2_as_printed import (
    SelectionBudget,
    coinpress_mean,
    selection_budget,
)
from reticent.studies.honkela2021.vectorized_search import Scheme, liu_talwar, papernot_steinke
from reticent.studies.park2017 import as_printed as dpem_literal
from reticent.studies.park2017.kmeans import dp_lloyd
from reticent.studies.smith2018 import exponential_mechanism as smith_parameters
from reticent.studies.smith2018.fig1c_integral_kernel import ages
from reticent.studies.smith2018.printed_sensitivities import (
    exact_sensitivity,
    row_sum,
    smith_kernel,
)
from reticent.studies.smith2018.table1 import children
from reticent.studies.tuo2023 import attacks as tuo_attacks
from reticent.studies.tuo2023.orbit import orbit

MADE = {
    "places": lambda seed: places(500, seed),
    "crowded places": lambda seed: places(500, seed, crowded=True),
    "clouds": lambda seed: clouds(500, 3, 4, seed),
    "sinc": lambda seed: np.concatenate(
        honkela_data.noisy_sinc(100, 0.1, np.random.default_rng(seed))
    ),
    "ages": lambda seed: np.concatenate(
        [part.ravel() for part in ages(np.random.default_rng(seed))]
    ),
    "children": lambda seed: children(np.random.default_rng(seed))[0],
    "gp-sum": lambda seed: environment("gp-sum", seed).values(
        np.random.default_rng(0).uniform(-2, 2, (50, 2))
    ),
    "Lloyd": lambda seed: dp_lloyd(places(500, 0), 3, 1.0, seed),
}


@pytest.mark.parametrize("name", MADE)
def test_a_seed_gives_the_same_and_another_something_else(name):
    make = MADE[name]
    assert np.array_equal(make(3), make(3))
    assert not np.array_equal(make(3), make(4))


def test_continents_have_their_shares_of_visits():
    X = places(40_000, 5)
    nearest = ((X[:, None] - CONTINENTS) ** 2).sum(axis=2).argmin(axis=1)
    assert np.bincount(nearest, minlength=5) / len(X) == pytest.approx(VISITS, abs=0.03)


def test_clouds_have_as_many_clusters_as_asked_for():
    X = clouds(4000, 2, 3, 11)
    assert X.shape == (4000, 2)
    assert np.abs(X).max() <= 1
    spread = X.std(axis=0).max()
    random = np.random.default_rng([11, 2])
    centres = random.uniform(-0.6, 0.6, size=(3, 2))
    near = np.sqrt(((X[:, None] - centres) ** 2).sum(axis=2)).min(axis=1)
    assert np.median(near) < 0.2 < spread


def test_functions_of_bandits_have_their_known_optima():
    assert camel(np.array([[0.0898, -0.7126], [-0.0898, 0.7126]])) == pytest.approx(
        [1.0316, 1.0316], abs=1e-4
    )
    assert camel(np.array([[0.0, 0.0], [1.0, 1.0]])) == pytest.approx([0, -(4 - 2.1 + 1 / 3 + 1)])
    assert styblinski(np.full((1, 20), -2.903534)) == pytest.approx([20 * 39.16617], rel=1e-6)
    assert styblinski(np.array([[1.0, 2.0]])) == pytest.approx([-(1 - 16 + 5 + 16 - 64 + 10) / 2])
    assert michalewicz(np.array([[2.20, 1.57]])) == pytest.approx([1.8013], abs=1e-3)


@pytest.mark.parametrize("name", ["camel", "michalewicz"])
def test_rewards_scatter_by_a_tenth_around_their_values(name):
    where = environment(name, 0)
    random = np.random.default_rng(0)
    values = where.values(where.draw(random, 200, 25))
    assert values.shape == (200, 25)
    noise = where.rewards(random, values) - values
    assert noise.std() == pytest.approx(0.1, rel=0.05)
    assert noise.mean() == pytest.approx(0, abs=0.01)
    assert where.bounds.y == ((0.0, 1.0),)


def test_rewards_of_the_sum_are_coins():
    where = environment("gp-sum", 0)
    random = np.random.default_rng(0)
    rewards = where.rewards(random, np.full(20_000, 0.3))
    assert set(rewards) == {0.0, 1.0}
    assert rewards.mean() == pytest.approx(0.3, abs=0.015)


@pytest.mark.parametrize("setup", honkela_data.SETUPS, ids=lambda one: one.name)
def test_data_of_each_section(setup):
    data = setup.draw(np.random.default_rng(0))
    assert (len(data.x), len(data.at)) == (setup.n, 512)
    assert np.abs(np.concatenate([data.x, data.at])).max() <= 4
    noise = np.concatenate([data.y - data.truth(data.x), data.y_at - data.truth(data.at)])
    assert noise.std() == pytest.approx(setup.sigma, rel=0.1)
    assert np.histogram(data.x, 4, (-4, 4))[0] / setup.n == pytest.approx(
        np.full(4, 0.25), abs=0.08
    )


def test_an_area_has_255_people_and_its_density_is_theirs():
    expected, people = ages(np.random.default_rng(0))
    assert people.shape == (255, 1)
    assert expected.sum() == pytest.approx(255)
    found = np.histogram(people, np.linspace(0, 100, 11))[0]
    told = expected.reshape(10, 10).sum(axis=1)
    assert np.abs(found - told).max() < 5 * np.sqrt(told.max())


def test_children_grow():
    X, weight = children(np.random.default_rng(0), 4000)
    months, height = X.T
    assert height[months > 48].mean() - height[months < 18].mean() > 15
    assert np.corrcoef(height, weight)[0, 1] > 0.8
    assert weight.min() == 9.8
    assert weight.max() <= 21.5


def test_an_orbit_of_another_shape():
    t = np.linspace(0, 1, 101)
    radius, angle, rate, _ = orbit(t, perigee=1.2, eccentricity=0.0).T
    assert np.ptp(radius) < 0.01  # a circle
    assert np.abs(angle).max() < 0.02  # which is gone round evenly
    assert np.abs(rate).max() < 0.05
    radius = orbit(t, perigee=1.0, eccentricity=0.5)[:, 0]
    assert radius.max() / radius.min() == pytest.approx(1.5 / 0.5, rel=0.01)


@pytest.mark.parametrize(
    ("radius2", "reach", "ratio", "squared"),
    [
        (1.0, 1.0, 1.0, 0.5 + 2 + 2),
        (2.0, 1.0, 1.0, 0.5 + 4 + 8),
        (1.0, 2.0, 1.0, 8 + 8 + 2),
        (1.0, 1.0, 0.5, 1 + 2 + 1),
    ],
)
def test_the_papers_sensitivity_by_hand(radius2, reach, ratio, squared):
    assert sensitivity(radius2, reach, ratio) == pytest.approx(math.sqrt(squared))


@pytest.mark.parametrize("count", [3, 4])
def test_the_bound_on_features_by_hand(count):
    from sklearn.gaussian_process.kernels import RBF

    at = {3: 2 * (1 + math.exp(-1)) + math.exp(-4), 4: 2 * (1 + math.exp(-1) + math.exp(-4))}[
        count
    ]  # (7), gap 1
    least = min(count, at, 1 + (count - 1) * math.exp(-0.25))
    assert feature_radius2(RBF(1.0), np.arange(count, dtype=float)) == pytest.approx(least)


def test_a_search_of_the_paper_divides_its_promise():
    shares = selection_budget(3.0, 1e-5)
    assert 0 < shares.epsilon < 1
    assert shares.delta < 1e-5
    log_t = -0.01 * shares.tries
    assert math.exp(log_t) * (1 - log_t) == pytest.approx(1e-5, rel=0.15)  # tries are whole numbers
    t = brentq(lambda t: t * (1 - math.log(t)) - 1e-5, 1e-12, 1e-4)
    assert shares.delta == pytest.approx((0.01 * t) ** 2 / 2)
    assert 1 - shares.epsilon == pytest.approx(0.01 * t, rel=1e-5)  # a third, less √(2δ)
    one = SelectionBudget(0.5, 1e-6, 10)
    assert one.rho + 2 * math.sqrt(one.rho * math.log(1e6)) == pytest.approx(0.5)


def test_coinpress_finds_a_mean_and_pays_for_it():
    random = np.random.default_rng(0)
    values = random.normal(30.0, 1.0, 2000)
    assert coinpress_mean(values, 0.0, 100.0, 1e6, random) == pytest.approx(values.mean(), abs=0.01)
    far = [abs(coinpress_mean(values, 0.0, 100.0, rho, random) - 30) for rho in (0.001, 1.0)]
    assert far[0] > far[1]
    assert (
        coinpress_mean(values + 1000, 0.0, 1.0, 1e9, random) < 100
    )  # a range that does not hold it


def test_the_noise_of_coinpress_is_that_of_its_last_step():
    """Eleven steps share a quarter of ρ, and each leaves a range for the next."""
    n = 500
    rho = 0.5
    radius = 3.0
    for share in [0.25 / 11] * 11 + [0.75]:
        sd = 2 * (radius + math.sqrt(2 * math.log(200 * n))) / n / math.sqrt(2 * share * rho)
        radius = math.sqrt(2 * math.log(200)) * math.sqrt(1 / n + sd**2)
    random = np.random.default_rng(1)
    found = np.array([coinpress_mean(np.zeros(n), 0.5, 3.0, rho, random) for _ in range(800)])
    assert found.std() == pytest.approx(sd, rel=0.1)
    assert np.mean(np.abs(found) < sd) == pytest.approx(0.683, abs=0.06)
    assert found.mean() == pytest.approx(0, abs=0.15 * sd)


def test_schemes_run_as_long_as_their_coin_says():
    random = np.random.default_rng(0)
    runs = [Scheme(1.0, 1.0, 0.1, 30).runs(random) for _ in range(4000)]
    assert np.mean(runs) == pytest.approx((1 - 0.9**30) / 0.1, rel=0.05)
    assert (min(runs), max(runs)) == (1, 30)
    ours = papernot_steinke(3.0, 1e-5, 50)
    theirs = liu_talwar(3.0, 1e-5)
    assert ours.multiplier < theirs.multiplier
    assert ours.rho == pytest.approx(1 / (2 * ours.multiplier**2))
    assert theirs.multiplier == pytest.approx(
        calibrate(selection_budget(3.0, 1e-5).epsilon, selection_budget(3.0, 1e-5).delta)
    )
    assert 1 / ours.stop == pytest.approx(50, rel=0.05)


def test_lloyd_without_noise_is_lloyd():
    X = clouds(2000, 2, 3, 11)
    found = dp_lloyd(X, 3, 1e12, seed=1, steps=30)
    which = ((X[:, None] - found) ** 2).sum(axis=2).argmin(axis=1)
    for k in set(which):
        assert found[k] == pytest.approx(X[which == k].mean(axis=0), abs=1e-3)
    assert np.abs(dp_lloyd(X, 3, 1e-6, seed=1)).max() <= 1


@pytest.mark.parametrize(
    ("name", "uses", "value"),
    [
        ("linear", 10, 10 * math.sqrt(2 * math.log(1.25e8))),
        ("zCDP", 10, math.sqrt(10 / 2) / (math.sqrt(math.log(1e4) + 1) - math.sqrt(math.log(1e4)))),
    ],
)
def test_multipliers_by_hand(name, uses, value):
    assert dpem_literal.multiplier(name, 1.0, 1e-4, uses, 1e-8) == pytest.approx(value)


def test_advanced_composition_spends_just_the_budget():
    noise = dpem_literal.multiplier("advanced", 2.0, 1e-4, 50, 1e-8)
    uses = 50
    each = 1e-8
    e = math.sqrt(2 * math.log(1.25 / each)) / noise
    assert uses * e * math.expm1(e) + math.sqrt(
        2 * uses * math.log(1 / (1e-4 - uses * each))
    ) * e == pytest.approx(2.0)


def test_moments_are_bounded_at_the_best_order():
    noise = dpem_literal.multiplier("moments accountant", 1.0, 1e-4, 50, 1e-8)
    spent = [(50 * (k * k + k) / (2 * noise**2) + math.log(1e4)) / k for k in range(1, 101)]
    assert min(spent) == pytest.approx(1.0)


def test_row_sums_and_kernels_by_hand():
    assert row_sum(np.array([[1.0, -2.0], [0.5, 0.25]])) == 3
    found = smith_kernel(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0], [0.0, 0.0]]), 5.0)
    assert found[0] == pytest.approx([math.exp(-1), 1])
    assert exact_sensitivity(
        np.diag([2.0, 3.0]), np.array([[1.0, 0.5], [0.5, 4.0]])
    ) == pytest.approx(6.0)


def test_the_exact_sensitivity_of_a_likelihood_is_what_the_worst_records_do():
    """All pairs of histograms of three people that differ in one of them."""
    K = 3.0 * np.exp(
        -np.square(np.subtract.outer(np.arange(4.0), np.arange(4.0))) / 2
    ) + 0.5 * np.eye(4)
    n = 3
    unit = np.eye(4)
    worst = 0.0
    for a in range(4):
        for b in range(4):
            others = unit[a] + unit[b]
            told = smith_parameters.likelihoods
            values = [told(others + one, [K])[0] for one in unit]
            worst = max(worst, np.ptp(values))
    found = smith_parameters.sensitivities([K], n)
    assert found["exact"][0] == pytest.approx(worst)
    assert found["corrected"][0] >= worst


def test_the_exponential_mechanism_by_hand():
    p = smith_parameters.chosen(np.array([0.0, 2.0, 1.0]), 2.0, 4.0)
    assert p == pytest.approx(np.array([1, math.e**2, math.e]) / (1 + math.e + math.e**2))


def test_likelihoods_are_those_of_a_normal_law():
    from scipy.stats import multivariate_normal

    K = np.array([[2.0, 0.5], [0.5, 1.0]])
    y = np.array([1.0, -2.0])
    assert smith_parameters.likelihoods(y, [K])[0] == pytest.approx(
        multivariate_normal(cov=K).logpdf(y)
    )
    noisy = multivariate_normal(cov=K + 3 * np.eye(2)).logpdf(y)
    assert smith_parameters.likelihoods(y, [K], 3.0)[0] == pytest.approx(noisy)


def test_an_attacker_with_the_right_kernel_is_the_best_linear_one():
    sigma = 0.3 * np.eye(9)
    weights = tuo_attacks.gp_attacker(np.sqrt(1 / 20), sigma)(None, None, np.eye(9))
    K = tuo_attacks.KERNEL(tuo_attacks.X[:, None])
    k = tuo_attacks.KERNEL(tuo_attacks.X[:, None], [[tuo_attacks.AT]])[:, 0]

    def missed(w):
        return 1 - 2 * w @ k + w @ (K + sigma) @ w

    assert missed(weights) == pytest.approx(minimize(missed, np.zeros(9)).fun, abs=1e-5)


def test_a_variance_learned_from_the_curve_keeps_less_than_promised():
    found = tuo_attacks.variance_kept(np.random.default_rng(0), 500)
    assert (found >= 0).all()
    assert np.median(found) < 0.5


@pytest.fixture
def figure(monkeypatch):
    """The figure that was last written."""
    seen = []
    monkeypatch.setattr(Figure, "savefig", lambda self, path, **options: seen.append(self))
    monkeypatch.setattr(Figure, "set_layout_engine", lambda self, *args, **options: None)
    return seen


def test_a_picture_has_the_numbers_that_it_was_given(figure, tmp_path):
    line = Line("ours", [1.0, 2.0], [1.0, 30.0], error=[0.1, 0.2], marker="o")
    level = Line("level", [1.5], colour="truth", style=":")
    band = Band("band", *np.array([[1, 30], [0, 1], [2, 3.0]]))
    options = {"xscale": "log", "ylabel": "error", "xlabel": "ε"}
    rows = [[Panel("first", [line, level], options), Panel("second", [band, line], options)]]
    assert draw(tmp_path / "new" / "p.png", rows) == tmp_path / "new" / "p.png"
    (drawn,) = figure
    first, second = drawn.axes
    assert drawn.get_size_inches() == pytest.approx([2 * 2.6 + 0.4, 2.2 + 0.5])
    assert first.lines[0].get_xydata().tolist() == [[1, 1], [30, 2]]
    (bars,) = first.collections
    assert [np.ptp(one[:, 1]) for one in bars.get_segments()] == pytest.approx(
        [0.4, 0.8]
    )  # two standard errors each way
    assert [(one.get_title(loc="left"), one.get_ylabel()) for one in (first, second)] == [
        ("first", "error"),
        ("second", ""),
    ]
    assert [text.get_text() for text in drawn.legends[0].get_texts()].count("ours") == 1
    assert first.lines[-1].get_ydata() == [1.5, 1.5]
    assert [f"{tick:g}" for tick in first.get_xticks() if 1 <= tick <= 30] == [
        "1",
        "2",
        "5",
        "10",
        "20",
    ]


def test_a_wide_axis_has_powers_of_ten_only(figure, tmp_path):
    draw(tmp_path / "p.png", [[Panel("wide", [Line("a", [1, 2], [1, 1e4])], {"xscale": "log"})]])
    assert [f"{tick:g}" for tick in figure[0].axes[0].get_xticks() if 1 <= tick <= 1e4] == [
        "1",
        "10",
        "100",
        "1000",
        "10000",
    ]


def test_every_colour_is_told_apart_in_grey():
    grey = [
        np.array(list(bytes.fromhex(colour[1:]))) @ [0.299, 0.587, 0.114]
        for colour in pictures.COLOURS.values()
    ]
    assert np.diff(sorted(grey)).min() > 5


def test_findings_are_written_as_tables_and_claims(tmp_path):
    table = ResultTable("T", ("a", "b", "c"), [("x", "y", "1"), ("z", "w", "2")], left=2)
    claims = [Claim("first", "1", True), Claim("second", "2", False)]
    found = Findings(
        "Title", [{"a": "x, y", "b": 1.5}], [table, table], claims, ["Note."], [tmp_path / "p.png"]
    )
    found.write(tmp_path)
    assert (tmp_path / "table.md").read_text(encoding="utf-8") == (
        "# Title\n\n"
        + 2 * "**T**\n\n| a | b | c |\n| :-- | :-- | --: |\n| x | y | 1 |\n| z | w | 2 |\n\n"
        + "- kept: first: 1\n- **not kept**: second: 2\n\nNote.\n"
    )
    assert (tmp_path / "results.csv").read_bytes() == b'a,b\r\n"x, y",1.5\r\n'
    assert [path.name for path in found.files] == ["results.csv", "table.md", "p.png"]


@pytest.mark.parametrize(
    ("values", "digits", "text"),
    [
        ([0.5], 3, ".500"),
        ([1.25, 1.75], 2, "1.50±.25"),
        ([0.0, 0.0], 1, ".0±.0"),
        ([12.0, 14.0], 0, "13±1"),
    ],
)
def test_means_with_their_errors_are_short(values, digits, text):
    assert plus_minus(values, digits) == text
