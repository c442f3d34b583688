"""``reticent.plan``.

Which error to expect from which ε, how many records and which basis, before any record is read.
Draws functions from the model's own prior, makes up records of them, fits these exactly as real
ones would be fitted, and looks how far off the fits are. The same functions, inputs and noise serve
every ε and every basis, and the same functions every n, so that curves are smooth.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from reticent.errors import BadInput
from reticent.models.gp.regressor import GPRegressor
from reticent.planning.simulated_fits import NO_PRIVACY, Planner, Trial
from reticent.validation import as_float, check_integer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Answer", "Plan", "Row", "plan"]

Number = TypeVar("Number", int, float)

_MUCH = 0.05
_MOST_FUNCTIONS = 500
_FEWEST_RECORDS = 10
_MOST_RECORDS = 10**8
_NEAR = (
    4  # a straight line on logarithmic paper serves between numbers of records within this factor
)


@dataclass(frozen=True)
class Row:
    """Expected error at one ε, number of records and basis, in the output's units.

    On average over functions from the prior.
    """

    epsilon: float
    n: int
    basis: int  # number of basis functions
    stages: int  # releases
    rmse: float  # of the fitted function to the true one
    rmse_se: float  # how uncertain that is, because only some functions were drawn
    output_error: float  # of a single output to the fitted function
    coverage: float  # how much of the true function lies in 95 % bands
    non_private_rmse: float
    prior_sd: float  # the error of a guess without any record
    rmse_least: float  # of the functions that were drawn: some are easier than others
    rmse_most: float


class Answer(NamedTuple):
    """A number, or None; and why it is this one, or why there is none."""

    value: float | None
    reason: str


@dataclass(frozen=True)
class Plan:
    """Expected errors: ``rows``, one for each n, basis and ε.

    ``noise``: the standard deviation of outputs that was assumed. ``notes``: what to know besides.

    ``bases``: those that are compared; None is the one that a fit chooses from ε, δ and n. Where
    there are several, questions are answered for the best of them.
    """

    rows: tuple[Row, ...]
    noise: float
    draws: int
    notes: tuple[str, ...]
    planner: Planner = field(repr=False, compare=False)
    bases: tuple[int | None, ...] = (None,)
    trials: tuple[tuple[Trial, ...], ...] = field(
        default=(), repr=False, compare=False
    )  # row by row, function by function

    def epsilon_for(self, rmse: float, *, n: int | None = None) -> Answer:
        """Give the smallest ε at which the function's expected error is ``rmse``.

        Between the values that were planned.
        """
        _check_error(rmse)
        sizes = sorted({row.n for row in self.rows})
        if n is None and len(sizes) > 1:
            raise BadInput(
                "This plan is for several numbers of records: say which, for "
                f"example n={sizes[-1]}."
            )
        size = n or sizes[0]
        if size not in sizes:
            raise BadInput(
                f"This plan is not for n={n}: it is for {', '.join(f'n={one}' for one in sizes)}."
            )
        errors = dict(
            sorted(_best((row.epsilon, row.rmse) for row in self.rows if row.n == size).items())
        )
        value = _crossing(errors, rmse)
        if value is not None:
            return Answer(
                value,
                _why(errors, value, "ε={:g} leaves")
                or "the smallest that was planned: less may do",
            )
        floor = min(row.non_private_rmse for row in self.rows if row.n == size)
        most = max(errors)
        if rmse <= floor:
            return Answer(
                None, f"even without privacy, {size:,} records leave an error of {floor:.3g}"
            )
        return Answer(
            None,
            f"ε={most:g}, the largest that was planned, leaves {errors[most]:.3g}: it needs more",
        )

    def records_for(self, rmse: float, epsilon: float) -> Answer:
        """About how many records bring the function's expected error down to ``rmse``.

        Simulates what was not planned.
        """
        _check_error(rmse)
        _positive_numbers("epsilon", epsilon)
        found = _best((row.n, row.rmse) for row in self.rows if row.epsilon == epsilon)
        size: int | None = int(max(found, default=self.rows[0].n))
        while size is not None:
            if size not in found:
                tried = [self.planner.expect(size, [epsilon], basis)[0] for basis in self.bases]
                found[size] = min(float(np.mean([trial.rmse for trial in one])) for one in tried)
            size = _next_size(found, rmse)
        errors = dict(sorted(found.items()))
        value = _crossing(errors, rmse)
        if value is None:
            return Answer(
                None, f"{max(errors):,} records still leave an error of {errors[max(errors)]:.3g}"
            )
        return Answer(float(math.ceil(value)), _why(errors, value, "{:,} records leave"))

    def figure(self) -> "Figure":
        """Draw the expected error against ε, with what no privacy would give."""
        from reticent.planning.figure import expected_error

        return expected_error(self)

    def __str__(self) -> str:
        lines = [
            f"{'n':>11} {'basis':>6} {'ε':>7} {'error of the mean':>22} {'of one output':>14} "
            f"{'in 95 % bands':>14}"
        ]
        for row in self.rows:
            error = f"{row.rmse:.3g} ± {row.rmse_se:.1g}"
            inside = f"{row.coverage:.0%}"
            lines.append(
                f"{row.n:>11,} {row.basis:>6} {row.epsilon:>7g} {error:>22} "
                f"{row.output_error:>14.3g} {inside:>14}"
            )
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
    *,
    basis: int | Sequence[int] | None = None,
    weight: float = 1.0,
) -> Plan:
    """Simulate which error to expect from a model, for each n, ε and basis.

    No record is read, nothing is charged. The truth is drawn from the model's own prior: its
    kernel, with hyperparameters from the range that ``learn_kernel`` may choose from, among
    functions that stay inside the output's bounds; inputs are spread evenly over their bounds;
    outputs spread by ``model.noise`` around the function. Real functions can be smoother or rougher
    than that.

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
    basis : int or list of int, optional
        Numbers of basis functions to compare. Default: the model's own, which is chosen from ε, δ
        and n where it is not given.
    weight : float
        How much a person or record counts on average, at most 1, where the model has
        ``contribution`` above 1 or ``weight``: less total weight under the same noise. With
        ``person``, n is the number of people, and each is made up with one record.

    Examples
    --------
    >>> import reticent
    >>> bounds = reticent.Bounds(x=[(0, 110)], y=(2, 150))
    >>> model = reticent.GPRegressor(bounds=bounds, basis=6, stages=2)
    >>> plan = reticent.plan(model, n=2000, epsilons=[0.1, 10], draws=2)
    >>> [row.epsilon for row in plan.rows], plan.rows[0].rmse > plan.rows[1].rmse
    ([0.1, 10.0], True)
    """
    sizes = _positive_numbers("n", n)
    if any(size != int(size) or size < 2 for size in sizes):
        raise BadInput(f"n must be whole numbers of records, at least 2, not {n!r}.")
    chosen = _positive_numbers("epsilons", epsilons)
    check_integer("draws", draws)
    if not 0 < as_float(weight) <= 1:
        raise BadInput(f"weight must be above 0 and at most 1, not {weight!r}.", parameter="weight")
    bases = _bases(model, basis)
    planner = Planner(model, int(draws), seed, progress or (lambda fits: None), float(weight))
    rows = []
    notes = []
    trials = []
    for size in map(int, sizes):
        for functions in bases:
            *found, free = planner.expect(size, [*chosen, NO_PRIVACY], functions)
            rows += [
                _mean_row(epsilon, size, one, free)
                for epsilon, one in zip(chosen, found, strict=True)
            ]
            trials += [tuple(one) for one in found]
        if size * planner.delta >= 1:
            notes.append(
                f"delta = {planner.delta:g} is not below 1/n = {1 / size:.2g}: take it well below."
            )
    if planner.outside > _MUCH:
        notes.append(
            f"{planner.outside:.0%} of the functions drawn from this kernel lies outside the "
            "output's bounds: give wider bounds, or amplitudes in the units of y."
        )
    return Plan(tuple(rows), planner.noise, int(draws), tuple(notes), planner, bases, tuple(trials))


def _mean_row(
    epsilon: float, n: int, trials: Sequence[Trial], without_privacy: Sequence[Trial]
) -> Row:
    means = Trial(*np.mean(trials, axis=0).tolist())
    errors = [trial.rmse for trial in trials]
    if len(trials) > 1:
        spread = float(np.std(errors, ddof=1))
    else:
        spread = 0.0
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
        rmse_least=min(errors),
        rmse_most=max(errors),
    )


def _best(found: Iterable[tuple[Number, float]]) -> dict[Number, float]:
    """The smallest error at each place."""
    best: dict[Number, float] = {}
    for at, error in found:
        best[at] = min(error, best.get(at, math.inf))
    return best


def _crossing(errors: Mapping[Number, float], target: float) -> float | None:
    """Where errors, in the order of their places, first come down to the target.

    Straight on logarithmic paper between.
    """
    last: tuple[float, float] | None = None
    for at, error in errors.items():
        if error <= target:
            if last is None:
                return float(at)
            share = math.log(last[1] / target) / math.log(last[1] / error)
            return float(last[0] * (at / last[0]) ** share)
        last = float(at), error
    return None


def _why(errors: Mapping[Number, float], value: float, words: str) -> str:
    """The errors on both sides of an answer; nothing if there is only one side."""
    below = [at for at in errors if at < value]
    above = [at for at in errors if at >= value]
    if not below:
        return ""
    return (
        f"{words.format(below[-1])} {errors[below[-1]]:.3g}, {words.format(above[0])} "
        f"{errors[above[0]]:.3g}"
    )


def _next_size(found: Mapping[int, float], target: float) -> int | None:
    """Which number of records to try next, to find where errors come down to the target.

    None when that is known.
    """
    sizes = sorted(found)
    value = _crossing({one: found[one] for one in sizes}, target)
    if value is None:
        if sizes[-1] >= _MOST_RECORDS:
            return None
        # errors fall with 1/√n, or faster; not by more than a factor of 30 at a
        # time, since that may be wrong
        farther = sizes[-1] * min(max((found[sizes[-1]] / target) ** 2, 2), 30)
        return min(math.ceil(farther), _MOST_RECORDS)
    if value == sizes[0]:
        if sizes[0] > _FEWEST_RECORDS:
            return max(sizes[0] // 10, _FEWEST_RECORDS)
        return None
    below = max(one for one in sizes if one < value)
    above = min(one for one in sizes if one >= value)
    if above > _NEAR * below:
        return math.ceil(math.sqrt(below * above))
    return None


def _bases(model: Any, basis: Any) -> tuple[int | None, ...]:
    if basis is None:
        return (getattr(model, "basis", None),)
    chosen = _positive_numbers("basis", basis)
    if any(one != int(one) or one > _MOST_FUNCTIONS for one in chosen):
        raise BadInput(
            f"basis must be whole numbers of functions, from 1 to {_MOST_FUNCTIONS}, "
            f"not {basis!r}.",
            parameter="basis",
        )
    return tuple(map(int, chosen))


def _check_error(rmse: float) -> None:
    if not 0 < as_float(rmse) < math.inf:
        raise BadInput(
            "The error to reach must be a positive number, in the units of the "
            f"output, not {rmse!r}."
        )


def _positive_numbers(name: str, given: Any) -> list[float]:
    if np.ndim(given):
        values = list(given)
    else:
        values = [given]
    numbers = [as_float(v) for v in values]
    if not numbers or not all(0 < v < math.inf for v in numbers):
        raise BadInput(f"{name} must be one or more positive numbers, not {given!r}.")
    return numbers
