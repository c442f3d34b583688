"""A cell of the grid, what one trial of it gives, and a family of cells."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

__all__ = ["FREE", "Cell", "Family", "Trial", "generator", "grid", "ranks"]

Array = NDArray[np.float64]
FREE = 1e6  # ε of hardly any privacy noise: where an estimator must be the model without privacy


class Cell(NamedTuple):
    """One estimator at one data law, number of records and ε."""

    family: str
    model: str
    law: str
    n: int
    epsilon: float

    def __str__(self) -> str:
        return f"{self.model}, {self.law}, n={self.n:,}, ε={self.epsilon:g}"


def _nothing() -> Array:
    return np.empty(0)


@dataclass(frozen=True)
class Trial:
    """What one fit to fresh records gave.

    Attributes
    ----------
    loss : float
        How far the fit is from the truth.
    reference : float
        The same of the model without privacy, fitted to the same records by other code; NaN if
        none was fitted.
    truth, estimate, sd : arrays of shape (places,)
        The estimand, what the fit says of it, and the standard error that it states. Empty for
        estimators that state none.
    ranks : array of shape (few places,)
        Share of draws from the posterior that lie below the truth. Empty if there is none.
    resolution : float
        What rounding may change (a count, say, by 1). Where a standard error is smaller, an error
        up to this says nothing, and a larger one is measured in this.
    outputs : array of shape (thirds,)
        Share of fresh outputs in their 95 % intervals, in the lower, middle and upper third of the
        inputs: where noise differs, in quiet places and in noisy ones. Empty if none were drawn.
    """

    loss: float
    reference: float = float("nan")
    truth: Array = field(default_factory=_nothing)
    estimate: Array = field(default_factory=_nothing)
    sd: Array = field(default_factory=_nothing)
    ranks: Array = field(default_factory=_nothing)
    resolution: float = 1e-12
    outputs: Array = field(default_factory=_nothing)

    def __post_init__(self) -> None:
        answers = (self.truth, self.estimate, self.sd, self.ranks, self.outputs)
        if not all(np.isfinite(one).all() for one in (np.array([self.loss]), *answers)):
            raise ValueError("An answer that is not a number cannot be judged.")

    @property
    def z(self) -> Array:
        """Errors in stated standard errors, (places,); NaN where they say nothing."""
        error = self.estimate - self.truth
        rounded = (self.sd < self.resolution) & (np.abs(error) <= self.resolution)
        z = error / np.maximum(self.sd, self.resolution)
        return np.where(rounded, np.nan, z)


@dataclass(frozen=True)
class Family:
    """Estimators that are tried alike.

    Attributes
    ----------
    cells, quick : sequences of cells
        All of them, and a few for ``--quick``.
    trial : callable
        Draws records and fits, with a generator that is the same for all cells of a law.
    loss : str
        What the loss is.
    in_nats : bool
        Whether losses are compared by differences (of log-likelihoods) instead of ratios.
    negligible : float
        Differences of losses below this are never counted, as where both are nearly zero.
    """

    name: str
    cells: Sequence[Cell]
    quick: Sequence[Cell]
    trial: Callable[[Cell, np.random.Generator], Trial]
    loss: str
    in_nats: bool = False
    negligible: float = 0.0


def grid(
    family: str,
    models: Iterable[str],
    laws: Iterable[str],
    points: Sequence[tuple[int, float]],
) -> tuple[Cell, ...]:
    """All cells of some models, laws and pairs of n and ε."""
    laws = tuple(laws)
    return tuple(
        Cell(family, model, law, n, epsilon)
        for model in models
        for law in laws
        for n, epsilon in points
    )


def generator(cell: Cell, seed: int, repeat: int) -> np.random.Generator:
    """Give the generator of a trial.

    It depends on neither model, n nor ε, so that these are compared on the same truth and, for
    equal n, on the same records.
    """
    return np.random.default_rng([seed, repeat, crc32(f"{cell.family}: {cell.law}".encode())])


def ranks(draws: Array, truth: Array) -> Array:
    """Share of posterior draws (places, draws) below the truth (places,)."""
    return np.asarray(np.mean(draws < truth[:, None], axis=1))
