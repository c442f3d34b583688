"""ANOVA kernel: the prior that is used when no kernel is given.

A constant, smooth effects of single inputs, of pairs and of triples. On the box [−1, 1]ᵈ, in which
every input has been spread out evenly,

    k(a, b) = constant + variance · (s₁ Σ κ(a_i, b_i)/d + s₂ Σ_{i<j} κκ/(d over 2)
                                     + s₃ Σ_{i<j<l} κκκ/(d over 3))
    κ(a, b) = linear · 3ab + (1 − linear) · (centred, normalised RBF, averaged over lengthscales
                                             around ``length``)

κ has mean zero and average variance one under the uniform density, so that s is the fraction of the
variance of each order. Products of κ's eigenfunctions are orthonormal: in this basis the prior is
diagonal. That is so for inputs along a line; κ of words, ordered levels and cycles is in `axes`.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf
from sklearn.gaussian_process.kernels import Kernel

from reticent.inference.kernels.axes import LINE, Axis, axis_functions, word_contrasts
from reticent.inference.kernels.settings import ANOVA
from reticent.inference.moment_model.relevance import RelevanceModel
from reticent.inference.moment_model.settings import RELEVANCE
from reticent.privacy.row_maps.features.polynomial_basis import GRID, Basis

__all__ = ["Anova", "AnovaPriors"]

Array = NDArray[np.float64]
_LENGTHS = np.array(ANOVA.lengthscales)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(ANOVA.quadrature_nodes)


class Anova(Kernel):  # type: ignore[misc]
    """A constant plus smooth effects of one, two and three inputs, on the box [−1, 1]ᵈ.

    All its numbers are fixed.
    """

    def __init__(
        self,
        variance: float = 0.1,
        shares: tuple[float, float, float] = (0.65, 0.2, 0.15),
        linear: float = 0.3,
        length: float = 0.4,
        constant: float = ANOVA.constant_variance,
    ) -> None:
        self.variance = variance
        self.shares = shares
        self.linear = linear
        self.length = length
        self.constant = constant

    @staticmethod
    def from_unit_cube(place: Sequence[float] | Array) -> "Anova":
        """The kernel at a point of the unit cube (5,) of all that the evidence may choose."""

        def between(limits: tuple[float, float], t: float) -> float:
            low, high = limits
            return float(low * (high / low) ** t)

        pairs = between(ANOVA.pair_range, place[1])
        triples = between(ANOVA.triple_range, place[2])
        return Anova(
            variance=between(ANOVA.variance_range, place[0]),
            shares=(1.0, pairs, triples),
            linear=float(ANOVA.min_linear + ANOVA.linear_span * place[3]),
            length=between(ANOVA.length_range, place[4]),
        )

    def input_kernel(self, a: Array, b: Array) -> Array:
        """κ between two arrays of the same shape, or shapes that fit together."""
        smooth = sum(
            w * _centred(a, b, length)
            for w, length in zip(self.length_weights(), _LENGTHS, strict=True)
        )
        return np.asarray(self.linear * 3 * a * b + (1 - self.linear) * smooth)

    def length_weights(self) -> Array:
        """Weights of the lengthscales that an effect is averaged over; they add up to one."""
        weights = np.exp(-((np.log(_LENGTHS / self.length) / ANOVA.log_length_sd) ** 2) / 2)
        return np.asarray(weights / weights.sum())

    def order_variances(self, d: int) -> tuple[float, ...]:
        """Variance of one effect of order 1, 2 and 3 where there are ``d`` inputs."""
        orders = range(1, min(d, 3) + 1)
        whole = sum(self.shares[: len(orders)])
        return tuple(self.variance * self.shares[o - 1] / whole / math.comb(d, o) for o in orders)

    def __call__(
        self, X: Array, Y: Array | None = None, eval_gradient: bool = False
    ) -> Array | tuple[Array, Array]:
        """Covariance of the function between rows of X and of Y."""
        X = np.atleast_2d(X)
        if Y is None:
            other = X
        else:
            other = np.atleast_2d(Y)
        K = self._sum(
            [self.input_kernel(X[:, j, None], other[None, :, j]) for j in range(X.shape[1])]
        )
        if eval_gradient:
            return (K, np.empty((*K.shape, 0)))
        return K

    def diag(self, X: Array) -> Array:
        """Variance of the function at rows of X."""
        X = np.atleast_2d(X)
        return self._sum([self.input_kernel(X[:, j], X[:, j]) for j in range(X.shape[1])])

    def _sum(self, factors: list[Array]) -> Array:
        """Sums of products of one, two, three different factors, by Newton's identities."""
        first = sum(factors)
        second, third = (sum(f**k for f in factors) for k in (2, 3))
        sums = (first, (first**2 - second) / 2, (first**3 - 3 * first * second + 2 * third) / 6)
        scales = self.order_variances(len(factors))
        return np.asarray(
            self.constant + sum(scale * s for scale, s in zip(scales, sums, strict=False))
        )

    def is_stationary(self) -> bool:
        """No: effects are centred in the box."""
        return False

    def __repr__(self) -> str:
        shares = ", ".join(f"{fraction:.2g}" for fraction in self.shares)
        return (
            f"Anova(variance={self.variance:.3g}, shares=({shares}), linear={self.linear:.2g}, "
            f"length={self.length:.2g})"
        )


def _centred(a: Array, b: Array, length: float) -> Array:
    """RBF kernel of a function without its mean over [−1, 1], with an average variance of one."""

    def mean(t: Array) -> Array:
        width = math.sqrt(2) * length
        return np.asarray(
            math.sqrt(math.pi) * width / 4 * (erf((1 - t) / width) + erf((1 + t) / width))
        )

    whole = float(_WEIGHTS @ mean(_NODES)) / 2
    return np.asarray(
        (np.exp(-((a - b) ** 2) / (2 * length**2)) - mean(a) - mean(b) + whole) / (1 - whole)
    )


class AnovaPriors:
    """Hypotheses of the default prior, and the basis that serves all of them.

    In units of y's half-range.
    """

    unconditional_size = ANOVA.unconditional_size
    min_relative_signal = ANOVA.min_relative_signal

    def __init__(
        self,
        dimension: int,
        trials: int,
        kernels: Sequence[Anova] = (),
        axes: Sequence[Axis] = (),  # of each input; lines if not given
    ) -> None:
        self.kernels = list(kernels) or [Anova(), *_trials(trials)]
        self.axes = tuple(axes) or (LINE,) * dimension
        known = {axis: axis_functions(axis, self.kernels) for axis in set(self.axes)}
        self._functions = [known[axis] for axis in self.axes]
        means = {axis: functions.decays.mean(axis=0) for axis, functions in known.items()}
        self._effects = likely_effects([means[axis] for axis in self.axes])
        self._dimension = dimension
        variances = self._variances()
        order = np.argsort(-variances.mean(axis=0), kind="stable")
        self._effects = [self._effects[i] for i in order]
        self._table = variances[:, order]
        self.variances = self._table.mean(axis=0)
        effects = [
            variance
            for variance, effect in zip(self.variances, self._effects, strict=True)
            if effect
        ]
        # the constant is learned soon, without much of the row's norm
        self.scaling_variance = np.minimum(self.variances, max(effects))
        self.max_size = len(order)
        self.white_noise_variance = 0.0

    def _variances(self) -> Array:
        """Variance of each effect under each hypothesis, (H, effects)."""
        numbers = self._function_numbers(len(self._effects))
        kinds = [(len(e), self._words_among(j for j, _ in e)) for e in self._effects]
        variances = np.empty((len(self.kernels), len(kinds)))
        for h, kernel in enumerate(self.kernels):
            scales = {(0, 0): ANOVA.constant_variance, **self._scales(kernel)}
            variances[h] = [scales[kind] for kind in kinds]
        for j, functions in enumerate(self._functions):
            none = np.ones((len(self.kernels), 1))
            variances *= np.hstack([none, functions.decays])[:, numbers[:, j]]
        return variances

    def _function_numbers(self, m: int) -> NDArray[np.int64]:
        """Of the m leading effects, the number of the function of each input, (m, d).

        From 1 on; 0 where an effect does not depend on the input.
        """
        numbers = np.zeros((m, self._dimension), dtype=np.int64)
        for row, effect in zip(numbers, self._effects, strict=False):
            for j, k in effect:
                row[j] = k
        return numbers

    def _words_among(self, inputs: Iterable[int]) -> int:
        """How many of some inputs are words."""
        return sum(self.axes[j].shape == "words" for j in inputs)

    def _scales(self, kernel: Anova) -> dict[tuple[int, int], float]:
        """Variance of one effect, by its order and how many of its inputs are words.

        That a function differs between words is no less likely than that it is smooth: an order
        counts half for each word in it. All effects together have the kernel's variance.
        """
        d = self._dimension
        words = self._words_among(range(d))
        plain = {(o, 0): v for o, v in enumerate(kernel.order_variances(d), 1)}
        if not words:
            return plain
        scales = {}
        total = 0.0
        for order in range(1, min(d, 3) + 1):
            for among in range(max(0, order - (d - words)), min(order, words) + 1):
                halved = max(order - among / 2, 1.0)
                low = math.floor(halved)
                high = min(low + 1, min(d, 3))
                # between two orders geometrically
                share = kernel.shares[low - 1] ** (low + 1 - halved)
                share *= kernel.shares[high - 1] ** (halved - low)
                scales[order, among] = share / math.comb(d, order)
                effects = math.comb(words, among) * math.comb(d - words, order - among)
                total += effects * scales[order, among]
        return {key: kernel.variance * share / total for key, share in scales.items()}

    def degree_groups(self, m: int) -> NDArray[np.int64]:
        """For each of the m leading functions, its number among those of one input.

        −1 for the constant and for products.
        """
        return np.array([effect[0][1] if len(effect) == 1 else -1 for effect in self._effects[:m]])

    def relevance_model(self, m: int, lines: Sequence[int] = ()) -> RelevanceModel | None:
        """How the variances of the m leading functions may differ from the hypotheses'.

        None for one input, whose scale and length are what hypotheses differ in already.

        By a factor for each input, a power of the number of the function along each (but not of
        words, which are exchangeable), and a factor for effects of two and of three inputs.
        ``lines``: inputs of linear terms that follow, each like the smoothest function of its own.
        """
        if self._dimension == 1:
            return None
        numbers = self._function_numbers(m)
        straight = np.zeros((len(lines), self._dimension), dtype=np.int64)
        straight[np.arange(len(lines)), list(lines)] = 1
        numbers = np.vstack([numbers, straight])
        rough = np.array([axis.shape != "words" for axis in self.axes])
        orders = np.arange(2, min(self._dimension, 3) + 1)
        order = (numbers > 0).sum(axis=1)
        exponents = np.hstack(
            [
                numbers > 0,
                np.log(np.maximum(numbers, 1))[:, rough],
                order[:, None] == orders,
            ]
        )
        sds = np.repeat(
            [RELEVANCE.log_relevance_sd, RELEVANCE.roughness_sd, RELEVANCE.log_order_sd],
            [self._dimension, int(rough.sum()), len(orders)],
        )
        return RelevanceModel(exponents, sds)

    @property
    def constant_index(self) -> int:
        """The number of the constant among the functions.

        The first, for none has a larger variance.
        """
        return self._effects.index(())

    def linear_index(self, j: int) -> int:
        """The number of the smoothest function of one input, the most like a straight line."""
        return self._effects.index(((j, 1),))

    def choose(self, m: int) -> tuple[Basis, Array, Array]:
        """The m leading functions, and under each hypothesis their variances and what is left.

        Returns the basis, and arrays (H, m) and (H,), in squared half-ranges of y. Coefficients
        are independent.
        """
        index = self._function_numbers(m)
        mixes = tuple(
            _integers(functions.mix[: int(index.max()) + 1]) for functions in self._functions
        )
        levels: tuple[int, ...] = tuple(axis.levels for axis in self.axes)
        if not any(levels):
            levels = ()
        basis = Basis(mixes, tuple(tuple(int(i) for i in row) for row in index), levels)
        table = self._table[:, :m]
        whole = np.array([ANOVA.constant_variance + kernel.variance for kernel in self.kernels])
        left = np.maximum(whole - table.sum(axis=1), 0.0)
        return basis, table, left + self._within_groups()

    def _within_groups(self) -> Array:
        """Variance (H,) between words that share an effect, under each hypothesis."""
        shared = sum(axis.shared_fraction for axis in self.axes)
        if not shared:
            return np.zeros(len(self.kernels))
        return np.array([shared * self._scales(kernel)[1, 1] for kernel in self.kernels])

    def sorted_words(self, basis: Basis, densities: Sequence[Array]) -> Basis:
        """The basis with contrasts of words in the order of their frequency, most frequent first.

        The prior, which is exchangeable, does not change. ``densities``: along each input, of words
        the probability of each.
        """
        mixes = list(basis.mix)
        for j, (axis, density) in enumerate(zip(self.axes, densities, strict=True)):
            if axis.shape == "words" and axis.levels > 2:
                order = np.argsort(-density, kind="stable")
                mixes[j] = _integers(word_contrasts(axis.levels, order.tolist())[: len(mixes[j])])
        return replace(basis, mix=tuple(mixes))


def _integers(mix: Array) -> tuple[tuple[int, ...], ...]:
    """Functions as whole numbers of steps of the grid."""
    return tuple(tuple(int(v) for v in row) for row in np.trunc(mix * GRID))


def _trials(count: int) -> list[Anova]:
    from scipy.stats import qmc

    return [
        Anova.from_unit_cube(place) for place in qmc.Halton(5, scramble=False).random(count + 1)[1:]
    ]


def likely_effects(
    decays: Sequence[Array], most: int = ANOVA.max_functions
) -> list[tuple[tuple[int, int], ...]]:
    """Products of one-dimensional functions, each as pairs (input, number of the function).

    Those with the largest variance come first. ``decays``: of the functions along each input.
    """
    d = len(decays)
    effects: list[tuple[float, tuple[tuple[int, int], ...]]] = [(1.0, ())]
    for order in range(1, min(d, 3) + 1):
        if math.comb(d, order) > ANOVA.max_combinations:
            break  # with so many inputs, each of their combinations is too small to be found
        known: dict[tuple[int, ...], list[tuple[float, tuple[int, ...]]]] = {}
        for inputs in combinations(range(d), order):
            alike = tuple(id(decays[j]) for j in inputs)
            if alike not in known:
                known[alike] = _best_products([decays[j] for j in inputs])
            scale = 4.0**-order / math.comb(d, order)
            effects += [(scale * v, tuple(zip(inputs, i, strict=True))) for v, i in known[alike]]
    effects.sort(key=lambda product: (-product[0], product[1]))
    return [effect for _, effect in effects[:most]]


def _best_products(decays: Sequence[Array]) -> list[tuple[float, tuple[int, ...]]]:
    """Products of functions of some inputs that have the largest variances, and these."""
    best: list[tuple[float, tuple[int, ...]]] = [(1.0, ())]
    for decay in decays:
        longer = [(v * lam, (*i, k + 1)) for v, i in best for k, lam in enumerate(decay)]
        best = sorted(longer, key=lambda product: (-product[0], product[1]))
        best = best[: ANOVA.max_products_per_combination]
    return best
