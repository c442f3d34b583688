"""The belief from noisy sums of labels.

Against one dense Gaussian law of all labels, with several releases and hypotheses.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from reticent.inference.labels import posterior as label_belief
from reticent.inference.labels.posterior import (
    AveragedKernel,
    InducingFeatures,
    LabelPosterior,
    average_kernels,
    inducing_inputs,
)
from reticent.inference.labels.settings import LABEL_POSTERIOR

S2 = 0.05
N = 14
GRID = np.linspace(-1, 1, 6)[:, None]


def kernel_of(length, variance=0.7, half=1.0):
    return AveragedKernel([ConstantKernel(variance) * RBF(length)], np.ones(1), lambda u: u, half)


def inputs(seed=0):
    return np.sort(np.random.default_rng(seed).uniform(-1, 1, size=(N, 1)), axis=0)


COUNTS = np.array([1.0, 3.0] * (N // 2))


def belief(kernels, counts=COUNTS, s2=S2, at=None, **how):
    x = inputs()
    how = {"learn_noise": False, "learn_kernel": False, **how}
    at = x if at is None else at
    return LabelPosterior(
        list(kernels), np.broadcast_to(s2, len(kernels)).astype(float), x, counts, at, **how
    )


def releases(count=2, rows=4, seed=1, sd=0.3):
    """Columns, sums of all labels with noise, and its sd."""
    rng = np.random.default_rng(seed)
    labels = 0.5 * np.sin(4 * inputs()[:, 0]) * COUNTS
    found = []
    for k in range(count):
        A = rng.normal(size=(N, rows)) / 5
        noise = sd * (1 + k)
        found.append((A, A.T @ labels + noise * rng.normal(size=rows), noise))
    return found


def dense(kernel, told, at=GRID, s2=S2, counts=COUNTS):
    """Mean and covariance of f(at), and the log-density of all releases.

    Labels' sums have covariance c·s² + cKc.
    """
    x = inputs()
    C = np.diag(counts)
    A = np.hstack([one for one, _, _ in told])
    noise = np.diag(np.concatenate([np.full(one.shape[1], sd**2) for one, _, sd in told]))
    seen = np.concatenate([value for _, value, _ in told])
    covariance = A.T @ (C @ kernel(x, x) @ C + s2 * C) @ A + noise
    cross = kernel(at, x) @ C @ A
    gain = cross @ np.linalg.inv(covariance)
    return (
        gain @ seen,
        kernel(at, at) - gain @ cross.T,
        multivariate_normal(np.zeros(len(seen)), covariance).logpdf(seen),
    )


def tell(one, told):
    for A, value, sd in told:
        one.add(A, value, sd, np.zeros(N), 1.0, None)
    return one


@pytest.mark.parametrize("count", [1, 2, 5])
def test_releases_are_conditioned_on_together(count):
    """Five releases of four rows are more than there are labels.

    They are kept as fewer rows, and say the same.
    """
    K = kernel_of(0.4)
    told = releases(count)
    one = tell(belief([K]), told)
    mean, covariance, _ = dense(K, told)
    found, joint = one.posterior().joint(GRID)
    assert found == pytest.approx(mean, abs=1e-5)
    assert joint == pytest.approx(covariance, abs=1e-5)
    assert len(one._rows) == min(4 * count, N + count - 1)  # and how levels of releases differ
    assert one.centre == pytest.approx(dense(K, told, inputs())[0], abs=1e-5)
    doubt = np.diag(dense(K, told, inputs())[1])
    assert one.posterior_variance == pytest.approx(COUNTS @ doubt / COUNTS.sum(), rel=1e-3)
    assert one.residual_sd() == pytest.approx(np.sqrt(one.posterior_variance + S2))


def test_variances_without_privacy_noise_are_those_of_the_labels_themselves():
    K = kernel_of(0.4)
    told = releases()
    _, model, privacy = tell(belief([K]), told).posterior().moments(GRID)
    exact = np.diag(dense(K, [(np.eye(N), np.zeros(N), 1e-9)])[1])
    assert model == pytest.approx(exact, abs=1e-5)
    assert model + privacy == pytest.approx(np.diag(dense(K, told)[1]), abs=1e-5)


def test_hypotheses_weigh_as_much_as_their_density():
    kernels = [kernel_of(0.2), kernel_of(0.6), kernel_of(0.6, 0.1)]
    told = releases(3)
    one = tell(belief(kernels, learn_kernel=True), told)
    logs = np.array([dense(K, told)[2] for K in kernels])
    weights = np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum()
    assert one.weights == pytest.approx(weights, abs=1e-4)
    means = [dense(K, told, inputs())[0] for K in kernels]
    assert one.centre == pytest.approx(weights @ means, abs=1e-4)
    flat = tell(belief(kernels), told)
    assert flat.weights == pytest.approx(np.full(3, 1 / 3))


def test_a_mixture_adds_what_hypotheses_disagree_about_to_the_models_own_doubt():
    kernels = [kernel_of(0.5), kernel_of(1.5)]
    told = releases(3)
    posterior = tell(belief(kernels), told).posterior()
    means, covariances, _ = zip(*(dense(K, told) for K in kernels), strict=True)
    mean, model, privacy = posterior.moments(GRID)
    away = (means[0] - means[1]) / 2
    assert mean == pytest.approx((means[0] + means[1]) / 2, abs=1e-5)
    inner = np.diag(covariances[0] + covariances[1]) / 2
    assert model + privacy == pytest.approx(inner + away**2, abs=1e-5)
    together, joint = posterior.joint(GRID)
    assert together == pytest.approx(mean)
    assert joint == pytest.approx(
        (covariances[0] + covariances[1]) / 2 + np.outer(away, away), abs=2e-4
    )


def test_hypotheses_without_weight_are_not_kept():
    kernels = [kernel_of(0.4 * (1 + k / 100)) for k in range(30)]
    one = belief(kernels)
    one.weights = np.array([0.5, 0.3, 0.197, *np.full(27, 0.003 / 27)])
    tell(one, releases(1))
    kept = one.posterior().parts
    assert [part.weight for part in kept] == pytest.approx(np.array([0.5, 0.3, 0.197]) / 0.997)
    one.weights = np.full(30, 1 / 30)
    assert len(one.posterior().parts) == 16
    assert sum(part.weight for part in one.posterior().parts) == pytest.approx(1)


def test_a_hypothesis_that_is_lost_is_not_asked_again(monkeypatch):
    one = belief([kernel_of(0.4), kernel_of(0.5)], learn_kernel=True)
    asked = []
    one.weights = np.array([1.0, 1e-6])
    solve = one._solve
    monkeypatch.setattr(one, "_solve", lambda *given: (asked.append(1), solve(*given))[1])
    tell(one, releases(1))
    assert len(asked) == 1
    assert one.weights.tolist() == [1.0, 0.0]


@pytest.mark.parametrize("spread", [0.1, 0.4])
def test_clipped_labels_are_unclipped_by_the_gain(spread):
    """Many normal labels, half of them beyond the clip where they spread most.

    Sums as large as they would be without.
    """
    rng = np.random.default_rng(2)
    n = 4000
    x = np.zeros((1, 1))
    many = np.array([4000.0])
    labels = 0.15 + spread * rng.normal(size=n)
    known = {"learn_noise": False, "learn_kernel": False}
    one = LabelPosterior([kernel_of(0.4, 0.04)], np.array([spread**2]), x, many, x, **known)
    kept = np.clip(labels, -0.3, 0.3)
    one.add(
        np.ones((1, 1)),
        np.array([kept.sum()]),
        1.0,
        np.zeros(1),
        0.3,
        (float(np.sum(2 * (kept / 0.3) ** 2 - 1)), 10.0),
    )
    assert one.centre[0] == pytest.approx(0.15, abs=0.03)
    assert one.posterior_variance > 0.9 * spread**2 / n


@pytest.mark.parametrize(
    ("times", "surprise"), [(1.0, 0.0), (10.0, np.log(10) / 3), (1e-3, np.log(1e3) / 3)]
)
def test_a_noise_far_from_the_first_guess_is_a_surprise(times, surprise):
    """One second moment that fits a multiple of the guess.

    Its density is the prior's, normal in the logarithm.
    """
    one = belief([kernel_of(0.4)])
    one._stages.append(label_belief._Stage(np.zeros(N), 100.0, 1.0, 0.0, times * S2, 1e-6))
    found, fit = one._noise(0, np.zeros(N), 0.0, (np.zeros(N), S2))
    assert found == pytest.approx(times * S2, rel=0.02)  # the next one on the grid
    assert fit == pytest.approx(-(surprise**2) / 2, abs=0.05)


@pytest.mark.parametrize("noise", [0.03, 0.3])
def test_squares_tell_the_noise_of_labels(noise):
    """Six smooth sums of 200 labels, and the second moments of what they leave over."""
    x = np.linspace(-1, 1, 200)[:, None]
    y = 0.5 * np.sin(3 * x[:, 0]) + noise * np.random.default_rng(3).normal(size=200)
    A = np.cos(np.arange(6) * np.pi * (x + 1) / 2) / 3
    one, fixed = (
        LabelPosterior(
            [kernel_of(0.7)],
            np.array([0.01]),
            x,
            np.ones(200),
            x[::10],
            learn_noise=learn,
            learn_kernel=False,
        )
        for learn in (True, False)
    )
    for _ in range(3):
        for told in (one, fixed):
            away = y - told.centre
            squares = float(np.sum(2 * away**2 - 1)), 0.04
            told.add(A, A.T @ away, 0.01, told.centre, 1.0, squares)
    assert np.sqrt(one.s2) == pytest.approx(noise, rel=0.25)
    assert fixed.s2 == 0.01


def test_labels_lie_nearer_to_what_was_learned_from_them_than_new_ones():
    """Mean and variance of one label at each input, given sums of all.

    Dense, with the label's own noise among them.
    """
    K = kernel_of(0.4)
    told = releases(3)
    one = tell(belief([K]), told)
    x = inputs()
    C = np.diag(COUNTS)
    A = np.hstack([columns for columns, _, _ in told])
    noise = np.diag(np.concatenate([np.full(4, sd**2) for _, _, sd in told]))
    cross = (K(x, x) @ C + S2 * np.eye(N)) @ A
    gain = cross @ np.linalg.inv(A.T @ (C @ K(x, x) @ C + S2 * C) @ A + noise)
    mean, variance = one._labels(*one._at_inputs(0), S2)
    assert mean == pytest.approx(gain @ np.concatenate([value for _, value, _ in told]), abs=1e-5)
    left = 0.7 + S2 - (gain * cross).sum(axis=1)
    assert variance == pytest.approx(COUNTS @ left / COUNTS.sum(), rel=1e-4)
    assert variance < one.posterior_variance + S2


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.integers(1, 40))
def test_rows_are_turned_to_as_few_as_span_them(seed, count):
    """The quadratic form and the slope of the likelihood of labels are all that counts, and they
    stay.
    """
    rng = np.random.default_rng(seed)
    one = belief([kernel_of(0.4)])
    rows = rng.normal(size=(count, N))
    seen = rng.normal(size=count)
    for part in np.array_split(np.arange(count), 3):
        if len(part):
            one._take(rows[part], seen[part])
    assert len(one._rows) <= min(count, N + 2)  # and how levels of three releases differ
    assert one._rows.T @ one._rows == pytest.approx(rows.T @ rows, abs=1e-8)
    assert one._rows.T @ one._observed == pytest.approx(rows.T @ seen, abs=1e-8)


def test_what_is_known_under_another_kernel():
    """``known`` before any release is the prior; after releases, the covariance of w given them."""
    told = releases(2)
    K = kernel_of(0.4)
    one = belief([K])
    other = one.inducing_features(kernel_of(0.8))
    psi, rest = other(inputs())
    assert one.weight_covariance(psi, rest) == pytest.approx(np.eye(N))
    tell(one, told)
    known = one.weight_covariance(psi, rest)
    at = other(GRID)[0]
    assert np.diag(at.T @ known @ at) == pytest.approx(
        np.diag(dense(kernel_of(0.8), told)[1]), abs=1e-4
    )


def test_the_kernel_to_ask_with_leaves_some_weight_to_all():
    one = belief([kernel_of(0.2), kernel_of(0.8, 0.1)])
    one.weights = np.array([1.0, 0.0])
    asked = one.mean_kernel()
    x = inputs()
    assert asked(x, x) == pytest.approx(
        0.95 * kernel_of(0.2)(x, x) + 0.05 * kernel_of(0.8, 0.1)(x, x)
    )
    assert average_kernels([kernel_of(0.2), kernel_of(0.8)], np.array([3.0, 1.0])).diag(
        x
    ) == pytest.approx(np.full(N, 0.7))


def test_units_of_inputs_and_outputs():
    noisy = ConstantKernel(9.0) * RBF(40.0) + WhiteKernel(2.0)
    one = AveragedKernel([noisy, 2 * RBF(10.0)], np.array([0.25, 0.75]), lambda u: 100 * u + 7, 3.0)
    x = inputs()
    expected = (0.25 * 9 * RBF(0.4)(x) + 0.75 * 2 * RBF(0.1)(x)) / 9
    assert one(x, x) == pytest.approx(expected)
    assert one(x, x[:3]) == pytest.approx(expected[:, :3])
    assert one.diag(x) == pytest.approx(np.diag(expected))


@pytest.mark.parametrize("most", [1, 4, 30])
@pytest.mark.parametrize("rows", [0, 8])
def test_carriers_are_the_pivots_of_a_cholesky_factor(most, rows, monkeypatch):
    """One by one, with or without the whole matrix; as few as leave next to nothing."""
    with_ratio = replace(LABEL_POSTERIOR, whole_matrix_ratio=rows)
    monkeypatch.setattr(label_belief, "LABEL_POSTERIOR", with_ratio)
    x = np.linspace(-1, 1, 25)[:, None]
    K = kernel_of(0.5)
    found = inducing_inputs(K, x, most, 1e-4)
    left = K(x, x)
    chosen = []
    while len(chosen) < most and np.diag(left).max() > 1e-4 * 0.7:
        best = int(np.diag(left).argmax())
        chosen.append(best)
        left = left - np.outer(left[best], left[best]) / left[best, best]
    assert found[:, 0].tolist() == x[np.sort(chosen), 0].tolist()


def test_features_leave_out_what_carriers_do_not_hold():
    K = kernel_of(0.5)
    at = np.array([[-0.5], [0.5]])
    psi, rest = InducingFeatures.from_kernel(K, at)(GRID)
    exact = K(GRID, at) @ np.linalg.solve(K(at, at), K(at, GRID))
    assert psi.T @ psi == pytest.approx(exact, abs=1e-8)
    assert rest == pytest.approx(0.7 - np.diag(exact), abs=1e-8)
    assert InducingFeatures.from_kernel(K, at)(at)[1] == pytest.approx(np.zeros(2), abs=1e-8)


def test_few_carriers_are_made_up_for_by_independent_rest():
    """Dense again, with the covariance of FITC in the place of the kernel's."""
    K = kernel_of(0.3)
    told = releases(2)
    at = np.array([[-0.6], [0.1], [0.8]])
    one = tell(belief([K], at=at), told)
    features = InducingFeatures.from_kernel(K, at)

    def fitc(a, b):
        psi, rest = features(a)
        other, _ = features(b)
        same = (a[:, None] == b).all(axis=2)
        return psi.T @ other + np.where(same, rest[:, None], 0.0)

    mean, covariance, _ = dense(fitc, told, GRID)
    assert one.posterior().joint(GRID)[0] == pytest.approx(mean, abs=1e-5)
    assert one.posterior().joint(GRID)[1] == pytest.approx(covariance, abs=1e-5)
    assert one.prior_std == pytest.approx(np.sqrt(0.7))
