"""Whatever a table holds, a regression of it is finite.

Whatever cannot be fitted is refused before anything is charged.
"""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import (
    RBF,
    CompoundKernel,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)

import reticent
from reticent import Bounds

KERNELS = {
    "default": lambda _: None,
    "RBF": lambda _: RBF(0.5),
    "a length each": lambda d: ConstantKernel(1.0) * RBF([0.5] * d) + WhiteKernel(0.1),
    "Matérn": lambda _: Matern(0.5, nu=1.5),
    "rational quadratic": lambda _: RationalQuadratic(0.5),
    "dot product": lambda _: DotProduct(0.3),
    "fixed": lambda _: RBF(0.5, "fixed"),
    "a constant": lambda _: ConstantKernel(1.0),
    "nothing is free": lambda inputs: RBF(0.3 * inputs, (0.3 * inputs, 0.3 * inputs)),
}
TABLES = {
    "y constant": lambda x, y: (x, np.full_like(y, 0.7)),
    "all x equal": lambda x, y: (np.full_like(x, 0.5), y),
    "one record": lambda x, y: (x[:1], y[:1]),
    "columns twice": lambda x, y: (np.repeat(x[:, :1], x.shape[1], axis=1), y),
    "missing": lambda x, y: (np.full_like(x, np.nan), np.full_like(y, np.nan)),
    "infinite": lambda x, y: (
        np.where(x < 0.5, -np.inf, np.inf),
        np.where(y < 0.5, np.inf, -np.inf),
    ),
    "outside": lambda x, y: (1e300 * x, -1e300 * y),
    "words among numbers": lambda x, y: (np.where(x < 0.5, "a word", x.astype(object)), y),
}


@settings(max_examples=20)
@given(
    table=st.sampled_from(sorted(TABLES)),
    kernel=st.sampled_from(sorted(KERNELS)),
    inputs=st.integers(1, 8),
    outputs=st.integers(1, 2),
    epsilon=st.sampled_from([1e-9, 1e-3, 1.0, 1e6]),
    stages=st.sampled_from([1, 3, 12]),
    seed=st.integers(0, 2**16),
)
def test_any_table_gives_a_finite_posterior(table, kernel, inputs, outputs, epsilon, stages, seed):
    random = np.random.default_rng(seed)
    x, y = TABLES[table](random.uniform(size=(30, inputs)), random.uniform(size=(30, outputs)))
    bounds = Bounds(x=[(0, 1)] * inputs, y=[(-1, 2)] * outputs)
    model = reticent.GPRegressor(
        KERNELS[kernel](inputs), bounds=bounds, epsilon=epsilon, delta=1e-6, stages=stages, basis=6
    )
    at = np.vstack(
        [
            random.uniform(-1, 2, (4, inputs)),
            np.full((1, inputs), np.nan),
            np.full((1, inputs), np.inf),
        ]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=r"About \d+ % of the records have all values")
        model.fit(x, y if outputs > 1 else y[:, 0])
        mean, std = model.predict(at, return_std=True)
        covariance = model.predict(at, return_cov=True)[1]
        parts = model.variance_parts(at)
        draws = model.sample_y(at, 3)
    shape = (6,) if outputs == 1 else (6, outputs)
    assert mean.shape == std.shape == shape
    assert draws.shape == (*shape, 3)
    assert covariance.shape == (6, *shape)
    lacking = np.isnan(at).any(axis=1)
    known = ~lacking
    transposed = np.swapaxes(covariance, 0, 1)
    for values in (mean, std, draws, covariance, transposed, sum(parts.values())):
        assert np.isnan(values[lacking]).all()
    for values in (mean, std, draws, covariance[:, known], *parts.values()):
        assert np.isfinite(values[known]).all()
    assert np.isfinite(model.noise_).all()
    assert np.isfinite(model.prior_std_).all()
    assert all((part[known] >= 0).all() for part in parts.values())
    assert (std[known] > 0).all()
    for one in covariance.reshape(6, 6, outputs)[known][:, known].transpose(2, 0, 1):
        assert np.linalg.eigvalsh(one)[0] > -1e-9 * np.trace(one)


X = np.random.default_rng(0).uniform(size=(20, 2))
Y = np.linspace(0, 1, 20)
TWO = Bounds(x=[(0, 1)] * 2, y=(-1, 2))


@pytest.mark.parametrize(
    ("params", "records", "words"),
    [
        ({}, (X[:0], Y[:0]), "no records"),
        ({}, (X * 1j, Y), "Complex"),
        ({}, (X[:, 0], Y), "reshape"),
        ({}, (np.hstack([X, X]), Y), "X has 4 features, but the bounds are for 2"),
        ({}, (X, Y[:-1]), "inconsistent numbers of samples"),
        ({}, (X, np.column_stack([Y, Y])), "y has 2 columns, but the bounds are for 1"),
        ({"kernel": RBF([1.0, 2.0, 3.0])}, (X, Y), "one length scale, or one per input"),
        (
            {"kernel": ExpSineSquared()},
            (X, Y),
            "cannot be used for 2 inputs",
        ),  # positive definite along a line only
        ({"kernel": ConstantKernel(-1.0) * RBF()}, (X, Y), "positive definite"),
        ({"kernel": ConstantKernel(0.0, "fixed")}, (X, Y), "cannot be used"),
        ({"kernel": WhiteKernel()}, (X, Y), "cannot be used"),
        ({"kernel": RBF(np.nan, "fixed")}, (X, Y), "cannot be used"),
        ({"kernel": RBF(1e-9, "fixed")}, (X, Y), "cannot be used"),
        ({"kernel": CompoundKernel([RBF(), RBF()])}, (X, Y), "cannot be used"),
        ({"kernel": RBF}, (X, Y), "scikit-learn kernel such as"),
        ({"bounds": ((0, 1), (0, 1))}, (X, Y), "must be a reticent.Bounds"),
        ({"epsilon": np.nan}, (X, Y), "epsilon must be a positive number"),
        ({"epsilon": np.inf}, (X, Y), "epsilon must be a positive number"),
        ({"records_per_person": 0}, (X, Y), "records_per_person"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_what_cannot_be_fitted_is_refused_before_the_charge(params, records, words, tmp_path):
    ledger = reticent.Ledger(tmp_path / "budget.db")
    ledger.open("people", epsilon=5, delta=1e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = reticent.GPRegressor(
            **{"bounds": TWO, "epsilon": 1.0, "delta": 1e-6, "ledger": ledger, "dataset": "people"}
            | params
        )
        with pytest.raises(reticent.BadInput, match=words):
            model.fit(*records)
    assert ledger.history("people") == []


def test_texts_of_numbers_are_read_as_in_a_file():
    def mean(x, y):
        model = reticent.GPRegressor(bounds=TWO, epsilon=1.0, delta=1e-6, basis=6, random_state=0)
        return model.fit(x, y).predict(X)

    assert (mean(X.astype(str), Y.astype(str)) == mean(X, Y)).all()


@pytest.mark.parametrize(
    "model",
    [
        reticent.GPRegressor(stages=1, basis=3),
        reticent.LabelGPRegressor(stages=1, learn_kernel=False),
        reticent.BinnedGPRegressor(bins=3, learn_kernel=False),
    ],
    ids=lambda model: type(model).__name__,
)
def test_draws_take_whole_numbers_and_seeds(model):
    model.set_params(bounds=TWO, epsilon=1.0, delta=1e-6).fit(X, Y)
    assert model.sample_y(X[:3], np.int64(2)).shape == (3, 2)
    draws = [
        model.sample_y(X[:1], 2, random_state)
        for random_state in (np.random.RandomState(3), None, 7, np.int64(7))
    ]
    assert np.isfinite(draws).all()
    assert (draws[2] == draws[3]).all()
    for wrong in ("a seed", -1, 1.5):
        with pytest.raises(
            reticent.BadInput,
            match="random_state must be None, a whole number or a NumPy generator",
        ):
            model.sample_y(X, 1, wrong)
    for wrong in (0, -1, 1.5, True, "3", None):
        with pytest.raises(
            reticent.BadInput, match="n_samples must be a whole number of at least 1"
        ):
            model.sample_y(X, wrong)


@pytest.mark.parametrize("kernel", [RBF(0.05, (0.05, 0.05)), RBF(0.05, (0.01, 0.05))])
def test_a_kernel_with_nothing_to_refine_is_fitted_whatever_the_records_are(kernel):
    for x in (np.zeros((300, 1)), np.linspace(-1, 1, 300)[:, None]):
        model = reticent.GPRegressor(
            kernel, bounds=Bounds(x=[(-1, 1)], y=(-1, 1)), epsilon=100, delta=1e-6
        )
        assert np.isfinite(model.fit(x, np.zeros(300)).predict(x, return_std=True)[1]).all()


def test_bands_stay_finite_where_the_evidence_is_narrow():
    """A kernel in the wrong units.

    Kernels around the best one are told apart by millions of nats.
    """
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (20_000, 1))
    y = 80 * np.sin(25 * x[:, 0]) + rng.normal(size=20_000)
    kernel = ConstantKernel(1.0) * RBF(0.1) + ConstantKernel(2.0) * Matern(0.4, nu=1.5)
    bounds = Bounds(x=[(-1, 1)], y=(-100, 100))
    model = reticent.GPRegressor(
        kernel, noise=1.0, bounds=bounds, epsilon=100, delta=1e-6, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", UserWarning)
        std = model.fit(x, y).predict(x[:100], return_std=True)[1]
    assert np.isfinite(std).all()


def test_a_refused_charge_leaves_nothing_of_the_validation(tmp_path):
    ledger = str(tmp_path / "budget.db")
    reticent.Ledger(ledger).open("people", epsilon=0.1, delta=1e-6)
    bounds = Bounds(x=[(0, 1)] * 2, y=(0, 1))
    model = reticent.GPRegressor(
        RBF(0.5), bounds=bounds, epsilon=1, delta=1e-6, ledger=ledger, dataset="people"
    )
    before = set(vars(model))
    with pytest.raises(reticent.BudgetExceeded):
        model.fit(X, Y)
    assert set(vars(model)) == before
