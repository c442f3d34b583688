"""The belief about weights, batch by batch, against the joint Gaussian law of everything.

And variances that are learned.
"""

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import multivariate_normal

from reticent.inference.online.kalman_posterior import KalmanPosterior

FAR = 1e6
BACK = 0.65


def batches(rng, m, count, n=40):
    """Gram matrices, centres and sums of a few batches, of which each takes back a part of the last
    one's noise.
    """
    w = rng.normal(size=m)
    last = np.zeros(m)
    told = []
    for t in range(count):
        phi = rng.normal(size=(n, m)) / 3
        centre = rng.normal(size=m) / 4
        sd = 1.0 + t
        z = rng.normal(size=m)
        noise = sd * (z - BACK * last * (t > 0))
        last = z
        told.append(
            (
                phi.T @ (phi @ (w - centre) + 0.2 * rng.normal(size=n)) + noise,
                sd,
                phi.T @ phi,
                centre,
            )
        )
    return w, told


def learn(one, told, n=40):
    """Take in all batches; gives the variances of the observation noise that were believed in."""
    s2 = []
    for t, (A, sd, B, centre) in enumerate(told):
        s2.append(one.s2)
        one.add(A, sd, B, 0.0, np.inf, n, FAR, centre, noise_carryover=BACK if t else 0.0)
    return s2


def observation_noise(told, s2):
    """Covariance of the noise in all batches together, each of which takes back a part of the last
    one's.
    """
    m = len(told[0][0])
    count = len(told)
    mixing = np.zeros((m * count, m * count))  # of white noise, to that of the batches
    R = np.zeros_like(mixing)
    for t, (_, sd, B, _) in enumerate(told):
        here = slice(t * m, (t + 1) * m)
        R[here, here] = s2[t] * B
        mixing[here, here] = sd * np.eye(m)
        if t:
            mixing[here, (t - 1) * m : t * m] = -BACK * sd * np.eye(m)
    return R + mixing @ mixing.T


def test_shared_noise_is_taken_back_as_the_joint_law_says():
    """Several batches at once.

    Weights, observation noise, and noise that neighbours share, solved as one system.
    """
    m = 4
    count = 3
    rng = np.random.default_rng(0)
    S = np.diag(rng.uniform(0.5, 2, m))
    _, told = batches(rng, m, count)
    one = KalmanPosterior([S], np.zeros(1), 0.04)
    s2 = learn(one, told)
    H = np.vstack([B for _, _, B, _ in told])
    seen = np.concatenate([A + B @ centre for A, _, B, centre in told])
    gain = S @ H.T @ np.linalg.inv(H @ S @ H.T + observation_noise(told, s2))
    assert one.mean == pytest.approx(gain @ seen, rel=1e-5, abs=1e-7)
    assert one.covariance == pytest.approx(S - gain @ H @ S, rel=1e-4, abs=1e-7)


def test_who_knows_of_shared_noise_knows_more():
    told = batches(np.random.default_rng(1), 4, 6)[1]
    with_echo, without = (KalmanPosterior([np.eye(4)], np.zeros(1), 0.04) for _ in range(2))
    learn(with_echo, told)
    for A, sd, B, centre in told:
        without.add(A, sd * np.sqrt(1 + BACK**2), B, 0.0, np.inf, 40, FAR, centre)
    assert np.trace(with_echo.covariance) < 0.7 * np.trace(without.covariance)


def test_another_prior_is_as_if_it_had_been_there_from_the_start():
    rng = np.random.default_rng(2)
    told = batches(rng, 5, 3)[1]
    first = rng.uniform(0.5, 2, 5)
    second = rng.uniform(0.1, 4, 5)
    one = KalmanPosterior([np.diag(first)], np.zeros(1), 0.04)
    other = KalmanPosterior([np.diag(second)], np.zeros(1), 0.04)
    learn(one, told[:2])
    one._filters[0].replace_prior(second)
    one._mix()
    learn(other, told[:2])
    for belief in (one, other):
        A, sd, B, centre = told[2]
        belief.add(A, sd, B, 0.0, np.inf, 40, FAR, centre, noise_carryover=BACK)
    assert one.mean == pytest.approx(other.mean, rel=1e-5, abs=1e-7)
    assert one.covariance == pytest.approx(other.covariance, rel=1e-5, abs=1e-7)


def test_variances_of_weights_that_are_alike_are_learned():
    """Thirty large weights and thirty small ones.

    The prior, the same for all, comes to tell them apart.
    """
    rng = np.random.default_rng(3)
    alike = np.repeat([0, 1], 30)
    n = 400
    w = rng.normal(size=60) * np.where(alike == 0, 0.3, 0.01)
    learned = KalmanPosterior([0.03 * np.eye(60)], np.zeros(1), 0.04, alike)
    fixed = KalmanPosterior([0.03 * np.eye(60)], np.zeros(1), 0.04)
    for _ in range(6):
        phi = rng.normal(size=(n, 60)) / 8
        A = phi.T @ (phi @ w + 0.2 * rng.normal(size=n)) + rng.normal(size=60)
        B = phi.T @ phi
        for one in (learned, fixed):
            one.add(A, 1.0, B, 0.0, np.inf, n, FAR, np.zeros(60))
    variances = [float(learned._filters[0].prior[alike == g].mean()) for g in (0, 1)]
    assert 0.04 < variances[0] < 0.2
    assert variances[1] < 0.01
    error = [float(((one.mean - w) ** 2).sum()) for one in (learned, fixed)]
    assert error[0] < 0.9 * error[1]


def test_units_and_more_functions_leave_the_belief_as_it_is():
    rng = np.random.default_rng(4)
    told = batches(rng, 3, 2)[1]
    alike = np.zeros(5, dtype=np.int64)
    one = KalmanPosterior([np.eye(3)], np.zeros(1), 0.04, alike[:3])
    learn(one, told)
    before = one.mean.copy()
    factor = np.array([2.0, 0.5, 3.0])
    more = one.with_more_features([np.eye(5)], np.zeros(1), factor, alike)
    assert more.mean == pytest.approx(np.concatenate([before * factor, [0, 0]]))
    assert more._filters[0].prior == pytest.approx(
        np.concatenate([one._filters[0].prior * factor**2, [1, 1]])
    )
    one.rescale(factor)
    assert one.mean == pytest.approx(before * factor)
    told_again = [
        (A / factor, sd, B / np.outer(factor, factor), centre * factor)
        for A, sd, B, centre in told[:1]
    ]
    learn(one, told_again)
    assert np.linalg.eigvalsh(one.covariance)[0] > 0


def test_rewards_that_were_not_clipped_have_no_gain():
    """Rewards of ±1 about zero.

    A normal law of their variance would be clipped at ±1, and the weights taken for larger.
    """
    rng = np.random.default_rng(5)
    phi = rng.uniform(-1, 1, size=(20_000, 3))
    w = np.array([0.3, -0.2, 0.1])
    y = np.where(rng.random(len(phi)) < (1 + phi @ w) / 2, 1.0, -1.0)
    told = phi.T @ y, 1.0, phi.T @ phi, float(y @ y), 1.0, len(y)
    whole, far, clipped = (KalmanPosterior([np.eye(3)], np.zeros(1), 0.04) for _ in range(3))
    whole.add(*told, 1.0, np.zeros(3), unclipped=True)
    far.add(*told, FAR, np.zeros(3))
    clipped.add(*told, 1.0, np.zeros(3))
    assert whole.mean == pytest.approx(far.mean, abs=1e-6)
    assert np.abs(whole.mean - w).max() < 0.05
    assert (clipped.mean / w).min() > 1.2
    whole.add(*told, 1.0, np.zeros(3), unclipped=True)
    assert whole.s2 == pytest.approx(1 - np.mean((phi @ w) ** 2), rel=0.15)


def test_another_noise_variance_is_as_if_it_had_been_known_from_the_start():
    """Batches are filtered again, in the units that each had."""
    rng = np.random.default_rng(14)
    told = batches(rng, 4, 4)[1]
    factor = np.array([2.0, 0.5, 3.0, 1.0])
    S = np.diag(rng.uniform(0.5, 2, 4))
    one = KalmanPosterior([S], np.zeros(1), 0.04)
    known = KalmanPosterior([S], np.zeros(1), 0.4)
    learn(one, told[:2])
    learn(known, told[:2])
    for posterior in (one, known):
        posterior.rescale(factor)
        A, sd, B, centre = told[2]
        posterior.add(
            A / factor,
            sd,
            B / np.outer(factor, factor),
            0.0,
            np.inf,
            40,
            FAR,
            centre * factor,
            noise_carryover=BACK,
        )
    one._noise_variance = 0.4
    one._filter_again()
    assert one.mean == pytest.approx(known.mean, rel=1e-9)
    assert one.covariance == pytest.approx(known.covariance, rel=1e-9)
    assert one._filters[0].evidence == pytest.approx(known._filters[0].evidence)


def test_hypotheses_weigh_as_much_as_the_density_of_all_batches():
    """Two priors and three batches with echoes, as one normal law.

    Then the moments of the mixture.
    """
    m = 3
    count = 3
    rng = np.random.default_rng(6)
    priors = [np.diag([1.0, 2.0, 0.5]), 0.05 * np.eye(3)]
    _, told = batches(rng, m, count, 12)
    both = KalmanPosterior(priors, np.zeros(2), 0.04)
    alone = [KalmanPosterior([S], np.zeros(1), 0.04) for S in priors]
    for one in (both, *alone):
        s2 = learn(one, told, 12)
    H = np.vstack([B for _, _, B, _ in told])
    seen = np.concatenate([A + B @ centre for A, _, B, centre in told])
    R = observation_noise(told, s2)
    logs = [multivariate_normal(np.zeros(m * count), H @ S @ H.T + R).logpdf(seen) for S in priors]
    weights = softmax(logs)
    assert 0.01 < weights[0] < 0.999
    assert both.hypothesis_weights == pytest.approx(weights, abs=1e-5)
    means = np.array([one.mean for one in alone])
    assert both.mean == pytest.approx(weights @ means, abs=1e-6)
    within = weights[0] * alone[0].covariance + weights[1] * alone[1].covariance
    between = weights[0] * weights[1] * np.outer(means[0] - means[1], means[0] - means[1])
    assert both.covariance == pytest.approx(within + between, abs=1e-6)
    even = sum(
        one.covariance + np.outer(one.mean - both.mean, one.mean - both.mean) for one in alone
    )
    opened = 0.7 * both.covariance + 0.3 * even / 2
    assert both.open_covariance(0.3) == pytest.approx(opened, abs=1e-6)
    law = told[0][2] / 12
    assert both.residual_sd(law, 0.04) == pytest.approx(
        np.sqrt(np.trace(both.covariance @ law) + 0.04)
    )


def test_the_largest_likely_noise_comes_down_as_records_tell_it():
    """Of records without privacy noise: at first it may be large, whatever the best guess is."""
    rng = np.random.default_rng(8)
    one = KalmanPosterior([np.eye(3)], np.zeros(1), 0.04)
    assert one.largest_s2 == one.s2, "as guessed, before anything was told"
    ratios = []
    for n in (6, 300, 10_000):
        phi = rng.normal(size=(n, 3)) / 2
        e = phi @ [0.3, -0.5, 0.2] + 0.5 * rng.normal(size=n)
        B = phi.T @ phi
        one.add(phi.T @ e, 1e-6, B, float(e @ e), 1e-6, n, 9.0, np.zeros(3), unclipped=True)
        ratios.append(one.largest_s2 / one.s2)
    assert ratios[0] > 2
    assert ratios == sorted(ratios, reverse=True)
    assert one.largest_s2 == pytest.approx(0.25, rel=0.1)


def test_errors_in_the_gram_matrix_are_noise_where_the_centre_is_far():
    """Var of E(w − c) for symmetric E with independent entries in turned axes.

    By drawing E and w.
    """
    m = 3
    rng = np.random.default_rng(7)
    axes = np.linalg.qr(rng.normal(size=(m, m)))[0]
    V = rng.uniform(0.5, 2, (m, m))
    V = (V + V.T) / 2
    S = np.diag([1.0, 0.5, 0.2])
    centre = np.array([2.0, -1.0, 0.5])
    draws = 100_000
    E = rng.normal(size=(draws, m, m)) * np.sqrt(V)
    E = np.triu(E) + np.transpose(np.triu(E, 1), (0, 2, 1))
    away = rng.normal(size=(draws, m)) * np.sqrt(np.diag(S)) - centre
    wrong = np.einsum("ij,njk,nk->ni", axes, E, away @ axes)
    phi = rng.normal(size=(30, m))
    B = phi.T @ phi
    A = rng.normal(size=m) * 3
    one = KalmanPosterior([S], np.zeros(1), 0.04)
    one.add(A, 2.0, B, 0.0, np.inf, 30, FAR, centre, entry_variance=V, axes=axes)
    noise = 0.04 * B + 4.0 * np.eye(m) + wrong.T @ wrong / draws
    gain = S @ B @ np.linalg.inv(B @ S @ B + noise)
    assert one.mean == pytest.approx(gain @ (A + B @ centre), rel=0.02, abs=0.01)
    assert one.covariance == pytest.approx(S - gain @ B @ S, rel=0.04, abs=1e-3)


@pytest.mark.parametrize("scale", [1.0, 2.5])
def test_functions_that_come_later_are_known_through_the_prior(scale):
    """As if they had been there from the start, with features that are zero."""
    rng = np.random.default_rng(8)
    root = rng.normal(size=(5, 5))
    S = root @ root.T / 5 + 0.1 * np.eye(5)
    told = batches(rng, 3, 1)[1]
    early = KalmanPosterior([S[:3, :3] / scale**2], np.zeros(1), 0.04)
    learn(early, told)
    late = early.with_more_features([S], np.zeros(1), np.full(3, scale))
    whole = KalmanPosterior([S], np.zeros(1), 0.04)
    A, sd, B, centre = told[0]
    wide = np.zeros((5, 5))
    pad = np.zeros(2)
    wide[:3, :3] = B / scale**2
    # the two new sums are noise alone, which tells nothing
    whole.add(
        np.concatenate([A / scale, pad]),
        sd / scale,
        wide,
        0.0,
        np.inf,
        40,
        FAR,
        np.concatenate([centre * scale, pad]),
    )
    assert late.mean == pytest.approx(whole.mean, rel=1e-4, abs=1e-6)
    assert late.covariance == pytest.approx(whole.covariance, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("noise", [0.2, 0.6])
def test_squares_of_residuals_tell_the_noise(noise):
    rng = np.random.default_rng(9)
    w = rng.normal(size=3)
    one = KalmanPosterior([np.eye(3)], np.zeros(1), 0.04)
    for _ in range(4):
        phi = rng.normal(size=(2000, 3)) / 2
        c = one.mean
        e = np.clip(phi @ (w - c) + noise * rng.normal(size=2000), -1.5, 1.5)
        one.add(phi.T @ e, 1.0, phi.T @ phi, float(e @ e), 1.0, 2000, 1.5, c)
    assert np.sqrt(one.s2) == pytest.approx(noise, rel=0.15)
    assert one.mean == pytest.approx(w, abs=0.08)


def test_what_functions_cannot_represent_is_noise():
    told = batches(np.random.default_rng(10), 3, 1)[1]
    plain, rough = (
        KalmanPosterior([np.eye(3)], np.array([outside]), 0.04) for outside in (0.0, 0.5)
    )
    assert (plain.s2, rough.s2) == pytest.approx((0.04, 0.54))
    learn(plain, told)
    learn(rough, told)
    assert np.trace(rough.covariance) > np.trace(plain.covariance)
    wider = plain.with_more_features([np.eye(4)], np.array([0.1]), np.ones(3))
    assert wider.s2 == pytest.approx(0.14)


@pytest.mark.parametrize("clip", [0.4, 1.0, 3.0])
def test_clipped_residuals_have_their_gain_back(clip):
    """Normal residuals of variance one, of which the linear part is small.

    Sums as large as without the clip.
    """
    rng = np.random.default_rng(11)
    phi = rng.normal(size=(40_000, 2))
    w = np.array([0.1, -0.05])
    e = np.clip(phi @ w + rng.normal(size=len(phi)), -clip, clip)
    one = KalmanPosterior([0.02 * np.eye(2)], np.zeros(1), 1.0)
    one.add(phi.T @ e, 1.0, phi.T @ phi, float(e @ e), 1.0, len(phi), clip, np.zeros(2))
    assert one.mean == pytest.approx(w, abs=0.02)


@pytest.mark.parametrize("value", [-1e9, 1e9])
def test_any_release_leaves_a_proper_belief(value):
    one = KalmanPosterior(
        [np.eye(2), 3 * np.eye(2)], np.zeros(2), 0.04, np.zeros(2, dtype=np.int64)
    )
    for _ in range(3):
        one.add(np.full(2, value), 1.0, np.full((2, 2), value), value, 1.0, 10, 1.0, one.mean)
        assert np.isfinite(one.mean).all()
        assert np.linalg.eigvalsh(one.covariance)[0] > -1e-9
        assert one.s2 > 0


def learned_variances(weights, guess, sd, rounds=30):
    """Two groups and one weight that is like no other, seen one by one through noise
    of this size.
    """
    alike = np.array([-1] + [0] * 20 + [1] * 20)
    one = KalmanPosterior([guess * np.eye(41)], np.zeros(1), 1e-9, alike)
    one.add(weights, sd, np.eye(41), 0.0, np.inf, 41, FAR, np.zeros(41))
    for _ in range(rounds):
        one._filters[0].learn_variances(alike)
    one._mix()
    return one, one._filters[0].prior


def test_variances_of_known_weights_are_their_mean_squares():
    rng = np.random.default_rng(12)
    weights = rng.normal(size=41) * np.array([1.0] + [3.0] * 20 + [0.2] * 20)
    one, prior = learned_variances(weights, 0.5, 1e-4)
    assert prior[1:21] == pytest.approx(np.full(20, np.mean(weights[1:21] ** 2)), rel=1e-3)
    assert prior[21:] == pytest.approx(np.full(20, np.mean(weights[21:] ** 2)), rel=1e-3)
    assert prior[0] == 0.5, "nothing tells what it is like"
    assert one.mean == pytest.approx(weights, abs=1e-3)


@pytest.mark.parametrize("guess", [0.5, 2.0])
def test_what_is_not_known_changes_no_variance_and_none_goes_too_far(guess):
    _, prior = learned_variances(np.zeros(41), guess, 1e6)
    assert prior == pytest.approx(np.full(41, guess), rel=1e-3)
    far, near = (learned_variances(np.full(41, size), guess, 1e-4)[1] for size in (1e4, 1e-6))
    assert far[1:] == pytest.approx(np.full(40, 100 * guess))
    assert near[1:] == pytest.approx(np.full(40, guess / 100), rel=0.01)


@pytest.mark.parametrize("clip", [0.5, 1.0, 2.0])
def test_a_clip_adds_the_variance_of_what_is_not_linear(clip):
    """Of residuals N(0, 1).

    The share of clip(e) that is g·e, and the rest of it over g, by draws.
    """
    one = KalmanPosterior([1e-12 * np.eye(2)], np.zeros(1), 1.0)
    e = np.random.default_rng(13).normal(size=400_000)
    kept = np.clip(e, -clip, clip)
    gain, distortion = one._clipped(float(np.mean(kept**2)), 1e-6, 10**6, clip, np.eye(2))
    share = float(np.mean(kept * e))
    assert gain == pytest.approx(share, rel=0.02)
    assert distortion == pytest.approx(np.var(kept - share * e) / share**2, rel=0.05)


def test_units_of_the_first_guess_follow_those_of_the_weights():
    """How far a variance may go is told by the guess, in the weights' own units."""
    one = KalmanPosterior([np.eye(3)], np.zeros(1), 0.04, np.zeros(3, dtype=np.int64))
    factor = np.array([2.0, 3.0, 0.5])
    one.rescale(factor)
    assert one._filters[0].guess == pytest.approx(factor**2)
    assert one._filters[0].prior == pytest.approx(factor**2)
    assert one.covariance == pytest.approx(np.diag(factor**2))
