"""``reticent audit``: attack everything that a model releases, and say what the attack could have found.

For each model there are two tables that differ in one record, so chosen that all releases of a fit move
as far as they may. The public method (``fit``; ``ask`` and ``tell`` of a bandit) is called again and
again with one table or the other, with the noise that it has in earnest, and the attacker
(`audit_attacker`) sees all that leaves: every stage and every statistic. What that proves, and which
mistakes would have been noticed, is in `audit_evidence`.
"""

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF

import reticent
from reticent.apps.audit_attacker import Run, Tables, Witness
from reticent.apps.audit_bandit import BANDITS, LOCAL, BanditAttack
from reticent.apps.audit_evidence import Evidence, Finding
from reticent.apps.audit_search import SearchAttack
from reticent.apps.terminal import compact, table
from reticent.errors import BadInput
from reticent.privacy.accounting import check_epsilon_delta
from reticent.privacy.bounds import Bounds
from reticent.privacy.sums import one_blas_thread

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = [
    "FULL",
    "NOT_ATTACKED",
    "PAIRS",
    "QUICK",
    "SEARCH",
    "Effort",
    "Pair",
    "audit",
    "chosen",
    "estimator_of",
    "findings_table",
]

Array = NDArray[np.float64]

SEARCH = "search"
STEPWISE = (*BANDITS, SEARCH)  # not fitted to a table by a model of their own kind
_CERTAIN = 0.95
_SEED = 0  # of the records that both tables have

NOT_ATTACKED = (
    "how records are read (types, missing values, files, clusters); the ledger; time and memory; files,",
    "restored state and the services; statistics, kernels and scores that users write; several fits on",
    "the same records; records_per_person above 1; choices by score; obfuscated curves; parameters",
    "other than those of the audit. Tests and proofs cover these as far as they are covered.",
)


@dataclass(frozen=True)
class Effort:
    """How long to attack each model.

    Runs end after ``most``, or after ``seconds`` once noise of ``factor`` times the stated scale would
    be found with a probability of 95 %, or after three times as long.
    """

    seconds: float
    most: int
    factor: float

    def enough(self, evidence: Evidence, elapsed: float) -> bool:
        """Whether to end; depends on the number of runs and on the clock, never on what was released."""
        runs = len(evidence.runs)
        if runs % 2 or runs < 2:
            return False
        if runs >= self.most or elapsed > 3 * self.seconds:
            return True
        return elapsed > self.seconds and evidence.power(self.factor) >= _CERTAIN


QUICK = Effort(seconds=1.0, most=200, factor=0.5)
FULL = Effort(seconds=20.0, most=10_000, factor=0.9)


@dataclass(frozen=True)
class Pair:
    """A model, and two records whose exchange moves all its releases about as far as they may.

    Inputs lie in [−1, 1]ᵈ. ``others``: how many records both tables have; ``heaps``: they lie in two
    heaps, else evenly.
    """

    model: str
    a: tuple[float, ...]  # inputs, then outputs
    b: tuple[float, ...]
    outputs: int = 0
    classes: int = 0  # if any, the output is one of them, numbered from 0
    options: dict[str, Any] = field(default_factory=dict)  # of the model
    others: int = 3
    heaps: bool = False
    pure: bool = False  # whether δ = 0, Laplace noise, is possible

    @property
    def inputs(self) -> int:
        """How many of a record's numbers are inputs."""
        return len(self.a) - self.outputs

    @property
    def bounds(self) -> Bounds:
        """The box."""
        x = [(-1.0, 1.0)] * self.inputs
        if self.classes:
            return Bounds(x=x, classes=list(range(self.classes)))
        return Bounds(x=x, y=[(-1.0, 1.0)] * self.outputs or None)

    def estimator(self, epsilon: float, delta: float) -> Any:
        """The model, not fitted, with this promise."""
        return getattr(reticent, self.model)(bounds=self.bounds, epsilon=epsilon, delta=delta, **self.options)

    def tables(self) -> Tables:
        """Both tables."""
        random = np.random.default_rng(_SEED)
        x = random.uniform(-1, 1, (self.others, self.inputs))
        if self.heaps:
            x = np.where(np.arange(self.others) % 2, 0.5, -0.5)[:, None] + random.normal(0, 0.05, x.shape)
        y = 0.3 * np.sin(3 * x[:, : self.outputs])
        if self.classes:
            y = (x[:, : self.outputs] > 0) * 1.0
        return Tables(np.array(self.a), np.array(self.b), np.hstack([x, y]), self.inputs)


_KERNEL = RBF(1.0, "fixed")
_BINS: dict[str, Any] = {"bins": 2, "kernel": _KERNEL, "learn_kernel": False}
_STAGES: dict[str, Any] = {"basis": 4, "learn_kernel": False}
_LABELS: dict[str, Any] = {"kernel": _KERNEL, "noise": 0.5, "learn_kernel": False}

# mean, histogram: opposite corners. covariance: (1, a) and (1, b) are orthogonal, so that aaᵀ and bbᵀ are too.
# bins: the highest output, in one of two bins; bins-labels: the highest and the lowest output in one bin.
# gp: an input where features have their full length, and outputs that are clipped on both sides in every
# stage; gp-inputs: with no kernel, so that inputs are counted first, which both ends of the box move.
# classifier: the same for classes. gp-labels: both ends of the label's range at one input.
# mixture, kmeans, factors: corners that are orthogonal, and so many records that all stages are reached.
PAIRS = {
    "mean": Pair("PrivateMean", (1, 1), (-1, -1), pure=True),
    "histogram": Pair("PrivateHistogram", (1, 1), (-1, -1), pure=True),
    "covariance": Pair("PrivateCovariance", (1, 1, 1), (-1, -1, 1)),
    "bins": Pair("BinnedGPRegressor", (-0.5, 1), (0.5, 1), 1, options=_BINS, pure=True),
    "bins-labels": Pair("BinnedGPRegressor", (-0.5, 1), (-0.5, -1), 1, options={**_BINS, "protect": "labels"}),
    "mixture": Pair("GaussianMixture", (1, 1, 1), (-1, 1, -1), options={"n_components": 2}, others=2000, heaps=True),
    "gp": Pair("GPRegressor", (1, 9), (1, -9), 1, options={**_STAGES, "stages": 6, "kernel": _KERNEL}, others=40),
    "gp-inputs": Pair("GPRegressor", (-1, 9), (1, 9), 1, options={**_STAGES, "stages": 12}, others=40),
    "kmeans": Pair("KMeans", (1, 1), (-1, -1), options={"n_clusters": 2}, others=2000, heaps=True, pure=True),
    "factors": Pair("FactorAnalysis", (1, 1), (1, -1), options={"n_components": 1}, others=100, heaps=True),
    "components": Pair("PCA", (1, 1), (1, -1), options={"n_components": 1}, others=100, heaps=True),
    "classifier": Pair(
        "GPClassifier", (-0.75, 1), (-0.25, 0), 1, 2, {**_STAGES, "stages": 6, "kernel": _KERNEL}, others=40
    ),
    "classifier-inputs": Pair("GPClassifier", (-1, 0), (1, 0), 1, 2, {**_STAGES, "stages": 12}, others=40),
    "gp-labels": Pair("LabelGPRegressor", (0.5, 1), (0.5, -1), 1, options=_LABELS),
    "gp-labels-functional": Pair(
        "LabelGPRegressor", (0.5, 1), (0.5, -1), 1, options={**_LABELS, "mechanism": "functional"}
    ),
    "gp-labels-inducing": Pair(
        "LabelGPRegressor",
        (0.5, 1),
        (0.5, -1),
        1,
        options={**_LABELS, "mechanism": "inducing", "inducing": [[0.5]]},
    ),
}


class Attack(Protocol):
    """Calls a public method once, and attacks all that it releases."""

    def run(self, *, with_a: bool) -> Run: ...  # noqa: D102


class FitAttack:
    """The attack on a model that is fitted to a table."""

    def __init__(self, pair: Pair, *, epsilon: float, delta: float, limit: float) -> None:
        self._estimator = pair.estimator(epsilon, delta)
        self._tables = pair.tables()
        self._limit = limit
        self._outputs = pair.outputs > 0

    def run(self, *, with_a: bool) -> Run:
        """Fit once, and go through ``learn`` again with what was released."""
        records = self._tables.whole(with_a=with_a)
        d = self._tables.inputs
        model = clone(self._estimator).fit(records[:, :d], records[:, d] if self._outputs else None)
        witness = Witness(model.releases_, self._tables)
        with one_blas_thread():
            clone(self._estimator).learn(witness)
        witness.check_used()
        faults = list(witness.faults)
        if model.guarantee_.epsilon > self._estimator.epsilon * (1 + 1e-9):
            faults.append(f"the guarantee of the fit is ε = {model.guarantee_.epsilon:.4g}")
        return Run.of(
            witness.seen, with_a=with_a, released=len(model.releases_), limit=self._limit, faults=faults
        )


def chosen(word: str, delta: float) -> list[str]:
    """Give the attacks that a word of the command line means."""
    names = [*PAIRS, *STEPWISE]
    if word == "all":
        return [name for name in names if delta > 0 or _pure(name)]
    if word not in names:
        raise BadInput(f"There is no model {word!r} to audit. Give one of {', '.join(names)}, or all.")
    if delta == 0 and not _pure(word):
        raise BadInput(f"What {word} releases has Gaussian noise: audit it with --delta above 0.")
    return [word]


def _pure(name: str) -> bool:
    return name in PAIRS and PAIRS[name].pure


def estimator_of(name: str) -> str:
    """The class whose public method is attacked under a name."""
    if name == SEARCH:
        return "PrivateSearch"
    if name == LOCAL:
        return "LocalBanditClient"
    return "JointBandit" if name in BANDITS else PAIRS[name].model


def audit(
    names: Sequence[str],
    *,
    epsilon: float,
    delta: float,
    effort: Effort = FULL,
    advance: Callable[[int], None] = lambda steps: None,
) -> list[Finding]:
    """Attack each of the named models at the promise (ε, δ); ``advance`` is called for every run."""
    epsilon, delta = check_epsilon_delta(epsilon, delta, pure=True)
    findings = []
    for name in names:
        evidence = Evidence(name, estimator_of(name), epsilon=epsilon, delta=delta)
        attack = _attack(name, epsilon, delta, evidence.limit)
        begun = time.process_time()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "delta = ", UserWarning)  # large on purpose: few runs can test it
            while not effort.enough(evidence, time.process_time() - begun):
                evidence.add(attack.run(with_a=len(evidence.runs) % 2 == 0))
                advance(1)
        findings.append(evidence.finding())
    return findings


def _attack(name: str, epsilon: float, delta: float, limit: float) -> Attack:
    if name == SEARCH:
        return SearchAttack(epsilon=epsilon, delta=delta)
    if name in BANDITS:
        return BanditAttack(name, epsilon=epsilon, delta=delta, limit=limit)
    return FitAttack(PAIRS[name], epsilon=epsilon, delta=delta, limit=limit)


def findings_table(findings: Sequence[Finding]) -> "RenderableType":
    """Lay out what attacks found."""
    rows = table("model", "releases", "runs", "shift", "noise", "shown ε ≥", "½", "0.7", "0.9", "verdict")
    for one in findings:
        shown = np.nanmax([one.shown_normal, one.shown])
        rows.add_row(
            one.model,
            f"{one.attacked} of {one.released}",
            f"{one.runs:,}",
            f"{one.shift:.0%}",
            f"{one.noise:.2f}",
            compact(float(shown), 2),
            *(_percent(power) for power in one.power.values()),
            one.verdict,
        )
    return rows


def _percent(power: float) -> str:
    """A probability; never rounded up to certainty."""
    return ">99%" if power > 0.99 else f"{power:.0%}"
