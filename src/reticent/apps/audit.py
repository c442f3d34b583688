"""``reticent audit``: attack the releases and see how much of the claimed ε can be shown to be used up.

The attacker knows all records but one, and that this one is either A or B: the pair that moves the statistic as far as its
sensitivity allows. He sees one release and computes its likelihood ratio, the best test there is. Half of the runs are used
to choose his threshold and which of the two he bets on; the other half gives his true- and false-positive rates, and
(Clopper and Pearson, 95 %) a bound that the ε of *any* mechanism with such rates must exceed:

    ε ≥ log((TPR_low − δ) / FPR_high)

A bound above the claim shows a fault. A bound far below it shows a weak attack, or noise that is larger than needed. The δ
is large on purpose: no number of runs that one can wait for shows events of probability 1e-6. It is the same mechanism
with the same code at every δ.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv
from sklearn.gaussian_process.kernels import RBF

import reticent
from reticent.apps.audit_bandit import BANDITS, LOCAL, bandit_scores
from reticent.apps.audit_search import search_scores
from reticent.apps.terminal import compact, table
from reticent.errors import BadInput
from reticent.privacy.accounting import calibrate
from reticent.privacy.bounds import Bounds
from reticent.privacy.curator import Curator, Release
from reticent.privacy.events import Event, Gaussian, Laplace
from reticent.privacy.release import Design
from reticent.privacy.sources import scan
from reticent.privacy.statistic import Statistic

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = [
    "PAIRS",
    "QUICK_RUNS",
    "RUNS",
    "SEARCH",
    "WHOLE",
    "Finding",
    "Pair",
    "attack",
    "audit",
    "chosen",
    "conclude",
    "findings_table",
    "lower_bound",
    "whose",
]

Values = NDArray[np.float64]

RUNS, QUICK_RUNS = 20_000, 1_000  # with record A, and as many with record B
SEARCH = "search"
WHOLE = (*BANDITS, SEARCH)  # not one statistic but all that leaves in many steps, attacked as a whole
_BATCH = 500  # releases of one curator
_COMPARED = 20  # releases that are compared with their steps
_CONFIDENCE = 0.95
_SURE = 1 - 1e-6  # an alarm should not be an accident
_THRESHOLDS = 40
_CAUTIOUS = 0.9999  # in the choice of a threshold: those with few alarms look better than they are
_MADE_UP = 400  # records


@dataclass(frozen=True)
class Pair:
    """A model, and two records whose exchange moves its first statistic by its full sensitivity; inputs lie in [−1, 1]ᵈ.

    ``kind``: not the first statistic but the first of this kind, after others were answered from made-up records.
    """

    model: str
    a: tuple[float, ...]  # inputs, then outputs
    b: tuple[float, ...]
    outputs: int = 0
    classes: int = 0  # if any, the output is one of them, numbered from 0
    options: dict[str, Any] = field(default_factory=dict)  # of the model
    kind: str = ""

    @property
    def inputs(self) -> int:
        """How many of a record's numbers are inputs."""
        return len(self.a) - self.outputs

    @property
    def bounds(self) -> Bounds:
        """The box."""
        x, y = ([(-1.0, 1.0)] * count for count in (self.inputs, self.outputs))
        return Bounds(x=x, classes=list(range(self.classes))) if self.classes else Bounds(x=x, y=y or None)

    def statistic(self) -> Statistic:
        """Ask the model which statistic it wants to have released."""
        heard = _Listener(self.bounds, _with_middle(self.a)[:, : self.inputs], self.kind)
        try:
            getattr(reticent, self.model)(bounds=self.bounds, epsilon=1.0, delta=1e-6, **self.options).learn(heard)
        except _Asked as asked:
            return asked.statistic
        raise AssertionError(f"{self.model} asks for nothing")


class _Asked(Exception):
    def __init__(self, statistic: Statistic) -> None:
        self.statistic = statistic


class _Listener:
    """Stands where a curator would, to hear what it is asked."""

    def __init__(self, bounds: Bounds, inputs: Values, kind: str) -> None:
        self.bounds, self._inputs, self._kind = bounds, inputs, kind
        self.n = _MADE_UP if kind else 2

    def release(self, statistic: Statistic, *, times: int = 1) -> Release:
        if self._kind in ("", statistic.kind):
            raise _Asked(statistic)
        heaps = np.random.default_rng(0).normal(0, 0.05, size=(_MADE_UP, len(self.bounds.x)))
        heaps[::2] += 0.1
        event = Gaussian(count=times, noise_multiplier=1e-3)
        return reticent.Curator(scan(heaps), bounds=self.bounds, event=event).release(statistic, times=times)

    def release_given_inputs(self, design: Design, *, times: int = 1) -> Release:
        return self.release(design(self._inputs), times=times)


_BINS: dict[str, Any] = {"bins": 2, "kernel": RBF(1.0, "fixed")}
_LABELS: dict[str, Any] = {"stages": 1, "kernel": RBF(1.0, "fixed"), "noise": 0.5, "learn_kernel": False}

# mixture: opposite corners, far from all centres, so that both have residuals of full length, in different parts.
# Opposite corners; the first and the last bin of each column; (1, a) and (1, b) orthogonal, so that aaᵀ and bbᵀ are too.
# gp-labels: both ends of the label's range, at one input; of two inputs that are alike, both have columns of full length.
# bins: one record, with the highest output, in one of two bins; bins-labels: the highest and the lowest output in one bin.
# gp: where the features φ have their full length R, outputs beyond the clip on both sides give (φ, R) and (φ, −R): orthogonal.
# classifier: so do, at the first stage, the two classes, whose e have opposite directions and the length of the first reach.
PAIRS = {
    "mean": Pair("PrivateMean", (1, 1), (-1, -1)),
    "histogram": Pair("PrivateHistogram", (1, 1), (-1, -1)),
    "covariance": Pair("PrivateCovariance", (1, 1, 1), (-1, -1, 1)),
    "bins": Pair("BinnedGPRegressor", (-0.5, 1), (0.5, 1), outputs=1, options=_BINS),
    "bins-labels": Pair("BinnedGPRegressor", (-0.5, 1), (-0.5, -1), outputs=1, options={**_BINS, "protect": "labels"}),
    "mixture": Pair("GaussianMixture", (1, 1, 1), (-1, -1, -1), options={"n_components": 2}, kind="shared"),
    "gp": Pair("GPRegressor", (0.25, 9), (0.25, -9), 1, options={"basis": 4, "kernel": RBF(1.0, "fixed")}),
    "kmeans": Pair("KMeans", (1, 1), (-1, -1), options={"n_clusters": 2}),
    "factors": Pair("FactorAnalysis", (1, 1), (-1, -1)),
    "classifier": Pair("GPClassifier", (0.75, 0), (0.75, 1), 1, 2, {"basis": 4, "kernel": RBF(1.0, "fixed")}),
    "gp-labels": Pair("LabelGPRegressor", (0.5, 1), (0.5, -1), outputs=1, options=_LABELS),
    "gp-labels-functional": Pair(
        "LabelGPRegressor", (0.5, 1), (0.5, -1), outputs=1, options={**_LABELS, "mechanism": "functional"}
    ),
    "gp-labels-inducing": Pair(
        "LabelGPRegressor",
        (0.5, 1),
        (0.5, -1),
        outputs=1,
        options={**_LABELS, "mechanism": "inducing", "inducing": [[0.5]]},
    ),
}


@dataclass(frozen=True)
class Finding:
    """What an attack found. ``sure`` is the bound at almost certainty; only that one may call a mechanism broken."""

    statistic: str
    claimed: float
    bound: float
    sure: float
    runs: int

    @property
    def power(self) -> float:
        """Share of the claim that the attack could show."""
        return self.bound / self.claimed

    @property
    def verdict(self) -> str:
        """``holds``, ``unclear`` (above the claim, which happens by chance now and then: run it again) or ``BROKEN``."""
        if self.sure > self.claimed:
            return "BROKEN"
        return "holds" if self.bound <= self.claimed else "unclear"


def chosen(word: str, delta: float) -> list[str]:
    """Give the statistics that a word of the command line means."""
    if word == "all":
        found = [name for name, pair in PAIRS.items() if delta > 0 or pair.statistic().sensitivity1 is not None]
        return [*found, *WHOLE] if delta > 0 else found
    if word not in (*PAIRS, *WHOLE):
        known = ", ".join((*PAIRS, *WHOLE))
        raise BadInput(f"There is no statistic {word!r} to audit. Give one of {known}, or all.")
    if word in WHOLE and delta == 0:
        raise BadInput(f"What a {word} releases has Gaussian noise: audit it with --delta above 0.")
    return [word]


def whose(name: str) -> str:
    """The estimator that releases what is attacked under a name."""
    if name in WHOLE:
        local = "LocalBanditClient" if name == LOCAL else "JointBandit"
        return "PrivateSearch" if name == SEARCH else local
    return PAIRS[name].model


def findings_table(findings: Sequence[Finding], delta: float) -> "RenderableType":
    """Lay out what attacks found."""
    rows = table("statistic", "estimator", "claimed ε", "δ", "shown ε ≥", "power", "runs", "verdict", left=2)
    for one in findings:
        numbers = compact(one.claimed), compact(delta), compact(one.bound), f"{one.power:.0%}", f"{one.runs:,}"
        rows.add_row(one.statistic, whose(one.statistic), *numbers, one.verdict)
    return rows


def audit(
    names: Sequence[str], *, epsilon: float, delta: float, runs: int, advance: Callable[[int], None]
) -> list[Finding]:
    """Attack each of the named statistics at (ε, δ); ``advance`` hears of every batch of releases."""
    if not 0 < epsilon < np.inf:
        raise BadInput(f"epsilon must be a positive number, not {epsilon:g}: it is the claim to attack.")
    if not 0 <= delta < 1:
        raise BadInput(f"delta must be a number with 0 <= delta < 1, not {delta:g}: it is part of the claim to attack.")
    multiplier = calibrate(epsilon, delta)
    kind = Gaussian if delta else Laplace
    event = kind(count=_BATCH, noise_multiplier=multiplier)
    findings = []
    for name in names:
        if name in WHOLE:
            if name == SEARCH:
                here, there = search_scores(epsilon, delta, runs, advance)
            else:
                here, there = bandit_scores(name, epsilon, delta, runs, advance)
            findings.append(conclude(name, here, there, epsilon=epsilon, delta=delta))
        else:
            findings.append(attack(name, event, epsilon=epsilon, delta=delta, runs=runs, advance=advance))
    return findings


def attack(
    name: str,
    event: Event,
    *,
    epsilon: float,
    delta: float,
    runs: int,
    advance: Callable[[int], None] = lambda steps: None,
) -> Finding:
    """Try to tell the pair's records apart by releases that are made under ``event`` and claimed to be (ε, δ)."""
    if runs < 2 * _BATCH:
        raise BadInput(f"An audit needs at least {2 * _BATCH:,} runs.")
    pair = PAIRS[name]
    here = _scores(pair, pair.a, event, runs, advance)
    there = _scores(pair, pair.b, event, runs, advance)
    return conclude(name, here, there, epsilon=epsilon, delta=delta)


def conclude(name: str, here: Values, there: Values, *, epsilon: float, delta: float) -> Finding:
    """Bound ε from below by the likelihood ratios of releases of A (``here``) and of B (``there``), as many of each."""
    half = len(here) // 2
    trials = [(here, there), (-there, -here)]  # bet on A, or on B
    best, chosen, threshold = -np.inf, trials[0], 0.0
    for guess, other in trials:
        pooled = np.concatenate([guess[:half], other[:half]])
        for t in np.quantile(pooled, np.linspace(0, 1, _THRESHOLDS, endpoint=False)):
            bound = lower_bound(int((guess[:half] > t).sum()), int((other[:half] > t).sum()), half, delta, _CAUTIOUS)
            if bound > best:
                best, chosen, threshold = bound, (guess, other), float(t)
    hits, alarms = (int((scores[half:] > threshold).sum()) for scores in chosen)
    rest = len(here) - half
    bound, sure = (max(lower_bound(hits, alarms, rest, delta, level), 0.0) for level in (_CONFIDENCE, _SURE))
    return Finding(name, epsilon, bound, sure, 2 * len(here))


def lower_bound(hits: int, alarms: int, runs: int, delta: float, confidence: float) -> float:
    """Bound ε from below by an attacker's ``hits`` and false ``alarms`` in as many ``runs`` each; −inf if they say nothing."""
    tail = (1 - confidence) / 2
    hit_rate = float(betaincinv(hits, runs - hits + 1, tail)) if hits else 0.0
    alarm_rate = float(betaincinv(alarms + 1, runs - alarms, 1 - tail)) if alarms < runs else 1.0
    return float(np.log((hit_rate - delta) / alarm_rate)) if hit_rate > delta else -np.inf


def _scores(pair: Pair, record: tuple[float, ...], event: Event, runs: int, advance: Callable[[int], None]) -> Values:
    """Log-likelihood ratios of A against B, for releases of ``record`` and one more record in the middle of the box."""
    statistic, scores = pair.statistic(), list[Values]()
    a, b = (_exact(statistic, one) for one in (pair.a, pair.b))
    records, d = _with_middle(record), pair.inputs
    outputs = records[:, d] if pair.classes else records[:, d:]

    def curator(count: int, seed: bytes | None = None) -> Curator:
        source = scan(records[:, :d], y=outputs if pair.outputs else None)
        how: dict[str, Any] = {"event": replace(event, count=count), "targets": pair.outputs > 0, "seed": seed}
        return Curator(source, bounds=pair.bounds, **how)

    make = _releases if _steps_tell(curator, statistic) else _whole_releases
    for _ in range(0, runs, event.count):
        values, scale = make(curator(event.count), statistic, event.count)
        to_a, to_b = (values - a) / scale, (values - b) / scale
        if event.kind == "gaussian":
            scores.append((to_b**2 - to_a**2).sum(axis=1) / 2)
        else:
            scores.append((np.abs(to_b) - np.abs(to_a)).sum(axis=1))
        advance(event.count)
    # ratios that are equal on paper must be equal here, or a threshold could fall between them
    return np.round(np.concatenate(scores)[:runs], 9)


@dataclass(frozen=True)
class _Copies:
    """Many releases of one statistic, as `Curator._add_noise` sees them: numbers side by side."""

    statistic: Statistic
    count: int

    @property
    def step(self) -> float:
        return self.statistic.step

    def shares(self) -> NDArray[np.int64]:
        return np.tile(self.statistic.shares(), self.count)


def _releases(curator: Curator, statistic: Statistic, count: int) -> tuple[Values, Values]:
    """Release ``count`` times, a row each: the first from beginning to end, the others by the steps of `Curator.release`.

    Their exact sums and scales are the same, and are made once for all of them. Noise is drawn for each. `_steps_tell` says
    whether that is what a curator does.
    """
    first = curator.release(statistic)
    exact, scales, rest = curator._exact(statistic, 2), curator._scales(statistic), count - 1
    copies: Any = _Copies(statistic, rest)
    noisy, scale = curator._add_noise(np.tile(exact, rest), copies, scales, 2)
    assert (scale.reshape(rest, -1) == first.scale).all()
    return np.vstack([first.value, noisy.reshape(rest, -1)]), first.scale


def _whole_releases(curator: Curator, statistic: Statistic, count: int) -> tuple[Values, Values]:
    """The same, each from beginning to end: a hundred times slower."""
    made = [curator.release(statistic) for _ in range(count)]
    return np.array([one.value for one in made]), made[0].scale


def _steps_tell(curator: Callable[..., Curator], statistic: Statistic) -> bool:
    """Whether releases, first to last, are what their steps make of the same bits; and not all the same without a seed."""
    whole, steps, unseeded = curator(_COMPARED, b"audit"), curator(_COMPARED, b"audit"), curator(_COMPARED)
    exact, scales = steps._exact(statistic, 1), steps._scales(statistic)
    for number in range(1, _COMPARED + 1):
        release = whole.release(statistic)
        value, scale = steps._add_noise(exact, statistic, scales, number)
        if not (np.array_equal(value, release.value) and np.array_equal(scale, release.scale)):
            return False
    return len(np.unique(_whole_releases(unseeded, statistic, _COMPARED)[0], axis=0)) > 1


def _with_middle(record: tuple[float, ...]) -> Values:
    return np.array([record, (0.0,) * len(record)])


def _exact(statistic: Statistic, record: tuple[float, ...]) -> Values:
    """What the release would be without noise: the attacker knows both cases."""
    exact = statistic.coordinates(statistic.block_sum(_with_middle(record))) * statistic.step
    return exact.astype(np.float64)
