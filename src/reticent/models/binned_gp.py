"""A Gaussian process on a private histogram of counts or means, by integral kernels. Proof: binned_gp.md.

One joint release holds, for every bin and empty ones too, how many records are in it and what their outputs add up to
(`models.bins`). The rest is post-processing (`maths.binned_fit`): bins are averages of the function over boxes, the noise of each
is known, and kernels are weighed by the evidence of the released bins.
"""

from dataclasses import KW_ONLY, dataclass, replace
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin, clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel
from sklearn.utils.validation import check_is_fitted

from reticent.errors import BadInput
from reticent.maths.binned import Observed, Regions, likelihood_forms
from reticent.maths.binned_fit import Believed, Prior, learn_counts, learn_means
from reticent.maths.integral import Boxes, mixture
from reticent.maths.priors import kernels_around
from reticent.models.base import PrivateEstimator
from reticent.models.bins import BinCounts, BinSums, BinTotals, Grid, LabelSums, given_regions, label_sums, make_grid
from reticent.privacy.bounds import Bounds
from reticent.privacy.curator import Oracle, Release, Scores
from reticent.privacy.given import check_choice, check_whole, generator, number
from reticent.privacy.release import alike, check_scale, noise_scale
from reticent.privacy.sums import one_blas_thread

__all__ = ["BinnedGPRegressor"]

Array = NDArray[np.float64]
_TRIALS, _WORK = 24, 1e8  # hypotheses tried in a round, fewer where bins are many
_TINY = 1e-24  # variance of a kernel that can be meant, in squared half-ranges
EXPONENTIAL, _BINS_SHARE = "exponential", 3  # a choice takes one release of those paid for, the bins the other three
_CANDIDATES, _MOST_SCORED = 48, 1000
_FIRST_GUESS, _LEAST_NOISE, _LEAST_COUNT = 0.2, 0.01, 0.3  # for scores: noise in half-ranges, records in a bin
_AT_ONCE = 2048  # points that are predicted together


@dataclass(repr=False, eq=False)
class BinnedGPRegressor(RegressorMixin, PrivateEstimator):  # type: ignore[misc]
    """Gaussian-process regression on a differentially private histogram of means or counts.

    Parameters
    ----------
    kernel : scikit-learn kernel, optional
        The prior of the function, in the units of the data (for counts: of records per unit of volume): sums and products of
        ConstantKernel, RBF, Matern, RationalQuadratic. A hyperparameter's own bounds are its prior; "fixed" means fixed.
        Default: an RBF kernel with a length for each input; for means also a constant.
    bins : int, list of int, or list of edges, optional
        Number of equal bins of each input between its bounds, or their edges. Default: chosen from the number of records, the
        noise and the number of inputs. For one to four inputs.
    regions : integer array of the grid's shape, optional
        Joins cells of the grid to regions, numbered from 0; −1 for cells that are in none. A boolean array keeps single cells.
    kind : "mean" or "count"
        What a bin tells: the mean output of its records, or how many records it has.
    integral : bool
        True: a bin is an average over its region. False: the function's value at the region's centre, for comparison.
    protect : "records" or "labels"
        What neighbours differ in: a whole record, or only its output, where all inputs are public. Not the same promise, and
        not the same account in a ledger.
    noise : float, optional
        For means: standard deviation of outputs at one place; learned if not given. For counts: by how many times √count a count
        scatters around its expectation; 1 (Poisson) if not given, 0 for a curve whose area over each bin is the bin.
    learn_kernel : bool or "exponential"
        True: weigh kernels within a factor of ten of the one given, and inside its own bounds, by the evidence of the released
        bins, which is free. "exponential": choose one of them by the exponential mechanism instead, as in the paper's supplement,
        for a quarter of the budget (of μ²); to compare with. False: the kernel stays as it is.
    bounds, epsilon, delta, ledger, dataset, records_per_person, random_state
        As for every private estimator (``PrivateEstimator``). ``delta=0`` gives pure ε-DP by Laplace noise.

    Attributes
    ----------
    counts_, counts_sd_ : arrays, one number for each region
        The counts as they were released, with the noise's standard deviation: empty bins have noise too, and a count can be
        negative. (With ``protect="labels"`` counts are public, exact, and have none.)
    sums_, sums_sd_ : arrays
        For means: the noisy sums of outputs, each output counted from the middle of its range.
    bins_, bins_sd_ : arrays
        What the fit says of each region: its mean output, or its count; and the standard deviation of that.
    edges_ : list of arrays
    kernel_, noise_
        The kernel with the highest evidence, in the units of the data, and the noise.
    guarantee_, releases_, n_features_in_, feature_names_in_
        As for every private estimator.

    Privacy
    -------
    Neighbours: one record replaced (``protect="records"``), or the output of one record (``"labels"``), number of records
    public. Released: all counts and sums of all regions at once, empty ones included, and with δ > 0 the sum of squared outputs;
    with ``learn_kernel="exponential"`` also the number of the chosen kernel.
    Must be public: the bounds, bins, regions, the number of records, the kernel, all parameters; with ``protect="labels"`` all
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

    _releases = property(lambda self: _BINS_SHARE + 1 if self.learn_kernel == EXPONENTIAL else 1)
    _targets = property(lambda self: self.kind != "count")
    _relation = property(lambda self: "label" if self.protect == "labels" else "record")

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
            raise BadInput("Counts have no labels to protect: with public inputs they are public. Use kind='mean'.")
        if self.kernel is not None and not isinstance(self.kernel, Kernel):
            raise BadInput(f"kernel must be a scikit-learn kernel such as RBF(2.0), not {self.kernel!r}.")
        if self.noise is not None and not 0 <= number(self.noise) < 1e150:
            raise BadInput(f"noise must be a standard deviation, or None, not {self.noise!r}.")
        if not isinstance(self.integral, (bool, np.bool_)):
            raise BadInput(f"integral must be True or False, not {self.integral!r}.")
        chosen = isinstance(self.learn_kernel, str) and self.learn_kernel == EXPONENTIAL
        if not chosen and not isinstance(self.learn_kernel, (bool, np.bool_)):
            raise BadInput(f"learn_kernel must be True, False or {EXPONENTIAL!r}, not {self.learn_kernel!r}.")
        if chosen and self.delta == 0:
            raise BadInput("learn_kernel='exponential' needs delta > 0; learn_kernel=True is free and needs none.")
        if isinstance(self.bounds, Bounds):
            if self.bounds.classes is not None or len(self.bounds.y) > 1:
                raise BadInput(
                    "BinnedGPRegressor takes one output with a range: give it in the bounds, as in y=(2, 150)."
                )
            if self.bounds.norm is not None:
                raise BadInput("Bins fill a box: leave norm out of the bounds.")

    def _rehearse(self, bounds: Bounds) -> None:
        size = make_grid(2 if self.bins is None else self.bins, self.regions, bounds).size
        if size > _MOST_SCORED and self.learn_kernel == EXPONENTIAL:
            raise BadInput(
                f"Kernels are chosen by scores for up to {_MOST_SCORED:,} bins, not {size:,}: take learn_kernel=True."
            )
        if self.bins is None and (len(bounds.x) > 4 or self.regions is not None):
            raise BadInput("Give bins: they are chosen only for up to four inputs, and where there are no regions.")
        d, fits = len(bounds.x), False
        try:
            m = mixture(self._kernel(bounds, self.kind, 1.0), d)
            unit = bounds.y[0][1] / 2 - bounds.y[0][0] / 2 if self.kind == "mean" else 1.0
            usual = self.kernel is None or _TINY < m.variance / unit**2 < 1 / _TINY
            fits = bool(usual and np.isfinite(m.log_weights).all() and np.isfinite(m.inverse).all())
        except (ArithmeticError, ValueError, TypeError):
            fits = False
        if not fits:
            raise BadInput(
                f"The kernel {self.kernel} cannot be averaged over bins of {d} inputs: give sums and products of ConstantKernel, "
                "RBF, Matern and RationalQuadratic, with one length scale or one per input, in the units of the data. Noise of "
                "outputs is given by noise=…"
            )

    def _kernel(self, bounds: Bounds, kind: str, unit: float) -> Kernel:
        """The kernel, in units of the data; ``unit`` is half the range of y, or the density of an even law."""
        if self.kernel is not None and kind == self.kind:
            return clone(self.kernel)
        half = np.array([high / 2 - low / 2 for low, high in bounds.x])
        smooth = RBF(0.5 * half, np.column_stack([0.1 * half, 5 * half]))

        def constant(share: float) -> Kernel:
            return ConstantKernel(share * unit**2, (1e-5 * unit**2, 1e5 * unit**2))

        return constant(0.3) * smooth if kind == "count" else constant(0.2) + constant(0.1) * smooth

    def learn(self, curator: Oracle) -> None:
        """Release all bins at once."""
        bounds, n = curator.bounds, curator.n
        event = self._event()
        times = event.count - (self.learn_kernel == EXPONENTIAL)
        sd = event.noise_multiplier * sqrt(2 / times) * self.records_per_person  # type: ignore[attr-defined]
        bins = _chosen_bins(n / sd, len(bounds.x)) if self.bins is None else self.bins
        grid = make_grid(bins, self.regions, bounds)
        spread = self.delta != 0
        if self.kind == "count":
            release = curator.release(BinCounts(grid, bounds), times=times)
        elif self.protect == "records":
            release = curator.release(BinSums(grid, bounds, spread), times=times)
        else:
            release = curator.release_given_inputs(lambda x: label_sums(grid, bounds, spread, x), times=times)
        boxes, of = grid.boxes()
        self._regions = Regions(boxes, of, grid.size, bool(self.integral))
        self.edges_ = [np.array(edges) for edges in grid.edges]
        half = np.array([high / 2 - low / 2 for low, high in bounds.x])
        trials = int(min(max(_WORK / max(grid.size, 10) ** 3, 4), _TRIALS))
        self._volume = float(np.prod(2 * half))
        self._expected = n * self._regions.volumes / self._volume
        if self.kind == "count":
            self._middle = self._half = n / self._volume
        else:
            ((low, high),) = bounds.y
            self._middle, self._half = low / 2 + high / 2, high / 2 - low / 2
        prior = Prior(
            self._kernel(bounds, self.kind, self._half), self._half**-2, half, bool(self.learn_kernel), trials
        )
        if self.learn_kernel == EXPONENTIAL:
            prior = self._chosen(curator, prior, grid, release)
        if self.kind == "count":
            self._take_counts(release, grid, prior)
        else:
            self._take_sums(release, grid, bounds, prior, spread)
        self.kernel_ = self._believed.kernel
        mean, variance, _ = self._believed.at(self._regions)
        self.bins_, self.bins_sd_ = (
            self._natural(mean, self._regions.volumes),
            self._spread(variance, self._regions.volumes),
        )

    def _chosen(self, curator: Oracle, prior: Prior, grid: Grid, release: Release) -> Prior:
        """The prior with one kernel, chosen by the likelihood of the sums themselves, the exponential mechanism between."""
        kernels = kernels_around(prior.kernel, prior.half, _CANDIDATES)
        counts = np.array(release.statistic["counts"]) if self.protect == "labels" else None
        weight = self._expected if counts is None else counts.astype(np.float64)
        own, none = np.maximum(weight, _LEAST_COUNT), np.zeros(len(weight))
        if self.kind == "mean":
            level = _FIRST_GUESS if self.noise is None else max(float(self.noise) / self._half, _LEAST_NOISE)
            totals: BinTotals | BinCounts = BinTotals(grid, curator.bounds)
            seen = Observed(self._regions, none, weight, own, none, True)
        else:
            level = 1.0 if self.noise is None else max(float(self.noise), _LEAST_NOISE)
            totals = BinCounts(grid, curator.bounds)
            seen = Observed(self._regions, weight, weight, own, none, False)
        G, linear, constants = likelihood_forms(kernels, prior.scale, level**2, seen)
        out = totals.size - grid.size  # a cell for records in no region tells nothing
        scores = Scores(np.pad(G, ((0, 0), (0, out), (0, out))), np.pad(linear, ((0, 0), (0, out))), constants)
        number = int(curator.select(totals, scores, counts=counts).value[0])
        return replace(prior, kernel=kernels[number], learn=False)

    def _take_counts(self, release: Release, grid: Grid, prior: Prior) -> None:
        self.counts_, self.counts_sd_ = release.value[: grid.size], release.sd[: grid.size]
        self.noise_ = 1.0 if self.noise is None else float(self.noise)
        self._believed = self._counted(prior, self.noise_)

    def _counted(self, prior: Prior, noise: float | None) -> Believed:
        dispersion = None if noise is None else noise**2
        return learn_counts(prior, self._regions, self.counts_, self.counts_sd_**2, self._expected, dispersion)

    def _take_sums(self, release: Release, grid: Grid, bounds: Bounds, prior: Prior, spread: bool) -> None:
        size, value, sd = grid.size, release.value, release.sd
        squares: tuple[float, float] | None = None
        if self.protect == "labels":
            told = release.statistic
            given = tuple(told.get("counts", ()))
            asked = LabelSums(grid, bounds, spread, given)
            if len(given) != size or not alike(told, asked.describe()):
                raise BadInput("These releases were made with other parameters: rebuild them with those they had.")
            check_scale(release, noise_scale(asked, release.event, release.records_per_person, release.times))
            self.counts_, self.counts_sd_ = np.array(given, dtype=np.float64), np.zeros(size)
            sums, sums_sd = value[:size], sd[:size]
            counts, doubt = self.counts_, np.zeros(size)
            back = 1.0
        else:
            self.counts_, self.counts_sd_ = value[:size] + value[size : 2 * size], sqrt(2) * sd[:size]
            sums, sums_sd = value[:size] - value[size : 2 * size], self.counts_sd_
            counting = self._kernel(bounds, "count", 1.0)
            trials = max(prior.trials // 2, 4)
            believed = self._counted(Prior(counting, 1.0, prior.half, bool(self.learn_kernel), trials), None)
            found, doubt = believed.cleaned(0.0 if grid.whole else None)
            counts = self._expected + found  # as they are: raising negative ones to zero would lower all others
            back = sqrt(2)
        if spread:
            inside, unsure = (release.n, 0.0) if grid.whole else (self.counts_.sum(), (self.counts_sd_**2).sum())
            squares = float(inside - back * value[-1]), float((back * sd[-1]) ** 2 + unsure)
        self.sums_, self.sums_sd_ = self._half * sums, self._half * sums_sd
        noise2 = None if self.noise is None else (float(self.noise) / self._half) ** 2
        self._believed = learn_means(
            prior, self._regions, sums, sums_sd**2, counts, doubt, noise2=noise2, squares=squares
        )
        self.noise_ = self._half * sqrt(self._believed.noise_level)

    def _natural(self, mean: Array, volumes: Array | float = 1.0) -> Array:
        return (self._middle + self._half * mean) * (volumes if self.kind == "count" else 1.0)

    def _spread(self, variance: Array, volumes: Array | float = 1.0) -> Array:
        return self._half * np.sqrt(variance) * (volumes if self.kind == "count" else 1.0)

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """The function at ``X`` (mean output, or records per unit of volume), and its standard deviation or covariance.

        The model's own doubt and the privacy noise are in it. A point outside the bounds counts as the nearest one inside.
        """
        if return_std and return_cov:
            raise BadInput("Ask for return_std or return_cov, not for both.")
        places = self._places(X)
        if return_cov:
            with one_blas_thread():
                mean, covariance = self._believed.joint(Boxes.points(places))
            return self._natural(mean), self._half**2 * covariance
        mean, variance, _ = self._moments(places)
        return (self._natural(mean), self._spread(variance)) if return_std else self._natural(mean)

    def predict_regions(self, regions: Any, return_std: bool = False) -> Any:
        """Mean output, or number of records, of regions that need not be bins: a list of regions, each a list of boxes.

        A box is a list of (low, high), one for each input. Boxes of one region must not overlap.
        """
        check_is_fitted(self)
        places = given_regions(regions, self.n_features_in_)
        with one_blas_thread():
            mean, variance, _ = self._believed.at(places)
        value, std = self._natural(mean, places.volumes), self._spread(variance, places.volumes)
        return (value, std) if return_std else value

    def variance_parts(self, X: Any) -> dict[str, Array]:
        """Variance of an output at ``X`` by its causes: ``model`` (its own doubt), ``privacy``, ``noise`` (of observations).

        For counts the noise is that of the number of records in a unit of volume there.
        """
        mean, whole, own = self._moments(self._places(X))
        noise = np.full(len(mean), self.noise_**2)
        if self.kind == "count":
            noise *= np.maximum(self._natural(mean), 0.0)
        return {"model": self._half**2 * own, "privacy": self._half**2 * (whole - own), "noise": noise}

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> Array:
        """Draw functions from the posterior at ``X``: shape (len(X), n_samples)."""
        check_whole("n_samples", n_samples)
        mean, covariance = self.predict(X, return_cov=True)
        draws = generator(random_state).multivariate_normal(mean, covariance, n_samples, method="eigh")
        return np.asarray(draws.T)

    @property
    def prior_std_(self) -> float:
        """Standard deviation of the function before the fit."""
        check_is_fitted(self)
        return self._half * sqrt(self._believed.variance)

    def _places(self, X: Any) -> Array:
        unit = self._unit(X)  # first: it checks that the model is fitted
        return self.releases_[0].bounds.natural(unit)

    def _moments(self, places: Array) -> Array:
        """Mean, variance, and variance without privacy noise; block by block, so that memory stays bounded."""
        with one_blas_thread():
            blocks = [
                np.array(self._believed.at(Boxes.points(np.ascontiguousarray(places[i : i + _AT_ONCE]))))
                for i in range(0, len(places), _AT_ONCE)
            ]
        return np.concatenate(blocks, axis=1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # on a hundred records, privacy leaves little to score
        return tags


def _chosen_bins(told: float, dimension: int) -> int:
    """Number of bins of each input, from the number of records over the noise of a count."""
    return int(np.clip(round(told ** (1 / (dimension + 1))), 4, {1: 40, 2: 14, 3: 7}.get(dimension, 5)))
