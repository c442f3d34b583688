"""Gaussian processes on private histograms.

Releases, exact areas, errors in counts, regions, bad input, coverage.
"""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Matern,
    RationalQuadratic,
)

import reticent
from reticent.errors import BadInput
from reticent.inference.binned.posterior import (
    HypothesisPosterior,
    RegionObservations,
    Regions,
    nonnegative_moments,
)
from reticent.inference.moment_model.hyperparameters import weigh_hypotheses
from reticent.models.gp.binning import make_grid, region_boxes
from reticent.privacy.row_maps.binned_sums import BinSums
from reticent.privacy.statistics.cell_sum import CellSum

LINE = reticent.Bounds(x=[(0, 10)], y=(-2, 2))
PEOPLE = reticent.Bounds(x={"age": (0, 110)})
NEVER = {
    "epsilon": 1e9,
    "delta": 1e-6,
    "random_state": 0,
}  # noise that cannot be seen, for tests of what is left


def sines(n, seed=0, noise=0.1):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 10, size=(n, 1))
    return x, np.sin(x[:, 0]) + noise * rng.normal(size=n)


def regions(bins, integral=True, bounds=LINE, cells=None):
    grid = make_grid(bins, cells, bounds)
    boxes, of = region_boxes(grid)
    return Regions(boxes, of, grid.size, integral)


@pytest.fixture(scope="module")
def curve():
    x, y = sines(4000)
    return reticent.BinnedGPRegressor(
        bins=16, bounds=LINE, epsilon=1, delta=1e-6, random_state=1
    ).fit(x, y)


@pytest.fixture(scope="module")
def ages():
    x = np.random.default_rng(3).gamma(4, 10, size=(3000, 1))
    model = reticent.BinnedGPRegressor(
        kind="count", bins=11, bounds=reticent.Bounds(x=[(0, 110)]), **NEVER
    )
    return model.set_params(noise=0.0, epsilon=1.0).fit(x), x


def test_what_is_released_are_the_counts_and_sums_of_every_bin():
    x, y = sines(500)
    model = reticent.BinnedGPRegressor(
        RBF(1.0, "fixed"), bins=[0, 1, 5, 10], bounds=LINE, noise=0.1, **NEVER
    ).fit(x, y)
    counts, edges = np.histogram(x, [0, 1, 5, 10])
    assert model.counts_ == pytest.approx(counts, abs=1e-3)
    assert model.sums_ == pytest.approx(np.histogram(x[:, 0], edges, weights=y)[0], abs=1e-3)
    squares = len(y) - np.sqrt(2) * model.releases_[0].value[-1]
    assert squares == pytest.approx((y**2).sum() / 4, abs=1e-3)  # of outputs in half-ranges
    assert [edge.tolist() for edge in model.edges_] == [[0, 1, 5, 10]]


@pytest.mark.parametrize(
    ("protected", "delta", "sd"), [("count", 1e-6, np.sqrt(2)), ("mean", 1e-6, 2), ("mean", 0, 2)]
)
def test_noise_of_counts_is_what_the_proof_says(protected, delta, sd):
    """A count alone: √2 times the multiplier; with sums: 2.

    Laplace noise: scale 2/ε on each of two half-counts.
    """
    x, y = sines(50)
    model = reticent.BinnedGPRegressor(
        RBF(1.0, "fixed"), bins=3, kind=protected, noise=1.0, bounds=LINE, epsilon=1, delta=delta
    ).fit(x, y)
    expected = sd * reticent.calibrate(1, 1e-6) if delta else np.sqrt(2) * 2 * np.sqrt(2)
    assert model.counts_sd_ == pytest.approx(np.full(3, expected), rel=1e-6)


@pytest.mark.parametrize("scale", np.geomspace(0.2, 5, 9))
def test_half_counts_are_the_best_scaling_of_count_and_sum(scale):
    """Release (α, γu)⊗onehot with α/γ = scale instead.

    The noise of Σu − mN is nowhere smaller, for any mean m.
    """
    sensitivity2 = max(2 * (scale**2 + 1), 4)
    for m in np.linspace(-1, 1, 9):
        assert sensitivity2 * (1 + m**2 / scale**2) >= 4 * (1 + m**2) - 1e-9


def test_the_area_over_each_bin_is_the_bin_when_there_is_no_noise(ages):
    """And for the point kernel it is not: it goes through the middle of the bin instead."""
    truth = np.array([3.0, 9.0, 4.0, 1.0, 6.0])
    for integral in (True, False):
        seen = regions(5, integral)
        one = HypothesisPosterior(
            ConstantKernel(4.0) * RBF(2.0),
            np.log([4.0, 2.0]),
            1.0,
            0.0,
            RegionObservations(seen, truth, np.ones(5), np.zeros(5), np.zeros(5), False),
        )
        averages = one.moments(regions(5))[0]
        if integral:
            assert averages == pytest.approx(truth, abs=1e-5)
        else:
            assert np.abs(averages - truth).max() > 0.3
            assert one.moments(seen)[0] == pytest.approx(truth, abs=1e-5)


def test_areas_of_a_fitted_curve_are_the_bins_and_add_up(ages):
    model, _ = ages
    assert model.bins_ == pytest.approx(model.counts_, abs=4 * model.counts_sd_.max())
    bins = [[[(low, low + 10)]] for low in range(0, 110, 10)]
    assert model.predict_regions(bins) == pytest.approx(model.bins_, rel=1e-9)
    whole, std = model.predict_regions([[[(0, 40)], [(40, 110)]]], return_std=True)
    assert whole[0] == pytest.approx(model.bins_.sum(), rel=1e-9)
    assert std[0] > 0
    grid = np.linspace(0, 10, 2001)[:, None]
    assert np.trapezoid(model.predict(grid), grid[:, 0]) == pytest.approx(model.bins_[0], rel=1e-3)


def test_evidence_and_its_gradient():
    rng = np.random.default_rng(0)
    seen = RegionObservations(
        regions(6),
        rng.normal(size=6),
        rng.uniform(1, 9, 6),
        rng.uniform(1, 9, 6),
        rng.uniform(1, 2, 6),
        True,
    )
    kernel = ConstantKernel(0.4) + ConstantKernel(1.5) * Matern(1.2, nu=1.5)

    def value(theta):
        return HypothesisPosterior(
            kernel, theta[:-1], 0.7, np.exp(theta[-1]), seen, gradient=True
        ).evidence()

    theta = np.append(kernel.theta, -1.0)
    slope = value(theta)[1]
    for k in range(len(theta)):
        step = np.eye(len(theta))[k] * 1e-5
        assert slope[k] == pytest.approx(
            (value(theta + step)[0] - value(theta - step)[0]) / 2e-5, rel=1e-5, abs=1e-7
        )


def test_cleaned_counts_are_those_of_the_joint_normal_law():
    """Against conditioning of (true sums, noisy sums) written out, with and without
    a known total.
    """
    rng = np.random.default_rng(1)
    weight = np.full(4, 10.0)
    own = np.full(4, 10.0)
    noise = rng.uniform(4, 9, 4)
    one = HypothesisPosterior(
        RBF(3.0),
        np.log([3.0]),
        0.5,
        1.0,
        RegionObservations(regions(4), rng.normal(size=4) * 9, weight, own, noise, False),
    )
    K = one._signal + np.diag(own)
    gain = K @ np.linalg.inv(K + np.diag(noise))
    mean, C = one.denoised_sums(None)
    assert mean == pytest.approx(gain @ one.observations.value, abs=1e-5)
    assert pytest.approx(K - gain @ K, abs=1e-5) == C
    mean, C = one.denoised_sums((0.0, 0.0))
    assert mean.sum() == pytest.approx(0, abs=1e-9)
    assert np.ones(4) @ C @ np.ones(4) == pytest.approx(0, abs=1e-9)
    free = one.denoised_sums(None)
    vague, D = one.denoised_sums((0.0, 1e12))
    assert vague == pytest.approx(free[0], abs=1e-6)
    assert pytest.approx(free[1], abs=1e-6) == D


def test_normal_numbers_that_are_not_negative():
    draws = np.random.default_rng(0).normal([-1.0, 0.5, 9.0], [2.0, 1.0, 1.0], size=(200_000, 3))
    mean, variance = nonnegative_moments(np.array([-1.0, 0.5, 9.0]), np.array([4.0, 1.0, 1.0]))
    for j in range(3):
        kept = draws[draws[:, j] >= 0, j]
        assert mean[j] == pytest.approx(kept.mean(), abs=0.02)
        assert variance[j] == pytest.approx(kept.var(), abs=0.03)
    assert np.isfinite(nonnegative_moments(np.array([-1e6, 3.0]), np.array([1.0, 0.0]))).all()


def test_weights_of_hypotheses_are_those_of_the_posterior():
    """A normal evidence, inside a box that cuts nothing: mean and variance come out."""
    centre = np.array([0.3, -0.4])
    sd = np.array([0.2, 0.5])

    def evidence(theta):
        z = (theta - centre) / sd
        return -0.5 * float(z @ z), -z / sd

    best, points, weights = weigh_hypotheses(evidence, np.full(2, -3.0), np.full(2, 3.0), 60, 200)
    assert best == pytest.approx(centre, abs=1e-4)
    assert weights @ points == pytest.approx(centre, abs=0.04)
    assert np.sqrt(weights @ (points - centre) ** 2) == pytest.approx(sd, rel=0.15)
    assert weigh_hypotheses(evidence, centre, centre, 60, 200)[1].shape == (1, 2)


def test_a_fit_is_near_the_truth_and_knows_how_near(curve):
    grid = np.linspace(0, 10, 101)[:, None]
    mean, std = curve.predict(grid, return_std=True)
    off = np.abs(mean - np.sin(grid[:, 0]))
    assert np.sqrt(np.mean(off**2)) < 0.12
    assert np.mean(off < 2 * std) > 0.85
    assert 0.03 < curve.noise_ < 0.4
    parts = curve.variance_parts(grid)
    assert std**2 == pytest.approx(parts["model"] + parts["privacy"])
    assert (parts["privacy"] > 0).all()
    same, joint = curve.predict(grid, return_cov=True)
    assert same == pytest.approx(mean)
    assert np.diag(joint) == pytest.approx(std**2, rel=1e-4, abs=1e-8)
    assert curve.sample_y(grid[:3], 5).shape == (3, 5)


@pytest.mark.parametrize("kind", ["mean", "count"])
def test_a_learned_kernel_is_rebuilt_bit_for_bit(kind):
    x, y = sines(300)
    model = reticent.BinnedGPRegressor(bins=6, kind=kind, bounds=LINE, epsilon=1, delta=1e-6).fit(
        x, y
    )
    again = reticent.BinnedGPRegressor.from_releases(
        model.releases_, **model.get_params(deep=False)
    )
    assert again.kernel_ == model.kernel_
    assert np.array_equal(
        again.predict(x[:9], return_std=True), model.predict(x[:9], return_std=True)
    )


def test_counts_are_shown_as_released_negative_or_not():
    x = np.zeros((20, 1))  # all in the first of twenty bins
    model = reticent.BinnedGPRegressor(
        RBF(1.0, "fixed"),
        kind="count",
        bins=20,
        bounds=LINE,
        epsilon=0.5,
        delta=1e-6,
        random_state=0,
    ).fit(x)
    assert (model.counts_ < 0).any()
    # the last number is that of records without an input
    assert np.array_equal(model.counts_, model.releases_[0].value[:-1])


def test_labels_alone_have_exact_counts_and_an_account_of_their_own(tmp_path):
    x, y = sines(400)
    book = reticent.Ledger(tmp_path / "budget.db")
    book.open("records", 2, 1e-6)
    book.open("labels", 2, 1e-6, relation="label")
    common = {
        "bins": 5,
        "bounds": LINE,
        "epsilon": 1,
        "delta": 1e-6,
        "ledger": str(tmp_path / "budget.db"),
    }
    model = reticent.BinnedGPRegressor(protect="labels", dataset="labels", **common).fit(x, y)
    counts = np.histogram(x, np.linspace(0, 10, 6))[0]
    assert model.releases_[0].statistic["counts"] == counts.tolist()
    assert model.counts_ == pytest.approx(counts, abs=5 * model.counts_sd_[0])
    assert model.n_complete_ == pytest.approx(400, abs=60)
    assert model.guarantee_.relation == "label"
    assert "label of one record" in model.guarantee_.statement
    assert model.sums_sd_ == pytest.approx(
        np.full(5, 2 * 2 * reticent.calibrate(1, 1e-6)), rel=1e-6
    )
    again = reticent.BinnedGPRegressor.from_releases(
        model.releases_, **model.get_params(deep=False)
    )
    assert np.array_equal(again.predict(x[:9]), model.predict(x[:9]))
    with pytest.raises(reticent.LedgerError, match="relation"):
        reticent.BinnedGPRegressor(protect="labels", dataset="records", **common).fit(x, y)
    with pytest.raises(reticent.ReticentError):  # of another statistic
        reticent.BinnedGPRegressor.from_releases(
            model.releases_, **{**model.get_params(deep=False), "protect": "records"}
        )


def test_regions_are_unions_of_cells():
    """A map whose corner is sea, with two districts that are not boxes."""
    bounds = reticent.Bounds(x=[(0, 3), (0, 2)], y=(0, 1))
    cells = [[0, 0], [0, 1], [-1, 1]]
    rng = np.random.default_rng(0)
    x = rng.uniform([0, 0], [3, 2], size=(2000, 2))
    district = np.array(cells)[x[:, 0].astype(int), x[:, 1].astype(int)]
    y = np.where(district == 0, 0.2, 0.8)
    common = {"bins": (3, 2), "regions": cells, "bounds": bounds}
    for kind in ("mean", "count"):
        model = reticent.BinnedGPRegressor(kind=kind, **common, **NEVER).fit(x, y)
        assert model.counts_ == pytest.approx(
            [(district == 0).sum(), (district == 1).sum()], abs=0.51
        )
        assert len(model.bins_) == 2
    model = reticent.BinnedGPRegressor(**common, **NEVER).fit(x, y)
    assert model.bins_ == pytest.approx([0.2, 0.8], abs=0.05)
    south = model.predict_regions([[[(0, 1), (0, 2)], [(1, 2), (0, 1)]]])
    assert south == pytest.approx(model.bins_[:1], rel=1e-6)
    mask = reticent.BinnedGPRegressor(
        kind="count", **{**common, "regions": np.array(cells) >= 0}, **NEVER
    ).fit(x)
    assert len(mask.counts_) == 5


@pytest.mark.parametrize("n", [1, 30])
@pytest.mark.parametrize("bins", [1, 7])
def test_few_records_and_a_single_bin(n, bins):
    x, y = sines(n)
    for data in ((x, y), (np.full_like(x, np.nan), np.zeros_like(y))):
        model = reticent.BinnedGPRegressor(bins=bins, bounds=LINE, epsilon=1, delta=1e-6).fit(*data)
        mean, std = model.predict([[-5.0], [0.0], [3.0], [99.0], [np.nan]], return_std=True)
        assert np.isfinite(mean[:4]).all()
        assert (std[:4] > 0).all()
        assert np.isnan([mean[4], std[4]]).all()
        assert mean[0] == mean[1]  # outside the bounds counts as the edge


def test_parameters_that_make_no_sense_are_refused():
    x, y = sines(20)
    for wrong in (
        {"bins": 0},
        {"bins": 2.5},
        {"bins": [3, 3]},
        {"bins": [0, 5, 5, 10]},
        {"bins": "auto"},
        {"bins": 10**7},
        {"bins": 3, "regions": [0, 1]},
        {"bins": 3, "regions": [0, 2, 2]},
        {"bins": 3, "regions": [-1, -1, -1]},
        {"regions": [0, 0, 0]},
        {"kind": "median"},
        {"protect": "inputs"},
        {"kind": "count", "protect": "labels"},
        {"kernel": DotProduct()},
        {"kernel": RBF([1.0, 2.0])},
        {"kernel": "rbf"},
        {"kernel": ConstantKernel(1e60) * RBF(1.0)},
        {"noise": -1.0},
        {"integral": 1},
        {"bounds": reticent.Bounds(x=[(0, 10)], y=[(0, 1), (0, 1)])},
        {"bounds": reticent.Bounds(x=[(0, 10)], y=(0, 1), norm=3)},
        {"bounds": reticent.Bounds(x=[(0, 10)], classes=[0, 1])},
    ):
        model = reticent.BinnedGPRegressor(**{"bounds": LINE, "epsilon": 1, "delta": 1e-6, **wrong})
        with pytest.raises(reticent.ReticentError) as caught:
            model.fit(x, y)
        assert len(str(caught.value)) > 30
    fitted = reticent.BinnedGPRegressor(
        RBF(1.0, "fixed"), bins=2, noise=0.1, bounds=LINE, **NEVER
    ).fit(x, y)
    for regions_ in ([], [[]], [[[(3, 1)]]], [[[(0, np.inf)]]], "all"):
        with pytest.raises(reticent.BadInput, match="list of boxes"):
            fitted.predict_regions(regions_)


def test_values_on_edges_are_in_the_bin_that_begins_there():
    bounds = reticent.Bounds(x=[(0, 110)], y=(0, 1))
    grid = make_grid(11, None, bounds)
    at = bounds.scale(np.column_stack([np.arange(0, 111, 10.0), np.zeros(12)]))
    assert grid.of(at, bounds).tolist() == [*range(11), 10]
    assert BinSums(grid, bounds, True).cell(at).tolist() == [*range(11), 10]


def test_records_in_no_region_leave_what_was_known_before():
    """Public inputs that are all outside the regions: nothing is learned, and nothing fails."""
    x, y = sines(30)
    model = reticent.BinnedGPRegressor(
        RBF(1.0, "fixed"),
        bins=[0, 9.99, 10],
        regions=[-1, 0],
        protect="labels",
        noise=0.0,
        bounds=LINE,
        **NEVER,
    ).fit(np.minimum(x, 9.0), y)
    assert model.counts_ == pytest.approx([0], abs=1e-3)  # less the noisy number of missing labels
    mean, std = model.predict([[5.0]], return_std=True)
    assert mean[0] == pytest.approx(0, abs=1e-3)
    # the kernel's variance, and that of a level anywhere in [−2, 2]
    assert std[0] == pytest.approx(np.sqrt(1 + 2**2 / 3), abs=1e-3)


@pytest.mark.parametrize("d", [2, 3, 4])
@pytest.mark.parametrize("integral", [True, False])
def test_grids_of_several_inputs(d, integral):
    rng = np.random.default_rng(d)
    x = rng.uniform(0, 1, (3000, d))
    y = x[:, 0] - 0.5 * x[:, 1]
    bounds = reticent.Bounds(x=[(0, 1)] * d, y=(-1, 1))
    kernel = ConstantKernel(0.3, "fixed") * RBF([1.0] * d, "fixed")
    bins = [4, 3, 2, 1][:d]
    model = reticent.BinnedGPRegressor(
        kernel, bins=bins, integral=integral, noise=0.05, bounds=bounds, **NEVER
    ).fit(x, y)
    assert len(model.bins_) == np.prod(bins)
    assert np.sqrt(np.mean((model.predict(x[:50]) - y[:50]) ** 2)) < 0.06
    assert model.predict_regions([[[(0, 1)] * d]])[0] == pytest.approx(0.25, abs=0.03)


@pytest.mark.parametrize(
    "kernel", [Matern(2.0, "fixed", nu=1.5), RationalQuadratic(2.0, 1.0, "fixed", "fixed")], ids=str
)
def test_kernels_that_are_mixtures(kernel):
    x, y = sines(3000)
    model = reticent.BinnedGPRegressor(kernel, bins=20, noise=0.1, bounds=LINE, **NEVER).fit(x, y)
    grid = np.linspace(0.3, 9.7, 40)[:, None]
    assert np.abs(model.predict(grid) - np.sin(grid[:, 0])).max() < 0.1


def test_bins_are_chosen_from_public_numbers():
    """More records or a larger ε: more bins.

    Data of the same size: the same ones, whatever they hold.
    """
    x, y = sines(400)
    common = {"kernel": RBF(1.0, "fixed"), "noise": 0.1, "bounds": LINE, "delta": 1e-6}
    few, many = (reticent.BinnedGPRegressor(epsilon=eps, **common).fit(x, y) for eps in (0.1, 10))
    assert 4 <= len(few.bins_) < len(many.bins_) <= 128
    same = reticent.BinnedGPRegressor(epsilon=10, **common).fit(np.zeros_like(x), np.ones_like(y))
    assert len(same.bins_) == len(many.bins_)


def test_a_count_follows_its_expectation_with_the_noise_that_is_given():
    """noise=0: the curve goes through the bins; noise=1: it need not, by √count."""
    x = np.random.default_rng(0).uniform(0, 10, (200, 1))
    common = {
        "kernel": ConstantKernel(400.0, "fixed") * RBF(4.0, "fixed"),
        "kind": "count",
        "bins": 10,
        "bounds": LINE,
    }
    through, around = (
        reticent.BinnedGPRegressor(noise=noise, **common, **NEVER).fit(x) for noise in (0.0, 1.0)
    )
    assert (
        np.abs(through.bins_ - through.counts_).max() < np.abs(around.bins_ - around.counts_).max()
    )
    parts = around.variance_parts([[5.0]])
    assert parts["noise"][0] == pytest.approx(around.predict([[5.0]])[0], rel=1e-9)


class Odd(CellSum):
    """Whatever ``cell`` says, a record is in one cell or in none."""

    cells = 3
    own = 1
    shared = 1
    norm2 = 2

    def cell(self, records):
        return records[:, 0]

    def short_rows(self, records):
        return np.ones((len(records), 2))


def test_cells_that_do_not_exist_are_none():
    said = np.array([0.0, 1.9, 2.0, 3.0, -1.0, np.nan, np.inf, -0.5, 1e300])[:, None]
    one = Odd()
    total = one.block_sum(said) * 2.0**-one.bits
    assert total.tolist() == [2, 1, 1, 4]  # −0.5 is truncated to 0
    assert (one.integers(said).sum(axis=0) == one.block_sum(said)).all()
    assert one.sensitivity2 == 4 * one.limit2


def test_a_rebuild_with_other_bins_is_refused():
    x, y = np.random.default_rng(0).uniform(size=(2, 50))
    params = {
        "protect": "labels",
        "bounds": reticent.Bounds(x=[(0, 1)], y=(0, 1)),
        "epsilon": 1.0,
        "delta": 1e-6,
    }
    model = reticent.BinnedGPRegressor(bins=[0, 0.5, 1], **params).fit(x[:, None], y)
    reticent.BinnedGPRegressor.from_releases(model.releases_, bins=[0, 0.5, 1], **params)
    with pytest.raises(reticent.BadInput, match="other parameters"):
        reticent.BinnedGPRegressor.from_releases(model.releases_, bins=[0, 0.7, 1], **params)


@pytest.mark.parametrize("protect", ["records", "labels"])
def test_incomplete_records_are_in_no_bin(protect):
    """A level near the edge of the range stays there, whatever share of outputs is missing."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 10, size=(4000, 1))
    y = 1.5 + 0.1 * rng.normal(size=4000)
    y[rng.uniform(size=4000) < 0.5] = np.nan
    model = reticent.BinnedGPRegressor(
        bins=8, protect=protect, bounds=LINE, epsilon=2, delta=1e-6, random_state=0
    ).fit(x, y)
    there = int(np.isfinite(y).sum())
    assert abs(model.n_complete_ - there) < 4 * model.n_complete_sd_ + 5
    mean, std = model.predict([[2.0], [8.0], [np.nan]], return_std=True)
    assert (np.abs(mean[:2] - 1.5) < np.maximum(2.5 * std[:2], 0.05)).all()
    assert np.isnan([mean[2], std[2]]).all()
    assert np.isnan(model.sample_y([[2.0], [np.nan]], 3)[1]).all()


def test_counts_leave_incomplete_inputs_out():
    x = np.random.default_rng(0).uniform(0, 10, size=(4000, 1))
    x[:1500] = np.nan
    model = reticent.BinnedGPRegressor(
        kind="count", bins=8, bounds=LINE, epsilon=2, delta=1e-6, random_state=0
    ).fit(x)
    assert model.n_complete_ == pytest.approx(2500, abs=30)
    assert model.bins_.sum() == pytest.approx(2500, abs=60)


def test_words_have_one_bin_each_and_effects_of_their_own():
    import pandas

    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(
        {"age": rng.uniform(0, 10, 4000), "town": rng.choice(["A", "B", "C", "other"], 4000)}
    )
    level = frame.town.map({"A": 0.9, "B": 0.1, "C": 0.9, "other": 0.0})
    frame["ill"] = np.where(rng.uniform(size=4000) < level, "yes", "no")
    bounds = reticent.Bounds(x={"age": (0, 10), "town": ["A", "B", "C"]}, y={"ill": bool})
    model = reticent.BinnedGPRegressor(
        bins=4, bounds=bounds, epsilon=2, delta=1e-6, random_state=0
    ).fit(frame)
    assert model.edges_[1].tolist() == [-0.5, 0.5, 1.5, 2.5]
    queries = pandas.DataFrame({"age": [5.0] * 4, "town": ["A", "B", "C", "other"]})
    mean, std = model.predict(queries, return_std=True)
    assert mean[:3] == pytest.approx([0.9, 0.1, 0.9], abs=0.1)
    assert (std[:3] < 0.1).all()
    assert np.isnan(mean[3])
    assert ((mean[:3] >= 0) & (mean[:3] <= 1)).all()
    with pytest.raises(BadInput, match="one for each"):
        reticent.BinnedGPRegressor(bins=[4, 2], bounds=bounds, epsilon=2, delta=1e-6).fit(frame)


def test_the_default_knows_that_records_in_few_bins_tell_little():
    """A function that turns twice within one bin of a box ten times too wide."""
    rng = np.random.default_rng(3)
    x = rng.uniform(-3, 3, size=(5_000, 1))
    y = np.sin(2 * x[:, 0]) + 0.3 * rng.normal(size=5_000)
    bounds = reticent.Bounds(x=[(-30, 30)], y=(-5, 5))
    model = reticent.BinnedGPRegressor(bounds=bounds, epsilon=0.1, delta=1e-5, random_state=0)
    at = np.linspace(-2.8, 2.8, 15)[:, None]
    mean, std = model.fit(x, y).predict(at, return_std=True)
    assert len(model.bins_) < 16
    z = (mean - np.sin(2 * at[:, 0])) / std
    assert np.sqrt(np.mean(z**2)) < 2  # 3 if lengths began at a tenth of the box


def test_records_in_one_bin_of_a_narrow_box_far_from_zero_are_fitted():
    """Prior lengths go by how wide records stand: that must not be rounded to nothing."""
    rng = np.random.default_rng(0)
    x = 3e7 + 0.01 * rng.random((2_000, 1))
    bounds = reticent.Bounds(x=[(3e7, 3e7 + 1)], y=(-1, 1))
    model = reticent.BinnedGPRegressor(bounds=bounds, epsilon=1, delta=1e-6, random_state=0)
    mean, std = model.fit(x, np.full(2_000, 0.5)).predict(x[:1], return_std=True)
    assert abs(mean[0] - 0.5) < 2 * std[0] < 1


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ({"bounds": reticent.Bounds(x=[(0, 1e-80)] * 2)}, "other units"),
        ({"bounds": reticent.Bounds(x=[(0, 1e80)] * 2)}, "other units"),
        ({"bounds": reticent.Bounds(x=[(0, 1)]), "bins": [0, 1e-30, 1]}, "too close together"),
    ],
)
def test_bins_that_are_no_numbers_to_reckon_with_are_refused_uncharged(wrong, word, tmp_path):
    """Volumes and distances between bins would overflow, or be rounded to nothing, after it."""
    url = str(tmp_path / "budget.db")
    ledger = reticent.Ledger(url).create()
    ledger.open("people", epsilon=9, delta=1e-3)
    model = reticent.BinnedGPRegressor(
        kind="count", epsilon=1, delta=1e-6, ledger=url, dataset="people", **wrong
    )
    with pytest.raises(BadInput, match=word):
        model.fit(np.zeros((100, len(wrong["bounds"].x))))
    assert ledger.spent("people") == 0


def test_a_small_function_in_a_wide_range():
    """Amounts around .3 in a range up to 15: the prior of functions follows the outputs."""
    at = np.linspace(-2.8, 2.8, 25)[:, None]
    covered = []
    for seed in range(10, 16):
        rng = np.random.default_rng(seed)
        x = rng.uniform(-3, 3, size=(5_000, 1))
        some = rng.random(5_000) < 0.3 * (1 + 0.3 * np.sin(x[:, 0]))
        y = some * rng.exponential(size=5_000)
        bounds = reticent.Bounds(x=[(-3, 3)], y=(0, 15))
        model = reticent.BinnedGPRegressor(bounds=bounds, epsilon=1e6, delta=1e-5, random_state=0)
        mean, std = model.fit(x, y).predict(at, return_std=True)
        away = mean - 0.3 * (1 + 0.3 * np.sin(at[:, 0]))
        covered.append(np.abs(away) < 1.96 * std)
    assert np.mean(covered) > 0.85  # .73 if functions vary by a tenth of the range at least


@pytest.mark.parametrize(("function", "kernel"), [(np.abs, Matern), (np.sin, RBF)])
def test_bins_tell_how_smooth_a_function_is(function, kernel):
    rng = np.random.default_rng(1)
    x = rng.uniform(-3, 3, size=(5_000, 1))
    y = function(x[:, 0]) + 0.1 * rng.normal(size=5_000)
    bounds = reticent.Bounds(x=[(-3, 3)], y=(-4, 4))
    model = reticent.BinnedGPRegressor(bounds=bounds, epsilon=10, delta=1e-5, random_state=0)
    assert type(model.fit(x, y).kernel_.k2.k2) is kernel
