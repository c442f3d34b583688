"""Gaussian-process regression that protects inputs and outputs, by staged residual releases. Proof: gp.md.

f(x) = φ(x)ᵀw with m public functions φ (`maths.basis`) and w ~ N(0, S), S the kernel's covariance projected on them. Each of
K stages releases the Gram matrix of (φ, (R/r)·e), e = clip(y − φᵀw_k, ±r): residuals of the last fit, clipped at their current
scale, so that noise shrinks with the residuals (`maths.stages`). All but the K releases is post-processing: kernel, noise
level, prediction.
"""

import math
import warnings
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin, clone
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils.validation import check_is_fitted

from reticent.errors import BadInput
from reticent.maths.basis import Basis
from reticent.maths.priors import Priors, default_kernel, white_noise
from reticent.maths.stages import Staged, quadratic
from reticent.models.base import PrivateEstimator
from reticent.privacy.bounds import Bounds
from reticent.privacy.curator import Oracle
from reticent.privacy.statistic import Gram

__all__ = ["GPRegressor"]

Array = NDArray[np.float64]
_CLIP = (3.0, 2.0, 2.0, 1.0)  # in standard deviations of the residual, stage by stage; the last one repeats
_MOST = 150
_STANDS_OUT = 0.02  # too few functions cost up to twice the error, too many some per cent
_TRIALS = 48
_HUGE = 1e150


@dataclass(frozen=True)
class ResidualGram(Gram):
    """Σ f fᵀ of f = (φ, (R/r)·clip(y − φᵀw, ±r)), with φ shortened to length R."""

    basis: Basis
    energy: tuple[float, ...]  # φ_j = energy_j · (basis function j)
    radius2: float
    weights: tuple[int, ...]  # w in steps of 2^-shift
    shift: int
    reach: float  # r

    @property
    def columns(self) -> int:
        """The features and the residual."""
        return self.basis.size + 1

    @property
    def norm2(self) -> Fraction:
        """R² for the features, and R² for the residual."""
        return 2 * Fraction(self.radius2)

    @cached_property
    def _weights(self) -> Array:
        return np.array(self.weights, dtype=np.float64)

    def rows(self, records: Array) -> Array:
        """Features on the grid, and the scaled residual; the prediction is an exact product of whole numbers."""
        rows = np.empty((len(records), self.columns))
        phi = rows[:, :-1]
        phi[:] = features(self.basis, np.array(self.energy), self.radius2, records[:, :-1])
        phi *= 2.0**self.bits
        np.trunc(phi, out=phi)
        prediction = (phi @ self._weights) * 2.0 ** -(self.bits + self.shift)
        phi *= 2.0**-self.bits
        residual = np.clip(records[:, -1] - prediction, -self.reach, self.reach)
        rows[:, -1] = residual * (math.sqrt(self.radius2) / self.reach)
        return rows


def features(basis: Basis, energy: Array, radius2: float, u: Array) -> Array:
    """φ at each row of ``u``, no longer than R; column by column, so that a row does not depend on others."""
    phi = basis.evaluate(u) * energy
    square = np.zeros(len(phi))
    for column in phi.T:
        square += column * column
    phi *= np.sqrt(radius2 / np.maximum(square, radius2))[:, None]
    return phi


class GPRegressor(RegressorMixin, PrivateEstimator):  # type: ignore[misc]
    """Gaussian-process regression with differential privacy for inputs and outputs.

    Parameters
    ----------
    kernel : scikit-learn kernel, optional
        The prior of the function, in the units of the data. Default: a broad trend and a smooth part; with several inputs, smooth
        effects of single inputs and of pairs. A hyperparameter's own bounds are its prior; "fixed" means fixed.
    noise : float, optional
        Standard deviation of the observation noise. Learned from the releases if not given.
    basis : int, optional
        Number of basis functions; chosen from public numbers if not given.
    stages : int
        Number of releases among which the budget is divided.
    learn_kernel : bool
        Choose the kernel's free hyperparameters by the evidence of the releases: free post-processing, within a factor of ten of
        the values given and inside their own bounds. Otherwise the kernel stays as it is.
    bounds, epsilon, delta, ledger, dataset, records_per_person, random_state
        As for every private estimator (``PrivateEstimator``). ``delta`` must be positive.

    Attributes
    ----------
    kernel_ : the kernel in use, noise_ : the standard deviation of the observation noise in use
    guarantee_, releases_, n_features_in_, feature_names_in_
        As for every private estimator.

    Privacy
    -------
    Neighbours: one record (inputs and output) replaced, number of records public. Released: per stage the Gram matrix of
    features and clipped residual. Must be public: the bounds, the number of records, the kernel, all parameters. ``score``
    reads the records it is given without protection.

    Examples
    --------
    >>> import numpy as np, reticent
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(0, 10, size=(5000, 1))
    >>> y = np.sin(x[:, 0]) + 0.1 * rng.normal(size=5000)
    >>> model = reticent.GPRegressor(bounds=reticent.Bounds(x=[(0, 10)], y=(-2, 2)), epsilon=1, delta=1e-6).fit(x, y)
    >>> mean, std = model.predict([[2.0]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(2.0)) < 0.2)
    True
    """

    _targets = True

    def __init__(
        self,
        kernel: Kernel | None = None,
        *,
        noise: float | None = None,
        basis: int | None = None,
        stages: int = 6,
        learn_kernel: bool = True,
        bounds: Any = None,
        epsilon: float | None = None,
        delta: float | None = None,
        ledger: str | None = None,
        dataset: str | None = None,
        records_per_person: int = 1,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            bounds=bounds,
            epsilon=epsilon,
            delta=delta,
            ledger=ledger,
            dataset=dataset,
            records_per_person=records_per_person,
            random_state=random_state,
        )
        self.kernel = kernel
        self.noise = noise
        self.basis = basis
        self.stages = stages
        self.learn_kernel = learn_kernel

    @property
    def _releases(self) -> int:
        return int(self.stages)

    def _check(self) -> None:
        _whole("stages", self.stages, 1, 64)
        if self.basis is not None:
            _whole("basis", self.basis, 1, 500)
        number = isinstance(self.noise, (int, float, np.number)) and not isinstance(self.noise, bool)
        if self.noise is not None and not (number and 0 < self.noise < _HUGE):
            raise BadInput(f"noise must be a positive standard deviation, or None to learn it, not {self.noise!r}.")
        if self.kernel is not None and not isinstance(self.kernel, Kernel):
            raise BadInput(f"kernel must be a scikit-learn kernel such as RBF(2.0), not {self.kernel!r}.")
        if self.delta == 0:
            raise BadInput("GPRegressor needs delta > 0: its Gram matrices are released with Gaussian noise.")
        if isinstance(self.bounds, Bounds):
            if len(self.bounds.y) > 1:
                raise BadInput("GPRegressor has one output: give the bounds of one column for y.")
            if self.bounds.classes is not None:
                raise BadInput("GPRegressor predicts numbers: give the range of y in the bounds, not classes.")

    def _rehearse(self, bounds: Bounds) -> None:
        """Go through the public part of a fit, so that a kernel that cannot be used is found before anything is charged."""
        y_half = (bounds.y[0][1] - bounds.y[0][0]) / 2
        fits = False
        try:
            with np.errstate(over="raise", invalid="raise", divide="raise"), warnings.catch_warnings():
                warnings.simplefilter("error")
                priors = Priors(self._kernels(bounds, y_half), len(bounds.x), bounds.natural, y_half)
                basis, energy, S = priors.choose(min(4, priors.most))
                usual = 1e-12 < priors.variance < 1e12  # in units of y's half-range
                fits = bool(usual and np.linalg.eigvalsh(S)[0] > 0 and _stage(basis, energy, 1.0, energy, 1.0).limit2)
        except (ArithmeticError, ValueError, TypeError, Warning):
            fits = False
        if not fits:
            raise BadInput(
                f"The kernel {self.kernel} cannot be used for {len(bounds.x)} inputs: give a positive definite scikit-learn "
                "kernel with one length scale, or one per input, and amplitudes in the units of y."
            )

    def learn(self, curator: Oracle) -> None:
        """Release K times, each time what the last fit left over; then choose the kernel by the evidence."""
        bounds, n = curator.bounds, curator.n
        y_half = (bounds.y[0][1] - bounds.y[0][0]) / 2
        priors = Priors(self._kernels(bounds, y_half), len(bounds.x), bounds.natural, y_half)
        stages = int(self.stages)
        m = self._size(n, priors)
        basis, energy, S = priors.choose(m)
        radius2 = 1.0
        points = features(basis, energy, radius2, priors.points)
        noise2 = (self.noise / y_half) ** 2 if self.noise is not None else max(priors.white, 0.04)
        staged = Staged(S, points, n, noise2 + priors.outside, learn_noise=self.noise is None)
        for k in range(stages):
            z = _CLIP[min(k, len(_CLIP) - 1)]
            r = min(z * staged.residual_sd(), 1.0 if k == 0 else 2.0)
            release = curator.release(_stage(basis, energy, radius2, staged.mean, r))
            # What was really asked counts: on another machine the same sums can differ in the last bits.
            asked = release.statistic
            basis, energy, radius2 = Basis.from_dict(asked["basis"]), np.array(asked["energy"]), asked["radius2"]
            w, r = np.array(asked["weights"]) * 2.0 ** -asked["shift"], asked["reach"]
            G, sd, back = release.matrix(), release.matrix_sd(), r / math.sqrt(radius2)
            A, q = G[:-1, -1] * back, G[-1, -1] * back**2
            staged.add(A, sd[0, -1] * back, G[:-1, :-1], sd[:-1, :-1], q, sd[-1, -1] * back**2, r, centre=w)
        best = priors.best(staged)
        own = staged.without_privacy()
        learned = math.sqrt(max(staged.s2 - priors.outside, 1e-4 * staged.s2)) * y_half
        self.kernel_ = priors.kernels[best]
        self.noise_ = learned if self.noise is None else float(self.noise)
        self._basis, self._energy, self._radius2 = basis, energy, radius2
        self._mean, self._covariance, self._prior, self._own = staged.mean, staged.covariance, staged.prior, own

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """Mean of the function at ``X``, and its standard deviation or covariance: the model's doubt and the privacy noise."""
        if return_std and return_cov:
            raise BadInput("Ask for return_std or return_cov, not for both.")
        unit = self._unit(X)
        phi = features(self._basis, self._energy, self._radius2, unit)
        low, high = self._y_range()
        half = (high - low) / 2
        mean = (low + high) / 2 + half * (phi @ self._mean)
        if return_std:
            parts = self._parts(phi, unit)
            return mean, np.sqrt(parts["model"] + parts["privacy"])
        if return_cov:
            natural = self.releases_[0].bounds.natural(unit)
            outside = self.kernel_(natural, natural.copy()) - half**2 * (phi @ self._prior @ phi.T)
            values, vectors = np.linalg.eigh(half**2 * (phi @ self._covariance @ phi.T) + outside)
            return mean, (vectors * np.maximum(values, 0.0)) @ vectors.T
        return mean

    def variance_parts(self, X: Any) -> dict[str, Array]:
        """Variance of an output at ``X`` by its causes: ``model`` (its own doubt), ``privacy``, ``noise`` (of observations)."""
        unit = self._unit(X)
        parts = self._parts(features(self._basis, self._energy, self._radius2, unit), unit)
        return {**parts, "noise": np.full(len(unit), self.noise_**2)}

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> Array:
        """Draw functions from the posterior and evaluate them at ``X``: an array of shape (len(X), n_samples)."""
        mean, covariance = self.predict(X, return_cov=True)
        rng = np.random.default_rng(random_state)
        return rng.multivariate_normal(mean, covariance, n_samples, method="eigh").T

    def _parts(self, phi: Array, unit: Array) -> dict[str, Array]:
        low, high = self._y_range()
        half2 = ((high - low) / 2) ** 2
        natural = self.releases_[0].bounds.natural(unit)
        latent = self.kernel_.diag(natural) - white_noise(self.kernel_, natural)
        outside = np.maximum(latent - half2 * quadratic(phi, self._prior), 0.0)
        whole, own = half2 * quadratic(phi, self._covariance), half2 * quadratic(phi, self._own)
        return {"model": np.minimum(own, whole) + outside, "privacy": np.maximum(whole - own, 0.0)}

    def _y_range(self) -> tuple[float, float]:
        check_is_fitted(self)
        return self.releases_[0].bounds.y[0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # on a hundred records, privacy leaves little to score
        return tags

    def _size(self, n: int, priors: Priors) -> int:
        """How many basis functions the budget can carry: those whose prior variance can stand out from the noise."""
        if self.basis is not None:
            return min(int(self.basis), priors.most)
        event = self._event()
        share = n / (event.noise_multiplier * self.records_per_person)  # type: ignore[attr-defined]
        relative = priors.variances / priors.variances.sum()
        return int(np.clip((relative * share >= _STANDS_OUT).sum(), min(4, priors.most), min(_MOST, priors.most)))

    def _kernels(self, bounds: Bounds, y_half: float) -> list[Kernel]:
        """The kernels that the evidence may choose from, the given one first; all of them make the prior of the stages."""
        half = np.array([(high - low) / 2 for low, high in bounds.x])
        kernel = clone(self.kernel) if self.kernel is not None else default_kernel(half, y_half)
        if not self.learn_kernel or len(kernel.theta) == 0:
            return [kernel]
        low, high = (np.clip(kernel.theta + step, *kernel.bounds.T) for step in (-math.log(10), math.log(10)))
        from scipy.stats import qmc

        places = qmc.Halton(len(kernel.theta), scramble=False).random(_TRIALS)
        return [kernel, *(kernel.clone_with_theta(low + (high - low) * place) for place in places)]


def _stage(basis: Basis, energy: Array, radius2: float, w: Array, r: float) -> ResidualGram:
    """The statistic of one stage, with w in steps as fine as an exact product allows: ‖φ‖·‖w‖ < 2⁵² on the grid."""
    scales = tuple(energy.tolist())
    bits = ResidualGram(basis, scales, radius2, (0,) * basis.size, 0, r).bits
    length = max(math.sqrt(radius2) * float(np.linalg.norm(w)), 2.0**-40)
    shift = min(40, 51 - bits - math.ceil(math.log2(length)))
    steps = tuple(int(v) for v in np.trunc(w * 2.0**shift))
    return ResidualGram(basis, scales, radius2, steps, shift, r)


def _whole(name: str, value: object, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not least <= value <= most:
        raise BadInput(f"{name} must be a whole number from {least} to {most}, not {value!r}.")
