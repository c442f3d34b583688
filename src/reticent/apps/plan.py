"""``reticent.plan``: which error to expect from which ε and how many records, before any record is read.

Draws functions from the model's own prior, makes up records of them, fits these exactly as real ones would be fitted, and looks
how far off the fits are. The same functions, inputs and noise serve every ε, and the same functions every n, so that curves are
smooth.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from reticent.apps.planner import Planner, Trial
from reticent.errors import BadInput
from reticent.models.gp import GPRegressor

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Answer", "Plan", "Row", "plan"]

_NO_PRIVACY = 1e6  # as an ε: its noise is far below that of the records
_MUCH = 0.05
_FEWEST_RECORDS, _MOST_RECORDS = 10, 10**8
_NEAR = 4  # a straight line on logarithmic paper serves between numbers of records within this factor


@dataclass(frozen=True)
class Row:
    """What to expect at one ε and one number of records, on average over functions from the prior; in the output's units."""

    epsilon: float
    n: int
    basis: int  # basis functions
    stages: int  # releases
    rmse: float  # of the fitted function to the true one
    rmse_se: float  # how uncertain that is, because only some functions were drawn
    output_error: float  # of a single output to the fitted function
    coverage: float  # how much of the true function lies in 95 % bands
    non_private_rmse: float
    prior_sd: float  # the error of a guess without any record


class Answer(NamedTuple):
    """A number, or None with the reason."""

    value: float | None
    reason: str


@dataclass(frozen=True)
class Plan:
    """What to expect: ``rows``, one for each n and ε; ``noise``, the spread of outputs that was assumed; ``notes``."""

    rows: tuple[Row, ...]
    noise: float
    draws: int
    notes: tuple[str, ...]
    planner: Planner = field(repr=False, compare=False)

    def epsilon_for(self, rmse: float, *, n: int | None = None) -> Answer:
        """The smallest ε at which the function's expected error is ``rmse``, between the values that were planned."""
        _check_error(rmse)
        sizes = sorted({row.n for row in self.rows})
        if n is None and len(sizes) > 1:
            raise BadInput(f"This plan is for several numbers of records: say which, for example n={sizes[-1]}.")
        rows = sorted((row for row in self.rows if row.n == (n or sizes[0])), key=lambda row: row.epsilon)
        if not rows:
            raise BadInput(f"This plan is not for n={n}: it is for {', '.join(f'n={size}' for size in sizes)}.")
        value = _crossing([row.epsilon for row in rows], [row.rmse for row in rows], rmse)
        if value is not None:
            return Answer(value, "" if value > rows[0].epsilon else "the smallest that was planned: less may do")
        floor = rows[-1].non_private_rmse
        if rmse <= floor:
            return Answer(None, f"even without privacy, {rows[0].n:,} records leave an error of {floor:.3g}")
        return Answer(None, f"it needs more than ε={rows[-1].epsilon:g}, the largest that was planned")

    def records_for(self, rmse: float, epsilon: float) -> Answer:
        """About how many records bring the function's expected error down to ``rmse``; simulates what was not planned."""
        _check_error(rmse)
        _numbers("epsilon", epsilon)
        found = {row.n: row.rmse for row in self.rows if row.epsilon == epsilon}
        size: int | None = max(found, default=self.rows[0].n)
        while size is not None:
            if size not in found:
                found[size] = float(np.mean([trial.rmse for trial in self.planner.expect(size, [epsilon])[0]]))
            size = _next_size(found, rmse)
        sizes = sorted(found)
        value = _crossing(sizes, [found[one] for one in sizes], rmse)
        if value is None:
            return Answer(None, f"{sizes[-1]:,} records still leave an error of {found[sizes[-1]]:.3g}")
        return Answer(float(math.ceil(value)), "")

    def figure(self) -> "Figure":
        """Draw the expected error against ε, with what no privacy would give."""
        from reticent.apps.plots import expected_error

        return expected_error(self)

    def __str__(self) -> str:
        lines = [f"{'n':>11} {'ε':>7} {'error of the function':>23} {'of one output':>14} {'in 95 % bands':>14}"]
        for row in self.rows:
            error = f"{row.rmse:.3g} ± {row.rmse_se:.1g}"
            lines.append(f"{row.n:>11,} {row.epsilon:>7g} {error:>23} {row.output_error:>14.3g} {row.coverage:>14.0%}")
        return "\n".join(lines)

    def for_machines(self) -> dict[str, Any]:
        """Everything as plain values."""
        rows = [asdict(row) for row in self.rows]
        return {"rows": rows, "noise": self.noise, "draws": self.draws, "notes": list(self.notes)}


def plan(
    model: GPRegressor,
    n: int | Sequence[int],
    epsilons: Sequence[float] = (0.1, 0.3, 1, 3, 10),
    draws: int = 20,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Plan:
    """Simulate which error to expect from a model, for each number of records and each ε. No record is read, nothing is charged.

    The truth is drawn from the model's own prior: its kernel, with hyperparameters from the range that ``learn_kernel`` may
    choose from, among functions that stay inside the output's bounds; inputs are spread evenly over their bounds; outputs spread
    by ``model.noise`` around the function. Real functions can be smoother or rougher than that.

    Parameters
    ----------
    model : GPRegressor
        With bounds; its ε is not used, and δ is 1e-6 if it has none.
    n : int or list of int
        Number of records, which is public.
    epsilons : list of float
        Values of ε to compare.
    draws : int
        Functions that are drawn; the standard error falls with its square root.
    seed : int
        Of the functions and the made-up records.
    progress : callable, optional
        Called with the number of fits that were made since the last call.

    Examples
    --------
    >>> import reticent
    >>> model = reticent.GPRegressor(bounds=reticent.Bounds(x=[(0, 110)], y=(2, 150)), basis=6, stages=2)
    >>> plan = reticent.plan(model, n=2000, epsilons=[0.1, 10], draws=2)
    >>> [row.epsilon for row in plan.rows], plan.rows[0].rmse > plan.rows[1].rmse
    ([0.1, 10.0], True)
    """
    sizes = _numbers("n", n)
    if any(size != int(size) or size < 2 for size in sizes):
        raise BadInput(f"n must be whole numbers of records, at least 2, not {n!r}.")
    chosen = _numbers("epsilons", epsilons)
    if isinstance(draws, bool) or not isinstance(draws, (int, np.integer)) or draws < 1:
        raise BadInput(f"draws must be a whole number, at least 1, not {draws!r}.")
    planner = Planner(model, int(draws), seed, progress or (lambda fits: None))
    rows, notes = [], []
    for size in map(int, sizes):
        *found, free = planner.expect(size, [*chosen, _NO_PRIVACY])
        rows += [_row(epsilon, size, trials, free) for epsilon, trials in zip(chosen, found, strict=True)]
        if size * planner.delta >= 1:
            notes.append(f"delta = {planner.delta:g} is not below 1/n = {1 / size:.2g}: take it well below.")
    if planner.outside > _MUCH:
        notes.append(
            f"{planner.outside:.0%} of the functions drawn from this kernel lies outside the output's bounds: give wider bounds, "
            "or amplitudes in the units of y."
        )
    return Plan(tuple(rows), planner.noise, int(draws), tuple(notes), planner)


def _row(epsilon: float, n: int, trials: Sequence[Trial], without_privacy: Sequence[Trial]) -> Row:
    means = Trial(*np.mean(trials, axis=0).tolist())
    spread = float(np.std([trial.rmse for trial in trials], ddof=1)) if len(trials) > 1 else 0.0
    return Row(
        epsilon=epsilon,
        n=n,
        basis=trials[0].basis,
        stages=trials[0].stages,
        rmse=means.rmse,
        rmse_se=spread / math.sqrt(len(trials)),
        output_error=means.output_error,
        coverage=means.coverage,
        non_private_rmse=float(np.mean([trial.rmse for trial in without_privacy])),
        prior_sd=means.guess,
    )


def _crossing(at: Sequence[float], errors: Sequence[float], target: float) -> float | None:
    """Where errors first come down to the target; between points, straight on logarithmic paper."""
    for i, error in enumerate(errors):
        if error <= target:
            if i == 0:
                return float(at[0])
            before = errors[i - 1]
            share = math.log(before / target) / math.log(before / error)
            return float(at[i - 1] * (at[i] / at[i - 1]) ** share)
    return None


def _next_size(found: dict[int, float], target: float) -> int | None:
    """Which number of records to try next, to find where errors come down to the target; None when that is known."""
    sizes = sorted(found)
    value = _crossing(sizes, [found[one] for one in sizes], target)
    if value is None:
        if sizes[-1] >= _MOST_RECORDS:
            return None
        # errors fall with 1/√n, or faster; not by more than a factor of 30 at a time, since that may be wrong
        farther = sizes[-1] * min(max((found[sizes[-1]] / target) ** 2, 2), 30)
        return min(math.ceil(farther), _MOST_RECORDS)
    if value == sizes[0]:
        return max(sizes[0] // 10, _FEWEST_RECORDS) if sizes[0] > _FEWEST_RECORDS else None
    below, above = max(one for one in sizes if one < value), min(one for one in sizes if one >= value)
    return math.ceil(math.sqrt(below * above)) if above > _NEAR * below else None


def _check_error(rmse: float) -> None:
    if not (isinstance(rmse, (int, float, np.number)) and 0 < rmse < math.inf):
        raise BadInput(f"The error to reach must be a positive number, in the units of the output, not {rmse!r}.")


def _numbers(name: str, given: Any) -> list[float]:
    values = list(given) if np.ndim(given) else [given]
    numbers = [
        v for v in values if isinstance(v, (int, float, np.number)) and not isinstance(v, bool) and 0 < v < math.inf
    ]
    if not numbers or len(numbers) < len(values):
        raise BadInput(f"{name} must be one or more positive numbers, not {given!r}.")
    return [float(v) for v in numbers]
