"""Mixtures of normal laws with differential privacy: staged, whitened residuals. Proof: mixture.md, responsibilities.md.

    1 pooled   how far the records reach (counts), mean and covariance (a Gram matrix), the same again on whitened records
    2 centres  whitened and projected to the leading directions: three times as many centres as parts, moved again and again,
               joined by Ward's rule, moved again. In one or two dimensions instead: one noisy histogram
    3 tied     residuals from the centre of a record's part, in all directions, with one covariance for all parts
    4 each     residuals with a covariance for each part

Between releases everything is computed from releases. The schedule is fixed beforehand but for what releases decide: a private
comparison ends the search for parts if one normal law fits better, and then all that is left is spent on that one.
"""

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from reticent.errors import BadInput
from reticent.maths.mixture import Mixture, most_likely, reach
from reticent.models.base import PrivateEstimator
from reticent.models.em import axes, better, centres, closer, from_grid, pooled, step
from reticent.privacy.bounds import Bounds
from reticent.privacy.curator import Oracle
from reticent.privacy.given import check_choice, check_whole, generator, number

__all__ = ["GaussianMixture"]

Array = NDArray[np.float64]
TYPES = ("full", "tied", "diag", "spherical")


@dataclass(frozen=True)
class _Plan:
    """How many of the paid releases each look takes, after the first stage; and weights of the last looks' moments."""

    centre: int
    tied: tuple[int, int]
    each: int
    weights: tuple[int, int, int] = (1, 2, 8)

    @property
    def begun(self) -> int:
        """What centres and tied stage take."""
        return sum(_CENTRES) * self.centre + sum(self.tied)


_CENTRES = (14, 6)  # steps before and after centres are joined
_POOLED, _COMPARED = (4, 8, 12), 2
# Where centres are clear, most goes into covariances. Both take as much.
_FAINT, _CLEAR = _Plan(2, (12, 18), 62), _Plan(1, (8, 12), 92, (1, 4, 32))
_RELEASES = sum((*_POOLED, _FAINT.begun, _COMPARED, _FAINT.each, _COMPARED))
_CLEARLY = 0.03  # standard deviations of a part by which noise moves its centre in one look, up to which it is clear
_FEW = 2  # dimensions in which a histogram is better
_MOST_PARTS, _MOST_NUMBERS = 200, 5 * 10**6
_CARRIED = 0.5  # standard deviations of a part by which noise may move its centre
_ONE_LOOK = 1.0  # noise in the eigenvalues of a covariance, as a share, above which all is spent on one look
_GRID_PAYS = 300.0  # records of a part, in units of the noise of a count, from which residuals improve on a histogram


@dataclass(repr=False, eq=False)
class GaussianMixture(PrivateEstimator):
    """Mixture of normal laws, with differential privacy: a density, soft clusters, and synthetic records drawn from it.

    Parameters
    ----------
    n_components : int
        Number of normal laws. Fewer are used if the budget cannot carry so many, or if one normal law fits better: which is
        decided from public numbers and releases (``n_components_``).
    covariance_type : "full", "tied", "diag" or "spherical"
        A covariance for each part, one for all, variances of each part along the columns, or one variance of each part (on the
        bounds' scale).
    weight_concentration_prior : float, at least 1
        α of a Dirichlet prior for the weights. 1 is no prior.
    mean_precision_prior : float, at least 0
        κ₀: as many records as the prior for each mean weighs, which is the mean of all records. 0 is no prior.
    degrees_of_freedom_prior : float or None
        ν₀ of an inverse-Wishart prior for each covariance, more than d − 1; it weighs as much as ν₀ + d + 2 records with the
        covariance of all. None is no prior. Priors are applied to what was released, at no cost.
    bounds, epsilon, delta, ledger, dataset, records_per_person, random_state
        As for every private estimator (``PrivateEstimator``). ``delta`` must be positive.

    Attributes
    ----------
    n_components_ : int
    weights_ : array of shape (n_components_,)
    means_ : array of shape (n_components_, n_features)
    covariances_ : array of shape (n_components_, n_features, n_features)
        In the columns' own units, whatever the type of covariance.
    pooled_mean_, pooled_covariance_ : arrays
        Those of one normal law for all records, from the first stage, to compare with.
    guarantee_, releases_, n_features_in_, feature_names_in_
        As for every private estimator.

    Privacy
    -------
    Neighbours: one record replaced, number of records public. Released: counts of lengths, moments of all records, and moments
    of residuals shared out among parts, stage by stage. Must be public: the bounds, the number of records, all parameters.
    ``score``, ``score_samples``, ``predict`` and ``predict_proba`` read the records they are given without protection; ``sample``
    reads none.

    Examples
    --------
    >>> import numpy as np, reticent
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(-2, 1, size=(6000, 3)), rng.normal(2, 1, size=(4000, 3))])
    >>> model = reticent.GaussianMixture(2, bounds=reticent.Bounds(x=(-10, 10)), epsilon=1, delta=1e-6).fit(X)
    >>> np.sort(model.weights_).round(1).tolist()
    [0.4, 0.6]
    >>> model.sample(5, random_state=0).shape
    (5, 3)
    """

    _pure = False
    _releases = _RELEASES

    n_components: int = 1
    _: KW_ONLY
    covariance_type: str = "full"
    weight_concentration_prior: float = 1.0
    mean_precision_prior: float = 0.0
    degrees_of_freedom_prior: float | None = None

    def _check(self) -> None:
        check_whole("n_components", self.n_components, 1, _MOST_PARTS)
        check_choice("covariance_type", self.covariance_type, TYPES)
        for name, least in (("weight_concentration_prior", 1), ("mean_precision_prior", 0)):
            if not least <= number(getattr(self, name)) < math.inf:
                raise BadInput(f"{name} must be a number of at least {least}, not {getattr(self, name)!r}.")

    def _rehearse(self, bounds: Bounds) -> None:
        nu, least = self.degrees_of_freedom_prior, len(bounds.x) - 1
        if nu is not None and not least < number(nu) < math.inf:
            raise BadInput(f"degrees_of_freedom_prior must be None, or a number of more than {least}, not {nu!r}.")
        numbers = int(self.n_components) * len(bounds.x) ** 2
        if numbers > _MOST_NUMBERS:
            raise BadInput(
                f"{self.n_components} covariances of {len(bounds.x)} columns are {numbers:,} numbers, more than "
                f"{_MOST_NUMBERS:,}: choose fewer components or columns."
            )

    def learn(self, curator: Oracle) -> None:
        """Ask for one stage after the other; each depends on releases before it only."""
        one, noise = pooled(curator, _POOLED)
        mixture = self._parts(curator, one, noise)
        bounds = curator.bounds
        priors = self.weight_concentration_prior, self.mean_precision_prior, self.degrees_of_freedom_prior
        if priors != (1.0, 0.0, None):
            mixture = most_likely(mixture, one, curator.n, *priors)
        low, high = bounds.scaled(np.array(bounds.x).T)
        inside = Mixture(mixture.weights, np.clip(mixture.means, low, high), mixture.roots)
        self._mixture = _shaped(inside, str(self.covariance_type))
        scale = bounds.natural(np.ones(len(bounds.x))) - bounds.natural(np.zeros(len(bounds.x)))
        self.n_components_ = len(mixture.weights)
        self.weights_ = self._mixture.weights
        self.means_ = bounds.natural(self._mixture.means)
        self.covariances_ = self._mixture.covariances * np.outer(scale, scale)
        self.pooled_mean_ = bounds.natural(one.means[0])
        self.pooled_covariance_ = one.covariances[0] * np.outer(scale, scale)

    def _parts(self, curator: Oracle, one: Mixture, noise: float) -> Mixture:
        """The parts of the mixture. ``noise``: of a count, if a release takes one of the paid ones."""
        d, n, kind = one.means.shape[1], curator.n, str(self.covariance_type)
        wanted, left = int(self.n_components), _RELEASES - sum(_POOLED)
        while wanted > 1 and (moved := self._moved(wanted, d, noise) / n) > _CARRIED:
            wanted -= 1  # each would be lost in the noise
        if wanted == 1:
            return self._single(curator, one, left)
        if d <= _FEW:
            polished = n * math.sqrt(_RELEASES) / (noise * wanted) >= _GRID_PAYS
            mixture = from_grid(curator, one, wanted, _FAINT.begun if polished else left - _COMPARED, noise)
            if not better(curator, mixture, one, _COMPARED):
                return self._single(curator, one, left - _FAINT.begun - _COMPARED) if polished else one
            return self._each(curator, _shaped(mixture, kind), kind, noise, _FAINT) if polished else mixture
        plan = _CLEAR if kind == "full" and moved <= _CLEARLY else _FAINT
        mixture = _shaped(centres(curator, one, wanted, _CENTRES, plan.centre), kind)
        for again, times in enumerate(plan.tied):
            mixture = step(curator, mixture, times, kind="tied" if kind == "full" else kind, keep=1 / (again + 1))
        if not better(curator, mixture, one, _COMPARED):
            return self._single(curator, one, plan.each + _COMPARED)
        return self._each(curator, mixture, kind, noise, plan)

    @staticmethod
    def _moved(parts: int, d: int, noise: float) -> float:
        """By how many standard deviations of a part noise moves its centre in one look, times the number of records."""
        return noise / math.sqrt(_FAINT.centre) * reach(min(d, math.ceil(1.5 * parts)), 0.6) * parts

    def _single(self, curator: Oracle, one: Mixture, left: int) -> Mixture:
        """One normal law, with all that is left."""
        for times in (left // 3, left - left // 3):
            one = closer(curator, one, times)
        return one

    def _each(self, curator: Oracle, mixture: Mixture, kind: str, noise: float, plan: _Plan) -> Mixture:
        """The last stage; what it gives must be better than what it began with."""
        before, (parts, d) = mixture, mixture.means.shape
        doubt = noise * reach(d, 0.6) ** 2 * math.sqrt(d / plan.each) * parts / curator.n
        looks: tuple[int, ...] = (plan.each,)
        if kind != "full" or doubt <= _ONE_LOOK:
            looks = (plan.each // 3, plan.each - plan.each // 3)
        for again, times in enumerate(looks):
            mixture = step(curator, mixture, times, kind=kind, keep=1 / (again + 3), weights=plan.weights)
        return mixture if better(curator, mixture, before, _COMPARED) else before

    def score_samples(self, X: Any) -> Array:
        """Log-density of each record, on the bounds' scale. Not protected."""
        unit = self._unit(X)
        return self._mixture.score(unit)

    def predict_proba(self, X: Any) -> Array:
        """Chance of each part for each record. Not protected."""
        unit = self._unit(X)
        return self._mixture.responsibilities(unit)

    def predict(self, X: Any) -> NDArray[np.intp]:
        """The most likely part of each record. Not protected."""
        return np.asarray(self.predict_proba(X).argmax(axis=1))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Array:
        """Draw synthetic records within the bounds, in the columns' own units.

        They are post-processing: draw as many as you like. ``random_state`` makes the draw repeatable and is no secret.
        """
        check_is_fitted(self)
        check_whole("n_samples", n_samples)
        bounds, rng = self.releases_[0].bounds, generator(random_state)
        found = self._mixture.sample(int(n_samples), rng)
        for _ in range(_REDRAWS):
            outside = np.flatnonzero(_outside(found, bounds))
            if not len(outside):
                break
            found[outside] = self._mixture.sample(len(outside), rng)
        low, high = np.array(bounds.x).T
        return np.clip(bounds.natural(found), low, high)


_REDRAWS = 50  # of records that fell outside the bounds; then they are moved to the edge


def _outside(unit: Array, bounds: Bounds) -> NDArray[np.bool_]:
    """Which points lie outside the box, or the ball."""
    natural, (low, high) = bounds.natural(unit), np.array(bounds.x).T
    outside: NDArray[np.bool_] = ((natural < low) | (natural > high)).any(axis=1)
    return outside if bounds.norm is None else outside | ((unit**2).sum(axis=1) > 1)


def _shaped(mixture: Mixture, kind: str) -> Mixture:
    """The mixture with covariances of this type."""
    return axes(mixture, spherical=kind == "spherical") if kind in ("diag", "spherical") else mixture
