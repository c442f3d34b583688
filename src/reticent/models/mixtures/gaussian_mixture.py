"""Gaussian mixtures with differential privacy, by staged, whitened residuals.

Proof: gaussian_mixture.md, privacy/row_maps/mixture_moments.md.

    1 pooled      a radius that holds most records (counts), mean and covariance (a Gram matrix),
                  the same again on whitened records
    2 centres     whitened and projected to the leading directions: three times as many centres as
                  components move step by step, are merged by Ward's rule, and move again. In one or
                  two dimensions instead: one noisy histogram
    3 tied        residuals from the centre of a record's component, in all directions, with one
                  covariance for all components
    4 components  residuals with a covariance for each component

With columns of words (mixed_steps.py) the same stages look at indicators of levels as numbers until
the centres are found, and then at numbers and levels one by one.

Between releases everything is computed from releases. The schedule is fixed beforehand but for what
releases decide: a private comparison ends the search for components if one normal distribution fits
better, and then all that is left is spent on that one.
"""

import math
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from reticent.errors import BadInput
from reticent.inference.mixtures.bounded_normal import sample_bounded_normal
from reticent.inference.mixtures.gaussian_mixture import (
    NormalMixture,
    chi_quantile,
    clamp_eigenvalues,
    map_estimate,
)
from reticent.inference.mixtures.latent_class import LatentClassMixture
from reticent.inference.mixtures.merging import heavy_components
from reticent.models.base import PrivateEstimator
from reticent.models.mixtures.complete_records import CompleteRecords, of_complete
from reticent.models.mixtures.em_steps import (
    best_radius,
    em_step,
    fewest_components,
    find_centres,
    fit_histogram,
    fit_pooled_normal,
    fits_better,
    mixture_lengths,
    refine_normal,
    with_axis_aligned_covariances,
)
from reticent.models.mixtures.mixed_columns import (
    MixedColumns,
    as_table,
    check_encoded_width,
    level_codes,
    rounding_variances,
)
from reticent.models.mixtures.mixed_steps import (
    Margins,
    as_latent_classes,
    mixed_em_step,
    refine_single,
)
from reticent.models.mixtures.mixed_steps import fits_better as mixed_fits_better
from reticent.models.mixtures.record_view import RecordView
from reticent.models.mixtures.settings import MIXTURE, MixtureSchedule
from reticent.models.unit_total import unit_total
from reticent.privacy.bounds import Bounds
from reticent.privacy.curator import Oracle
from reticent.validation import as_float, as_generator, check_choice, check_integer

__all__ = ["GaussianMixture"]

Array = NDArray[np.float64]
COVARIANCE_TYPES = ("full", "tied", "diag", "spherical")


@dataclass(repr=False, eq=False)
class GaussianMixture(PrivateEstimator):
    """Mixture of normal distributions, with differential privacy.

    A density, soft clusters, and synthetic records drawn from it. Of mixed columns, each component
    is a latent class: a normal distribution of numbers, dates and many whole numbers, and
    independent of it the probabilities of the levels of each column of words, of few whole numbers,
    and of twelve cells of a cycle. A record that lacks a value adds nothing.

    Parameters
    ----------
    n_components : int, optional
        Number of normal distributions. Fewer are used if the budget cannot carry so many, or if one
        normal distribution fits better: which is decided from public numbers and releases
        (``n_components_``). Without it as many as the releases tell apart, ten at the most, at no
        further cost in privacy.
    covariance_type : "full", "tied", "diag" or "spherical"
        A covariance for each component, one for all, variances of each component along the columns,
        or one variance of each component (on the bounds' scale).
    weight_concentration_prior : float, at least 1
        α of a Dirichlet prior for the weights. 1 is no prior.
    mean_precision_prior : float, at least 0
        κ₀: as many records as the prior for each mean weighs, which is the mean of all records. 0
        is no prior.
    degrees_of_freedom_prior : float or None
        ν₀ of an inverse-Wishart prior for each covariance, more than d − 1; it weighs as much as
        ν₀ + d + 2 records with the covariance of all. None is no prior. Priors are applied to what
        was released, at no cost.
    bounds, epsilon, delta, ledger, dataset, records_per_person, random_state
        As for every private estimator (``PrivateEstimator``). ``delta`` must be positive.

    Attributes
    ----------
    n_components_ : int
    weights_ : array of shape (n_components_,)
    means_ : array of shape (n_components_, n_features)
    covariances_ : array of shape (n_components_, n_features, n_features)
        In the columns' own units, whatever the type of covariance; in columns of words, means and
        variances of the codes 0, 1, and so on.
    level_probabilities_ : dict of name to array of shape (n_components_, levels)
        Probabilities of the levels of each column of words in each component.
    pooled_mean_, pooled_covariance_ : arrays
        Those of one normal distribution for all records, from the first stage.
    n_complete_, n_complete_sd_ : float
        Number of records that lack no value, by the releases, and the noise in it.
    guarantee_, releases_, n_features_in_, feature_names_in_
        As for every private estimator.

    Privacy
    -------
    Neighbours: one record replaced, number of records public. Released: counts of lengths, moments
    of all records, and moments of residuals under responsibilities, stage by stage; with columns of
    words also counts of their levels, of all records and under responsibilities. Must be public:
    the bounds, the number of records, all parameters. ``score``, ``score_samples``, ``predict`` and
    ``predict_proba`` read the records they are given without protection; ``sample`` reads none.

    Examples
    --------
    >>> import numpy as np, reticent
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(-2, 1, size=(6000, 3)), rng.normal(2, 1, size=(4000, 3))])
    >>> bounds = reticent.Bounds(x=(-10, 10))
    >>> model = reticent.GaussianMixture(2, bounds=bounds, epsilon=1, delta=1e-6).fit(X)
    >>> np.sort(model.weights_).round(1).tolist()
    [0.4, 0.6]
    >>> model.sample(5, random_state=0).shape
    (5, 3)
    """

    _pure = False
    _releases = MIXTURE.shares

    n_components: int | None = None
    _: KW_ONLY
    covariance_type: str = "full"
    weight_concentration_prior: float = 1.0
    mean_precision_prior: float = 0.0
    degrees_of_freedom_prior: float | None = None

    def _check(self) -> None:
        if self.n_components is not None:
            check_integer("n_components", self.n_components, 1, MIXTURE.most_components)
        check_choice("covariance_type", self.covariance_type, COVARIANCE_TYPES)
        for name, least in (("weight_concentration_prior", 1), ("mean_precision_prior", 0)):
            if not least <= as_float(getattr(self, name)) < math.inf:
                raise BadInput(
                    f"{name} must be a number of at least {least}, not {getattr(self, name)!r}."
                )

    def _validate_before_charge(self, bounds: Bounds) -> None:
        nu = self.degrees_of_freedom_prior
        least = len(bounds.x) - 1
        if nu is not None and not least < as_float(nu) < math.inf:
            raise BadInput(
                "degrees_of_freedom_prior must be None, or a number of more "
                f"than {least}, not {nu!r}."
            )
        check_encoded_width(MixedColumns.of(bounds).encoding)
        components = self._most_components(len(bounds.x))
        numbers = components * len(bounds.x) ** 2
        most = MIXTURE.most_covariance_numbers
        if numbers > most:
            raise BadInput(
                f"{components} covariances of {len(bounds.x)} columns are {numbers:,} "
                f"numbers, more than {most:,}: choose fewer components or columns."
            )

    def _most_components(self, d: int) -> int:
        """How many components there may be: a public number."""
        if self.n_components is not None:
            return int(self.n_components)
        carried = MIXTURE.most_covariance_numbers // d**2
        return min(MIXTURE.free_components[1], max(carried, 1))

    def _sought_components(self, d: int, columns: int, count_sd: float, n: float) -> int:
        """How many components are sought in d directions: each must not be lost in the noise.

        ``columns``: of the table; ``count_sd``: noise of a count with one budget share.
        """
        few = MIXTURE.free_components[0]
        histogram = columns == d <= MIXTURE.most_histogram_columns
        searched = self.n_components is None and not histogram
        components = self._most_components(columns)
        while components > 1:
            noise = _centre_noise(components, d, count_sd) / n
            allowed = MIXTURE.carried_centre_sd
            if searched and components > few:
                allowed = MIXTURE.free_centre_sd
            if noise <= allowed:
                break
            components -= 1
        return components

    def learn(self, curator: Oracle) -> None:
        """Ask for one stage after the other; each depends on releases before it only."""
        columns = MixedColumns.of(curator.bounds)
        view = RecordView(curator, CompleteRecords(unit_total(curator)))
        if columns.words:
            self._learn_mixed(replace(view, encoding=columns.encoding), columns)
        else:
            self._learn_normals(view)
        self.n_complete_ = view.complete.number
        self.n_complete_sd_ = view.complete.sd

    def _learn_normals(self, view: RecordView) -> None:
        """Learn components of numbers alone."""
        pooled, most, count_sd = fit_pooled_normal(view, MIXTURE.pooled)
        mixture = self._learn_components(view, pooled, most, count_sd)
        priors = (
            self.weight_concentration_prior,
            self.mean_precision_prior,
            self.degrees_of_freedom_prior,
        )
        if priors != (1.0, 0.0, None):
            mixture = map_estimate(mixture, pooled, view.complete.number, *priors)
        self._publish(mixture, pooled, view.curator.bounds)

    def _learn_mixed(self, view: RecordView, columns: MixedColumns) -> None:
        """Learn latent classes: components that have probabilities of levels, too."""
        margins = Margins(columns)
        margins.look(view, MIXTURE.margins)
        pooled, _, count_sd = fit_pooled_normal(view, MIXTURE.pooled)
        one = as_latent_classes(columns, pooled, margins)
        one = replace(
            one, level_probabilities=tuple(margin[None] for margin in margins.level_probabilities)
        )
        numbers = view.of(columns.coordinates()[0])
        mixture = self._learn_latent_classes(view, numbers, margins, pooled, one, count_sd)
        mixture = self._with_priors(mixture, one, view.complete.number)
        self._publish_mixed(mixture, one, columns, view.curator.bounds)

    def _with_priors(
        self, mixture: LatentClassMixture, one: LatentClassMixture, n: float
    ) -> LatentClassMixture:
        """Latent classes under the priors for weights, means and covariances (MAP)."""
        alpha = float(self.weight_concentration_prior)
        kappa, nu = float(self.mean_precision_prior), self.degrees_of_freedom_prior
        if (alpha, kappa, nu) == (1.0, 0.0, None):
            return mixture
        if mixture.normal is None or one.normal is None:
            sizes = n * mixture.weights + alpha - 1
            return replace(mixture, weights=sizes / sizes.sum())
        normal = map_estimate(mixture.normal, one.normal, n, alpha, kappa, nu)
        return replace(mixture, weights=normal.weights, normal=normal)

    def _learn_latent_classes(
        self,
        view: RecordView,
        numbers: RecordView,
        margins: Margins,
        pooled: NormalMixture,
        one: LatentClassMixture,
        count_sd: float,
    ) -> LatentClassMixture:
        """Spend what margins and the pooled stage left on the components.

        ``view`` is of all encoded coordinates, ``numbers`` of the numbers; ``one`` is what one
        component would be.
        """
        columns = margins.columns
        plan = MIXTURE.uncertain_centres
        left = MIXTURE.shares - sum(MIXTURE.pooled) - MIXTURE.margins
        components = self._sought_components(
            view.dimension, len(view.curator.bounds.x), count_sd, view.complete.number
        )
        if components == 1:
            return refine_single(numbers, one, margins, left)
        found = find_centres(
            view,
            pooled,
            components,
            plan.each_centre_step,
            units=columns.units(pooled.covariances[0]),
            directions=max(2, components - 1),
        )
        mixture = as_latent_classes(columns, found, margins)
        covariance_type = str(self.covariance_type)
        tied_type = "tied" if covariance_type == "full" else covariance_type
        mixture = _constrained_numbers(mixture, covariance_type)
        for step, shares in enumerate(plan.tied):
            mixture = mixed_em_step(
                numbers,
                mixture,
                margins,
                shares,
                covariance_type=tied_type,
                least_step=1 / (step + 1),
            )
        last = plan.components - MIXTURE.margins
        if self.n_components is None:
            joined, asked = fewest_components(
                view,
                mixture,
                count_sd,
                lambda few, many, price: mixed_fits_better(
                    numbers, columns, few, many, MIXTURE.question, price
                ),
            )
            last -= asked * MIXTURE.question
            if len(joined.weights) == 1:
                return refine_single(numbers, one, margins, last + 2 * MIXTURE.comparison)
            if len(joined.weights) < components and joined.normal is not None:
                joined = replace(joined, normal=_of_type(joined.normal, covariance_type))
            mixture = joined
        if not mixed_fits_better(numbers, columns, mixture, one, MIXTURE.comparison):
            return refine_single(numbers, one, margins, last + MIXTURE.comparison)
        initial = mixture
        for step, shares in enumerate((last // 3, last - last // 3)):
            mixture = mixed_em_step(
                numbers,
                mixture,
                margins,
                shares,
                covariance_type=covariance_type,
                least_step=1 / (step + 3),
                moment_weights=plan.moment_weights,
            )
        if self.n_components is None:
            mixture = _clear_of_noise(mixture, view, count_sd)
        if mixed_fits_better(numbers, columns, mixture, initial, MIXTURE.comparison):
            return mixture
        return initial

    def _publish_mixed(
        self,
        mixture: LatentClassMixture,
        one: LatentClassMixture,
        columns: MixedColumns,
        bounds: Bounds,
    ) -> None:
        """Set the fitted attributes, in the columns' own units; of levels, moments of the codes."""
        mixture = _constrained_numbers(mixture, str(self.covariance_type))
        if mixture.normal is not None:
            means = np.clip(mixture.normal.means, -1.0, 1.0)
            mixture = replace(
                mixture, normal=NormalMixture(mixture.weights, means, mixture.normal.roots)
            )
        self._mixture: NormalMixture | LatentClassMixture = mixture
        self._columns = columns
        self.n_components_ = len(mixture.weights)
        self.weights_ = mixture.weights
        self.means_, self.covariances_ = _code_moments(mixture, columns, bounds)
        pooled_means, pooled_covariances = _code_moments(one, columns, bounds)
        self.pooled_mean_ = pooled_means[0]
        self.pooled_covariance_ = pooled_covariances[0]
        names = bounds.x_names or tuple(f"x{j}" for j in range(len(bounds.x)))
        self.level_probabilities_ = {
            names[j]: probabilities
            for (j, _), probabilities in zip(
                columns.words, mixture.level_probabilities, strict=True
            )
        }

    def _publish(self, mixture: NormalMixture, pooled: NormalMixture, bounds: Bounds) -> None:
        """Set the fitted attributes, in the columns' own units."""
        low, high = bounds.scale_unclipped(np.array(bounds.x).T)
        inside = NormalMixture(mixture.weights, np.clip(mixture.means, low, high), mixture.roots)
        constrained = _constrained(inside, str(self.covariance_type))
        self._mixture = constrained
        self._columns = MixedColumns.of(bounds)
        self.level_probabilities_ = {}
        scale = bounds.unscale(np.ones(len(bounds.x))) - bounds.unscale(np.zeros(len(bounds.x)))
        self.n_components_ = len(mixture.weights)
        self.weights_ = self._mixture.weights
        self.means_ = bounds.unscale(constrained.means)
        self.covariances_ = constrained.covariances * np.outer(scale, scale)
        self.pooled_mean_ = bounds.unscale(pooled.means[0])
        self.pooled_covariance_ = pooled.covariances[0] * np.outer(scale, scale)

    def _learn_components(
        self, view: RecordView, pooled: NormalMixture, most: NormalMixture, count_sd: float
    ) -> NormalMixture:
        """Spend what the pooled stage left on the components.

        ``most``: normal distribution of most records, where components are looked for;
        ``count_sd``: noise of a count with one budget share.
        """
        d = pooled.means.shape[1]
        shares_left = MIXTURE.shares - sum(MIXTURE.pooled)
        components = self._sought_components(d, d, count_sd, view.complete.number)
        if components == 1:
            return _learn_single(view, pooled, shares_left)
        if d <= MIXTURE.most_histogram_columns:
            return self._learn_from_histogram(view, pooled, most, components, shares_left, count_sd)
        return self._learn_from_centres(view, pooled, most, components, count_sd)

    def _learn_from_histogram(
        self,
        view: RecordView,
        pooled: NormalMixture,
        most: NormalMixture,
        components: int,
        shares_left: int,
        count_sd: float,
    ) -> NormalMixture:
        """Components from one histogram and, with enough records, from residuals besides."""
        plan = MIXTURE.uncertain_centres
        at_most = self.n_components is None
        component_size = view.complete.number * math.sqrt(MIXTURE.shares) / (count_sd * components)
        if component_size < MIXTURE.refined_component_size:
            shares = shares_left - MIXTURE.comparison
            mixture = fit_histogram(view, most, components, shares, count_sd, at_most=at_most)
            if fits_better(view, mixture, pooled, MIXTURE.comparison):
                return mixture
            return pooled
        shares = MIXTURE.search_shares(plan)
        mixture = fit_histogram(view, most, components, shares, count_sd, at_most=at_most)
        mixture = _constrained(mixture, str(self.covariance_type))
        return self._learn_covariances(view, mixture, pooled, count_sd, plan)

    def _learn_from_centres(
        self,
        view: RecordView,
        pooled: NormalMixture,
        most: NormalMixture,
        components: int,
        count_sd: float,
    ) -> NormalMixture:
        """Components from centres, then with a tied covariance, then with one for each."""
        covariance_type = str(self.covariance_type)
        plan = MIXTURE.uncertain_centres
        noise = _centre_noise(components, pooled.means.shape[1], count_sd) / view.complete.number
        if covariance_type == "full" and noise <= MIXTURE.certain_centre_sd:
            plan = MIXTURE.certain_centres
        mixture = find_centres(view, most, components, plan.each_centre_step)
        mixture = _constrained(mixture, covariance_type)
        tied_type = covariance_type
        if covariance_type == "full":
            tied_type = "tied"
        for step, shares in enumerate(plan.tied):
            mixture = em_step(
                view,
                mixture,
                shares,
                covariance_type=tied_type,
                least_step=1 / (step + 1),
            )
        if self.n_components is None:
            joined, asked = fewest_components(
                view,
                _as_classes(mixture),
                count_sd,
                lambda few, many, price: fits_better(
                    view, _numbers_of(few), _numbers_of(many), MIXTURE.question, price
                ),
            )
            plan = replace(plan, components=plan.components - asked * MIXTURE.question)
            if len(joined.weights) == 1:
                return _learn_single(view, pooled, plan.components + 2 * MIXTURE.comparison)
            if len(joined.weights) < components:
                mixture = _of_type(_numbers_of(joined), covariance_type)
        return self._learn_covariances(view, mixture, pooled, count_sd, plan)

    def _learn_covariances(
        self,
        view: RecordView,
        mixture: NormalMixture,
        pooled: NormalMixture,
        count_sd: float,
        plan: MixtureSchedule,
    ) -> NormalMixture:
        """The last stage; what it gives must fit better than what it began with.

        It must fit better than one normal distribution, too. That is asked before the last stage,
        since the one needs its budget, or after it where noise is so low that it does not.
        """
        initial = mixture
        components, d = mixture.means.shape
        radius = chi_quantile(d, MIXTURE.clip_quantile)
        noise = (
            count_sd
            * radius**2
            * math.sqrt(d / plan.components)
            * components
            / view.complete.number
        )
        looks: tuple[int, ...] = ()
        last = plan.components
        if self.covariance_type != "full" or noise <= MIXTURE.single_look_noise:
            looks, last = _looks(plan.components, noise)
        converges = len(looks) > 1
        if not converges and not fits_better(view, mixture, pooled, MIXTURE.comparison):
            return _learn_single(view, pooled, plan.components + MIXTURE.comparison)
        covariance_type = str(self.covariance_type)
        if covariance_type == "full" and noise > MIXTURE.hopeless_noise:
            covariance_type = "tied"
            mixture = _of_type(mixture, covariance_type)
        step = partial(
            em_step,
            view,
            covariance_type=covariance_type,
            moment_weights=plan.moment_weights,
        )
        if looks:
            lengths = mixture_lengths(view, mixture, 1)
            radius = best_radius(lengths, d, 1 / looks[0], components)
        for done, shares in enumerate(looks):
            mixture = step(mixture, shares, least_step=1 / (done + 3), radius=radius)
        mixture = step(mixture, last, least_step=1 / (len(looks) + 3))
        if self.n_components is None:
            mixture = _numbers_of(_clear_of_noise(_as_classes(mixture), view, count_sd))
        if not fits_better(view, mixture, initial, MIXTURE.comparison):
            mixture = initial
        if converges and not fits_better(view, mixture, pooled, MIXTURE.comparison):
            return pooled
        return mixture

    def score_samples(self, X: object) -> Array:
        """Log-density of each record, on the bounds' scale; NaN where a value is missing.

        Of words it is the logarithm of their probability. Not protected.
        """

        def score(unit: Array) -> Array:
            if isinstance(self._mixture, NormalMixture):
                return self._mixture.score(unit)
            return self._mixture.score(*self._columns.split(unit))

        return of_complete(self._unit(X), score)

    def predict_proba(self, X: object) -> Array:
        """Probability of each component for each record, (records, components). Not protected.

        NaN where a value is missing.
        """

        def responsibilities(unit: Array) -> Array:
            if isinstance(self._mixture, NormalMixture):
                return self._mixture.responsibilities(unit)
            return self._mixture.responsibilities(*self._columns.split(unit))

        return of_complete(self._unit(X), responsibilities, self.n_components_)

    def predict(self, X: object) -> NDArray[np.intp]:
        """The most likely component of each record; −1 where a value is missing. Not protected."""
        responsibilities = self.predict_proba(X)
        return np.where(np.isnan(responsibilities[:, 0]), -1, responsibilities.argmax(axis=1))

    def sample(self, n_samples: int = 1, random_state: object = None) -> Any:
        """Draw synthetic records within the bounds.

        An array in the columns' own units if all columns are plain numbers; else a dict of columns
        by name, with words, whole numbers, ISO dates and numbers, which any data frame takes. Each
        component is truncated to the bounds in such a way that it keeps its mean and its
        variances. Samples are post-processing: draw as many as you like. ``random_state`` makes the
        draw repeatable and is no secret.
        """
        check_is_fitted(self)
        check_integer("n_samples", n_samples)
        bounds = self.releases_[0].bounds
        random = as_generator(random_state)
        if isinstance(self._mixture, NormalMixture):
            unit = _sample_within(self._mixture, int(n_samples), bounds, random)
            low, high = np.array(bounds.x).T
            return as_table(bounds, np.clip(bounds.unscale(unit), low, high))
        codes = _sample_codes(self._mixture, self._columns, int(n_samples), bounds, random)
        return as_table(bounds, codes)


def _sample_codes(
    mixture: LatentClassMixture,
    columns: MixedColumns,
    n: int,
    bounds: Bounds,
    random: np.random.Generator,
) -> Array:
    """Codes (n, d) of records drawn from latent classes."""
    component = random.choice(len(mixture.weights), size=n, p=mixture.weights)
    codes = np.empty((n, len(bounds.x)))
    if columns.numbers:
        assert mixture.normal is not None
        kept = list(columns.numbers)
        unit = np.zeros((n, len(bounds.x)))
        rounding = _scaled_rounding(bounds)[kept]
        edges = -np.ones(len(kept)), np.ones(len(kept))
        unit[:, kept] = _sample_box(mixture.normal, component, *edges, rounding, random)
        codes[:, kept] = bounds.unscale(unit)[:, kept]
    for (j, _), probabilities in zip(columns.words, mixture.level_probabilities, strict=True):
        ends = np.cumsum(probabilities, axis=1)[:, :-1]
        level = (random.uniform(size=n)[:, None] > ends[component]).sum(axis=1)
        codes[:, j] = level_codes(bounds.x_kinds[j], level, random)
    return codes


def _scaled_rounding(bounds: Bounds) -> Array:
    """Variance that rounding to whole numbers adds to each column, on the bounds' scale."""
    d = len(bounds.x)
    half_ranges = bounds.unscale(np.ones(d)) - bounds.unscale(np.zeros(d))
    return np.asarray(rounding_variances(bounds) / half_ranges**2)


def _code_moments(
    mixture: LatentClassMixture, columns: MixedColumns, bounds: Bounds
) -> tuple[Array, Array]:
    """Means (K, d) and covariances (K, d, d) of the columns' codes, in their own units."""
    components = len(mixture.weights)
    d = len(bounds.x)
    means = np.zeros((components, d))
    covariances = np.zeros((components, d, d))
    scale = bounds.unscale(np.ones(d)) - bounds.unscale(np.zeros(d))
    if mixture.normal is not None:
        kept = np.array(columns.numbers)
        unit = np.zeros((components, d))
        unit[:, kept] = mixture.normal.means
        means = bounds.unscale(unit)
        covariances[:, kept[:, None], kept] = mixture.normal.covariances
        covariances *= np.outer(scale, scale)
    for (j, many), probabilities in zip(columns.words, mixture.level_probabilities, strict=True):
        low, high = bounds.x[j]
        codes = low + (np.arange(many) + 0.5) * (high - low) / many
        means[:, j] = probabilities @ codes
        covariances[:, j, j] = probabilities @ codes**2 - means[:, j] ** 2
    return means, covariances


def _constrained_numbers(mixture: LatentClassMixture, covariance_type: str) -> LatentClassMixture:
    """The mixture with covariances of this type between its numbers."""
    if mixture.normal is None:
        return mixture
    return replace(mixture, normal=_constrained(mixture.normal, covariance_type))


def _sample_within(
    mixture: NormalMixture, n: int, bounds: Bounds, random: np.random.Generator
) -> Array:
    """Scaled points (n, d) of a mixture in the box, and the ball if there is one."""
    low, high = bounds.scale_unclipped(np.array(bounds.x).T)
    weights = mixture.weights / mixture.weights.sum()
    rounding = _scaled_rounding(bounds)

    def draw(many: int) -> Array:
        component = random.choice(len(weights), size=many, p=weights)
        return _sample_box(mixture, component, low, high, rounding, random)

    unit = draw(n)
    if bounds.norm is None:
        return unit
    for _ in range(MIXTURE.redraws):
        outside = np.flatnonzero((unit**2).sum(axis=1) > 1)
        if not len(outside):
            return unit
        unit[outside] = draw(len(outside))
    length = np.sqrt((unit**2).sum(axis=1))
    return np.asarray(unit / np.maximum(length, 1.0)[:, None])


def _sample_box(
    mixture: NormalMixture,
    component: NDArray[np.int64],
    low: Array,
    high: Array,
    rounding: Array,
    random: np.random.Generator,
) -> Array:
    """Scaled points (n, d) of these components (n,), truncated to the box.

    ``rounding``: variance that rounding will add to each column, where there is room for it.
    """
    unit = np.empty((len(component), mixture.means.shape[1]))
    for k in np.unique(component):
        drawn = component == k
        covariance = mixture.covariances[k].copy()
        variances = np.diag(covariance)
        np.fill_diagonal(covariance, np.maximum(variances - rounding, variances / 2))
        if rounding.any():
            covariance = clamp_eigenvalues(covariance, MIXTURE.least_sd**2)
        unit[drawn] = sample_bounded_normal(
            int(drawn.sum()), mixture.means[k], covariance, low, high, random
        )
    return unit


def _centre_noise(components: int, d: int, count_sd: float) -> float:
    """How far noise moves a centre in one step, times the number of records.

    In standard deviations of a component.
    """
    directions = min(d, math.ceil(MIXTURE.directions_per_component * components))
    step_sd = count_sd / math.sqrt(MIXTURE.uncertain_centres.each_centre_step)
    return step_sd * chi_quantile(directions, MIXTURE.clip_quantile) * components


def _looks(shares: int, noise: float) -> tuple[tuple[int, ...], int]:
    """Budget shares of the first looks at components, a third less one together, and of the last.

    ``noise``: in the eigenvalues of a component's covariance, relative to them, with all shares.
    The less noise there is, the more looks: those before the last one are steps of EM, which is to
    converge, and the last one is as clear as with two looks.
    """
    first = shares // 3 - 1
    steps = int(min(max((MIXTURE.converging_noise / noise) ** 2 / 3, 1), first))
    each = tuple(first * (i + 1) // steps - first * i // steps for i in range(steps))
    return each, shares - shares // 3


def _learn_single(view: RecordView, pooled: NormalMixture, shares_left: int) -> NormalMixture:
    """One normal distribution, with all budget shares that are left."""
    normal = pooled
    for shares in (shares_left // 3, shares_left - shares_left // 3):
        normal = refine_normal(view, normal, shares)
    return normal


def _clear_of_noise(
    mixture: LatentClassMixture, view: RecordView, count_sd: float
) -> LatentClassMixture:
    """The mixture without components that are within the noise of a count."""
    return heavy_components(mixture, MIXTURE.visible_centre * count_sd / view.complete.number)


def _as_classes(mixture: NormalMixture) -> LatentClassMixture:
    """Latent classes that have numbers alone."""
    return LatentClassMixture(mixture.weights, mixture, ())


def _numbers_of(mixture: LatentClassMixture) -> NormalMixture:
    """The normal mixture of latent classes that have numbers alone."""
    assert mixture.normal is not None
    return mixture.normal


def _of_type(mixture: NormalMixture, covariance_type: str) -> NormalMixture:
    """The mixture with covariances of this type, of components that had others."""
    if covariance_type != "tied" or (mixture.roots == mixture.roots[0]).all():
        return _constrained(mixture, covariance_type)
    within = np.einsum("k,kpq->pq", mixture.weights, mixture.covariances)
    root = np.linalg.cholesky(clamp_eigenvalues(within, MIXTURE.least_sd**2))
    return replace(mixture, roots=np.repeat(root[None], len(mixture.weights), axis=0))


def _constrained(mixture: NormalMixture, covariance_type: str) -> NormalMixture:
    """The mixture with covariances of this type."""
    if covariance_type in ("diag", "spherical"):
        spherical = covariance_type == "spherical"
        return with_axis_aligned_covariances(mixture, spherical=spherical)
    return mixture
