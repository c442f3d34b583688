"""Laws of the data that every estimator must bear, each with a name."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from reticent.studies.own.calibration.real_laws import cell_nuclei

__all__ = [
    "CLASSES",
    "FACTOR_TABLES",
    "HALF",
    "INPUTS",
    "LENGTH",
    "OUTPUTS",
    "REWARDS",
    "TABLES",
    "Inputs",
    "Outputs",
    "Rewards",
    "Table",
    "places",
    "smooth_function",
    "smooth_surface",
]

Array = NDArray[np.float64]
Generator = np.random.Generator
HALF = 3.0  # inputs lie in [−HALF, HALF]
LENGTH = 1.0  # length scale of the functions
_SIGMA = 0.5  # standard deviation of noise, where it is added
_T2_QUARTILE = 0.8165  # upper quartile of Student's t with two degrees of freedom
_NORMAL_QUARTILE = 0.6745


@cache
def _root() -> tuple[Array, Array]:
    """A fine grid, and a square root of the covariance of the functions on it."""
    grid = np.linspace(-HALF, HALF, 121)
    covariance = np.exp(-0.5 * ((grid[:, None] - grid) / LENGTH) ** 2)
    values, vectors = np.linalg.eigh(covariance)
    return grid, vectors * np.sqrt(np.maximum(values, 0.0))


def smooth_function(rng: Generator) -> Callable[[Array], Array]:
    """Draw a function of one input from a Gaussian process: variance 1, RBF of length 1."""
    grid, root = _root()
    values = root @ rng.normal(size=len(grid))
    return lambda x: np.interp(x, grid, values)


_WAVES = 400


def smooth_surface(rng: Generator, inputs: int, length: float) -> Callable[[Array], Array]:
    """Draw a function of several inputs from nearly a Gaussian process, with an RBF kernel.

    A sum of waves in random directions; its variance is 1. It takes an array (n, inputs).
    """
    frequencies = rng.normal(size=(inputs, _WAVES)) / length
    phases = rng.uniform(0.0, 2 * np.pi, _WAVES)
    amplitudes = rng.normal(size=_WAVES) * np.sqrt(2 / _WAVES)
    return lambda X: np.asarray(np.cos(X @ frequencies + phases) @ amplitudes)


# --- outputs of regressions, given a smooth function f(x) ---


@dataclass(frozen=True)
class Outputs:
    """A law of outputs.

    Attributes
    ----------
    mean : callable
        E[y | x] as a function of f(x).
    draw : callable
        Outputs from f(x), x and a generator.
    bounds : pair
        Public bounds of y; nearly all outputs lie inside.
    noise : float
        Standard deviation of y given x, on average (for t₂ and outliers that of a normal law with
        about the same quartiles).
    centre, spread : float
        Mean and standard deviation of E[y | x] over functions.
    """

    mean: Callable[[Array], Array]
    draw: Callable[[Array, Array, Generator], Array]
    bounds: tuple[float, float]
    noise: float = _SIGMA
    centre: float = 0.0
    spread: float = 1.0

    @property
    def middle(self) -> float:
        """Middle of the bounds, which priors of functions are around."""
        return sum(self.bounds) / 2


def _itself(f: Array) -> Array:
    return f


def _around(f: Array) -> Array:
    """A positive function with mean 1."""
    return 1 + 0.5 * np.tanh(f)


_AROUND_SPREAD = 0.31  # standard deviation of `_around`


def _added(noise: Callable[[int, Generator], Array], bounds: tuple[float, float]) -> Outputs:
    """The function itself and noise with mean zero."""
    return Outputs(_itself, lambda f, x, rng: f + noise(len(f), rng), bounds)


def _t2(n: int, rng: Generator) -> Array:
    return _SIGMA * _NORMAL_QUARTILE / _T2_QUARTILE * rng.standard_t(2, n)


def _lognormal(n: int, rng: Generator) -> Array:
    sd = np.sqrt(np.e * (np.e - 1))
    return _SIGMA * (np.exp(rng.normal(size=n)) - np.exp(0.5)) / sd


def _two_points(n: int, rng: Generator) -> Array:
    """A tenth of the records three standard deviations above, the others a third below."""
    return np.where(rng.random(n) < 0.1, 3 * _SIGMA, -_SIGMA / 3)


def _outliers(n: int, rng: Generator) -> Array:
    """Normal noise, and a tenth of the records six standard deviations off to either side."""
    far = rng.choice([-6.0, 6.0], n) * (rng.random(n) < 0.1)
    return _SIGMA * (rng.normal(size=n) + far)


def _growing(x: Array) -> Array:
    """A scale ten times as large at one end of the box as at the other; root mean square: one."""
    return (0.1 + 0.9 * (x + HALF) / (2 * HALF)) / 0.608


def _uneven(f: Array, x: Array, rng: Generator) -> Array:
    """Normal noise that grows along the box."""
    return f + _growing(x) * _SIGMA * rng.normal(size=len(f))


def _uneven_lognormal(f: Array, x: Array, rng: Generator) -> Array:
    """Lognormal noise that grows along the box, as costs do with age."""
    return f + _growing(x) * _lognormal(len(f), rng)


def _chance(rate: float) -> Outputs:
    """0 or 1 with a chance around ``rate``."""
    return Outputs(
        lambda f: rate * _around(f),
        lambda f, x, rng: (rng.random(len(f)) < rate * _around(f)).astype(np.float64),
        (0.0, 1.0),
        float(np.sqrt(rate * (1 - rate))),
        rate,
        _AROUND_SPREAD * rate,
    )


def _zero_inflated(f: Array, x: Array, rng: Generator) -> Array:
    """Zero in seven of ten records, otherwise an exponential amount with mean 1."""
    return (rng.random(len(f)) < 0.3 * _around(f)) * rng.exponential(size=len(f))


OUTPUTS = {
    "normal": _added(lambda n, rng: _SIGMA * rng.normal(size=n), (-5.0, 5.0)),
    "t2": _added(_t2, (-5.0, 5.0)),
    "lognormal": _added(_lognormal, (-5.0, 25.0)),
    "two-point": _added(_two_points, (-5.0, 5.0)),
    "outliers 10 %": _added(_outliers, (-6.0, 6.0)),
    "heteroscedastic": Outputs(_itself, _uneven, (-5.0, 5.0)),
    "growing lognormal": Outputs(_itself, _uneven_lognormal, (-5.0, 25.0)),
    "0/1, .3": _chance(0.3),
    "0/1, .05": _chance(0.05),
    "0/1, .02": _chance(0.02),
    "zero-inflated": Outputs(
        lambda f: 0.3 * _around(f),
        _zero_inflated,
        (0.0, 15.0),
        0.71,
        0.3,
        0.3 * _AROUND_SPREAD,
    ),
}


# --- inputs of regressions and classifications ---


@dataclass(frozen=True)
class Inputs:
    """A law of one input, and half the width of its public box around zero."""

    draw: Callable[[int, Generator], Array]
    half: float = HALF


def _even(n: int, rng: Generator) -> Array:
    return rng.uniform(-HALF, HALF, n)


def _clustered(n: int, rng: Generator) -> Array:
    """Nine of ten around −1, the others around 2."""
    centre = np.where(rng.random(n) < 0.9, -1.0, 2.0)
    return np.clip(centre + 0.15 * rng.normal(size=n), -HALF, HALF)


def _tied(n: int, rng: Generator) -> Array:
    """Five values."""
    return rng.choice([-2.5, -2.0, 0.0, 0.3, 2.4], n)


def _discrete(n: int, rng: Generator) -> Array:
    """Whole numbers, small ones most often."""
    return np.minimum(rng.geometric(0.4, n), 7) - 4.0


def _long_tail(n: int, rng: Generator) -> Array:
    """Most within a tenth of the box at its lower end, the others far into it."""
    return np.minimum(0.3 * np.exp(rng.normal(size=n)), 2 * HALF) - HALF


INPUTS = {
    "even": Inputs(_even),
    "clustered": Inputs(_clustered),
    "tied": Inputs(_tied),
    "discrete": Inputs(_discrete),
    "long-tailed": Inputs(_long_tail),
    "box 10 × too wide": Inputs(_even, 10 * HALF),
}


def places(inputs: Inputs, number: int) -> Array:
    """Where answers are looked at: evenly spaced quantiles of the inputs."""
    drawn = inputs.draw(10_000, np.random.default_rng(0))
    return np.quantile(drawn, (np.arange(number) + 0.5) / number, method="nearest")


# --- chances of the second of two classes, given a smooth function f(x) ---

CLASSES: dict[str, Callable[[Array, Array], Array]] = {
    "logistic": lambda f, x: 1 / (1 + np.exp(-1.5 * f)),
    "rare class": lambda f, x: 1 / (1 + np.exp(3.5 - f)),
    "separated": lambda f, x: (x > 0.0).astype(np.float64),
    "constant": lambda f, x: np.zeros(len(x)),
}


# --- tables of several numbers ---


@dataclass(frozen=True)
class Table:
    """A law of records of several columns, and their public bounds."""

    draw: Callable[[int, Generator], Array]
    bounds: tuple[float, float]


def _correlated(n: int, rng: Generator) -> Array:
    """Two columns with a correlation of .95."""
    first = rng.normal(size=n)
    return np.stack([first, 0.95 * first + np.sqrt(1 - 0.95**2) * rng.normal(size=n)], axis=1)


def _long_tails(n: int, rng: Generator) -> Array:
    """Two positive columns with long tails."""
    return np.asarray(np.exp(rng.normal(size=(n, 2)) @ [[1.0, 0.5], [0.0, 0.5]]))


def _point_masses(n: int, rng: Generator) -> Array:
    """Half of the records at one of three places, the others rounded to tenths."""
    spread = np.round(rng.normal(size=(n, 2)), 1)
    mass = rng.choice([[0.0, 0.0], [2.0, 1.0], [-1.0, 3.0]], n, p=[0.6, 0.3, 0.1])
    return np.where(rng.random((n, 1)) < 0.5, mass, spread)


def _clusters(n: int, rng: Generator) -> Array:
    """Five normal clusters of unequal sizes, some of them near each other."""
    centres = np.array([[-3.0, -3.0], [-3.0, 2.0], [0.0, 0.0], [2.5, 3.0], [3.0, 1.5]])
    which = rng.choice(5, n, p=[0.4, 0.3, 0.15, 0.1, 0.05])
    return centres[which] + 0.4 * rng.normal(size=(n, 2))


def _nuclei(columns: tuple[str, ...], bounds: tuple[float, float]) -> Table:
    """Records of a real table, drawn with replacement; columns in their standard deviations."""

    def draw(n: int, rng: Generator) -> Array:
        return np.asarray(rng.choice(cell_nuclei(columns), n))

    return Table(draw, bounds)


TABLES = {
    "normal": Table(lambda n, rng: rng.normal(size=(n, 2)), (-8.0, 8.0)),
    "correlated": Table(_correlated, (-8.0, 8.0)),
    "long tails": Table(_long_tails, (0.0, 100.0)),
    "point masses": Table(_point_masses, (-8.0, 8.0)),
    "clusters": Table(_clusters, (-8.0, 8.0)),
    "cell nuclei": _nuclei(("mean texture", "mean concavity"), (0.0, 16.0)),
}


# --- tables of six columns that two factors explain ---

_LOADINGS = np.array([[1.0, 0.9, 0.8, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0, 0.9, 0.8]])


def _factors(n: int, rng: Generator) -> Array:
    return np.asarray(rng.normal(size=(n, 2)) @ _LOADINGS + 0.2 * rng.normal(size=(n, 6)))


def _half_missing(n: int, rng: Generator) -> Array:
    """Half of the records are all zeros, the others whole numbers."""
    return np.where(rng.random((n, 1)) < 0.5, 0.0, np.round(2 * _factors(n, rng)))


FACTOR_TABLES = {
    "normal": Table(_factors, (-6.0, 6.0)),
    "long tails": Table(lambda n, rng: np.exp(0.8 * _factors(n, rng)), (0.0, 60.0)),
    "point masses": Table(_half_missing, (-12.0, 12.0)),
    "box 10 × too wide": Table(_factors, (-60.0, 60.0)),
    "cell nuclei": _nuclei(
        (
            "mean texture",
            "mean area",
            "mean smoothness",
            "mean compactness",
            "mean concavity",
            "area error",
        ),
        (0.0, 30.0),
    ),
}


# --- rewards of bandits ---


@dataclass(frozen=True)
class Rewards:
    """A law of rewards in about [0, 1] for candidates on a line.

    Attributes
    ----------
    function : callable
        Draws the mean reward as a function of the candidate.
    inputs : str
        Law of the candidates, in `INPUTS`.
    binary : bool
        Whether a reward is 0 or 1; otherwise normal noise is added.
    length : float
        Length scale of the functions.
    """

    function: Callable[[Generator], Callable[[Array], Array]]
    inputs: str = "even"
    binary: bool = False
    length: float = LENGTH

    def draw(self, values: Array, rng: Generator) -> Array:
        """Rewards where the function has these values."""
        if self.binary:
            return (rng.random(values.shape) < values).astype(np.float64)
        return np.asarray(values + 0.1 * rng.normal(size=values.shape))


def _smooth_rewards(rng: Generator) -> Callable[[Array], Array]:
    function = smooth_function(rng)
    return lambda x: 0.5 + 0.4 * np.tanh(function(x))


def _narrow_peak(rng: Generator) -> Callable[[Array], Array]:
    """Low everywhere but in one place, some twentieth of the box."""
    centre = rng.uniform(-2.5, 2.5)
    return lambda x: 0.2 + 0.7 * np.exp(-0.5 * ((x - centre) / 0.1) ** 2)


REWARDS = {
    "normal": Rewards(_smooth_rewards),
    "0/1": Rewards(_smooth_rewards, binary=True),
    "narrow peak": Rewards(_narrow_peak, length=0.15),
    "clustered inputs": Rewards(_smooth_rewards, "clustered"),
}
