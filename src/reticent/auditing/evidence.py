"""What runs of an attack prove, and what they could have found.

Three kinds of evidence, each sound by itself, decide that a promise is violated:

    for certain     a release moves farther than its stated sensitivity, or the stated noise of all
                    releases together is less than was promised, or two runs have the same noise
    noise           numbers minus exact sums, in stated noise scales, are standard normal (or
                    Laplace): Σz² ~ χ² (Σ|z| ~ Gamma). Less than that, in one release of the fit, in
                    all together or along the difference of A and B, at a level of 1e-6 in all
    any mechanism   the likelihood ratio of A against B; a threshold from half of the runs, true and
                    false alarms from the other half (Clopper and Pearson, one in a million):
                    ε ≥ log((TPR_low − δ) / FPR_high) whatever the noise is

The second has far more power than the third, and its power is known beforehand: with noise f times
as large as stated, Σz²/f² ~ χ². `Finding.power` gives it for the release that is tested least.
"""

import math
from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, gammainc, gammaincinv

from reticent.auditing.attacker import Run
from reticent.privacy.accounting.composition import calibrate, epsilon
from reticent.privacy.accounting.events import Gaussian

__all__ = ["FACTORS", "Evidence", "Finding", "lower_bound"]

Array = NDArray[np.float64]
FACTORS = (0.5, 0.7, 0.9)  # of the stated noise: what an audit says whether it would have found
_CONFIDENCE = 0.95
_NORMAL_CONFIDENCE = 0.999
_LEVEL = 1e-6  # an alarm should not be an accident
_THRESHOLDS = 40
_CAUTIOUS = 0.9999  # in the choice of a threshold: those with few alarms look better than they are
_DIGITS = 9  # after the point, of noise in stated scales, in which two runs are compared
_FAR = 1.25  # noise that is larger than stated by so much: the sums are not what they should be


@dataclass(frozen=True)
class Finding:
    """What an audit of one model found.

    Attributes
    ----------
    model, estimator : str
        Name of the attack, and the class whose public method was called.
    epsilon, delta : float
        The promise.
    runs : int
        Calls of the public method, half of them with table A.
    attacked, released : int
        How many of the releases of one call were attacked, and how many there are.
    shift : float
        How far the two tables move all releases together, as a share of what was promised.
    noise : float
        Measured standard deviation of the noise, as a multiple of the stated one.
    shown_normal, shown : float
        ε that the attack proves: if noise is normal and equally large in all releases (99.9 %; None
        where that does not apply), and whatever the mechanism is (95 %). A bound far below the
        promise means that runs are few.
    power : dict
        For each factor f, the probability that noise of f times the stated scale, in any one of the
        releases, would have been found.
    faults : tuple of str
        Why the promise is violated, if it is.
    """

    model: str
    estimator: str
    epsilon: float
    delta: float
    runs: int
    attacked: int
    released: int
    shift: float
    noise: float
    shown_normal: float | None
    shown: float
    power: dict[float, float]
    faults: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """``violated``, ``holds`` (as far as these runs can tell) or ``too few runs``.

        It holds only if half the noise, in any one release, would have been found with a
        probability of 95 %, and the two tables use more than half of the shift that was promised.
        """
        if self.faults:
            return "violated"
        enough = self.power[0.5] >= _CONFIDENCE and self.shift > 0.5
        if enough:
            return "holds"
        return "too few runs"


class Evidence:
    """Collects runs of one attack on the promise (ε, δ).

    ``loss``: if all noise shrinks by a factor, the numbers of `Run.noise` shrink by at most
    ``loss`` times that factor.
    """

    def __init__(
        self, model: str, estimator: str, *, epsilon: float, delta: float, loss: float = 1.0
    ) -> None:
        self._loss = loss
        self.model = model
        self.estimator = estimator
        self.epsilon = epsilon
        self.delta = delta
        self.runs: list[Run] = []

    @property
    def limit(self) -> float:
        """The shift that was promised for all releases together: μ, or ε for Laplace noise."""
        if self.delta == 0:
            return self.epsilon
        return 1 / calibrate(self.epsilon, self.delta)

    def add(self, run: Run) -> None:
        """Take in one more run."""
        self.runs.append(run)

    def power(self, factor: float) -> float:
        """Power: the probability of finding noise of ``factor`` times the stated scale."""
        if not self.runs:
            return 0.0
        shape, rate = self._gamma()
        powers = []
        for numbers in self._slots().values():
            least = gammaincinv(shape * numbers.size, self._level())
            powers.append(
                float(gammainc(shape * numbers.size, least / min(self._loss * factor, 1.0) ** rate))
            )
        return min(powers)

    def finding(self) -> Finding:
        """Judge all runs together."""
        runs = self.runs
        noise = np.concatenate([one for run in runs for one in run.noise])
        along = np.array([run.along for run in runs])
        shift = float(np.mean([run.shift for run in runs]))
        shown, sure = self._any_mechanism()
        faults = [fault for run in runs for fault in run.faults]
        faults += self._repeated()
        faults += self._noise_faults(noise, along)
        if sure > self.epsilon:
            faults.append(f"an attack shows ε ≥ {sure:.2f} whatever the noise is")
        return Finding(
            model=self.model,
            estimator=self.estimator,
            epsilon=self.epsilon,
            delta=self.delta,
            runs=len(runs),
            attacked=min(run.attacked for run in runs),
            released=min(run.released for run in runs),
            shift=shift / self.limit,
            noise=self._measured(noise),
            shown_normal=self._shown_normal(shift, noise),
            shown=shown,
            power={factor: self.power(factor) for factor in FACTORS},
            faults=tuple(dict.fromkeys(faults)),
        )

    def _gamma(self) -> tuple[float, int]:
        """Shape, for each number, of the Gamma distribution of Σz²/2 or Σ|z|.

        And the power of the scale in it.
        """
        if self.runs[0].laplace:
            return (1.0, 1)
        return (0.5, 2)

    def _energy(self, numbers: Array) -> float:
        if self.runs[0].laplace:
            return float(np.abs(numbers).sum())
        return float(numbers @ numbers) / 2

    def _slots(self) -> dict[int, Array]:
        """The noise of the first, second, … release in all runs.

        The last slot has what some runs lack.
        """
        last = min(len(run.noise) for run in self.runs) - 1
        slots = defaultdict[int, list[Array]](list)
        for run in self.runs:
            for number, noise in enumerate(run.noise):
                slots[min(number, last)].append(noise)
        return {number: np.concatenate(some) for number, some in slots.items()}

    def _level(self) -> float:
        """Of each of the tests: of every release, of all together, and along the difference."""
        return _LEVEL / (min(len(run.noise) for run in self.runs) + 2)

    def _measured(self, numbers: Array) -> float:
        shape, rate = self._gamma()
        return float((self._energy(numbers) / (shape * numbers.size)) ** (1 / rate))

    def _noise_faults(self, noise: Array, along: Array) -> list[str]:
        shape, rate = self._gamma()
        level = self._level()
        tested = {f"release {number + 1}": one for number, one in self._slots().items()}
        tested["all releases together"] = noise
        if np.isfinite(along).all():
            tested["along the difference of the two tables"] = along
        faults = []
        for where, numbers in tested.items():
            size = shape * numbers.size
            if gammainc(size, self._energy(numbers)) < level:
                faults.append(
                    f"{where}: the noise is {self._measured(numbers):.2f} of what is stated"
                )
            most = gammaincinv(size, 1 - level)
            if self._energy(numbers) > most * _FAR**rate:
                faults.append(
                    f"{where}: the numbers are farther from the exact sums than noise explains"
                )
        return faults

    def _repeated(self) -> list[str]:
        """Releases whose noise is that of another run, where that is no accident."""
        runs = self.runs
        first = {np.round(np.concatenate(run.noise), 6).tobytes() for run in runs}
        if len(runs) > 1 and len(first) == 1:
            return ["the noise is the same in all runs"]
        faults = []
        for number in range(min(len(run.bits) for run in runs)):
            noise = [np.round(run.noise[number], _DIGITS) + 0.0 for run in runs]
            seen_bits = _DIGITS * math.log2(10) * min(one.size for one in noise)
            bits = min(seen_bits, *(run.bits[number] for run in runs))
            again = len(noise) - len({one.tobytes() for one in noise})
            if again and len(runs) ** 2 / 2 * 2.0**-bits < _LEVEL:
                faults.append(
                    f"release {number + 1}: {again} of {len(runs)} runs have "
                    "the noise of another run"
                )
        return faults

    def _shown_normal(self, shift: float, noise: Array) -> float | None:
        if not self.runs[0].normal:
            return None
        least = gammaincinv(noise.size / 2, 1 - _NORMAL_CONFIDENCE)
        most = math.sqrt(self._energy(noise) / least)  # of the noise, in stated scales
        mu = shift / most
        if mu > 0:
            return epsilon(Gaussian(noise_multiplier=1 / mu), self.delta)
        return 0.0

    def _any_mechanism(self) -> tuple[float, float]:
        """Lower bounds on ε that hold for any mechanism: with 95 %, and almost certainly."""
        here, there = (
            np.round([run.log_ratio for run in self.runs if run.with_a is with_a], 9)
            for with_a in (True, False)
        )
        count = min(len(here), len(there))
        half = count // 2
        rest = count - half
        if half < 1:
            return 0.0, 0.0
        trials = [
            (here[:count], there[:count]),
            (-there[:count], -here[:count]),
        ]  # bet on A, or on B
        best = -math.inf
        chosen = trials[0]
        threshold = 0.0
        for guess, other in trials:
            pooled = np.concatenate([guess[:half], other[:half]])
            for t in np.quantile(pooled, np.linspace(0, 1, _THRESHOLDS, endpoint=False)):
                hits = int((guess[:half] > t).sum())
                alarms = int((other[:half] > t).sum())
                bound = lower_bound(hits, alarms, half, self.delta, _CAUTIOUS)
                if bound > best:
                    best = bound
                    chosen = (guess, other)
                    threshold = float(t)
        hits, alarms = (int((scores[half:] > threshold).sum()) for scores in chosen)
        levels = (_CONFIDENCE, 1 - _LEVEL)
        shown, sure = (
            max(lower_bound(hits, alarms, rest, self.delta, level), 0.0) for level in levels
        )
        return shown, sure


def lower_bound(hits: int, alarms: int, runs: int, delta: float, confidence: float) -> float:
    """Bound ε from below by an attacker's ``hits`` and false ``alarms`` in as many ``runs`` each.

    −inf if they say nothing. Clopper and Pearson: exact for any mechanism.
    """
    tail = (1 - confidence) / 2
    if hits:
        hit_rate = float(betaincinv(hits, runs - hits + 1, tail))
    else:
        hit_rate = 0.0
    if alarms < runs:
        alarm_rate = float(betaincinv(alarms + 1, runs - alarms, 1 - tail))
    else:
        alarm_rate = 1.0
    if hit_rate <= delta:
        return -math.inf
    return math.log((hit_rate - delta) / alarm_rate)
