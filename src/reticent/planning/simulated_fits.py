"""Simulated fits.

Functions from a model's own prior, drawn once, and how well made-up records of them are fitted.
"""

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from reticent.errors import BadInput
from reticent.models.gp.regressor import GPRegressor
from reticent.planning.prior_draws import Truth, truth
from reticent.planning.synthetic_records import (
    PLACES,
    SPREAD,
    MadeUp,
    coded,
    evenly,
    fit_made_up,
    inputs,
    records,
)
from reticent.privacy.bounds import Bounds

__all__ = ["DELTA", "NO_PRIVACY", "Planner", "Trial"]

Array = NDArray[np.float64]

DELTA = 1e-6
NO_PRIVACY = 1e6  # as an ε: its noise is far below that of the records
_TESTS = 2048
_POINTS = 1280
# places where a function is held against the output's bounds, and how many functions are tried
_HELD = 256
_TRIES = 30
_USUAL_NOISE = (
    0.2  # of half the output's range, where nothing says how much: the model's own first guess
)
_BAND = 1.96
_FREE_STAGES = 2  # without noise all stages after the first say the same


class Trial(NamedTuple):
    """How one simulated fit went."""

    rmse: float
    output_error: float
    coverage: float
    basis: int
    stages: int
    guess: float  # error of the prior's mean


class DrawnFunction(NamedTuple):
    """A function of the prior, and what a record of it looks like."""

    function: Truth
    noise: float  # spread of outputs around it
    outside: float  # share of it that is outside the output's bounds
    place: Array  # of its hyperparameters in their range


class Planner:
    """Draws functions, once, and fits made-up records of them, for whatever n and ε is asked.

    The same functions serve every n, and the same records and noise every ε.
    """

    def __init__(
        self,
        model: GPRegressor,
        draws: int,
        seed: int,
        progress: Callable[[int], None],
        weight: float = 1.0,
    ) -> None:
        if not isinstance(model, GPRegressor):
            raise BadInput(f"plan takes a GPRegressor, not {type(model).__name__}.")
        self.delta = float(DELTA if model.delta is None else model.delta)
        self.model: Any = clone(model).set_params(delta=self.delta, epsilon=1.0)
        self.model._event()  # refuses what cannot be fitted
        bounds = _without_indicators(self.model.bounds)
        self.model.set_params(bounds=bounds)
        if bounds.broadcast:
            raise BadInput(
                "A plan needs a range for each input, to know how many there "
                "are: Bounds(x=[(0, 1)] * 3, y=...)."
            )
        if len(bounds.y) != 1:
            raise BadInput("A plan is for one output: give the bounds of one column for y.")
        self._bounds = self.model._bounds().without_names()
        low, high = bounds.y[0]
        self._middle = low / 2 + high / 2
        self._half = high / 2 - low / 2
        self.model._validate_before_charge(self._bounds)
        self._prior = self.model._make_prior(self._bounds)
        # the default prior is on the scaled box, in half-ranges of y; a given kernel
        # is in the units of the data
        if model.kernel is None:
            self._units = self._half
        else:
            self._units = 1.0
        self._weight = weight  # of a person or record on average
        self._draws = draws
        self._seed = seed
        self._progress = progress

    @property
    def noise(self) -> float:
        """The spread of outputs around their function, on average."""
        return float(np.mean([drawn.noise for drawn in self._drawn]))

    @property
    def outside(self) -> float:
        """How much of the functions lies outside the output's bounds."""
        return float(np.mean([drawn.outside for drawn in self._drawn]))

    @property
    def places(self) -> Array:
        """Where each function's hyperparameters are in the range that the evidence chooses from.

        They fill it evenly.
        """
        return np.array([drawn.place for drawn in self._drawn])

    def expect(
        self, n: int, epsilons: Sequence[float], basis: int | None = None
    ) -> list[list[Trial]]:
        """For each ε, how fits to n records of each function go; ``basis``.

        Other than the model's own.
        """
        trials = [self._measure(draw, n, epsilons, basis) for draw in range(self._draws)]
        return [list(one) for one in zip(*trials, strict=True)]

    def _at(self, unit: Array) -> Array:
        """Places as the kernel sees them."""
        if self.model.kernel is None:
            return unit
        return np.asarray(self._bounds.unscale(unit))

    def _random(self, *purpose: int) -> np.random.Generator:
        return np.random.default_rng([self._seed, *purpose])

    @cached_property
    def _drawn(self) -> list[DrawnFunction]:
        """Functions inside the output's bounds, where a mean of outputs must be.

        Or the nearest to that of some that were tried. Kernels are taken in turn, whether their
        functions are kept or not: so those of the functions that are kept have the law that kernels
        have among functions inside the bounds.
        """
        points = self._at(evenly(self._bounds, _POINTS, self._random(0)))
        turn = count()
        found: list[DrawnFunction] = []
        while len(found) < self._draws:
            tries: list[DrawnFunction] = []
            while len(tries) < _TRIES and not (tries and tries[-1].outside <= 0.01):
                tries.append(self._draw(points, next(turn)))
            found.append(min(tries, key=lambda drawn: drawn.outside))
        return found

    def _draw(self, points: Array, turn: int) -> DrawnFunction:
        kernel = self._kernel(turn)
        random = self._random(1, turn)
        one = points[:1]
        white = float(kernel.diag(one)[0] - kernel(one, one.copy())[0, 0])
        noise = self._noise or math.sqrt(max(white, 0.0)) * self._units or _USUAL_NOISE * self._half
        axes = getattr(self._prior, "axes", ())
        function = truth(kernel, points, random, axes)
        outside = np.abs(function(points[:_HELD], random) * self._units) > self._half
        return DrawnFunction(function, float(noise), float(np.mean(outside)), self._place(turn))

    @property
    def _noise(self) -> float | None:
        """The spread that is given for outputs; of known levels, the root of their mean square."""
        level = self._bounds.noise_column
        if level is None:
            return self.model.noise
        return math.sqrt((level.high**2 - level.low**2) / 2 / math.log(level.high / level.low))

    def _place(self, turn: int) -> Array:
        """Where a kernel is in the range that the evidence may choose from.

        Taken in turn, so that few draws see as much of the prior as many by chance.
        """
        kernels = self._prior.kernels
        if len(kernels) == 1:
            size = 0
        else:
            size = len(kernels[0].theta) or 5
        steps = np.sqrt(
            np.arange(2, size + 2) + 1 / math.pi
        )  # irrational: turns fill the range evenly
        return np.asarray((self._random(5).random(size) + turn * steps) % 1)

    def _kernel(self, turn: int) -> Any:
        """The kernel at that place: a few in the range are weighed, but a function can have any."""
        kernels = self._prior.kernels
        place = self._place(turn)
        if len(kernels) == 1:
            return kernels[0]
        theta = np.array([kernel.theta for kernel in kernels])
        if not theta.size:
            return kernels[0].from_unit_cube(place)
        low = theta.min(axis=0)
        high = theta.max(axis=0)
        return kernels[0].clone_with_theta(low + (high - low) * place)

    def _measure(
        self, draw: int, n: int, epsilons: Sequence[float], basis: int | None
    ) -> list[Trial]:
        function, noise, *_ = self._drawn[draw]
        random = self._random(2, draw, n)
        fresh = self._random(3, draw)
        whole = n <= PLACES * SPREAD
        if whole:
            unit = inputs(self._bounds, n, random)
        else:
            unit = evenly(self._bounds, PLACES, random)
        level = self._bounds.noise_column
        X = self._bounds.unscale(unit)
        values = function(self._at(unit), random) * self._units
        if level is not None:  # evenly on a logarithmic scale
            spread: float | Array = level.low * (level.high / level.low) ** random.random(len(X))
            X = np.insert(X, level.at, spread, axis=1)
        else:
            spread = noise
        place, outputs = records(values, spread, n, random)
        data = MadeUp(X[place], self._middle + outputs, n, self._weight)
        tests = evenly(self._bounds, _TESTS, fresh)  # much of the error can be near a few corners
        values = self._middle + function(self._at(tests), fresh) * self._units
        at_tests = coded(self._bounds.inputs_alone(), self._bounds.unscale(tests))[2]
        guess = math.sqrt(np.mean((values - self._middle) ** 2))
        if basis is None:
            own = {}
        else:
            own = {"basis": basis}
        trials = []
        for epsilon in epsilons:
            if epsilon < NO_PRIVACY:
                other = own
            else:
                other = {**own, "stages": min(self.model._releases, _FREE_STAGES)}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a plan says what is to be said in its notes
                seed = [self._seed, 4, draw]
                fitted = fit_made_up(
                    self.model, data, self._bounds, epsilon, self._prior, seed, **other
                )
                mean, std = fitted.predict(at_tests, return_std=True)
            off = np.abs(mean - values)
            rmse = math.sqrt(np.mean(off**2))
            covered = float(np.mean(off <= _BAND * std))
            sizes = fitted._feature_map.columns, len(fitted.releases_)
            trials.append(Trial(rmse, math.hypot(rmse, noise), covered, *sizes, guess))
            self._progress(1)
        return trials


def _without_indicators(bounds: Bounds) -> Bounds:
    """Bounds of records that lack no number: made-up ones are complete."""
    kinds = tuple(
        replace(kind, keep_missing=False) if kind.levels is None else kind
        for kind in bounds.x_kinds
    )
    if bounds.broadcast or kinds == bounds.x_kinds:
        return bounds
    return bounds.with_columns(kinds, bounds.x_names, bounds.noise_column)
