"""Obfuscator: promises kept in fact, and errors that name what is wrong."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
    WhiteKernel,
)

import reticent
from reticent import BadInput, Obfuscator, ReleaseRefused
from reticent.obfuscation import noise as drawing
from reticent.obfuscation.noise import grid_step, obfuscated
from reticent.obfuscation.solver import certificate as obfuscation_solution
from reticent.obfuscation.solver.covariance import between
from tests.support.curves import COMMON, K, X, Y, variance


@pytest.mark.parametrize("solution", ["weak", "strong", "diagonal"])
def test_promises_at_points(solution):
    model = Obfuscator(K, solution=solution, **COMMON)
    w = model.obfuscate(X, Y)
    assert w.shape == X.shape
    assert (variance(model, [0.4, 0.6]) >= 0.5 - 1e-9).all()
    _, sd = model.predict([0.4, 0.6], return_std=True)
    assert sd**2 == pytest.approx(variance(model, [0.4, 0.6]), abs=1e-8)
    assert model.certificate_.held
    assert model.certificate_.gap < 1e-6
    assert "NOT differential privacy" in model.statement_


@pytest.mark.parametrize(
    "how",
    [
        {"variance": 0.5},
        {"share": 0.4, "solution": "kernel"},
        {"variance": ConstantKernel(0.3) * RBF(0.22), "solution": "kernel"},
        {"variance": 0.4, "solution": "strong"},
    ],
)
def test_a_region_is_kept_between_the_points_that_were_checked(how):
    model = Obfuscator(K, sensitive=[(0.4, 0.55)], mean=0.0, **how)
    model.obfuscate(X, Y)
    at = np.random.default_rng(0).uniform(0.4, 0.55, 10_000)
    least = {"kernel": 0.4 if "share" in how else 0.3}.get(model.solution, how.get("variance"))
    assert variance(model, at).min() >= least
    assert variance(model, at).min() < least * 1.05 or model.solution != "weak"
    assert model.certificate_.checked == 10_000
    assert model.certificate_.regions == 1
    assert variance(model, [0.0, 1.0]).max() < 0.2  # elsewhere much is known


def test_a_box_and_overlapping_regions():
    x = np.random.default_rng(0).uniform(size=(30, 2))
    model = Obfuscator(
        RBF(0.5, "fixed"),
        sensitive=[[(0.2, 0.5), (0.2, 0.5)], [(0.4, 0.6), (0.4, 0.6)]],
        variance=[0.3, 0.2],
    )
    model.obfuscate(x, x.sum(axis=1))
    rng = np.random.default_rng(1)
    assert variance(model, rng.uniform(0.2, 0.5, (4000, 2))).min() >= 0.3
    assert variance(model, rng.uniform(0.4, 0.6, (4000, 2))).min() >= 0.2


@pytest.mark.parametrize("how", [{"share": 0.3}, {"variance": ConstantKernel(0.3) * RBF(0.22)}])
def test_everywhere(how):
    model = Obfuscator(K, sensitive="everywhere", solution="uniform", mean=0.0, **how)
    model.obfuscate(X, Y)
    assert variance(model, np.random.default_rng(0).uniform(-0.2, 1.2, 3000)).min() >= 0.3


def test_noise_has_the_covariance_that_is_stated_and_rounding_adds():
    factor = np.array([[1.0, 0.0], [2.0, 0.5], [0.0, 0.0]])
    floor = 1e-4
    draws = np.array([obfuscated(np.zeros(3), factor, floor, seed=b"%d" % i) for i in range(1500)])
    sigma = factor @ factor.T + floor * np.eye(3)
    spread = np.sqrt((sigma**2 + np.outer(sigma.diagonal(), sigma.diagonal())) / 1500)
    assert (np.abs(np.cov(draws.T) - sigma) < 5 * spread + grid_step(floor) ** 2).all()
    step = grid_step(floor)
    assert step <= np.sqrt(floor) < 2 * step
    assert (draws / step - 0.5 == np.round(draws / step - 0.5)).all()  # on the grid, whatever y is


def test_integers_are_those_of_the_factor():
    values = np.array([1.0, -3.75, 2.0**-40, np.pi, 0.0, -1e-9])
    exact = drawing._scaled_integers(values, 90)
    assert [int(one) for one in exact[:3]] == [2**90, -15 * 2**88, 2**50]
    assert all(abs(int(one) / 2**90 - v) < 2**-80 for one, v in zip(exact, values, strict=True))


def test_draws_differ_unless_seeded_and_seeds_are_stamped():
    first, second = (Obfuscator(K, **COMMON).obfuscate(X, Y) for _ in range(2))
    assert (first != second).any()
    np.random.seed(0)  # noqa: NPY002
    one = Obfuscator(K, **COMMON).obfuscate(X, Y)
    np.random.seed(0)  # noqa: NPY002
    assert (one != Obfuscator(K, **COMMON).obfuscate(X, Y)).any()
    seeded = [Obfuscator(K, random_state=1, **COMMON) for _ in range(2)]
    assert (seeded[0].obfuscate(X, Y) == seeded[1].obfuscate(X, Y)).all()
    assert not seeded[0].private_
    assert "NOT PRIVATE" in seeded[0].statement_


def test_predictions_know_the_noise():
    rng = np.random.default_rng(0)
    inside = []
    points = np.append(X, [0.47, 0.3])[:, None]
    root = np.linalg.cholesky(between(K, points, points) + 1e-9 * np.eye(23))
    for seed in range(40):
        f = root @ rng.normal(size=23)
        model = Obfuscator(K, sensitive=[0.47], variance=0.5, mean=0.0, random_state=seed)
        model.obfuscate(X, f[:21])
        mean, sd = model.predict([0.47, 0.3], return_std=True)
        inside.append(np.abs(f[21:] - mean) < 2 * sd)
    assert 0.85 < np.mean(inside) <= 1


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"variance": 1.0}, "prior variance 1"),
        ({"variance": 1.5}, r"promised variance 1\.5"),
        ({"variance": -1.0}, "positive number"),
        ({"variance": [0.5, 0.5, 0.5]}, "shape"),
        ({"variance": None}, "variance=… or share"),
        ({"share": 0.5}, "variance=… or share"),
        ({"variance": None, "share": 1.0}, "share must be"),
        ({"variance": [[0.5, 0.9], [0.9, 0.5]], "solution": "strong"}, "negative eigenvalue"),
        (
            {"variance": ConstantKernel(0.9) * RBF(0.1), "solution": "kernel"},
            "spectral condition fails",
        ),
        ({"solution": "best"}, "solution must be"),
        ({"solution": "kernel"}, "needs share"),
        ({"sensitive": "everywhere"}, "go together"),
        ({"sensitive": []}, "points or regions"),
        ({"sensitive": [[0.1, 0.2, 0.3]]}, "shape"),
        ({"sensitive": [(0.6, 0.4)]}, "low end"),
        ({"sensitive": [np.nan]}, "finite"),
        ({"noise": -0.1}, "standard deviation and cannot be -0.1"),
        ({"noise": np.ones(3)}, r"shape \(3,\)"),
        ({"noise": np.nan}, "cannot be nan"),
        ({"noise": 1e200}, "below 1e150"),
        ({"noise": np.eye(21)}, "matrix as noise_covariance"),
        ({"noise": "much"}, "noise must be made of numbers"),
        ({"noise_covariance": "much"}, "noise_covariance must be made of numbers"),
        ({"noise_covariance": 0.1}, "standard deviation for all as noise"),
        ({"noise_covariance": np.full(21, np.inf)}, "not finite"),
        ({"noise_covariance": np.full(21, -0.1)}, "the variance -0.1"),
        ({"noise_covariance": -np.eye(21)}, "negative eigenvalue"),
        ({"noise_covariance": np.triu(np.ones((21, 21)))}, "not symmetric"),
        ({"noise": 0.1, "noise_covariance": 0.01 * np.eye(21)}, "not both"),
        ({"variance": "much"}, "variance must be made of numbers"),
        ({"mean": float("nan")}, "mean must be one finite number"),
        ({"mean": "low"}, "mean must be made of numbers"),
        ({"variance": 1.5}, "Promise less than 1"),
        ({"sensitive": [(0.4, 0.6)], "variance": 0.99999}, "or hide a smaller region"),
        ({"variance": [[0.5, 0.1], [0.3, 0.5]], "solution": "strong"}, "not symmetric"),
        (
            {"variance": [[0.5, -0.4], [-0.4, 0.5]], "solution": "strong"},
            "asks for more uncertainty than the prior",
        ),
        ({"kernel": WhiteKernel(1.0), "variance": None, "share": 0.5}, "The prior variance at"),
        ({"kernel": None}, "scikit-learn"),
        ({"ledger": "budget.db"}, "both ledger=… and dataset=…"),
        ({"ledger": "budget.db", "dataset": "a", "random_state": 1}, "seeded"),
    ],
)
def test_wrong_use_names_what_is_wrong(change, names):
    with pytest.raises(BadInput, match=names):
        Obfuscator(**{"kernel": K, **COMMON, **change}).obfuscate(X, Y)


def test_duplicates_are_named():
    x = np.append(X, X[3])
    with pytest.raises(BadInput, match=r"records 3 and 21 .* singular|singular: records 3 and 21"):
        Obfuscator(K, **COMMON).obfuscate(x, np.append(Y, Y[3]))
    model = Obfuscator(K, noise=0.1, **COMMON)
    model.obfuscate(x, np.append(Y, Y[3]))
    assert variance(model, [0.4, 0.6]).min() >= 0.5 - 1e-9


def test_noise_is_a_standard_deviation_and_a_covariance_says_so():
    """All ways of saying the same measurement error find the same noise."""
    ways = [
        {"noise": 0.25},
        {"noise": np.full(21, 0.25)},
        {"noise_covariance": np.full(21, 0.0625)},
        {"noise_covariance": 0.0625 * np.eye(21)},
    ]
    made = [Obfuscator(K, **COMMON, **how) for how in ways]
    for model in made:
        model.obfuscate(X, Y)
        assert model.noise_ == pytest.approx(0.25)
        assert model.noise_covariance_ == pytest.approx(0.0625 * np.eye(21))
        assert model.covariance_ == pytest.approx(made[0].covariance_, abs=1e-6)
        assert variance(model, [0.4, 0.6]).min() >= 0.5 - 1e-9
    white = Obfuscator(K + WhiteKernel(0.0625), **COMMON)
    white.obfuscate(X, Y)
    assert white.noise_ == pytest.approx(0.25)
    assert white.covariance_ == pytest.approx(made[0].covariance_, abs=1e-6)


def test_more_measurement_error_needs_less_noise():
    traces = []
    for noise in (0.0, 0.05, 0.3, 2.0):
        model = Obfuscator(K, sensitive=[0.5], variance=0.3, mean=0.0, noise=noise)
        model.obfuscate(X, Y)
        traces.append(model.certificate_.trace)
    assert traces[0] > traces[1] > traces[2] > traces[3]
    assert (
        traces[0] < 1.1 * traces[1]
    )  # an error of .05 hides next to nothing; a variance of .05 would


def test_odd_cases_that_work():
    at_data = Obfuscator(
        K, sensitive=[X[8]], variance=0.5, mean=0.0
    )  # a sensitive point that is a data point
    at_data.obfuscate(X, Y)
    assert variance(at_data, [X[8]])[0] >= 0.5 - 1e-9
    single = Obfuscator(K, sensitive=[0.5], variance=0.5, mean=0.0)
    single.obfuscate([0.45], [1.0])
    assert variance(single, [0.5])[0] == pytest.approx(0.5, abs=1e-9)
    nothing = Obfuscator(
        K, sensitive=[30.0], variance=0.5, mean=0.0
    )  # unknown anyway: no noise but the floor
    w = nothing.obfuscate(X, Y)
    assert np.abs(w - Y).max() < 1e-3
    assert nothing.certificate_.trace == pytest.approx(21 * nothing.certificate_.floor)
    smooth = Obfuscator(
        RBF(3.0, "fixed"), sensitive=[0.5], variance=0.5, mean=0.0
    )  # K is singular to sixteen digits
    smooth.obfuscate(X, Y)
    assert variance(smooth, [0.5])[0] >= 0.5 - 1e-6
    rough = Obfuscator(
        Matern(0.2, length_scale_bounds="fixed", nu=0.5),
        sensitive=[0.5, 0.5],
        variance=0.5,
        mean=0.0,
    )
    rough.obfuscate(X, Y)
    assert variance(rough, [0.5])[0] >= 0.5 - 1e-9


def test_what_cannot_be_certified_is_refused(monkeypatch):
    """A solver that fails must not lead to a release without noise, as in the only public code."""
    drawn = []
    monkeypatch.setattr(
        "reticent.obfuscation.obfuscator.obfuscated", lambda *a, **k: drawn.append(1)
    )
    monkeypatch.setattr(
        obfuscation_solution,
        "_weak",
        lambda raw, scaled, promise: (np.zeros((len(raw.inner), 1)), 0.0),
    )
    with pytest.raises(ReleaseRefused, match="never weakened"):
        Obfuscator(K, **COMMON).obfuscate(X, Y)
    assert not drawn


def test_a_solver_that_falls_short_is_scaled_up(monkeypatch):
    solver = obfuscation_solution._weak
    monkeypatch.setattr(
        obfuscation_solution, "_weak", lambda *a: (0.9 * solver(*a)[0], solver(*a)[1])
    )
    model = Obfuscator(K, **COMMON)
    model.obfuscate(X, Y)
    assert variance(model, [0.4, 0.6]).min() >= 0.5 - 1e-9


@pytest.mark.parametrize("kernel", [K, ConstantKernel(1e-14) * K, ConstantKernel(1e14) * K])
@pytest.mark.parametrize("share", [1e-7, 0.999])
def test_promises_of_any_size_are_kept(kernel, share):
    model = Obfuscator(kernel, sensitive=[0.47, 0.6], share=share, mean=0.0)
    model.obfuscate(X, Y)
    assert model.certificate_.ratio >= 1 - 1e-10
    assert (
        model.certificate_.trace
        < 1.01 * max(model.certificate_.bound, 0) + 2 * 21 * model.certificate_.floor
    )


def test_manners():
    model = Obfuscator(K, **COMMON)
    with pytest.raises(NotFittedError):
        model.predict(X)
    with pytest.raises(BadInput, match="NaN"):
        model.obfuscate(X, np.full(21, np.nan))
    model.fit(X, Y)
    with pytest.raises(BadInput, match="2 features"):
        model.predict(np.zeros((3, 2)))
    assert clone(model).get_params()["variance"] == 0.5


def test_regions_need_a_kernel_that_falls_with_distance():
    class Own(RBF):
        pass

    drawn = {"sensitive": [(0.4, 0.5)], "variance": 0.3, "mean": 0.0}
    for kernel in (Own(0.2), DotProduct(1.0) + K, K * DotProduct(1.0), Matern(0.2, nu=0.3), K**0.5):
        with pytest.raises(
            BadInput, match=r"fall with distance, .*RBF, Matern .* give the sensitive values"
        ):
            Obfuscator(kernel, **drawn).obfuscate(X, Y)
    with pytest.raises(BadInput, match="fall with distance"):
        Obfuscator(Own(0.2), sensitive="everywhere", solution="uniform", share=0.3).obfuscate(X, Y)
    with pytest.raises(BadInput, match="Own as it is given is not"):
        Obfuscator(K, **{**drawn, "variance": ConstantKernel(0.3) * Own(0.3)}).obfuscate(X, Y)
    points = Obfuscator(Own(0.2), sensitive=[0.4, 0.5], variance=0.3, mean=0.0)
    points.obfuscate(X, Y)  # the theorem is for any covariance, at points
    assert variance(points, [0.4, 0.5]).min() >= 0.3 - 1e-9


def test_a_kernel_that_is_refused_is_refused_before_anything_is_learned(monkeypatch):
    monkeypatch.setattr("reticent.obfuscation.inputs.train", lambda *_: pytest.fail("trained"))
    with pytest.raises(BadInput, match="fall with distance"):
        Obfuscator(
            ConstantKernel(1.0) * DotProduct(1.0),
            sensitive=[(0.4, 0.5)],
            share=0.3,
            train_on=(X, 2 + X),
        ).fit(X, Y)


def test_records_come_back_in_the_order_they_came_in():
    order = np.random.default_rng(0).permutation(21)
    back = np.argsort(order)
    noise = np.linspace(0.01, 0.2, 21)
    matrix = np.diag(noise) + 0.001
    for how in ({}, {"noise": noise}, {"noise_covariance": matrix}):
        given = dict(how)
        if "noise" in how:
            given["noise"] = noise[order]
        if "noise_covariance" in how:
            given["noise_covariance"] = matrix[np.ix_(order, order)]
        straight = Obfuscator(K, random_state=1, **COMMON, **how)
        mixed = Obfuscator(K, random_state=1, **COMMON, **given)
        w = straight.obfuscate(X, Y)
        assert (mixed.obfuscate(X[order], Y[order]) == w[order]).all()
        assert (mixed.X_[:, 0] == X[order]).all()
        assert (mixed.factor_[back] == straight.factor_).all()
        # the product of the factors is rounded by where a row stands
        assert mixed.covariance_[np.ix_(back, back)] == pytest.approx(
            straight.covariance_, rel=1e-12, abs=1e-15
        )
        assert (mixed.noise_covariance_[np.ix_(back, back)] == straight.noise_covariance_).all()
        at = np.linspace(-0.1, 1.1, 7)
        for one, two in zip(
            mixed.predict(at, return_std=True), straight.predict(at, return_std=True), strict=True
        ):
            assert (one == two).all()


def test_periods_shorter_than_what_is_checked_are_refused():
    x = np.linspace(0, 20_000, 30)[:, None]
    with pytest.raises(reticent.BadInput, match="period 1 is too short"):
        Obfuscator(
            ExpSineSquared(1.0, 1.0, "fixed", "fixed"), sensitive=[(0, 20_000)], variance=0.5
        ).obfuscate(x, x[:, 0])


def test_white_noise_that_differs_from_place_to_place_is_no_part_of_the_function():
    from reticent.obfuscation.solver.covariance import prior_variance

    at = np.array([[0.0], [1.0], [3.0]])
    kernel = RBF(1.0) + WhiteKernel(0.5) * DotProduct(1.0)
    np.testing.assert_allclose(prior_variance(kernel, at), 1.0)


def test_readers_who_know_less_learn_no_more():
    """Posterior variance grows with the prior.

    Whoever takes the curve for a wilder one keeps the promise as well.
    """
    model = Obfuscator(K, **COMMON)
    model.obfuscate(X, Y)
    at = np.array([[0.4], [0.6]])
    x = X[:, None]
    for wilder in (
        4.0 * RBF(0.2),
        RBF(0.2) + RBF(0.02),
        RBF(0.2) + Matern(1.0, nu=0.5),
        RBF(0.2) + DotProduct(10.0),
    ):
        c = between(wilder, x, at)
        prior = between(wilder, at, at).diagonal()
        a = between(wilder, x, x) + model.covariance_
        assert (prior - np.einsum("ij,ij->j", c, np.linalg.solve(a, c)) >= 0.5 - 1e-9).all()
