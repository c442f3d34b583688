"""``reticent audit``.

Attack everything that a model releases, and say what the attack could have found. For each model
there are two tables that differ in one record, so chosen that all releases of a fit move as far as
they may. The public method (``fit``; ``ask`` and ``tell`` of a bandit) is called again and again
with one table or the other, with the noise that it has in earnest, and the attacker
(`auditing.attacker`) sees all that leaves: every stage and every statistic. What that proves, and
which mistakes would have been noticed, is in `auditing.evidence`.
"""

import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF

import reticent
from reticent.auditing.attacker import Run, Tables, Witness
from reticent.auditing.bandit_attack import BANDITS, LOCAL, BanditAttack
from reticent.auditing.evidence import Evidence, Finding
from reticent.auditing.search_attack import SearchAttack
from reticent.errors import BadInput
from reticent.privacy.bounds import Bounds
from reticent.privacy.columns.base import Kind
from reticent.privacy.columns.numbers import Number
from reticent.privacy.columns.words import Words
from reticent.validation import check_epsilon_delta

__all__ = [
    "FULL",
    "NOT_ATTACKED",
    "PAIRS",
    "QUICK",
    "SEARCH",
    "Effort",
    "Pair",
    "audit",
    "estimator_of",
    "named_attacks",
]

Array = NDArray[np.float64]

SEARCH = "search"
STEPWISE = (*BANDITS, SEARCH)  # not fitted to a table by a model of their own kind
_CERTAIN = 0.95
_SEED = 0  # of the records that both tables have

NOT_ATTACKED = (
    "how records are read; the ledger; time and memory; files, restored state and services; "
    "statistics, kernels and scores that users write; several fits on the same records; "
    "records_per_person above 1; choices by score; noise columns and several outputs; dates and "
    "cycles; obfuscated curves; other parameters than these."
)


@dataclass(frozen=True)
class Effort:
    """How long to attack each model, in seconds of the processor's time.

    There are from ``least`` to ``most`` runs. They end after ``seconds`` if noise of ``factor``
    times the stated scale, in any one release, would be found with a probability of 95 %; if not,
    after ``patience``.
    """

    seconds: float
    patience: float
    factor: float
    most: int
    least: int = 10

    def enough(self, evidence: Evidence, elapsed: float) -> bool:
        """Whether to end; that depends on public numbers and the clock, never on the noise."""
        runs = len(evidence.runs)
        if runs % 2 or runs < self.least:
            return False
        if runs >= self.most or elapsed > self.patience:
            return True
        return elapsed > self.seconds and evidence.power(self.factor) >= _CERTAIN


QUICK = Effort(seconds=0.5, patience=8.0, factor=0.5, most=200)
FULL = Effort(seconds=20.0, patience=60.0, factor=0.7, most=10_000)


@dataclass(frozen=True)
class Pair:
    """A model, and two records whose exchange moves all its releases about as far as they may.

    Records are written in codes: numbers, positions of levels, NaN for what is missing. Inputs lie
    in [−1, 1]ᵈ, or are of the ``kinds`` given. ``others``: how many records both tables have;
    ``heaps``: they lie in two heaps, else evenly; none of them has the last level of a column of
    words, so that a record with that level is the only one.
    """

    model: str
    a: tuple[float, ...]  # inputs, then outputs
    b: tuple[float, ...]
    outputs: int = 0
    classes: int = 0  # if any, the output is one of them, numbered from 0
    options: dict[str, Any] = field(default_factory=dict)  # of the model
    kinds: tuple[Kind, ...] = ()  # of the inputs, if they are not all numbers
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
        x: list[Any] = [(-1.0, 1.0)] * self.inputs
        if self.kinds:
            x = list(self.kinds)
        if self.classes:
            return Bounds(x=x, classes=list(range(self.classes)))
        return Bounds(x=x, y=[(-1.0, 1.0)] * self.outputs or None)

    def estimator(self, epsilon: float, delta: float) -> Any:
        """The model, not fitted, with this promise."""
        return getattr(reticent, self.model)(
            bounds=self.bounds, epsilon=epsilon, delta=delta, **self.options
        )

    def tables(self) -> Tables:
        """Both tables."""
        random = np.random.default_rng(_SEED)
        x = random.uniform(-1, 1, (self.others, self.inputs))
        if self.heaps:
            x = np.where(np.arange(self.others) % 2, 0.5, -0.5)[:, None] + random.normal(
                0, 0.05, x.shape
            )
        for column, kind in enumerate(self.kinds):
            if kind.levels is not None:
                used = len(kind.levels) - 1
                x[:, column] = np.minimum(np.floor((x[:, column] + 1) / 2 * used), used - 1)
        y: Array = 0.3 * np.sin(3 * x[:, : self.outputs])
        if self.classes:
            y = (y > 0).astype(np.float64)
        return Tables(
            np.array(self.a, dtype=np.float64),
            np.array(self.b, dtype=np.float64),
            np.hstack([x, y]),
            self.inputs,
        )

    def as_given(self, records: Array) -> tuple[NDArray[Any], Array | None]:
        """Records in codes as X and y that a user would give: words as words, missing ones None."""
        x: NDArray[Any] = records[:, : self.inputs]
        if self.kinds:
            x = np.empty(x.shape, dtype=object)
            for column, kind in enumerate(self.kinds):
                x[:, column] = kind.values(records[:, column])
        if self.outputs:
            return x, records[:, self.inputs]
        return x, None


_KERNEL = RBF(1.0, "fixed")
_TABLE: dict[str, Any] = {"by": [(0, [-1, 0, 1])], "mean": [1]}
_BINS: dict[str, Any] = {"bins": 16, "kernel": _KERNEL, "learn_kernel": False, "noise": 0.5}
_STAGES: dict[str, Any] = {"basis": 4, "learn_kernel": False, "stages": 6, "kernel": _KERNEL}
_INPUTS: dict[str, Any] = {"basis": 4, "learn_kernel": False, "stages": 12}
_LABELS: dict[str, Any] = {"kernel": _KERNEL, "learn_kernel": False, "noise": 0.5, "stages": 4}
_BY_WORD: dict[str, Any] = {"by": [0], "mean": [1]}
_NO_KERNEL: dict[str, Any] = {"learn_kernel": False, "noise": 0.5}
_WORD_STAGES: dict[str, Any] = {"basis": 3, "learn_kernel": False, "stages": 6}

_MISSING = math.nan
_NUMBER = Number(-1.0, 1.0)
_WORDS = Words(("u", "v", "w"))  # others have the first two: position 2 is a record's alone

# mean, histogram: opposite corners. table: the highest value in one of two cells. covariance: (1,
# a) and (1, b) are orthogonal, so that aaᵀ and bbᵀ are too. bins: the highest output, in one of
# two of the bins; bins-labels: the highest and the lowest output in one bin. gp: an input where
# features have their full length, and outputs that are clipped on both sides in every stage; gp-
# inputs: with no kernel, so that inputs are counted first, which both ends of the box move.
# classifier: the same for classes. gp-labels: both ends of the label's range at one input.
# mixture, kmeans, factors: corners that are orthogonal, and so many records that all stages are
# reached. -words: a record that is the only one of its level is replaced by one of a level that
# others have, and its numbers move as above; mixture-classes: words alone, so that components are
# latent classes. -missing: a complete record is replaced by an incomplete one, which adds nothing.
# Where two rows may be orthogonal that is 1/√2 of the sensitivity, and no incomplete record can do
# more; a mean and a cell of a table count their values, and move by all of it.
PAIRS = {
    "mean": Pair("PrivateMean", (1, 1), (-1, -1), pure=True),
    "histogram": Pair("PrivateHistogram", (1, 1), (-1, -1), pure=True),
    "covariance": Pair("PrivateCovariance", (1, 1, 1), (-1, -1, 1)),
    "table": Pair("PrivateTable", (1, 1), (-1, 1), options=_TABLE, pure=True),
    "bins": Pair("BinnedGPRegressor", (-0.5, 1), (0.5, 1), 1, options=_BINS, pure=True),
    "bins-labels": Pair(
        "BinnedGPRegressor", (-0.5, 1), (-0.5, -1), 1, options={**_BINS, "protect": "labels"}
    ),
    "mixture": Pair(
        "GaussianMixture",
        (1, 1, 1),
        (-1, 1, -1),
        options={"n_components": 2},
        others=2000,
        heaps=True,
    ),
    "gp": Pair("GPRegressor", (1, 9), (1, -9), 1, options=_STAGES, others=40),
    "gp-inputs": Pair("GPRegressor", (-1, -1, -1, 9), (1, 1, 1, 9), 1, options=_INPUTS, others=40),
    "kmeans": Pair("KMeans", (1, 1), (-1, -1), options={"n_clusters": 2}, others=2000, heaps=True),
    "factors": Pair(
        "FactorAnalysis", (1, 1), (1, -1), options={"n_components": 1}, others=100, heaps=True
    ),
    "components": Pair("PCA", (1, 1), (1, -1), options={"n_components": 1}, others=100, heaps=True),
    "classifier": Pair("GPClassifier", (-0.75, 1), (-0.25, 0), 1, 2, _STAGES, others=40),
    "classifier-inputs": Pair(
        "GPClassifier", (-1, -1, -1, 0), (1, 1, 1, 0), 1, 2, _INPUTS, others=40
    ),
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

_LATENT: dict[str, Any] = {"options": {"n_components": 2}, "others": 2000, "heaps": True}
_CLUSTERS: dict[str, Any] = {"options": {"n_clusters": 2}, "others": 2000, "heaps": True}
_FACTORS: dict[str, Any] = {"options": {"n_components": 1}, "others": 100, "heaps": True}
_BOTH = (_NUMBER, _WORDS)
PAIRS |= {
    "mean-missing": Pair("PrivateMean", (1, 1), (_MISSING, _MISSING), pure=True),
    "histogram-words": Pair(
        "PrivateHistogram", (2, 1), (0, -1), kinds=(_WORDS, _NUMBER), pure=True
    ),
    "table-words": Pair(
        "PrivateTable", (2, 1), (0, 1), options=_BY_WORD, kinds=(_WORDS, _NUMBER), pure=True
    ),
    "table-missing": Pair(
        "PrivateTable", (2, 1), (2, _MISSING), options=_BY_WORD, kinds=(_WORDS, _NUMBER), pure=True
    ),
    "bins-words": Pair(
        "BinnedGPRegressor", (2, 1), (0, 1), 1, options=_NO_KERNEL, kinds=(_WORDS,), pure=True
    ),
    "mixture-words": Pair("GaussianMixture", (1, 2), (-1, 0), kinds=_BOTH, **_LATENT),
    "mixture-classes": Pair("GaussianMixture", (2,) * 3, (0,) * 3, kinds=(_WORDS,) * 3, **_LATENT),
    "mixture-missing": Pair("GaussianMixture", (1, 2), (_MISSING, 2), kinds=_BOTH, **_LATENT),
    "kmeans-words": Pair("KMeans", (1, 2), (-1, 0), kinds=_BOTH, **_CLUSTERS),
    "kmeans-missing": Pair("KMeans", (1, 2), (1, _MISSING), kinds=_BOTH, **_CLUSTERS),
    "factors-words": Pair(
        "FactorAnalysis", (1, 1, 2), (1, -1, 0), kinds=(_NUMBER, *_BOTH), **_FACTORS
    ),
    "gp-words": Pair(
        "GPRegressor", (2, 9), (0, -9), 1, options=_WORD_STAGES, kinds=(_WORDS,), others=40
    ),
    "gp-missing": Pair(
        "GPRegressor", (2, 9), (_MISSING, 9), 1, options=_WORD_STAGES, kinds=(_WORDS,), others=40
    ),
    "classifier-words": Pair(
        "GPClassifier", (2, 1), (0, 1), 1, 2, _WORD_STAGES, kinds=(_WORDS,), others=40
    ),
    "gp-labels-words": Pair(
        "LabelGPRegressor",
        (2, 1),
        (2, -1),
        1,
        options={**_NO_KERNEL, "stages": 4},
        kinds=(_WORDS,),
    ),
    "gp-labels-missing": Pair("LabelGPRegressor", (0.5, 1), (0.5, _MISSING), 1, options=_LABELS),
}


class Attack(Protocol):
    """Calls a public method once, and attacks all that it releases."""

    def run(self, *, with_a: bool) -> Run: ...


class FitAttack:
    """The attack on a model that is fitted to a table."""

    def __init__(self, pair: Pair, *, epsilon: float, delta: float, limit: float) -> None:
        self._estimator = pair.estimator(epsilon, delta)
        self._tables = pair.tables()
        self._limit = limit
        self._pair = pair

    def run(self, *, with_a: bool) -> Run:
        """Fit once, and go through ``learn`` again with what was released."""
        model = clone(self._estimator).fit(*self._pair.as_given(self._tables.whole(with_a=with_a)))
        witness = Witness(model.releases_, self._tables)
        witness.watch(clone(self._estimator))
        faults = list(witness.faults)
        if model.guarantee_.epsilon > self._estimator.epsilon * (1 + 1e-9):
            faults.append(f"the guarantee of the fit is ε = {model.guarantee_.epsilon:.4g}")
        return Run.of(
            witness.seen,
            with_a=with_a,
            released=len(model.releases_),
            limit=self._limit,
            faults=faults,
        )


def named_attacks(word: str, delta: float) -> list[str]:
    """Give the attacks that a word of the command line means."""
    names = [*PAIRS, *STEPWISE]
    if word == "all":
        return [name for name in names if delta > 0 or _pure(name)]
    if word not in names:
        raise BadInput(
            f"There is no model {word!r} to audit. Give one of {', '.join(names)}, or all."
        )
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
    if name in BANDITS:
        return "JointBandit"
    return PAIRS[name].model


def audit(
    names: Sequence[str],
    *,
    epsilon: float,
    delta: float,
    effort: Effort = FULL,
    advance: Callable[[int], None] = lambda steps: None,
) -> list[Finding]:
    """Attack each of the named models at the promise (ε, δ).

    ``advance`` counts ``effort.most`` runs for each.
    """
    epsilon, delta = check_epsilon_delta(epsilon, delta, pure=True)
    findings = []
    for name in names:
        if name == SEARCH:
            loss = SearchAttack.loss
        else:
            loss = 1.0
        evidence = Evidence(name, estimator_of(name), epsilon=epsilon, delta=delta, loss=loss)
        attack = _attack(name, epsilon, delta, evidence.limit)
        begun = time.process_time()
        with warnings.catch_warnings():
            warnings.filterwarnings(
                "ignore", "delta = ", UserWarning
            )  # large on purpose: few runs can test it
            while not effort.enough(evidence, time.process_time() - begun):
                evidence.add(attack.run(with_a=len(evidence.runs) % 2 == 0))
                advance(1)
        advance(effort.most - len(evidence.runs))  # those that were not needed
        findings.append(evidence.finding())
    return findings


def _attack(name: str, epsilon: float, delta: float, limit: float) -> Attack:
    if name == SEARCH:
        return SearchAttack(epsilon=epsilon, delta=delta)
    if name in BANDITS:
        return BanditAttack(name, epsilon=epsilon, delta=delta, limit=limit)
    return FitAttack(PAIRS[name], epsilon=epsilon, delta=delta, limit=limit)
