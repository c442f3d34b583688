"""The belief about weights, batch by batch, against the joint Gaussian law of everything; and variances that are learned."""

import numpy as np
import pytest

from reticent.maths.tracking import Tracked

FAR, BACK = 1e6, 0.65


def batches(rng, m, count, n=40):
    """Gram matrices, centres and sums of a few batches, of which each takes back a part of the last one's noise."""
    w, last, told = rng.normal(size=m), np.zeros(m), []
    for t in range(count):
        phi, centre, sd = rng.normal(size=(n, m)) / 3, rng.normal(size=m) / 4, 1.0 + t
        z = rng.normal(size=m)
        noise = sd * (z - BACK * last * (t > 0))
        last = z
        told.append((phi.T @ (phi @ (w - centre) + 0.2 * rng.normal(size=n)) + noise, sd, phi.T @ phi, centre))
    return w, told


def learn(one, told, n=40):
    """Take in all batches; gives the variances of the observation noise that were believed in."""
    s2 = []
    for t, (A, sd, B, centre) in enumerate(told):
        s2.append(one.s2)
        one.add(A, sd, B, 0.0, np.inf, n, FAR, centre, echo=BACK if t else 0.0)
    return s2


def test_shared_noise_is_taken_back_as_the_joint_law_says():
    """Several batches at once: weights, observation noise, and noise that neighbours share, solved as one system."""
    m, count = 4, 3
    rng = np.random.default_rng(0)
    S = np.diag(rng.uniform(0.5, 2, m))
    _, told = batches(rng, m, count)
    one = Tracked([S], np.zeros(1), 0.04)
    s2 = learn(one, told)
    H = np.vstack([B for _, _, B, _ in told])
    seen = np.concatenate([A + B @ centre for A, _, B, centre in told])
    mixing = np.zeros((m * count, m * count))  # of white noise, to that of the batches
    R = np.zeros_like(mixing)
    for t, (_, sd, B, _) in enumerate(told):
        here = slice(t * m, (t + 1) * m)
        R[here, here] = s2[t] * B
        mixing[here, here] = sd * np.eye(m)
        if t:
            mixing[here, (t - 1) * m : t * m] = -BACK * sd * np.eye(m)
    gain = S @ H.T @ np.linalg.inv(H @ S @ H.T + R + mixing @ mixing.T)
    assert one.mean == pytest.approx(gain @ seen, rel=1e-5, abs=1e-7)
    assert one.covariance == pytest.approx(S - gain @ H @ S, rel=1e-4, abs=1e-7)


def test_who_knows_of_shared_noise_knows_more():
    told = batches(np.random.default_rng(1), 4, 6)[1]
    with_echo, without = (Tracked([np.eye(4)], np.zeros(1), 0.04) for _ in range(2))
    learn(with_echo, told)
    for A, sd, B, centre in told:
        without.add(A, sd * np.sqrt(1 + BACK**2), B, 0.0, np.inf, 40, FAR, centre)
    assert np.trace(with_echo.covariance) < 0.7 * np.trace(without.covariance)


def test_another_prior_is_as_if_it_had_been_there_from_the_start():
    rng = np.random.default_rng(2)
    told, first, second = batches(rng, 5, 3)[1], rng.uniform(0.5, 2, 5), rng.uniform(0.1, 4, 5)
    one, other = Tracked([np.diag(first)], np.zeros(1), 0.04), Tracked([np.diag(second)], np.zeros(1), 0.04)
    learn(one, told[:2])
    one._replace_prior(0, second)
    one._mix()
    learn(other, told[:2])
    for belief in (one, other):
        A, sd, B, centre = told[2]
        belief.add(A, sd, B, 0.0, np.inf, 40, FAR, centre, echo=BACK)
    assert one.mean == pytest.approx(other.mean, rel=1e-5, abs=1e-7)
    assert one.covariance == pytest.approx(other.covariance, rel=1e-5, abs=1e-7)


def test_variances_of_weights_that_are_alike_are_learned():
    """Thirty large weights and thirty small ones: the prior, the same for all, comes to tell them apart."""
    rng = np.random.default_rng(3)
    alike, n = np.repeat([0, 1], 30), 400
    w = rng.normal(size=60) * np.where(alike == 0, 0.3, 0.01)
    learned, fixed = (
        Tracked([0.03 * np.eye(60)], np.zeros(1), 0.04, alike),
        Tracked([0.03 * np.eye(60)], np.zeros(1), 0.04),
    )
    for _ in range(6):
        phi = rng.normal(size=(n, 60)) / 8
        A, B = phi.T @ (phi @ w + 0.2 * rng.normal(size=n)) + rng.normal(size=60), phi.T @ phi
        for one in (learned, fixed):
            one.add(A, 1.0, B, 0.0, np.inf, n, FAR, np.zeros(60))
    variances = [float(learned._priors[0][alike == g].mean()) for g in (0, 1)]
    assert 0.04 < variances[0] < 0.2
    assert variances[1] < 0.01
    error = [float(((one.mean - w) ** 2).sum()) for one in (learned, fixed)]
    assert error[0] < 0.9 * error[1]


def test_units_and_more_functions_leave_the_belief_as_it_is():
    rng = np.random.default_rng(4)
    told, alike = batches(rng, 3, 2)[1], np.zeros(5, dtype=np.int64)
    one = Tracked([np.eye(3)], np.zeros(1), 0.04, alike[:3])
    learn(one, told)
    before, factor = one.mean.copy(), np.array([2.0, 0.5, 3.0])
    more = one.extended([np.eye(5)], np.zeros(1), factor, alike)
    assert more.mean == pytest.approx(np.concatenate([before * factor, [0, 0]]))
    assert more._priors[0] == pytest.approx(np.concatenate([one._priors[0] * factor**2, [1, 1]]))
    one.rescale(factor)
    assert one.mean == pytest.approx(before * factor)
    told_again = [(A / factor, sd, B / np.outer(factor, factor), centre * factor) for A, sd, B, centre in told[:1]]
    learn(one, told_again)
    assert np.linalg.eigvalsh(one.covariance)[0] > 0


def test_rewards_that_were_not_clipped_have_no_gain():
    """Rewards of ±1 about zero: a normal law of their variance would be clipped at ±1, and the weights taken for larger."""
    rng = np.random.default_rng(5)
    phi, w = rng.uniform(-1, 1, size=(20_000, 3)), np.array([0.3, -0.2, 0.1])
    y = np.where(rng.random(len(phi)) < (1 + phi @ w) / 2, 1.0, -1.0)
    told = phi.T @ y, 1.0, phi.T @ phi, float(y @ y), 1.0, len(y)
    whole, far, clipped = (Tracked([np.eye(3)], np.zeros(1), 0.04) for _ in range(3))
    whole.add(*told, 1.0, np.zeros(3), whole=True)
    far.add(*told, FAR, np.zeros(3))
    clipped.add(*told, 1.0, np.zeros(3))
    assert whole.mean == pytest.approx(far.mean, abs=1e-6)
    assert np.abs(whole.mean - w).max() < 0.05
    assert (clipped.mean / w).min() > 1.2
    assert whole.s2 == pytest.approx(1 - np.mean((phi @ w) ** 2), rel=0.15)
