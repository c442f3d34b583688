"""The accounting against high precision, against brute force, and against another library.

Never on the unsafe side.
"""

import itertools
import math
import random

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.errors import BadInput
from reticent.privacy.accounting.composition import (
    calibrate,
    epsilon,
    remaining_epsilon,
)
from reticent.privacy.accounting.events import Event, Gaussian, Laplace, Pure
from reticent.privacy.accounting.gaussian import gaussian_mu, log_delta, log_delta_bound
from reticent.validation import check_epsilon_delta

DIGITS = 40


def gaussian_delta(eps, mu):
    """δ(ε) = Φ(−x) − e^ε Φ(−x−μ), by mpmath."""
    eps = mp.mpf(eps)
    mu = mp.mpf(mu)
    return mp.ncdf(mu / 2 - eps / mu) - mp.exp(eps) * mp.ncdf(-mu / 2 - eps / mu)


def laplace_delta(eps, size):
    """δ(ε) of Laplace noise of scale 1/size for sensitivity 1."""
    if eps >= size:
        return mp.mpf(0)
    return 1 - mp.exp(eps) if eps <= -size else -mp.expm1((eps - size) / 2)


def after_laplace(eps, size, delta_of_rest, kink):
    """δ(ε) of Laplace noise and another mechanism.

    The loss is ±size at two atoms, with a density in between. The other δ(·) may have kinks at
    ±``kink``.
    """
    size = mp.mpf(size)
    eps = mp.mpf(eps)
    ends = sorted({-size, size, *(t for t in (eps - kink, eps + kink) if -size < t < size)})
    between = mp.quad(lambda t: mp.exp((t - size) / 2) / 4 * delta_of_rest(eps - t), ends)
    return delta_of_rest(eps - size) / 2 + mp.exp(-size) / 2 * delta_of_rest(eps + size) + between


def after_coins(eps, size, count, delta_of_rest):
    """δ(ε) of ``count`` randomised responses, the worst mechanisms of pure-``size``, and another
    mechanism.
    """
    right = 1 / (1 + mp.exp(-mp.mpf(size)))
    weight = right**count
    total = mp.mpf(0)
    for wrong in range(count + 1):
        total += weight * delta_of_rest(eps - (count - 2 * wrong) * mp.mpf(size))
        weight *= (1 - right) / right * (count - wrong) / (wrong + 1)
    return total


def nothing(eps):
    """δ(ε) of no mechanism at all."""
    return max(mp.mpf(0), -mp.expm1(eps))


def spread(low, high, count, rng):
    return [10 ** rng.uniform(math.log10(low), math.log10(high)) for _ in range(count)]


# --- Gaussian events


def test_log_delta_against_high_precision():
    rng = random.Random(1)
    checked = 0
    with mp.workdps(120):
        for eps, mu in zip(spread(1e-6, 1e4, 2000, rng), spread(1e-6, 150, 2000, rng), strict=True):
            x = eps / mu - mu / 2
            if x > 16.3:  # δ below 1e-60
                continue
            delta = gaussian_delta(eps, mu)
            if delta < mp.mpf("1e-60"):
                continue
            exact = mp.log(delta)
            assert abs(log_delta(eps, mu) - exact) < 1e-9
            assert exact <= log_delta_bound(eps, mu) < exact + 1e-9
            checked += 1
            if checked == 500:
                break
    assert checked == 500


@pytest.mark.parametrize("mu", [1e-30, 1e-9, 1 - 1e-12, 1, 1 + 1e-12, 30, 1e4, 1e7, 1e9, 1e13])
@pytest.mark.parametrize("delta", [5e-324, 1e-300, 1e-60, 1e-6, 0.3, 0.999])
def test_epsilon_is_above_the_truth_however_extreme(mu, delta):
    event = (
        Gaussian(noise_multiplier=1 / mu)
        if mu <= 1e9
        else Gaussian(noise_multiplier=1e-9, count=10**8)
    )
    found = epsilon(event, delta)
    with mp.workdps(700 if delta < 1e-60 else 160):
        mu = mp.sqrt(event.count) / mp.mpf(event.noise_multiplier)
        assert gaussian_delta(found, mu) <= mp.mpf(delta)
        if found > 0 and delta < 0.9:  # and tight
            assert gaussian_delta(
                found * (1 - mp.mpf("2e-12")) - mp.mpf("2e-12") * mu, mu
            ) > mp.mpf(delta)


def test_reference_figure():
    assert calibrate(1.0, 1e-5) == pytest.approx(3.7306316348159, abs=2e-12)
    assert epsilon(Gaussian(noise_multiplier=3.7306316348159), 1e-5) == pytest.approx(1, abs=1e-11)


def test_calibration_is_never_unsafe_and_is_tight():
    rng = random.Random(2)
    cases = 500
    many = zip(
        spread(1e-3, 50, cases, rng),
        spread(1e-60, 0.4, cases, rng),
        (round(r) for r in spread(1, 1e5, cases, rng)),
        strict=True,
    )
    with mp.workdps(90):
        for eps, delta, releases in many:
            multiplier = calibrate(eps, delta, releases=releases)
            mu = mp.sqrt(releases) / mp.mpf(multiplier)
            gap = mp.log(mp.mpf(delta)) - mp.log(gaussian_delta(eps, mu))
            assert 0 <= gap < 1e-9, (eps, delta, releases)
            # and what the ledger will compute from the event is within what was asked for
            assert epsilon(Gaussian(count=releases, noise_multiplier=multiplier), delta) <= eps


def test_against_another_library():
    """dp_accounting's privacy-loss distributions, on a grid fine enough for 1e-7."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    cases = [
        ([Gaussian(noise_multiplier=3.73)], 1e-5),
        (
            [
                Gaussian(noise_multiplier=2.0),
                Gaussian(noise_multiplier=5.5),
                Gaussian(noise_multiplier=1.1),
            ],
            1e-6,
        ),
        ([Gaussian(noise_multiplier=8.0, count=16), Gaussian(noise_multiplier=0.9)], 1e-4),
        (
            [Gaussian(noise_multiplier=60.0, count=100), Gaussian(noise_multiplier=20.0, count=3)],
            1e-7,
        ),
    ]
    for events, delta in cases:
        step = gaussian_mu(events) / 20_000
        total = None
        for event in events:
            one = pld.from_gaussian_mechanism(
                event.noise_multiplier, value_discretization_interval=step
            )
            one = one.self_compose(event.count) if event.count > 1 else one
            total = one if total is None else total.compose(one)
        assert epsilon(events, delta) == pytest.approx(total.get_epsilon_for_delta(delta), rel=1e-6)


multipliers = st.floats(0.05, 1e4)
gaussians = st.lists(
    st.builds(Gaussian, count=st.integers(1, 1000), noise_multiplier=multipliers),
    min_size=1,
    max_size=6,
)


@given(gaussians, st.randoms(use_true_random=False), st.floats(1e-12, 0.1))
def test_order_and_grouping_do_not_matter(events, rng, delta):
    whole = epsilon(events, delta)
    pieces = []
    for event in events:
        first = rng.randint(0, event.count)
        parts = [part for part in (first, event.count - first) if part]
        pieces += [Gaussian(count=part, noise_multiplier=event.noise_multiplier) for part in parts]
    rng.shuffle(pieces)
    assert epsilon(pieces, delta) == whole
    assert gaussian_mu(pieces) == gaussian_mu(events)


@given(gaussians, multipliers, st.floats(1e-12, 0.1))
def test_every_event_costs(events, multiplier, delta):
    before = epsilon(events, delta)
    after = epsilon([*events, Gaussian(noise_multiplier=multiplier)], delta)
    assert after >= before * (1 - 1e-14)
    if before > 1e-6 and multiplier < 100 and gaussian_mu(events) < 10:
        assert after > before
    assert epsilon(events, delta / 2) >= before


def test_mu_is_rounded_up():
    rng = random.Random(3)
    with mp.workdps(60):
        for size in (1, 2, 50):
            events = [
                Gaussian(noise_multiplier=z, count=rng.randint(1, 9))
                for z in spread(1e-9, 1e30, size, rng)
            ]
            exact = mp.sqrt(mp.fsum(e.count / mp.mpf(e.noise_multiplier) ** 2 for e in events))
            assert exact <= gaussian_mu(events) <= exact * (1 + mp.mpf(2) ** -50)
    assert gaussian_mu([Pure(epsilon=1.0)]) == 0


# --- other events


def test_single_uses_and_delta_zero():
    assert epsilon(Pure(epsilon=0.3), 1e-6) == pytest.approx(0.3, abs=1e-15)
    assert epsilon(Laplace(noise_multiplier=4.0), 0) == pytest.approx(0.25, abs=1e-15)
    assert epsilon([Pure(epsilon=0.3, count=3), Laplace(noise_multiplier=2.0)], 0) == pytest.approx(
        1.4, abs=1e-14
    )
    assert epsilon([Pure(epsilon=0.3), Gaussian(noise_multiplier=2.0)], 0) == math.inf
    assert epsilon([], 1e-6) == epsilon([], 0) == 0


@given(st.floats(1e-6, 1e6), st.integers(1, 1000))
def test_pure_calibration_is_safe_and_tight(eps, releases):
    multiplier = calibrate(eps, 0, releases=releases)
    event = Laplace(noise_multiplier=multiplier, count=releases)
    assert epsilon(event, 0) <= eps
    with mp.workdps(40):
        assert 0 <= eps - releases / mp.mpf(multiplier) < 1e-13 * eps


COINS = [
    (0.1, 10),
    (1.0, 100),
    (1e-3, 1000),
    (1e-6, 1000),
    (1e-6, 1),
    (10.0, 20),
    (10.0, 1000),
    (0.3, 1000),
    (0.01, 300),
]


@pytest.mark.parametrize(("size", "count"), COINS)
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-10, 1e-20])
def test_pure_events_against_brute_force(size, count, delta):
    found = epsilon(Pure(epsilon=size, count=count), delta)
    assert found <= size * count * (1 + 1e-12)
    with mp.workdps(DIGITS):
        assert after_coins(mp.mpf(found), size, count, nothing) <= delta
        if delta >= 1e-6 and size <= 1 and found > 0 and count > 1:  # and tight
            assert after_coins(
                mp.mpf(found) * (1 - mp.mpf("1e-4")), size, count, nothing
            ) > delta * (1 - 1e-9)


@pytest.mark.parametrize(
    "kind", ["laplace + laplace", "laplace + gaussian", "pure + gaussian", "pure + laplace"]
)
def test_mixed_events_against_brute_force(kind):
    rng = random.Random(kind)
    for _ in range(6):
        size, other = spread(1e-3, 10, 2, rng)
        delta = 10 ** rng.uniform(-9, -2)
        first, second = kind.split(" + ")
        events: list[Event] = [
            Pure(epsilon=size) if first == "pure" else Laplace(noise_multiplier=1 / size)
        ]
        events.append(
            Gaussian(noise_multiplier=1 / other)
            if second == "gaussian"
            else Laplace(noise_multiplier=1 / other)
        )
        rest = (
            (lambda t, s=other: gaussian_delta(t, s))
            if second == "gaussian"
            else (lambda t, s=other: laplace_delta(t, s))
        )
        found = epsilon(events, delta)
        with mp.workdps(25):
            if first == "pure":
                exact = lambda e, s=size, r=rest: after_coins(e, s, 1, r)  # noqa: E731
            else:
                exact = lambda e, s=size, r=rest, k=other: after_laplace(e, s, r, k)  # noqa: E731
            assert exact(mp.mpf(found)) <= delta * (1 + 1e-9)
            if found > 0:
                assert exact(mp.mpf(found) * (1 - mp.mpf("1e-3"))) > delta * (1 - 1e-9)


def test_many_coins_and_a_gaussian_against_brute_force():
    events = [Pure(epsilon=0.1, count=30), Gaussian(noise_multiplier=3.0)]
    found = epsilon(events, 1e-6)
    with mp.workdps(30):
        for factor, safe in ((1, True), (1 - mp.mpf("1e-5"), False)):
            exact = after_coins(found * factor, 0.1, 30, lambda t: gaussian_delta(t, mp.mpf(1) / 3))
            assert (exact <= mp.mpf(1e-6)) == safe


VERY_DIFFERENT = [
    [Pure(epsilon=1e-6, count=1000), Pure(epsilon=10.0, count=1000)],
    [Laplace(noise_multiplier=1e6, count=1000), Laplace(noise_multiplier=0.1, count=1000)],
    [Pure(epsilon=1e-9), Gaussian(noise_multiplier=1e-3)],
    [Laplace(noise_multiplier=1.0, count=10), Gaussian(noise_multiplier=0.01)],
    [Pure(epsilon=1e-3, count=10**6)],
    [Laplace(noise_multiplier=1e3, count=10**9)],
    [Pure(epsilon=1e-9, count=10**9)],
    [
        Pure(epsilon=1e30, count=10**9),
        Laplace(noise_multiplier=1e30),
        Gaussian(noise_multiplier=1.0),
    ],
    [Laplace(noise_multiplier=1e-9, count=2)],
    [Pure(epsilon=s) for s in (1e-6, 1e-4, 1e-2, 1.0)]
    + [Gaussian(noise_multiplier=z) for z in (0.5, 50.0)],
]


@pytest.mark.parametrize("events", VERY_DIFFERENT)
@pytest.mark.parametrize("delta", [1e-6, 1e-12])
def test_very_different_scales_stay_finite_quick_and_ordered(events, delta):
    """At least what the largest part alone costs, at most the sum of the parts, and no blow-up on
    the way.
    """
    found = epsilon(events, delta)
    others = [e for e in events if not isinstance(e, Gaussian)]
    only = [e for e in events if isinstance(e, Gaussian)]
    assert (
        epsilon(only, delta) * (1 - 1e-12)
        <= found
        <= (epsilon(others, 0) + epsilon(only, delta)) * (1 + 1e-12)
    )


def test_large_counts_gain_from_composition():
    """Where the grid cannot follow, the Gaussian mechanisms that dominate do: far below the sum."""
    assert epsilon(Pure(epsilon=1e-3, count=10**9), 1e-6) < 1e-3 * 10**9 / 900
    assert epsilon(Pure(epsilon=1e-2, count=1000), 1e-15) < 3.2 < 10


@settings(max_examples=6, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [Pure(epsilon=0.2, count=3), Laplace(noise_multiplier=3.0), Pure(epsilon=0.01)]
        ),
        max_size=4,
    )
)
def test_mixed_events_do_not_depend_on_order_or_grouping(others):
    events = [Gaussian(noise_multiplier=4.0), *others]
    apart = list(itertools.chain(*([_one(e)] * e.count for e in events)))
    assert epsilon(events, 1e-6) == epsilon(events[::-1], 1e-6) == epsilon(apart, 1e-6)


def _one(event):
    fields = event.to_dict() | {"count": 1}
    del fields["kind"]
    return type(event)(**fields)


def test_an_unknown_event_is_refused():
    class Strange(Event):
        kind = "strange"

    with pytest.raises(BadInput, match="no accounting"):
        epsilon(Strange(), 1e-6)


# --- wrong use


@pytest.mark.parametrize("eps", [0, -1, math.nan, math.inf, "1", None, True, 10**400, 1j])
def test_bad_epsilon(eps):
    with pytest.raises(BadInput, match="epsilon must be a positive number"):
        check_epsilon_delta(eps, 1e-6)
    with pytest.raises(BadInput, match="epsilon"):
        calibrate(eps, 1e-6)


@pytest.mark.parametrize("delta", [-1e-9, 1, 1.5, math.nan, math.inf, "1", None, False])
def test_bad_delta(delta):
    for pure in (False, True):
        with pytest.raises(BadInput, match="delta must be a number"):
            check_epsilon_delta(1, delta, pure=pure)
    with pytest.raises(BadInput, match="delta"):
        epsilon(Gaussian(noise_multiplier=1.0), delta)


def test_delta_zero_only_where_it_makes_sense():
    assert check_epsilon_delta(np.float32(1), np.int64(0), pure=True) == (1.0, 0.0)
    with pytest.raises(BadInput, match="0 < delta"):
        check_epsilon_delta(1, 0)
    with pytest.raises(BadInput, match="delta"):  # positive, but has no float
        check_epsilon_delta(1, np.longdouble("1e-4000"), pure=True)


@pytest.mark.parametrize("releases", [0, -1, 1.5, True, "2", None])
def test_bad_releases(releases):
    with pytest.raises(BadInput, match="releases must be a whole number"):
        calibrate(1, 1e-6, releases=releases)


@pytest.mark.parametrize(
    ("eps", "delta"), [(1e308, 1e-5), (1e20, 0.5), (1e-300, 1e-300), (1e300, 0), (1e-300, 0)]
)
def test_hopeless_calibration_is_bad_input(eps, delta):
    with pytest.raises(BadInput, match="noise_multiplier"):
        calibrate(eps, delta)


def test_less_than_any_event_can_state_is_nothing():
    assert remaining_epsilon([Laplace(noise_multiplier=1e30)], 1.1e-30, 0) == 0.0
