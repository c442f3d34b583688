"""Staged releases for classes.

Label regression, the likeliest softmax, dense evidence, and calibration, from records.
"""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from scipy.stats import multivariate_normal

from reticent.inference.classification.softmax_posterior import SoftmaxPosterior, _softmax_rows

M = 4
N = 1500
CLASSES = 3
S = np.diag([4.0, 2.0, 1.0, 1.0])
SD = np.full((M, M), 1e-6)


def records(seed=0, n=N, classes=CLASSES, size=2.0):
    """Features, the weights that chances come from, and labels as rows of zeros and a one."""
    rng = np.random.default_rng(seed)
    phi = rng.normal(size=(n, M))
    phi /= np.maximum(np.linalg.norm(phi, axis=1, keepdims=True), 1.0)
    W = rng.normal(size=(M, classes)) * size
    W -= W.mean(axis=1, keepdims=True)
    label = (phi @ W + rng.gumbel(size=(n, classes))).argmax(axis=1)
    return phi, W, np.eye(classes)[label]


def told(belief, phi, hot, centre, reach=10.0, noise=1e-6, rng=None):
    """One stage: gradients at ``centre``, with noise of one size in all sums."""
    chances = softmax(phi @ centre, axis=1) if belief.softmax else 1 / hot.shape[1] + phi @ centre
    e = hot - chances
    e *= np.minimum(reach / np.linalg.norm(e, axis=1, keepdims=True), 1.0)
    A = phi.T @ e
    B = phi.T @ phi
    if rng is not None:
        wild = rng.normal(size=B.shape) * noise
        A = A + noise * rng.normal(size=A.shape)
        B = B + (wild + wild.T) / 2
    belief.add(A, noise, B, np.full(B.shape, noise), centre, reach)


def test_chances():
    logits = np.array([[1000.0, 0.0], [0.3, -0.2], [-1e4, -1e4]])
    assert _softmax_rows(logits) == pytest.approx(softmax(logits, axis=1))


@pytest.mark.parametrize("classes", [2, 3])
def test_the_linear_link_is_regression_on_labels(classes):
    """Where the prior says little, with the variances that labels of these chances have."""
    phi, _, hot = records(size=0.3, classes=classes)
    belief = SoftmaxPosterior([S], phi, N, classes, softmax=False)
    for _ in range(4):
        told(belief, phi, hot, belief.mean)
    belief.finish()
    least_squares = np.linalg.lstsq(phi, hot - 1 / classes, rcond=None)[0]
    sds = np.sqrt(np.array([np.diag(C) for C in belief.covariances]).T)
    assert np.abs((belief.mean - least_squares) / sds).max() < 0.5, "the prior says little"
    chances = 1 / classes + phi @ belief.mean
    variance = np.mean(chances * (1 - chances))
    expected = variance * np.linalg.inv(phi.T @ phi)
    assert np.mean(belief.covariances, axis=0) == pytest.approx(expected, rel=0.15, abs=1e-4)
    assert belief.nonprivate_covariances() == pytest.approx(belief.covariances, rel=0.05, abs=1e-5)


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_without_noise_stages_end_at_the_likeliest_softmax(classes):
    """Where S⁻¹W is the gradient of the likelihood.

    A penalised multinomial regression, found by another search.
    """
    phi, _, hot = records(1, classes=classes)
    belief = SoftmaxPosterior([S], phi[:300], N, classes)
    for _ in range(30):
        told(belief, phi, hot, belief.mean)
    belief.finish()
    precision = np.linalg.inv(S)

    def loss(w):
        W = w.reshape(M, classes)
        slope = precision @ W - phi.T @ (hot - softmax(phi @ W, axis=1))
        return -np.sum(hot * log_softmax(phi @ W, axis=1)) + np.sum(
            W * (precision @ W)
        ) / 2, slope.ravel()

    best = minimize(loss, np.zeros(M * classes), jac=True, method="BFGS").x.reshape(M, classes)
    assert belief.mean == pytest.approx(best, abs=2e-3 * np.abs(best).max())
    assert belief.mean.sum(axis=1) == pytest.approx(np.zeros(M), abs=1e-8)


def test_weights_are_found_through_noise_and_the_claim_is_honest():
    """Logits of moderate size.

    Of large ones the curvature is so uneven that five stages do not reach the end.
    """
    errors = []
    claimed = []
    first = []
    for seed in range(6):
        phi, W, hot = records(seed, n=6000, size=1.0)
        rng = np.random.default_rng(100 + seed)
        belief = SoftmaxPosterior([S], phi[:300], 6000, CLASSES)
        for stage in range(5):
            told(belief, phi, hot, belief.mean, reach=1.0, noise=25.0, rng=rng)
            if stage == 0:
                first.append(np.square(belief.mean - W).sum())
        errors.append(np.square(belief.mean - W).sum() / (CLASSES - 1))
        kappa = CLASSES / (CLASSES - 1)
        claimed.append(kappa * np.einsum("cii->", belief.covariances) / CLASSES)
        own = belief.nonprivate_covariances()
        assert np.einsum("cii->", own) < np.einsum("cii->", belief.covariances)
    assert np.mean(errors) < 0.5 * np.mean(first)
    assert 0.2 < np.mean(errors) / np.mean(claimed) < 2.5


def test_hypotheses_are_weighed_by_their_evidence():
    """Against the density of what was observed, in the CLASSES − 1 directions that columns have."""
    phi, _, hot = records(2)
    hypotheses = [S, 4 * S, np.eye(M) / 3]
    belief = SoftmaxPosterior(hypotheses, phi[:400], N, CLASSES, learn_prior=False)
    told(belief, phi, hot, belief.mean, noise=20.0, rng=np.random.default_rng(0))
    scores = [belief._evidence(root) for root in belief._roots]
    contrasts = np.linalg.svd(np.ones((1, CLASSES)))[2][1:]
    J = belief._J
    observed = belief._observed @ contrasts.T
    densities = [
        multivariate_normal(np.zeros(M), J @ one @ J.T + belief._W).logpdf(observed.T).sum()
        for one in hypotheses
    ]
    assert np.diff(scores) == pytest.approx(np.diff(densities), abs=1e-4)
    assert belief.hypothesis_weights == pytest.approx(np.full(3, 1 / 3)), "not to be weighed"
    learning = SoftmaxPosterior(hypotheses, phi[:400], N, CLASSES)
    told(learning, phi, hot, learning.mean, noise=20.0, rng=np.random.default_rng(0))
    assert learning.hypothesis_weights == pytest.approx(softmax(densities), abs=1e-3)
    assert learning.prior == pytest.approx(
        np.einsum("h,hij->ij", learning.hypothesis_weights, hypotheses)
    )


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("reach", [0.5, 0.7, 2.0])
def test_a_clip_moves_no_probability(classes, reach):
    """The mean of clipped residuals is known: weights are found, however much is clipped."""
    phi, W, hot = records(8, n=60_000, classes=classes)
    belief = SoftmaxPosterior([100 * S], phi[:2000], len(phi), classes)
    for _ in range(6):
        told(belief, phi, hot, belief.mean, reach=reach, noise=1.0, rng=np.random.default_rng(1))
    belief.finish()
    found = softmax(phi[:500] @ belief.mean, axis=1)
    errors = found - softmax(phi[:500] @ W, axis=1)
    assert np.sqrt(np.mean(errors**2)) < 0.012


def test_thresholds_grow_to_the_whole_as_noise_vanishes():
    phi, _, hot = records(9)
    thresholds = []
    for noise in (1e-3, 30.0, 1e4):
        belief = SoftmaxPosterior([S], phi[:400], N, CLASSES)
        assert belief.best_clip_threshold(10) == pytest.approx(np.sqrt(2 / 3))
        for _ in range(3):
            told(belief, phi, hot, belief.mean, noise=noise, reach=1.0)
        thresholds.append(belief.best_clip_threshold(10))
    assert thresholds[0] == pytest.approx(np.sqrt(2))
    assert max(thresholds[1:]) < 1


def test_what_is_the_same_for_all_classes_tells_nothing():
    phi, _, hot = records(4)
    A = phi.T @ (hot - 1 / 3)
    B = phi.T @ phi
    zero = np.zeros((M, CLASSES))
    plain, moved = (SoftmaxPosterior([S], phi[:400], N, CLASSES) for _ in range(2))
    plain.add(A, 1e-3, B, SD, zero, 1.0)
    moved.add(A + np.arange(M)[:, None] * 100, 1e-3, B, SD, zero, 1.0)
    assert moved.mean == pytest.approx(plain.mean)


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("reach", [0.6, 2.0])
def test_logits_that_are_too_small_or_too_large_are_found_out(factor, reach):
    """Gradients at weights that are a part, or a multiple, of those that labels come from.

    Clipped or not.
    """
    phi, W, hot = records(5, n=40_000)
    belief = SoftmaxPosterior([S], phi[:1000], len(phi), CLASSES)
    told(belief, phi, hot, W / factor, reach=reach)
    assert belief.calibration_factor() == pytest.approx(factor, rel=0.12)


def test_with_nothing_but_noise_logits_stay_as_they_are():
    phi, W, hot = records(6)
    belief = SoftmaxPosterior([S], phi[:400], N, CLASSES)
    told(belief, phi, hot, W, noise=1e6)
    assert belief.calibration_factor() == pytest.approx(1, rel=0.02)
    nothing = SoftmaxPosterior([S], phi[:400], N, CLASSES)
    told(nothing, phi, hot, np.zeros_like(W))
    assert nothing.calibration_factor() == pytest.approx(1, rel=0.02)


def test_stages_that_began_far_away_count_less():
    """A first stage at absurd weights does not spoil what a second one at good weights tells."""
    phi, W, hot = records(7)
    good, both = (SoftmaxPosterior([S], phi[:400], N, CLASSES) for _ in range(2))
    told(good, phi, hot, W, noise=1.0)
    told(both, phi, hot, -5 * W, noise=1.0)
    told(both, phi, hot, W, noise=1.0)
    good.finish()
    both.finish()
    assert np.linalg.norm(both.mean - good.mean) < 0.1 * np.linalg.norm(good.mean)
