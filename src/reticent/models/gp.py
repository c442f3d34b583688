"""Gaussian-process regression that protects inputs and outputs, by staged residual releases. Proof: gp.md.

f(x) = φ(x)ᵀw with m public functions φ (`maths.basis`) and w ~ N(0, S), S the kernel's covariance projected on them. Each of
K stages releases the Gram matrix of (φ, (R/r)·e), e = clip(y − φᵀw_k, ±r): residuals of the last fit, clipped at their current
scale, so that noise shrinks with the residuals (`maths.stages`). With no kernel given, first releases tell how the inputs are
spread, to spread them evenly over the box. All but the releases is post-processing: kernel, noise level, prediction.
"""

import math
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin, clone
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils.validation import check_is_fitted

from reticent.errors import BadInput
from reticent.maths.basis import Basis
from reticent.maths.fitted import Fitted
from reticent.maths.gram import DAMPING
from reticent.maths.linalg import quadratic
from reticent.maths.priors import CLEAR, energies, usual_length
from reticent.maths.stages import Staged
from reticent.maths.warp import inhabited, laws_along, remoteness, sparsely
from reticent.models.base import PrivateEstimator
from reticent.models.hypotheses import exponent, hypotheses_of, refined, rehearsed, worthwhile
from reticent.models.inputs import bent, closer, features, input_laws
from reticent.models.residuals import Features, stage
from reticent.models.starts import Start, taken
from reticent.privacy.bounds import Bounds
from reticent.privacy.curator import Oracle
from reticent.privacy.given import check_whole, generator, number, whole
from reticent.privacy.sums import one_blas_thread

__all__ = ["GPRegressor"]

Array = NDArray[np.float64]
_CLIP = (2.0, 1.5, 1.0, 0.7)  # in standard deviations of the residual, stage by stage; the last one repeats
_NARROW = (2.0, 1.5, 1.0, 0.5)  # with a kernel, and a noise to be learned, which outliers make larger; few records only
_WIDE, _WIDEST, _PLAIN, _ENOUGH, _FEW = 4.0, 8.0, 2.0, 5, 20  # plain: the widest that normal noise asks for
_LOOKS = (4, 8, 12)  # stages before which to ask whether the records are in a small part of a given kernel's box
_COARSE, _MISSED = 0.25, 0.025  # what a basis misses, by what is not known: before kernels, and then it, are refined
_FIRST = 3  # stages that tell whether the range of y, or a given prior, is too small
_UNSEEN = 0.05  # share of the prior variance that the basis may miss before that is asked
_FIRST_GUESS = 0.2  # of the observation noise, in half-ranges of y
_DROWNED = 0.0125  # squared signal over privacy noise, per function and for each input, that tells hardly any effect
_HUGE, _TINY = 1e150, 1e-24
_AT_ONCE = 4096  # points that are predicted together


@dataclass(repr=False, eq=False)
class GPRegressor(RegressorMixin, PrivateEstimator):  # type: ignore[misc]
    """Gaussian-process regression with differential privacy for inputs and outputs.

    Parameters
    ----------
    kernel : scikit-learn kernel, optional
        The prior of the function, in the units of the data. A hyperparameter's own bounds are its prior; "fixed" means fixed.
        Default: a constant and smooth effects of single inputs, of pairs and of triples, on inputs that are first spread evenly
        over the box by a private count of each.
    noise : float, optional
        Standard deviation of the observation noise. Learned from the releases if not given; if given, it is the least: outliers
        count as more noise.
    noise_column : str or int, optional
        A column of X (by name, or by position where bounds have no names) that is no input: it holds the known standard deviation
        of each record's observation noise. Its range stands in the bounds beside those of the inputs, and must begin above 0:
        records count by (lower bound / level)². A level below counts as the lower bound; one that is missing or not positive as
        the upper one. For one output; ``noise`` must be None.
    basis : int, optional
        Number of basis functions; chosen from public numbers if not given.
    stages : int, optional
        Number of releases among which the budget is divided equally; 24 if not given. More stages cost time, not budget. With no
        kernel given, one in twelve counts the inputs; with fewer than twelve, the inputs are left as they are.
    learn_kernel : bool or "average"
        True: weigh kernels within a factor of ten of the one given, and inside its own bounds, by the evidence of the releases,
        which is free post-processing; for one output, go on with kernels around the best. "average": take the mean of these
        kernels. False: the kernel stays as it is.
    bounds, epsilon, delta, ledger, dataset, records_per_person, random_state
        As for every private estimator (``PrivateEstimator``). ``delta`` must be positive.

    Attributes
    ----------
    kernel_, noise_
        The kernel with the largest weight, and the standard deviation of the observation noise (None with ``noise_column``); one
        for each output if there are several. The default kernel is in units of the box [−1, 1] and of half the range of y.
    prior_std_
        Standard deviation of the function before the fit, on average over the box.
    guarantee_, releases_, n_features_in_, feature_names_in_
        As for every private estimator; a noise column is not a feature.

    Privacy
    -------
    Neighbours: one record (inputs, outputs, noise level) replaced, number of records public. Released: per stage the Gram matrix
    of features and clipped residuals; with no kernel given, counts of the inputs. Must be public: the bounds, the number of
    records, the kernel, all parameters. ``score`` reads the records it is given without protection. An output outside its
    bounds counts as it is (up to 64 times their width): the clip of the residuals, not the bounds, limits what one record can
    do.

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
    _pure = False

    kernel: Kernel | None = None
    _: KW_ONLY
    noise: float | None = None
    noise_column: str | int | None = None
    basis: int | None = None
    stages: int | None = None
    learn_kernel: bool | str = True

    @property
    def _releases(self) -> int:
        return int(self.stages) if self.stages is not None else 24

    @property
    def _counts(self) -> int:
        """How many releases are about the inputs alone: none for a given kernel, which speaks of them as they are."""
        return self._releases // 12 if self.kernel is None else 0

    def _check(self) -> None:
        if self.stages is not None:
            check_whole("stages", self.stages, 1, 64)
        if self.basis is not None:
            check_whole("basis", self.basis, 1, 500)
        if self.noise is not None and not 0 < number(self.noise) < _HUGE:
            raise BadInput(f"noise must be a positive standard deviation, or None to learn it, not {self.noise!r}.")
        if self.noise_column is not None:
            self._check_levels()
        if self.kernel is not None and not isinstance(self.kernel, Kernel):
            raise BadInput(f"kernel must be a scikit-learn kernel such as RBF(2.0), not {self.kernel!r}.")
        average = isinstance(self.learn_kernel, str) and self.learn_kernel == "average"
        if not (isinstance(self.learn_kernel, bool) or average):
            raise BadInput(f'learn_kernel must be True, False or "average", not {self.learn_kernel!r}.')
        if isinstance(self.bounds, Bounds) and self.bounds.classes is not None:
            raise BadInput("GPRegressor predicts numbers: give the range of y in the bounds, not classes.")

    def _check_levels(self) -> None:
        if not (isinstance(self.noise_column, str) or whole(self.noise_column, -math.inf)):
            raise BadInput(
                f"noise_column must be the name or the position of a column of X, not {self.noise_column!r}."
            )
        if self.noise is not None:
            raise BadInput("Give noise, one for all records, or noise_column, one for each record, but not both.")
        if isinstance(self.bounds, Bounds) and len(self.bounds.y) > 1:
            raise BadInput("A noise column is for one output: fit each output with its own, by a model of its own.")

    def _bounds(self) -> Bounds:
        bounds = super()._bounds()
        return bounds if self.noise_column is None else bounds.apart(self.noise_column)

    def _known(self, bounds: Bounds) -> float | None:
        """Standard deviation of the noise of every (weighted) record, where that is known."""
        return self.noise if bounds.level is None else bounds.level.low

    def _rehearse(self, bounds: Bounds) -> None:
        """Go through the public part of a fit, so that a kernel that cannot be used is found before anything is charged."""

        def usable(priors: Any, basis: Basis) -> bool:
            energy = energies(basis, priors.emphasis[: basis.size], 0.25, 0.95)
            head = Features(basis, tuple(energy.tolist()), 1.0)
            usual = all(_TINY < one < 1 / _TINY for one in self._scales(bounds, priors))
            return bool(usual and stage(head, energy[None, :], [1.0]).limit2)

        units = "and amplitudes (and noise) in the units of y"
        self._rehearsed = rehearsed(self.kernel, bounds, lambda: self._priors(bounds), usable, units)

    def _scales(self, bounds: Bounds, priors: Any) -> list[float]:
        """Variances of the function and of the noise of each output, in units of half its range."""
        halves = [high / 2 - low / 2 for low, high in bounds.y]
        variances = [float(priors.variances.sum()) * self._units(halves[0], half) for half in halves]
        noise = self._known(bounds)
        return variances if noise is None else [*variances, *((noise / half) ** 2 for half in halves)]

    def _units(self, first: float, half: float) -> float:
        """A given kernel is in units of y, and its priors in those of half the range of the first output."""
        return 1.0 if self.kernel is None else (first / half) ** 2

    def learn(self, curator: Oracle) -> None:
        """Release K times, each time what the last fit left over."""
        bounds = curator.bounds
        level, known = bounds.level, self._known(bounds)
        if (level is None) != (self.noise_column is None):
            raise BadInput(
                "These releases were made with another noise_column: rebuild them with the parameters they had."
            )
        priors = self.__dict__.pop("_rehearsed", None) or self._priors(bounds)
        scale = self._event().noise_multiplier * self.records_per_person  # type: ignore[attr-defined]
        stages = self._releases - self._counts
        laws = input_laws(curator, self._counts, scale)
        warp: tuple[tuple[float, ...], ...] = ()
        start = self._start(curator, priors, scale, stages, laws)
        clip = _NARROW if known is None and self.kernel is not None else _CLIP
        first = 0
        refine = (
            self.kernel is not None and self.learn_kernel is True and priors.within is not None and len(bounds.y) == 1
        )
        for k in range(stages):
            if self.kernel is not None and k in _LOOKS and 2 * k <= stages and start.unseen > _UNSEEN:
                found = start.beliefs[0].laws
                if zoomed := closer(start.head, start.like, found):
                    laws, warp = [one.mean(axis=0) for one in laws_along(start.like, found)], zoomed
                    priors, first = self._priors(bounds, warp), k
                    start = self._start(curator, priors, scale, stages - k, laws, warp)
            if refine and k in _LOOKS and 2 * k <= stages and k > first and start.coarse() > _COARSE:
                refine, (finer, odds) = False, refined(priors, start.beliefs[0], np.array(start.head.energy))
                if start.coarse(finer.missed_by(priors, start.head.columns)) > _MISSED:
                    again = self._start(curator, finer, scale, stages - first, laws, warp)
                    start = again.after(start, finer, priors, odds, (stages - k) / (k - first))
                    priors = finer
            beliefs = start.beliefs
            if known is not None and k - first == _FIRST:
                start.wider = 1.0
            z = max(start.wider * clip[min(k - first, len(clip) - 1)], start.widest)
            if known is None and k == stages - 1 >= _ENOUGH:
                z = max(z, _WIDE)  # to see the whole of the noise once, which need not be normal
            plain = clip is _NARROW and k < stages - 1
            reach = [self._reach(belief, z, k - first, plain) for belief in beliefs]
            release = curator.release(stage(start.head, np.array([belief.mean for belief in beliefs]), reach))
            start.head = taken(release, beliefs)
            if self.kernel is None and k < _FIRST:
                for belief in beliefs:
                    belief.stretch()
        self._head = start.head
        # a prior that was learned where the records are need not hold elsewhere
        learned = self.learn_kernel is True and len(beliefs[0].hypotheses) > 1
        self._where = laws_along(start.like, beliefs[0].laws) if learned or first else []
        self._sparse = sparsely(len(bounds.x), curator.n, scale / math.sqrt(self._releases))
        share = inhabited(laws_along(start.head.warped(start.like), beliefs[0].laws)) if learned else 1.0
        halves = np.array([high / 2 - low / 2 for low, high in bounds.y])
        self._outputs = [
            self._settled(belief, start, priors, low / 2 + high / 2, half, share)
            for belief, (low, high), half in zip(beliefs, bounds.y, halves, strict=True)
        ]
        one = len(self._outputs) == 1
        self.kernel_ = self._outputs[0].kernel if one else [output.kernel for output in self._outputs]
        self.noise_: Any = self._outputs[0].noise if one else np.array([output.noise for output in self._outputs])
        self.prior_std_ = self._outputs[0].before if one else np.array([output.before for output in self._outputs])

    def _start(
        self, curator: Oracle, priors: Any, scale: float, stages: int, laws: list[Array], warp: Any = ()
    ) -> Start:
        """The basis and first beliefs, for so many stages, where the inputs have these laws."""
        bounds, n = curator.bounds, curator.n
        d, level, known = len(bounds.x), bounds.level, self._known(bounds)
        halves = np.array([high / 2 - low / 2 for low, high in bounds.y])
        loud = 1.0 if known is None else math.sqrt(float(priors.variances.sum())) * float(halves[0]) / known
        size = worthwhile(n * math.sqrt(stages) / scale, priors, d, loud)
        basis, hypotheses, outside = priors.choose(min(int(self.basis or size), priors.most))
        told = n * stages / scale**2 / basis.size  # (signal of n records)² against privacy noise, per function
        emphasis, one = priors.emphasis[: basis.size].copy(), priors.constant
        if one >= 0:  # inputs share the variance of effects; the less is told of them, the more must be of the level
            emphasis[one] = min(emphasis[one] * max(_DROWNED * d / told, 1.0), priors.variances[one])
        energy = energies(basis, emphasis, exponent(told), usual_length(told))
        # the more inputs, the farther corners of the box stand out: noise is felt even among many records
        lengthen = self.kernel is None and (d > 2 or (d == 2 and told < CLEAR))
        lines = tuple(one for one in bent(laws) if priors.smoothest(one[0]) < basis.size) if self.kernel is None else ()
        if lines:  # each is thought to be as large as the function that is like it
            place = [*range(basis.size), *(priors.smoothest(j) for j, *_ in lines)]
            energy, hypotheses = energy[place], [np.diag(np.diag(S)[place]) for S in hypotheses]
        head, like = features(basis, energy, laws, warp, lengthen, lines)
        points = head.rows(like)
        # where outputs are weighed with their features, both see so much of the noise and of what the basis cannot show
        one = priors.constant
        thin = 1.0 if one < 0 else float(np.mean((points[:, one] / head.energy[one]) ** 2))
        head = replace(head, weighted=level is not None, constant=one)
        beliefs = []
        for half in halves:
            units = self._units(halves[0], half)
            guess = thin * (max(priors.white * units, _FIRST_GUESS**2) if known is None else (known / half) ** 2)
            covariances = units * np.array(hypotheses) / np.outer(head.energy, head.energy)
            how: Any = {"learn_noise": known is None, "learn_prior": self.learn_kernel is True}
            least = 1.0 if level is None else (level.low / level.high) ** 2
            how |= {"least": least, "damping": DAMPING if self.kernel is None else 0.0}
            how["level"] = None if one < 0 else np.eye(head.columns)[one] / head.energy[one]
            beliefs.append(Staged(covariances, thin * units * outside, points, n, guess, **how))
        # with little privacy noise, a clip costs more than it saves; and noise that is not known need not be normal
        widest = min(math.sqrt(told / len(halves)) / (4 if known is None else 40), _WIDEST)
        default = known is None and self.kernel is None
        power = 1 / 3 if default or known is not None else 1 / 2
        wider = max(n / scale / (_FEW if default else 2 * _FEW), 1.0) ** power
        seen = float(np.mean(quadratic(points, beliefs[0].first)))
        missed = float(beliefs[0].outside.mean())
        return Start(head, like, beliefs, widest, wider, missed / (missed + seen), thin)

    @staticmethod
    def _reach(belief: Staged, z: float, k: int, plain: bool) -> float:
        """Where to clip; if noise is normal for all that is known, and ``plain`` allows it, no wider than that asks for."""
        belief.narrowed = plain and z > _PLAIN and len(belief.stages) >= len(_NARROW) and not belief.skew().any()
        z, sd = _PLAIN if belief.narrowed else z, belief.residual_sd()
        return z * sd if k else min(z * sd, max(1.0, 2 * sd))  # bounds of y that are right limit the first residual

    def _settled(self, belief: Staged, start: Start, priors: Any, middle: float, half: float, share: float) -> Fitted:
        best, shown = int(np.argmax(belief.weights)), start.head.functions(start.like)
        outside, one = belief.roughness(), start.head.constant
        # inputs of few values lie where features are longest, not where points are: B tells how much records count
        thin = belief.mean_square(one) / start.head.energy[one] ** 2 if one >= 0 and belief.learn_noise else start.thin
        spread = belief.s2 + (belief.excess() if self._releases - self._counts > _ENOUGH else 0.0)
        learned = math.sqrt(max(spread - outside, 0.25 * (belief.s2 - outside), 1e-4 * belief.s2) / thin) * half
        noise = None if self.noise_column is not None else learned if self.noise is None else float(self.noise)
        outside, missed = outside / thin, float(belief.weights @ belief.outside) / start.thin
        before = math.sqrt(float(np.mean(quadratic(shown, belief.prior))) + missed)
        # around a mean that is known from a part of the box, which has moved too
        moves = start.moves(belief) * (2 - share)
        mean = belief.mean if self.kernel is None else belief.averaged()
        told = mean, belief.error(share), belief.without_privacy()
        return Fitted(middle, half, clone(priors.kernels[best]), noise, *told, outside, before * half, moves)

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """Mean of the function at ``X``, and its standard deviation or covariance: the model's doubt and the privacy noise."""
        if return_std and return_cov:
            raise BadInput("Ask for return_std or return_cov, not for both.")
        moments = self._moments(X, variances=return_std)
        if return_std:
            return moments[:, 0], np.sqrt(moments[:, 1] + moments[:, 2])
        if return_cov:
            phi, remote = self._at(self._unit(X))
            return moments[:, 0], self._each(lambda output: output.joint(phi, remote))
        return moments[:, 0]

    def variance_parts(self, X: Any) -> dict[str, Array]:
        """Variance of an output at ``X`` by its causes: ``model`` (its own doubt), ``privacy``, ``noise`` (of observations).

        A model with a noise column takes the noise from that column of ``X``; where ``X`` has none it is not known: NaN.
        """
        moments = self._moments(X, variances=True)
        known = self.releases_[0].bounds.level is None
        noise = self._each(lambda one: np.full(len(moments), one.noise**2)) if known else self._levels(X) ** 2
        return {"model": moments[:, 1], "privacy": moments[:, 2], "noise": noise}

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> Array:
        """Draw functions from the posterior at ``X``: shape (len(X), n_samples), or (len(X), outputs, n_samples)."""
        check_whole("n_samples", n_samples)
        phi, remote = self._at(self._unit(X))
        rng = generator(random_state)

        def draw(output: Fitted) -> Array:
            return rng.multivariate_normal(output.at(phi), output.joint(phi, remote), n_samples, method="eigh").T

        return np.swapaxes(self._each(draw), 1, -1)

    def _each(self, answer: Any) -> Any:
        """The answer for one output, or the answers for several along a last axis."""
        check_is_fitted(self)
        answers = [answer(output) for output in self._outputs]
        return answers[0] if len(answers) == 1 else np.stack(answers, axis=-1)

    def _at(self, unit: Array) -> tuple[Array, Array]:
        """Features of points, and how far these are from where the records are, as far as that was asked."""
        remote = remoteness(self._where, unit[:, : len(self._where)], self._sparse)
        return self._head.functions(unit), remote

    def _moments(self, X: Any, *, variances: bool) -> Array:
        """Mean of each output and, on request, the parts of its variance; block by block, so that memory stays bounded."""
        unit, blocks = self._unit(X), []
        with one_blas_thread():
            for start in range(0, len(unit), _AT_ONCE):
                known = self._at(unit[start : start + _AT_ONCE])

                def at(output: Fitted, known: tuple[Array, Array] = known) -> Array:
                    return np.stack([output.at(known[0]), *(output.parts(*known) if variances else ())], axis=1)

                blocks.append(self._each(at))
        return np.concatenate(blocks)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # on a hundred records, privacy leaves little to score
        tags.target_tags.multi_output = isinstance(self.bounds, Bounds) and len(self.bounds.y) > 1
        return tags

    def _priors(self, bounds: Bounds, warp: tuple[tuple[float, ...], ...] = ()) -> Any:
        low, high = bounds.y[0]
        return hypotheses_of(self.kernel, bounds, float(high / 2 - low / 2), learn=bool(self.learn_kernel), warp=warp)
