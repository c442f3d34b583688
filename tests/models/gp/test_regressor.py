"""GPRegressor: accurate for its ε, calibrated, and sensible where there is nothing to learn."""

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
    PairwiseKernel,
    RationalQuadratic,
    WhiteKernel,
)

import reticent
from reticent import BadInput, Bounds, GPRegressor
from reticent.inference.kernels import projection as priors
from reticent.models.gp.prior_hypotheses import PreparedPrior

LINE = Bounds(x=[(-4, 4)], y=(-1.3, 1.3))
AT = np.linspace(-4, 4, 101)[:, None]


def sinc(x):
    return np.sinc(2 * np.asarray(x)[:, 0] / np.pi)


def data(n=1024, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-4, 4, size=(n, 1))
    return x, sinc(x) + 0.1 * rng.normal(size=n)


def gp(kernel=None, **params):
    return GPRegressor(kernel, **{"bounds": LINE, "epsilon": 1.0, "delta": 1e-4, **params})


def rmse(model, at=AT, truth=sinc):
    return float(np.sqrt(np.mean((model.predict(at) - truth(at)) ** 2)))


def test_accurate_and_calibrated():
    """Over 12 fits: errors a quarter of what a single release with the paper's noise gives (.17),
    and bands that cover.
    """
    errors = []
    covered = []
    for seed in range(12):
        model = gp(RBF(1.0, "fixed"), noise=0.1).fit(*data(seed=seed))
        mean, std = model.predict(AT, return_std=True)
        errors.append(rmse(model))
        covered.append(np.mean(np.abs(mean - sinc(AT)) < 1.96 * std))
    assert np.mean(errors) < 0.06
    assert np.mean(covered) > 0.9


def test_more_budget_more_accuracy_and_stages_help():
    errors = {
        key: np.mean(
            [rmse(gp(RBF(1.0, "fixed"), noise=0.1, **params).fit(*data(seed=s))) for s in range(5)]
        )
        for key, params in {
            "0.1": {"epsilon": 0.1},
            "1": {},
            "10": {"epsilon": 10},
            "one": {"stages": 1},
        }.items()
    }
    assert errors["0.1"] > 2 * errors["1"]
    assert errors["0.1"] > 3 * errors["10"]
    assert errors["1"] > 0.8 * errors["10"]  # both are near what n records can tell
    assert errors["one"] > 1.5 * errors["1"]


@pytest.mark.parametrize(
    "kernel",
    [
        None,
        ConstantKernel(1.0) * RBF(3.0),
        Matern(1.0, nu=1.5),
        RationalQuadratic(),
        RBF(1.0) + WhiteKernel(0.01),
    ],
    ids=str,
)
def test_kernel_and_noise_are_learned_for_free(kernel):
    model = gp(kernel, epsilon=2).fit(*data(4096))
    assert rmse(model) < 0.06
    assert len(model.releases_) == 24
    assert model.noise_ < 0.2
    fixed = gp(kernel, learn_kernel=False).fit(*data(500))
    assert kernel is None or fixed.kernel_ == kernel


def test_several_inputs():
    rng = np.random.default_rng(0)
    X = rng.uniform([0, 40, -1], [110, 220, 1], size=(20_000, 3))

    def truth(X):
        return 30 + 50 * X[:, 0] / 110 + 20 * np.sin(X[:, 1] / 30)

    bounds = Bounds(x=[(0, 110), (40, 220), (-1, 1)], y=(0, 150))
    model = GPRegressor(bounds=bounds, epsilon=1, delta=1e-6).fit(
        X, truth(X) + 5 * rng.normal(size=20_000)
    )
    at = rng.uniform([0, 40, -1], [110, 220, 1], size=(300, 3))
    mean, std = model.predict(at, return_std=True)
    assert np.sqrt(np.mean((mean - truth(at)) ** 2)) < 5
    assert np.mean(np.abs(mean - truth(at)) < 1.96 * std) > 0.85
    assert model.score(at, truth(at)) > 0.9


def test_the_parts_of_the_variance():
    x, y = data()
    tight, loose = (
        gp(RBF(1.0, "fixed"), noise=0.1, epsilon=eps).fit(x, y).variance_parts(AT)
        for eps in (0.2, 50)
    )
    assert tight["privacy"].mean() > 20 * loose["privacy"].mean()
    assert loose["model"].mean() == pytest.approx(tight["model"].mean(), rel=1.0)
    assert tight["noise"] == pytest.approx(np.full(101, 0.01), rel=0.01)
    model = gp(RBF(1.0, "fixed"), noise=0.1).fit(x, y)
    parts = model.variance_parts(AT)
    std = model.predict(AT, return_std=True)[1]
    assert parts["model"] + parts["privacy"] == pytest.approx(std**2)


def test_covariance_and_samples_agree_with_the_std():
    model = gp(RBF(1.0, "fixed"), noise=0.1).fit(*data())
    cov = model.predict(AT, return_cov=True)[1]
    std = model.predict(AT, return_std=True)[1]
    assert np.sqrt(np.diag(cov)) == pytest.approx(std, rel=0.02, abs=1e-3)
    draws = model.sample_y(AT, 4000, random_state=1)
    assert draws.shape == (101, 4000)
    assert draws.std(axis=1) == pytest.approx(std, rel=0.1)
    assert (model.sample_y(AT, 2, random_state=1) == model.sample_y(AT, 2, random_state=1)).all()
    with pytest.raises(BadInput):
        model.predict(AT, return_std=True, return_cov=True)


@pytest.mark.parametrize("eps", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("case", ["constant y", "equal x", "one record", "missing", "outside"])
def test_nothing_to_learn_gives_a_sensible_posterior(case, eps):
    x, y = data(300)
    x, y = {
        "constant y": (x, np.full(300, 0.7)),
        "equal x": (np.zeros((300, 1)), y),
        "one record": (x[:1], y[:1]),
        "missing": (x * np.nan, y * np.nan),
        "outside": (x * 1e9, y * 1e9),
    }[case]
    with warnings.catch_warnings():
        if case == "missing":  # where noise does not hide it, the fit says so
            warnings.filterwarnings("ignore", "About", UserWarning)
        model = gp(epsilon=eps).fit(x, y)
    mean, std = model.predict(AT, return_std=True)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()
    largest = (
        10 if case != "outside" else 150
    )  # outputs may lie outside their bounds by a factor of 64
    assert np.abs(mean).max() < largest
    assert (std < largest).all()
    assert all(np.isfinite(part).all() for part in model.variance_parts(AT).values())


@pytest.mark.parametrize("kernel", [RBF(1.0, "fixed"), RBF(1.0)], ids=["given", "learned"])
def test_a_box_that_is_much_too_wide_is_zoomed_in_on(kernel, tmp_path):
    """A basis for the whole box could not show the function, and called what it missed noise."""
    wide = Bounds(x=[(-40, 40)], y=(-1.3, 1.3))
    errors = []
    covered = []
    zoomed = []
    for seed in range(4):
        model = gp(kernel, bounds=wide, random_state=seed).fit(*data(1024, seed))
        mean, std = model.predict(AT, return_std=True)
        errors.append(rmse(model))
        covered.append(np.mean(np.abs(mean - sinc(AT)) < 1.96 * std))
        stages = [one.statistic for one in model.releases_[1:]]  # after the complete records
        warps = [tuple(map(tuple, one["head"]["warp"])) for one in stages]
        assert warps[0] == ()
        zoomed.append(warps[-1] != ())
    # noise hides where the records are in 2 of 8 fits with the kernel given, in none if learned
    assert sum(zoomed) >= 3
    assert np.mean(errors) < 0.15  # 0.25 with the first basis
    assert np.mean(covered) > 0.9
    far = model.predict([[-35.0], [35.0]], return_std=True)[1]
    assert (far > 2 * std.mean()).all()  # nobody is there
    model.save(tmp_path / "m")
    assert (reticent.load(tmp_path / "m").predict(AT) == model.predict(AT)).all()


def test_parameters_with_which_a_kernel_is_not_positive_definite_stop_nothing():
    """The kernel given is refused before the charge.

    One that is only weighed is used without its negative variances.
    """
    x = np.random.default_rng(0).uniform(-1, 1, size=(300, 2))
    kernel = ExpSineSquared(1.0, 12.0, length_scale_bounds="fixed", periodicity_bounds=(2.0, 12.0))
    model = gp(kernel, epsilon=1e3, bounds=Bounds(x=[(-1, 1)] * 2, y=(-1, 1)), basis=40, stages=2)
    priors = model._make_prior(model.bounds)
    values = [np.linalg.eigvalsh(S)[0] for S in priors.choose(40)[1]]
    assert min(values) > 0
    assert not priors.indefinite()
    priors._grams.reverse()
    assert priors.indefinite()
    assert np.isfinite(model.fit(x, x[:, 0]).predict(x[:10])).all()
    with pytest.raises(BadInput, match="positive definite"):
        model.set_params(kernel=ExpSineSquared(1.0, 2.5)).fit(x, x[:, 0])


def test_a_default_prior_whose_range_of_y_is_too_small_is_stretched():
    x, y = data(1024)
    narrow = Bounds(x=[(-4, 4)], y=(-0.2, 0.2))
    errors = [
        np.mean([rmse(gp(bounds=b, random_state=s).fit(x, y)) for s in range(8)])
        for b in (LINE, narrow)
    ]
    assert errors[1] < 1.7 * errors[0]  # 1.27 ± .12 over 16 draws; twice as much if not stretched


def test_noise_is_not_hidden_by_the_damping_of_many_inputs():
    """Residuals are noise, not a doubt about the function that damped matrices make up.

    Bands must hold new outputs.
    """
    rng = np.random.default_rng(1)
    x = rng.normal(0, 0.3, size=(600, 6)).clip(-1, 1)
    y = x[:, 0] + 0.5 * rng.normal(size=600)
    bounds = Bounds(x=[(-1, 1)] * 6, y=(-2, 2))
    covered = []
    noises = []
    for seed in range(6):
        model = gp(bounds=bounds, random_state=seed).fit(x[:300], y[:300])
        sd = np.sqrt(sum(model.variance_parts(x[300:]).values()))
        covered.append(np.mean(np.abs(model.predict(x[300:]) - y[300:]) < 1.96 * sd))
        noises.append(model.noise_)
    assert np.mean(covered) > 0.9
    assert np.mean(noises) == pytest.approx(0.5, rel=0.3)


@pytest.mark.parametrize("wider", [10, 1 / 6], ids=["ten times too wide", "six times too narrow"])
def test_wrong_bounds_of_y_cost_little(wider):
    x, y = data(2000)
    wrong = Bounds(x=[(-4, 4)], y=(-1.3 * wider, 1.3 * wider))
    errors = [
        np.mean([rmse(gp(RBF(1.0, "fixed"), noise=0.1, bounds=bounds).fit(x, y)) for _ in range(6)])
        for bounds in (LINE, wrong)
    ]
    assert errors[1] < 1.6 * errors[0]


def test_several_outputs():
    x, y = data(4000)
    both = np.column_stack([y, 100 - 50 * y])
    bounds = Bounds(x=[(-4, 4)], y=[(-1.3, 1.3), (0, 200)])
    model = gp(bounds=bounds, epsilon=3).fit(x, both)
    mean, std = model.predict(AT, return_std=True)
    truth = np.column_stack([sinc(AT), 100 - 50 * sinc(AT)])
    assert mean.shape == std.shape == (101, 2)
    assert np.sqrt(np.mean((mean - truth) ** 2, axis=0)) == pytest.approx([0, 0], abs=5.0)
    assert np.sqrt(np.mean((mean[:, 0] - truth[:, 0]) ** 2)) < 0.1
    assert model.score(AT, truth) > 0.9
    parts = model.variance_parts(AT)
    assert parts["model"] + parts["privacy"] == pytest.approx(std**2)
    assert parts["noise"].shape == (101, 2)
    assert model.predict(AT[:5], return_cov=True)[1].shape == (5, 5, 2)
    assert model.sample_y(AT[:5], 3).shape == (5, 2, 3)
    assert len(model.kernel_) == len(model.noise_) == 2
    again = GPRegressor.from_releases(model.releases_, **model.get_params(deep=False))
    assert (again.predict(AT) == mean).all()


def test_a_kernel_given_is_in_the_units_of_each_output():
    x, y = data(4000)
    bounds = Bounds(x=[(-4, 4)], y=[(-1.3, 1.3), (-13, 13)])
    kernel = RBF(1.0, "fixed")
    model = gp(kernel, noise=0.1, bounds=bounds, epsilon=3).fit(x, np.column_stack([y, y]))
    errors = np.sqrt(np.mean((model.predict(AT) - sinc(AT)[:, None]) ** 2, axis=0))
    assert errors.max() < 0.08


def test_kernels_can_be_averaged_instead_of_learned():
    x, y = data(2000)
    averaged = gp(ConstantKernel(1.0) * RBF(3.0), learn_kernel="average", epsilon=2).fit(x, y)
    assert rmse(averaged) < 0.15
    again = GPRegressor.from_releases(averaged.releases_, **averaged.get_params(deep=False))
    assert (again.predict(AT) == averaged.predict(AT)).all()


def test_inputs_in_a_corner_of_the_box_are_spread_out():
    """The default asks for moments and counts of the inputs first.

    A box a hundred times too wide then costs little.
    """
    rng = np.random.default_rng(1)
    x = rng.uniform(-4, 4, size=(20_000, 1))
    y = sinc(x) + 0.1 * rng.normal(size=20_000)
    errors = []
    for reach in (4, 400):
        model = gp(bounds=Bounds(x=[(-reach, reach)], y=(-1.3, 1.3)), epsilon=3, delta=1e-6).fit(
            x, y
        )
        errors.append(rmse(model))
    assert [release.statistic["name"] for release in model.releases_[:2]] == [
        "InputMoments",
        "InputCounts",
    ]
    assert errors[0] < 0.02
    assert errors[1] < 0.1


def test_a_fit_does_not_keep_the_prior_it_prepared():
    model = gp().fit(*data(200))
    assert not [value for value in vars(model).values() if isinstance(value, PreparedPrior)]


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"kernel": "rbf"}, "scikit-learn kernel"),
        ({"kernel": RBF([1.0, 2.0])}, "cannot be used for 1 inputs"),
        (
            {"kernel": RBF([1.0, 2.0]), "bounds": Bounds(x=(-4, 4), y=(0, 1))},
            "cannot be used for 1 inputs",
        ),
        ({"kernel": WhiteKernel(0.1)}, "cannot be used"),
        ({"kernel": RationalQuadratic(0.3, -1.0, alpha_bounds="fixed")}, "positive definite"),
        ({"kernel": PairwiseKernel(metric="sigmoid")}, "positive definite"),  # it is not
        ({"kernel": DotProduct(0.0) ** 0.5}, "positive definite"),
        ({"kernel": ConstantKernel(1e200) * RBF(1.0)}, "cannot be used"),
        ({"bounds": Bounds(x=(-4, 4), classes=[0, 1])}, "not classes"),
        ({"noise": True}, "noise"),
        ({"noise": 10**400}, "noise"),
        ({"noise": 0.0}, "noise"),
        ({"noise": -1}, "noise"),
        ({"stages": 0}, "stages"),
        ({"stages": 2.0}, "stages"),
        ({"basis": 0}, "basis"),
        ({"basis": 10**4}, "basis"),
        ({"delta": 0}, "delta must be above 0"),
        ({"bounds": Bounds(x=[(-4, 4)])}, "outputs have no bounds"),
        ({"bounds": Bounds(x=[(-4, 4)], y=[(0, 1), (0, 1)])}, "bounds are for 2"),
        ({"learn_kernel": "best"}, "learn_kernel"),
        ({"learn_kernel": np.array([True, False])}, "learn_kernel"),
        ({"noise_column": np.timedelta64(1)}, "noise_column"),
    ],
    ids=str,
)
def test_wrong_use_is_refused(params, words):
    with pytest.raises(BadInput, match=words):
        gp(**params).fit(*data(10))


def test_saved_with_its_kernel(tmp_path):
    kernel = ConstantKernel(2.0, "fixed") * RBF([1.5]) + DotProduct(0.5, (0.1, 10.0))
    model = gp(kernel).fit(*data(200))
    model.save(tmp_path / "m")
    loaded = reticent.load(tmp_path / "m")
    assert str(loaded.kernel) == str(kernel)
    assert (loaded.kernel.bounds == kernel.bounds).all()
    assert loaded.kernel_.theta == pytest.approx(model.kernel_.theta)
    assert (loaded.predict(AT) == model.predict(AT)).all()


def test_rebuilt_on_a_machine_whose_last_digits_differ(tmp_path, monkeypatch):
    """Eigenvectors differ in their last bits between machines and thread counts.

    What was asked is in the file.
    """
    model = gp(RBF(1.0), epsilon=2, stages=4).fit(*data(500))
    model.save(tmp_path / "m")
    expected = pytest.approx(model.predict([[0.5], [-3.0]]), abs=1e-5)
    plain = (
        f"import reticent\nprint(*reticent.load({str(tmp_path / 'm')!r}).predict([[0.5], [-3.0]]))"
    )
    other_machine = os.environ | {"OPENBLAS_CORETYPE": "Haswell", "OPENBLAS_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-c", plain], capture_output=True, text=True, check=True, env=other_machine
    )
    assert [float(v) for v in done.stdout.split()] == expected
    true = priors.eigenbasis
    asked = []

    def other(kernel, size, *degree):
        values, q = true(kernel, size, *degree)
        asked.append(size)
        return values * (1 + 1e-13), q + 1e-12 * np.cos(np.arange(q.size)).reshape(q.shape)

    monkeypatch.setattr(priors, "eigenbasis", other)
    assert reticent.load(tmp_path / "m").predict([[0.5], [-3.0]]) == expected
    assert asked


def test_the_edges_of_the_box_are_not_much_less_certain():
    model = gp(epsilon=3).fit(*data(4096))
    std = model.predict([[-4.0], [-3.5], [3.5], [4.0]], return_std=True)[1]
    assert std[[0, 3]].max() < 6 * std[[1, 2]].max()


def test_noise_makes_no_gaps_among_evenly_spread_records():
    """Few records at a small budget: densities that agree with the releases differ by noise."""
    weights = [
        np.mean(model._extrapolation_weight(model._unit(AT)))
        for model in (gp(random_state=seed).fit(*data(500, seed)) for seed in range(3))
    ]
    assert np.mean(weights) < 0.15


@pytest.mark.parametrize("wider", [10, 1000, 1e5])
def test_units_and_wide_bounds_of_y_do_not_spoil_the_bands(wider):
    covered = []
    for seed in range(4):
        bounds = Bounds(x=[(-4, 4)], y=(-1.3 * wider, 1.3 * wider))
        model = gp(RBF(1.0, "fixed"), noise=0.1, bounds=bounds, epsilon=3).fit(*data(2000, seed))
        mean, std = model.predict(AT, return_std=True)
        covered.append(np.mean(np.abs(mean - sinc(AT)) < 2 * std))
    assert np.mean(covered) > 0.85
    assert model.noise_ == 0.1


def test_nothing_fails_after_the_charge_however_little_the_noise():
    """All records at one place and hardly any noise: a matrix that is singular but for rounding."""
    x = np.full((20_000, 1), 0.3)
    bounds = Bounds(x=[(-1, 1)], y=(-1, 1))
    params = {"noise": 1e-9, "learn_kernel": False, "stages": 6, "bounds": bounds, "delta": 1e-6}
    model = gp(RBF(10.0), **params).fit(x, 0.3 * x[:, 0])
    assert np.isfinite(model.predict(AT / 4)).all()


def test_nothing_fails_after_the_charge_where_noise_hides_every_feature():
    """One function of seven inputs, and five records: its sum of squares may be told as zero."""
    bounds = Bounds(x=[(-1, 1)] * 7, y=(-1, 1))
    params = {"bounds": bounds, "learn_kernel": False, "basis": 1, "stages": 7}
    for seed in range(8):
        model = GPRegressor(
            0.5 * RBF(2.0), epsilon=10, delta=1e-300, random_state=seed, **params
        ).fit(np.zeros((5, 7)), np.zeros(5))
        assert np.isfinite(model.predict(np.zeros((1, 7)), return_std=True)).all()


@pytest.mark.parametrize(
    "params",
    [
        {"noise": 1e149},
        {"noise": 1e-300},
        {"bounds": Bounds(x=[(-4, 4)], y=[(-1, 1), (-1e-90, 1e-90)])},
    ],
)
def test_scales_that_cannot_work_are_refused_before_the_charge(params, tmp_path):
    url = str(tmp_path / "budget.db")
    reticent.Ledger(url).open("people", epsilon=3, delta=1e-3)
    x, y = data(50)
    outputs = np.column_stack([y, y]) if "bounds" in params else y
    with pytest.raises(BadInput, match="these ranges"):
        gp(RBF(1.0), ledger=url, dataset="people", **params).fit(x, outputs)
    assert reticent.Ledger(url).history("people") == []


@pytest.mark.parametrize(("epsilon", "least"), [(1, 0.7), (3, 0.9)])  # before: .5 and .4
def test_features_of_most_records_are_as_long_as_the_noise_is_made_for(epsilon, least):
    """Records in the middle of wide ranges.

    Their features are scaled by where they are, not by the corners of the box.
    """
    X = np.random.default_rng(0).normal(0, 0.2, size=(300, 5))
    y = X.sum(axis=1) / 3
    model = gp(bounds=Bounds(x=[(-1, 1)] * 5, y=(-1, 1)), epsilon=epsilon, random_state=0).fit(X, y)
    head = model._feature_map
    assert np.square(head.features(np.clip(X, -1, 1))).sum(axis=1).mean() > least * head.radius2


def test_with_three_inputs_features_are_long_even_where_noise_is_small():
    X = np.random.default_rng(0).normal(0, 0.2, size=(5_000, 3))
    bounds = Bounds(x=[(-1, 1)] * 3, y=(-1, 1))
    head = (
        gp(bounds=bounds, epsilon=100, basis=20, stages=12, random_state=0)
        .fit(X, X.sum(axis=1) / 3)
        ._feature_map
    )
    assert np.square(head.features(np.clip(X, -1, 1))).sum(axis=1).mean() > 0.9 * head.radius2
