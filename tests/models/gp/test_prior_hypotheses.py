"""Priors that are kept for later fits: those of equal public numbers, and no others."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, PairwiseKernel
from threadpoolctl import threadpool_info, threadpool_limits

import reticent
from reticent.models.gp.prior_hypotheses import _cached_prior, _default_prior, make_prior

BOX = reticent.Bounds(x=[(0.0, 2.0), (0.0, 3.0)], y=(0.0, 1.0))


def priors(kernel=None, bounds=BOX, unit=1.0, learn=False, warp=()):
    return make_prior(RBF(1.0) if kernel is None else kernel, bounds, unit, learn=learn, warp=warp)


def test_priors_of_equal_public_numbers_are_made_once():
    assert priors() is priors(
        RBF(1.0), reticent.Bounds(x=BOX.x, y=(5.0, 9.0))
    )  # the range of y is in the unit
    kernel = ConstantKernel(2.0) * Matern(np.array([1.0, 2.0]), nu=1.5)
    assert priors(kernel) is priors(ConstantKernel(2.0) * Matern(np.array([1.0, 2.0]), nu=1.5))
    assert make_prior(None, BOX, 1.0, learn=True) is make_prior(None, BOX, 9.0, learn=True)


class Own(RBF):
    """May do anything."""


@pytest.mark.parametrize(
    "other",
    [
        {"kernel": RBF(np.nextafter(1.0, 2.0))},
        {"kernel": Matern(1.0)},
        {"kernel": RBF(np.array([1.0, 1.0]))},
        {"bounds": reticent.Bounds(x=[(0.0, 2.0), (0.0, np.nextafter(3.0, 4.0))])},
        {"bounds": reticent.Bounds(x=[(-1.0, 1.0), (-1.0, 1.0)], norm=1.0)},
        {"unit": 2.0},
        {"learn": True},
        {"warp": ((-1.0, 0.1, 1.0), (-1.0, 0.0, 1.0))},
    ],
    ids=str,
)
def test_a_difference_in_the_last_bit_is_one(other):
    assert priors(**other) is not priors()


@pytest.mark.parametrize(
    "asked",
    [
        {"kernel": Own(1.0)},
        {"kernel": 2.0 * Own(1.0)},
        {"kernel": PairwiseKernel(metric="rbf", pairwise_kernels_kwargs={})},
        {"learn": True},  # tens of megabytes
        {
            "warp": ((-1.0, 0.1, 1.0), (-1.0, 0.0, 1.0))
        },  # from releases, which a search may not show
    ],
    ids=str,
)
def test_what_is_never_kept(asked):
    assert priors(**asked) is not priors(**asked)


def test_what_was_made_without_errors_of_numpy_does_not_count_where_a_kernel_is_tried_out():
    with np.errstate(over="ignore"):
        careless = priors()
    with np.errstate(over="raise"):
        assert priors() is not careless


def test_a_model_has_its_kernel_for_itself():
    data = np.random.default_rng(0).uniform(size=(50, 3))
    one, two = (
        reticent.GPRegressor(
            RBF(1.0), bounds=BOX, epsilon=1, delta=1e-6, stages=2, basis=5, learn_kernel=False
        ).fit(data[:, :2], data[:, 2])
        for _ in range(2)
    )
    assert one.kernel_ == two.kernel_ == RBF(1.0)
    one.kernel_.set_params(length_scale=7.0)
    assert two.kernel_ == RBF(1.0)
    assert priors().kernels[0] == RBF(1.0)


def test_what_is_kept_is_made_in_one_thread_whoever_asks(monkeypatch):
    """BLAS may round otherwise with several, and a model must be rebuilt bit for bit where nobody
    has asked before.
    """
    seen = []

    def made(*given, **options):
        seen.extend(one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas")
        return given

    monkeypatch.setattr("reticent.models.gp.prior_hypotheses.AnovaPriors", made)
    monkeypatch.setattr("reticent.models.gp.prior_hypotheses.KernelPriors", made)
    _default_prior.forget()
    try:
        with threadpool_limits(2, "blas"):
            make_prior(None, BOX, 1.0, learn=True)
            priors(RBF(0.123))
    finally:
        _default_prior.forget()
        _cached_prior.forget()
    assert set(seen) == {1}
