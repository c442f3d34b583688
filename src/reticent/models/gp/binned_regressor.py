"""A Gaussian process on a private histogram of counts or means, by integral kernels.

Proof: binned_regressor.md.

One joint release holds, for every bin and empty ones too, how many records are in it and what their
outputs add up to (`binned_sums.BinSums`). The rest is post-processing (`inference.binned`): bins
are averages of the function over boxes, the noise of each is known, and kernels are weighed by
the evidence of the released bins.
"""

from dataclasses import KW_ONLY, dataclass, replace
from math import hypot, inf, prod, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel, Matern
from sklearn.utils.validation import check_is_fitted

from reticent.errors import BadInput
from reticent.inference.binned.hyperparameters import (
    BinnedPosterior,
    ProcessPrior,
    fit_density,
    fit_means,
)
from reticent.inference.binned.posterior import (
    RegionObservations,
    Regions,
    likelihood_quadratics,
    occupied_outputs,
    occupied_part,
)
from reticent.inference.inputs.complete_records import (
    CompleteRecords,
    UnitTotal,
    complete_records,
)
from reticent.inference.kernels.columns import mixed_kernel
from reticent.inference.kernels.integral import Boxes, kernel_mixture
from reticent.inference.kernels.projection import kernels_around
from reticent.inference.labels.missing_labels import MissingLabels
from reticent.models.base import PrivateEstimator
from reticent.models.gp.binning import (
    check_volumes,
    given_regions,
    label_sums,
    make_grid,
    region_boxes,
    region_neighbours,
)
from reticent.models.gp.input_features import fill_missing
from reticent.models.gp.prior_hypotheses import axes_of, check_kernel_columns
from reticent.models.gp.regression_score import RegressionScore
from reticent.models.gp.settings import BINNED, LIMITS, PRIOR
from reticent.models.replay import alike
from reticent.models.unit_total import unit_total
from reticent.privacy.bounds import Bounds
from reticent.privacy.curator import Oracle, Release, Scores
from reticent.privacy.people.unit import PrivacyUnit
from reticent.privacy.release import check_scale, noise_scale
from reticent.privacy.row_maps.binned_sums import (
    BinCounts,
    BinSums,
    BinTotals,
    DecodedBinCounts,
    DecodedBinSums,
    Grid,
    LabelSums,
)
from reticent.privacy.statistics.exact_sum import one_blas_thread
from reticent.validation import as_float, as_generator, check_choice, check_integer

if TYPE_CHECKING:
    from sklearn.utils import Tags

__all__ = ["BinnedGPRegressor"]

Array = NDArray[np.float64]
EXPONENTIAL = "exponential"


@dataclass(repr=False, eq=False)
class BinnedGPRegressor(RegressionScore, PrivateEstimator):
    """Gaussian-process regression on a differentially private histogram of means or counts.

    Parameters
    ----------
    kernel : scikit-learn kernel, optional
        The prior of the function, in the units of the data (for counts: of records per unit of
        volume): sums and products of ConstantKernel, RBF, Matern, RationalQuadratic. A
        hyperparameter's own bounds are its prior; "fixed" means fixed. Default: an RBF kernel with
        a length for each input; for means also a constant, and for one number a Matérn kernel with
        ν = 5/2 in its place as far as the released bins speak for it; words in no order have
        effects of their own, alone and with the other inputs. A kernel that is given sees codes,
        and is refused for more than two words in no order; beside it, the level of means may be
        anywhere in the range of y.
    bins : int, list of int, or list of edges, optional
        Number of equal bins of each input between its bounds, or their edges. Default: chosen from
        the number of records, the noise and the number of inputs. For one to four inputs. An input
        with levels (words, ordered or not, yes and no) has one bin for each; in a list, give None
        for it.
    regions : integer array of the grid's shape, optional
        Joins cells of the grid to regions, numbered from 0; −1 for cells that are in none. A
        boolean array keeps single cells.
    kind : "mean" or "count"
        What a bin gives: the mean output of its records, or how many records it has.
    integral : bool
        True: a bin is an average over its region. False: the function's value at the region's
        centre, for comparison.
    protect : "records" or "labels"
        What neighbours differ in: a whole record, or only its output, where all inputs are public.
        Not the same promise, and not the same account in a ledger.
    noise : float, optional
        For means: standard deviation of outputs at one place; learned if not given. For counts: by
        how many times √count a count scatters around its expectation; 1 (Poisson) if not given, 0
        for a curve whose area over each bin is the bin.
    learn_kernel : bool or "exponential"
        True: weigh kernels within a factor of ten of the one given, and inside its own bounds, by
        the evidence of the released bins, which is free. "exponential": choose one of them by the
        exponential mechanism instead, as in the paper's supplement, for a quarter of the budget (of
        μ²); to compare with. False: the kernel stays as it is.
    bounds, epsilon, delta, ledger, dataset, records_per_person, random_state
        As for every private estimator (``PrivateEstimator``). ``delta=0`` gives pure ε-DP by
        Laplace noise.

    Attributes
    ----------
    counts_, counts_sd_ : arrays, one number for each region
        The counts as they were released, with the noise's standard deviation: empty bins have noise
        too, and a count can be negative. A record that lacks a value is in no bin. (With
        ``protect="labels"``: the public number of records, less the noisy one of missing labels.)
    sums_, sums_sd_ : arrays
        For means: the noisy sums of outputs, each output counted from the middle of its range.
    bins_, bins_sd_ : arrays
        What the fit says of each region: its mean output, or its count; and the standard deviation
        of that.
    edges_ : list of arrays
    kernel_, noise_
        The kernel with the highest evidence, in the units of the data, and the noise.
    n_complete_, n_complete_sd_
        Number of records that lack no value, as far as the release tells, and the standard
        deviation of its error.
    guarantee_, releases_, n_features_in_, feature_names_in_
        As for every private estimator.

    Privacy
    -------
    Neighbours: one record replaced (``protect="records"``), or the output of one record
    (``"labels"``), number of records public. Released: all counts and sums of all regions at once,
    empty ones included, and with δ > 0 the sum of squared outputs; with
    ``learn_kernel="exponential"`` also the number of the chosen kernel. Must be public: the bounds,
    bins, regions, the number of records, the kernel, all parameters; with ``protect="labels"`` all
    inputs. ``score`` reads the records it is given without protection.

    Examples
    --------
    >>> import numpy as np, reticent
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(0, 10, size=(5000, 1))
    >>> y = np.sin(x[:, 0]) + 0.1 * rng.normal(size=5000)
    >>> bounds = reticent.Bounds(x=[(0, 10)], y=(-2, 2))
    >>> model = reticent.BinnedGPRegressor(bins=20, bounds=bounds, epsilon=1, delta=1e-6).fit(x, y)
    >>> mean, std = model.predict([[2.0]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(2.0)) < 0.3)
    True
    """

    @property
    def _releases(self) -> int:
        if self.learn_kernel == EXPONENTIAL:
            return BINNED.releases_of_bins + 1
        return 1

    _targets = property(lambda self: self.kind != "count")

    @property
    def _relation(self) -> str:  # type: ignore[override]
        if isinstance(self.protect, str) and self.protect == "labels":
            return "label"
        return "record"

    kernel: Kernel | None = None
    _: KW_ONLY
    bins: Any = None
    regions: Any = None
    kind: str = "mean"
    integral: bool = True
    protect: str = "records"
    noise: float | None = None
    learn_kernel: bool | str = True

    def _check(self) -> None:
        for name, known in (("kind", ("mean", "count")), ("protect", ("records", "labels"))):
            check_choice(name, getattr(self, name), known)
        if self.kind == "count" and self.protect == "labels":
            raise BadInput(
                "Counts have no labels to protect: with public inputs they are "
                "public. Use kind='mean'."
            )
        if self.kernel is not None and not isinstance(self.kernel, Kernel):
            raise BadInput(
                f"kernel must be a scikit-learn kernel such as RBF(2.0), not {self.kernel!r}."
            )
        if self.noise is not None and not 0 <= as_float(self.noise) < LIMITS.largest_noise:
            raise BadInput(
                f"noise must be a standard deviation, or None, not {self.noise!r}.",
                parameter="noise",
            )
        if not isinstance(self.integral, (bool, np.bool_)):
            raise BadInput(f"integral must be True or False, not {self.integral!r}.")
        chosen = isinstance(self.learn_kernel, str) and self.learn_kernel == EXPONENTIAL
        if not chosen and not isinstance(self.learn_kernel, (bool, np.bool_)):
            raise BadInput(
                f"learn_kernel must be True, False or {EXPONENTIAL!r}, not {self.learn_kernel!r}."
            )
        if chosen and self.delta == 0:
            raise BadInput(
                "learn_kernel='exponential' needs delta > 0; learn_kernel=True "
                "is free and needs none."
            )
        if isinstance(self.bounds, Bounds):
            if self.bounds.classes is not None or len(self.bounds.y) > 1:
                raise BadInput(
                    "BinnedGPRegressor takes one output with a range: give it "
                    "in the bounds, as in y=(2, 150)."
                )
            if self.bounds.norm is not None:
                raise BadInput("Bins fill a box: leave norm out of the bounds.")

    def _validate_unit(self, unit: PrivacyUnit) -> None:
        if self.learn_kernel == EXPONENTIAL and (unit.weighted or not unit.number_is_public):
            raise BadInput(
                "learn_kernel='exponential' is proved for records of equal weight whose number is "
                "public, and not for person, weight or neighbours='add-remove': take "
                "learn_kernel=True, which is free.",
                parameter="learn_kernel",
            )

    def _validate_before_charge(self, bounds: Bounds) -> None:
        grid = make_grid(2 if self.bins is None else self.bins, self.regions, bounds)
        check_volumes(grid)
        size = grid.size
        if size > BINNED.max_scored_regions and self.learn_kernel == EXPONENTIAL:
            raise BadInput(
                f"Kernels are chosen by scores for up to {BINNED.max_scored_regions:,} "
                f"bins, not {size:,}: take learn_kernel=True."
            )
        check_kernel_columns(self.kernel, bounds)
        chosen = [kind for kind in bounds.x_kinds if kind.levels is None]
        if self.bins is None and (len(chosen) > 4 or self.regions is not None):
            raise BadInput(
                "Give bins: they are chosen only for up to four inputs, and "
                "where there are no regions."
            )
        d = len(bounds.x)
        fits = False
        try:
            shortest = _shortest_lengths(grid, bounds, np.ones(d))
            m = kernel_mixture(self.kernel or self._kernel(bounds, self.kind, 1.0, shortest), d)
            if self.kind == "mean":
                unit = bounds.y[0][1] / 2 - bounds.y[0][0] / 2
            else:
                unit = 1.0
            smallest = LIMITS.smallest_variance
            representable = self.kernel is None or smallest < m.variance / unit**2 < 1 / smallest
            fits = bool(
                representable
                and np.isfinite(m.log_weights).all()
                and (self.kernel is None or np.isfinite(m.inverse).all())
            )
        except (ArithmeticError, ValueError, TypeError):
            fits = False
        if not fits:
            raise BadInput(
                f"The kernel {self.kernel} cannot be averaged over bins of {d} inputs: give sums "
                "and products of ConstantKernel, RBF, Matern and RationalQuadratic, with one "
                "length scale or one per input, in the units of the data. Noise of outputs is "
                "given by noise=…"
            )

    def _kernel(
        self,
        bounds: Bounds,
        kind: str,
        unit: float,
        shortest: Array,
        output_variance: float = 1.0,
        *,
        smoothness: float = inf,
    ) -> Kernel:
        """The kernel in units of the data; ``unit``: half-range of y, or the uniform density.

        A given kernel says how a function varies; its level may be anywhere in the range of y. The
        default's lengths begin at ``shortest`` half-ranges of each input (inputs,); its functions
        vary as outputs may, whose variance is ``output_variance`` of that of even ones, and it is
        an RBF kernel, or a Matérn kernel of this ``smoothness``.
        """
        if self.kernel is not None and kind == self.kind:
            if kind == "count":
                return clone(self.kernel)
            return clone(self.kernel) + ConstantKernel(PRIOR.level_variance * unit**2, "fixed")
        half = np.array([high / 2 - low / 2 for low, high in bounds.x])
        longest = BINNED.length_range[1] * half
        length_bounds = np.column_stack([shortest * half, longest])
        length = np.sqrt(shortest * half * longest)
        axes = axes_of(bounds)
        words = any(axis.shape == "words" for axis in axes)

        def constant(variance: float, scale: float = 1.0) -> Kernel:
            square = scale * unit**2
            limits = tuple(limit * square for limit in BINNED.variance_range)
            return ConstantKernel(variance * square, limits)

        if kind == "count" and not words:
            return constant(BINNED.density_variance) * RBF(length, length_bounds)
        if kind == "count":
            first = second = constant(BINNED.density_variance)
        else:
            first = constant(BINNED.constant_variance)
            second = constant(BINNED.function_variance, output_variance)
        if not words and smoothness == inf:
            return first + second * RBF(length, length_bounds)
        if not words:
            return first + second * Matern(length, length_bounds, nu=smoothness)
        return mixed_kernel(axes, length, length_bounds, first, second, nu=smoothness)

    def learn(self, curator: Oracle) -> None:
        """Release all bins at once."""
        bounds = curator.bounds
        n = curator.n
        times = curator.event.count - (self.learn_kernel == EXPONENTIAL)
        sd = curator.noise_multiplier * sqrt(2 / max(times, 1))
        if self.bins is None:
            levels = [len(kind.levels) for kind in bounds.x_kinds if kind.levels is not None]
            smooth = len(bounds.x) - len(levels)
            bins = _choose_bins(n / sd / prod(levels), max(smooth, 1))
        else:
            bins = self.bins
        grid = make_grid(bins, self.regions, bounds)
        spread = self.delta != 0
        if self.kind == "count":
            release = curator.release(BinCounts(grid, bounds), shares_spent=times)
        elif self.protect == "records":
            release = curator.release(BinSums(grid, bounds, spread), shares_spent=times)
        else:
            release = curator.release_given_inputs(
                lambda *public: label_sums(grid, bounds, spread, *public), shares_spent=times
            )
        boxes, of = region_boxes(grid)
        self._regions = Regions(boxes, of, grid.size, bool(self.integral))
        self.edges_ = [np.array(edges) for edges in grid.edges]
        half = np.array([high / 2 - low / 2 for low, high in bounds.x])
        affordable = max(BINNED.work / max(grid.size, 10) ** 3, BINNED.min_hypotheses)
        trials = int(min(affordable, BINNED.hypotheses))
        self._volume = float(np.prod(2 * half))
        self._complete = self._complete_records(release, unit_total(curator))
        density = self._complete.mean / self._volume
        if not self._one_each and not grid.whole:  # counted in regions alone
            density = self._complete.mean / float(self._regions.volumes.sum())
        self._expected = density * self._regions.volumes
        if self.kind == "count":
            self._middle = self._half = density
        else:
            ((low, high),) = bounds.y
            self._middle = low / 2 + high / 2
            self._half = high / 2 - low / 2
        shortest = _shortest_lengths(grid, bounds, np.ones(len(half)))
        prior = ProcessPrior(
            self._kernel(bounds, self.kind, self._half, shortest),
            self._half**-2,
            half,
            float(shortest.min()),
            bool(self.learn_kernel),
            trials,
            coarse=self.kernel is None,
        )
        if self.learn_kernel == EXPONENTIAL:
            prior = self._choose_kernel(curator, prior, grid, release)
        if self.kind == "count":
            self._take_counts(release, prior)
        else:
            self._take_sums(release, grid, bounds, prior, spread)
        self.n_complete_ = self._complete.mean
        self.n_complete_sd_ = self._complete.sd
        self.kernel_ = self._posterior.kernel
        mean, variance, _ = self._posterior.moments(self._regions)
        self.bins_, self.bins_sd_ = (
            self._natural(mean, self._regions.volumes),
            self._spread(variance, self._regions.volumes),
        )

    def _complete_records(self, release: Release, total: UnitTotal) -> CompleteRecords:
        """How many records lack no value; with weights of their own, what those in regions weigh.

        With the number of all records, by how many are incomplete: that does not depend on the
        counts of regions.
        """
        decoded: DecodedBinCounts
        if self.kind == "count":
            decoded = BinCounts.decode(release)
        elif self.protect == "records":
            decoded = BinSums.decode(release)
        else:
            labels, variance = _labels_there(LabelSums.decode(release))
            number = max(float(labels.sum()), 1.0)
            return CompleteRecords(number, sqrt(float(variance.sum())), total)
        if not total.one_each:
            sd = sqrt(float((decoded.counts_sd**2).sum()))
            return complete_records(float(decoded.counts.sum()), sd, total)
        assert decoded.incomplete is not None
        incomplete, incomplete_sd = decoded.incomplete
        found = complete_records(total.n - incomplete, incomplete_sd, UnitTotal(total.n))
        return replace(found, sd=hypot(found.sd, total.n_sd), total=total)

    def _choose_kernel(
        self, curator: Oracle, prior: ProcessPrior, grid: Grid, release: Release
    ) -> ProcessPrior:
        """The prior with one kernel, chosen by the exponential mechanism with likelihood scores."""
        kernels = kernels_around(prior.kernel, prior.half, BINNED.kernel_candidates)
        if self.protect == "labels":
            counts = np.array(release.statistic["counts"], dtype=np.int64)
        else:
            counts = None
        if counts is None:
            weight = self._expected
        else:
            weight = counts.astype(np.float64)
        noise_weight = np.maximum(weight, BINNED.min_count)
        zeros = np.zeros(len(weight))
        if self.kind == "mean":
            if self.noise is None:
                noise_level = BINNED.noise_guess
            else:
                noise_level = max(float(self.noise) / self._half, BINNED.min_noise)
            totals: BinTotals | BinCounts = BinTotals(grid, curator.bounds)
            observations = RegionObservations(
                self._regions, zeros, weight, noise_weight, zeros, True
            )
        else:
            if self.noise is None:
                noise_level = 1.0
            else:
                noise_level = max(float(self.noise), BINNED.min_noise)
            totals = BinCounts(grid, curator.bounds)
            observations = RegionObservations(
                self._regions, weight, weight, noise_weight, zeros, False
            )
        G, linear, constants = likelihood_quadratics(
            kernels, prior.scale, noise_level**2, observations
        )
        outside = totals.size - grid.size  # the cell for records in no region does not count
        scores = Scores(
            np.pad(G, ((0, 0), (0, outside), (0, outside))),
            np.pad(linear, ((0, 0), (0, outside))),
            constants,
        )
        number = int(curator.select(totals, scores, counts=counts).value[0])
        return replace(prior, kernel=kernels[number], learn=False)

    def _take_counts(self, release: Release, prior: ProcessPrior) -> None:
        decoded = BinCounts.decode(release)
        self.counts_ = decoded.counts
        self.counts_sd_ = decoded.counts_sd
        if self.noise is None:
            self.noise_ = 1.0
        else:
            self.noise_ = float(self.noise)
        self._posterior = self._counted(prior, self.noise_)

    def _counted(self, prior: ProcessPrior, noise: float | None) -> BinnedPosterior:
        if noise is None:
            dispersion = None
        else:
            dispersion = noise**2
        return fit_density(
            prior, self._regions, self.counts_, self.counts_sd_**2, self._expected, dispersion
        )

    def _take_sums(
        self, release: Release, grid: Grid, bounds: Bounds, prior: ProcessPrior, spread: bool
    ) -> None:
        squares: tuple[float, float] | None = None
        counted_apart = grid.whole and self._one_each
        if self.protect == "labels":
            self._check_label_sums(release, grid, bounds, spread)
            decoded = LabelSums.decode(release)
        else:
            decoded = BinSums.decode(release)
        self.counts_ = decoded.counts
        self.counts_sd_ = decoded.counts_sd
        if decoded.records is not None:
            counts, counts_variance = _labels_there(decoded)
        else:
            shortest = _shortest_lengths(grid, bounds, np.ones(len(prior.half)))
            counting = self._kernel(bounds, "count", 1.0, shortest)
            trials = max(prior.trials // 2, BINNED.min_hypotheses)
            density = self._counted(
                replace(
                    prior,
                    kernel=counting,
                    scale=1.0,
                    learn=bool(self.learn_kernel),
                    trials=trials,
                ),
                None,
            )
            known = None  # what deviations add up to: where the number in regions is known apart
            if counted_apart:
                known = 0.0, self._complete.sd**2
            deviations, counts_variance = density.denoised_sums(known)
            # as they are: raising negative ones to zero would lower all others
            counts = self._expected + deviations
        if decoded.spread is not None:
            inside = float(counts.sum())
            inside_variance = self._complete.sd**2
            if not counted_apart and decoded.records is None:
                inside = self.counts_.sum()
                inside_variance = (self.counts_sd_**2).sum()
            complement, complement_sd = decoded.spread
            squares = float(inside - complement), float(complement_sd**2 + inside_variance)
        output_variance = occupied_outputs(decoded.sums, decoded.sums_sd**2, counts, squares)
        if prior.learn:
            occupied = occupied_part(self._regions, counts, counts_variance, prior.half)
            shortest = _shortest_lengths(grid, bounds, occupied)
            # over all of the box, it may vary by more than where records stand
            numbers = [kind.levels is None for kind in bounds.x_kinds]
            least = min(occupied[numbers].tolist(), default=1.0)
            variance = min(output_variance / least**2, 1.0)
            common = bounds, "mean", self._half, shortest, variance
            prior = replace(prior, kernel=self._kernel(*common), shortest=float(shortest.min()))
            # of several inputs it was never measured, and takes three times as long
            if self.kernel is None and sum(numbers) == 1:
                rougher = self._kernel(*common, smoothness=BINNED.smoothness)
                prior = replace(prior, rougher=rougher)
        self.sums_ = self._half * decoded.sums
        self.sums_sd_ = self._half * decoded.sums_sd
        if self.noise is None:
            noise2 = None
        else:
            noise2 = (float(self.noise) / self._half) ** 2
        self._posterior = fit_means(
            prior,
            self._regions,
            decoded.sums,
            decoded.sums_sd**2,
            counts,
            counts_variance,
            neighbours=region_neighbours(grid, bounds),
            noise2=noise2,
            squares=squares,
            output_variance=output_variance,
        )
        self.noise_ = self._half * sqrt(self._posterior.noise_variance)

    @staticmethod
    def _check_label_sums(release: Release, grid: Grid, bounds: Bounds, spread: bool) -> None:
        """Refuse a release of other bins: where inputs are public, nobody else has compared it."""
        counts = tuple(release.statistic.get("counts", ()))
        asked = LabelSums(grid, bounds, spread, counts)
        if len(counts) != grid.size or not alike(release.statistic, asked.describe()):
            raise BadInput(
                "These releases were made with other parameters: rebuild them with those they had."
            )
        check_scale(
            release,
            noise_scale(asked, release.event, release.unit, release.shares_spent),
        )

    def _natural(self, mean: Array, volumes: Array | float = 1.0) -> Array:
        """In the units of the data: means within the range of y.

        A density may be below zero, so that its integral over a bin is the bin.
        """
        natural = self._middle + self._half * mean
        if self.kind == "count":
            return np.asarray(natural * volumes)
        return np.clip(natural, self._middle - self._half, self._middle + self._half)

    def _spread(self, variance: Array, volumes: Array | float = 1.0) -> Array:
        return self._half * np.sqrt(variance) * (volumes if self.kind == "count" else 1.0)

    def predict(self, X: object, return_std: bool = False, return_cov: bool = False) -> Any:
        """The function at ``X``, and its posterior standard deviation or covariance.

        Mean output, or records per unit of volume.

        It includes the model's own uncertainty and the privacy noise. A point outside counts as
        the nearest one inside; one that lacks an input has NaN.
        """
        if return_std and return_cov:
            raise BadInput("Ask for return_std or return_cov, not for both.")
        places, lacking = self._places(X)
        if return_cov:
            with one_blas_thread():
                mean, covariance = self._posterior.mean_and_covariance(Boxes.points(places))
            mean[lacking] = np.nan
            covariance[lacking] = np.nan
            covariance[:, lacking] = np.nan
            return self._natural(mean), self._half**2 * covariance
        mean, variance, _ = self._moments(X)
        if return_std:
            return (self._natural(mean), self._spread(variance))
        return self._natural(mean)

    def predict_regions(self, regions: Any, return_std: bool = False) -> Any:
        """Mean output, or number of records, of regions that need not be bins.

        A list of regions, each a list of boxes. A box is a list of (low, high), one for each input.
        Boxes of one region must not overlap.
        """
        check_is_fitted(self)
        places = given_regions(regions, self.n_features_in_)
        with one_blas_thread():
            mean, variance, _ = self._posterior.moments(places)
        value = self._natural(mean, places.volumes)
        std = self._spread(variance, places.volumes)
        if return_std:
            return (value, std)
        return value

    def variance_parts(self, X: object) -> dict[str, Array]:
        """Variance of an output at ``X`` by its causes: ``model``, ``privacy`` and ``noise``.

        For counts the noise is that of the number of records in a unit of volume there.
        """
        mean, whole, nonprivate = self._moments(X)
        noise = np.full(len(mean), self.noise_**2)
        if self.kind == "count":
            noise *= np.maximum(self._natural(mean), 0.0)
        return {
            "model": self._half**2 * nonprivate,
            "privacy": self._half**2 * (whole - nonprivate),
            "noise": noise,
        }

    def sample_y(self, X: object, n_samples: int = 1, random_state: object = 0) -> Array:
        """Draw functions from the posterior at ``X``: shape (len(X), n_samples)."""
        check_integer("n_samples", n_samples)
        places, lacking = self._places(X)
        with one_blas_thread():
            mean, covariance = self._posterior.mean_and_covariance(Boxes.points(places))
        draws = as_generator(random_state).multivariate_normal(
            self._natural(mean), self._half**2 * covariance, n_samples, method="eigh"
        )
        draws[:, lacking] = np.nan
        return np.asarray(draws.T)

    @property
    def prior_std_(self) -> float:
        """Standard deviation of the function before the fit."""
        check_is_fitted(self)
        return self._half * sqrt(self._posterior.prior_variance)

    def _places(self, X: object) -> tuple[Array, NDArray[np.bool_]]:
        """Inputs in their own units, and which of them lack a value."""
        unit, lacking = fill_missing(self._unit(X))  # it checks that the model is fitted
        return self.releases_[0].bounds.unscale(unit), lacking

    def _moments(self, X: object) -> Array:
        """Mean, variance, and variance without privacy noise.

        Block by block, so that memory stays bounded.
        """
        places, lacking = self._places(X)
        with one_blas_thread():
            blocks = [
                np.array(
                    self._posterior.moments(
                        Boxes.points(np.ascontiguousarray(places[i : i + BINNED.prediction_block]))
                    )
                )
                for i in range(0, len(places), BINNED.prediction_block)
            ]
        moments = np.concatenate(blocks, axis=1)
        moments[:, lacking] = np.nan
        return moments

    def __sklearn_tags__(self) -> "Tags":
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = (
            True  # on a hundred records, privacy leaves little to score
        )
        return tags


def _labels_there(decoded: DecodedBinSums) -> tuple[Array, Array]:
    """Expected number of labels in each region, and its variance, from released ones."""
    assert decoded.records is not None
    records = decoded.records
    missing = MissingLabels(np.eye(len(records)), records)
    sd = float(decoded.counts_sd[0])
    released_missing = records - decoded.counts
    total = float(released_missing.sum()), sd * sqrt(len(records))
    missing.add(np.eye(len(records)), released_missing, sd, total)
    return records - missing.mean, np.diag(missing.covariance(np.eye(len(records))))


def _shortest_lengths(grid: Grid, bounds: Bounds, occupied: Array) -> Array:
    """Shortest lengthscale of the prior, in half-ranges of each input; (inputs,).

    ``length_range`` of the part of the box where records stand (``occupied``, (inputs,)), or the
    narrowest bins of numbers: shorter ones cannot be told apart. A prior by the box alone would say
    of records in one or two wide bins that the function is nearly constant there.
    """
    numbers = [kind.levels is None for kind in bounds.x_kinds]
    bins = [many for many, number in zip(grid.shape, numbers, strict=True) if number]
    lengths = np.where(numbers, BINNED.length_range[0] * occupied, BINNED.length_range[0])
    return np.minimum(lengths, 2 / max(bins, default=1))


def _choose_bins(signal_to_noise: float, dimension: int) -> int:
    """Number of bins of each input, from the number of records over the noise of a count."""
    most = BINNED.most_bins[min(dimension, len(BINNED.most_bins)) - 1]
    bins = round(signal_to_noise ** (1 / (dimension + 1)))
    return int(np.clip(bins, BINNED.fewest_bins, most))
