"""Hide part of a function with the least possible noise, and prove it (Tuo & Bhattacharya 2023).

    Step 1   train: mean and kernel by maximum likelihood, or given
    Step 2   Σ such that nobody can infer f(s) better than promised; W = y + z, z ~ N(0, Σ)
    Step 3   the predictor that an honest user builds from W, the mean, the kernel, V and Σ, all of which are public

**Inferential privacy, not differential privacy**: the promise holds for somebody who believes in the Gaussian process
and nothing else.
The proof is beside this file, in obfuscator.md.
"""

import json
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.gaussian_process.kernels import ExpSineSquared, Kernel
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted, column_or_1d

from reticent.errors import BadInput, ReleaseRefused
from reticent.maths.obfuscation import between, observe, prior_variance
from reticent.maths.obfuscation_promise import Promise, cells, promise
from reticent.maths.obfuscation_solution import SOLUTIONS, Noise, solve
from reticent.maths.obfuscation_training import train
from reticent.privacy.obfuscation import grid_step, obfuscated
from reticent.privacy.remembered import recall_or
from reticent.privacy.sums import one_blas_thread

__all__ = ["STATEMENT", "Obfuscator"]

Array = NDArray[np.float64]
STATEMENT = (
    "Inferential privacy, NOT differential privacy: to somebody who knows the released values, the inputs, the mean, the "
    "kernel and "
    "the noise covariances, and whose knowledge of the function is this Gaussian process, each sensitive value keeps at "
    "least the "
    "promised variance. Nothing is promised against other knowledge, or for other values."
)
_SEEDED = (
    "NOT PRIVATE: the noise was drawn from a seed (random_state), so whoever knows the seed can take it away again. Use "
    "it for "
    "tests only."
)
_TRAINED = (
    " The kernel's free hyperparameters were learned from the curve itself and are released as they are, without noise: the "
    "promise is for a kernel that was fixed beforehand, and what they tell about the sensitive values is not counted."
)
_MOST_SHOWN = 6000  # records whose whole covariance matrix is made


class Obfuscator(BaseEstimator):  # type: ignore[misc]
    """Release a curve so that chosen parts of it stay unknown, with the least noise that does it.

    Parameters
    ----------
    kernel : scikit-learn kernel
        The prior covariance of the function. Hyperparameters that are not "fixed" are learned from the raw data by maximum
        likelihood; they, too, are then released.
    sensitive : array, or "everywhere"
        Points: shape (g, d), or (g,) with one input. Regions: boxes of shape (k, d, 2), or pairs (low, high) with one input.
    variance : number, array, matrix or kernel
        The promised posterior variance: one for all, or one for each point or region. With ``solution="strong"`` also a
        matrix Ξ; with
        "kernel" and "uniform" a kernel H.
    share : float
        Instead of ``variance``: promise this share of the prior, H = share · K.
    solution : str
        "weak": each sensitive value by itself, with the least noise (default). "strong", "kernel": all linear "
        "combinations of sensitive values.
        "uniform": all inputs. "diagonal": independent noise, to compare with.
    noise : number, array or matrix, optional
        The variance V of the measurement error in ``y``: for all, for each record, or a covariance matrix. Default: that of a
        WhiteKernel in ``kernel``, or none.
    mean : float, optional
        The prior mean. Default: a constant, learned from what is released (from the curve itself it would tell on it).
    ledger, dataset : str, optional
        Where the release is remembered. Asking again gives the same release; asking something else about the data set is
        refused.
    random_state : int, optional
        Makes the noise repeatable, for tests. Whatever is released with it is stamped ``private_ = False``.

    Attributes
    ----------
    released_ : array of shape (n,)
        W.
    covariance_ : array of shape (n, n)
        Σ, the covariance of the added noise.
    certificate_ : Certificate
        Promised and attained variance, smallest eigenvalue, gap to the least possible noise.
    kernel_, mean_, noise_
        What was learned or given.
    private_, statement_ : bool, str

    Privacy
    -------
    Inferential privacy, not differential privacy: ``statement_`` says against whom. Released: W, mean, kernel, V and Σ.
    Must be public: the
    inputs X and all parameters. Mean and hyperparameters that are learned are functions of the raw data, and not
    protected. One release for
    each curve: without a ledger nothing remembers it but this object.

    Examples
    --------
    >>> import numpy as np, reticent
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> t = np.linspace(0, 1, 41)
    >>> hide = reticent.Obfuscator(RBF(0.2, "fixed"), sensitive=[(0.4, 0.5)], variance=0.5, mean=0.0)
    >>> W = hide.obfuscate(t, np.sin(6 * t))
    >>> mean, sd = hide.predict(np.linspace(0.4, 0.5, 7), return_std=True)
    >>> bool((sd**2 >= 0.5).all()), hide.certificate_.held
    (True, True)
    """

    def __init__(
        self,
        kernel: Any = None,
        *,
        sensitive: Any = None,
        variance: Any = None,
        share: float | None = None,
        solution: str = "weak",
        noise: Any = None,
        mean: float | None = None,
        ledger: str | None = None,
        dataset: str | None = None,
        random_state: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.sensitive = sensitive
        self.variance = variance
        self.share = share
        self.solution = solution
        self.noise = noise
        self.mean = mean
        self.ledger = ledger
        self.dataset = dataset
        self.random_state = random_state

    def obfuscate(self, X: Any, y: Any) -> Array:
        """Train, find the noise, draw it once, and give W. A question that was asked before gets the answer it got."""
        self._check()
        x, y = _inputs(X), _outputs(y)
        check_consistent_length(x, y)
        noise = self._noise(x)
        _check_duplicates(x, noise)
        at = self._sensitive(x)  # also what no training can mend is refused now
        question, self._found = self._question(x), None
        if getattr(self, "_asked", None) == question:
            return np.array(self.released_)

        def make() -> dict[str, Any]:
            kernel, mean = self._trained(x, y, noise)
            found = self._found = self._solve(kernel, x, noise, at)
            w = obfuscated(y, found.factor, found.floor, seed=self._seed())
            mean = _likeliest(self._raw, self._raw.into(found.factor)[0], w) if self.mean is None else mean
            return {"w": w.tolist(), "theta": kernel.theta.tolist(), "mean": mean}

        with one_blas_thread():
            known = self.ledger is not None
            answer = recall_or(str(self.ledger), str(self.dataset), question, make) if known else make()
            self._settle(x, noise, at, answer)
        self._asked = question
        return np.array(self.released_)

    def fit(self, X: Any, y: Any) -> Self:
        """Obfuscate, as scikit-learn calls it."""
        self.obfuscate(X, y)
        return self

    @classmethod
    def from_release(cls, X: Any, release: dict[str, Any], **params: Any) -> Self:
        """Rebuild from ``release()`` and the public parameters, without the raw data: bit for bit on the same machine."""
        model = cls(**{**params, "ledger": None, "dataset": None})
        model._check()
        x = _inputs(X)
        with one_blas_thread():
            model._settle(x, model._noise(x), model._sensitive(x), release)
        return model

    def release(self) -> dict[str, Any]:
        """Give all that leaves, as plain values: W, the mean, and the kernel's free hyperparameters (in logarithms)."""
        check_is_fitted(self, "released_")
        return {"w": self.released_.tolist(), "theta": self.kernel_.theta.tolist(), "mean": self.mean_}

    @property
    def covariance_(self) -> Array:
        """Σ = factor_·factor_ᵀ + floor·I."""
        check_is_fitted(self, "factor_")
        if len(self.factor_) > _MOST_SHOWN:
            raise BadInput(
                f"Σ of {len(self.factor_):,} records is not made whole: use factor_ (Σ = factor_·factor_ᵀ + floor·I)."
            )
        return np.asarray(self.factor_ @ self.factor_.T + self.certificate_.floor * np.eye(len(self.factor_)))

    @property
    def statement_(self) -> str:
        """What is promised, in words."""
        check_is_fitted(self, "released_")
        if not self.private_:
            return _SEEDED
        return STATEMENT + _TRAINED if len(self.kernel_.theta) else STATEMENT

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """What an honest user knows of f(X) from the release: mean, and standard deviation if asked for (Eqs 3, 4)."""
        check_is_fitted(self, "released_")
        at = _inputs(X, self.n_features_in_)
        cross = between(self.kernel_, self.X_, at)
        inside, outside = self._raw.into(cross)
        mean = self.mean_ + inside.T @ self._weights
        if not return_std:
            return mean
        reduction = np.einsum("ij,ij->j", inside, np.linalg.solve(self._a, inside)) + outside / self._raw.rest
        return mean, np.sqrt(np.maximum(prior_variance(self.kernel_, at) - reduction, 0))

    def report(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the release report: one page for people (HTML, opens offline), made from what is released alone."""
        from reticent.apps.obfuscation_report import write
        from reticent.models.storage import check_free

        check_is_fitted(self, "released_")
        check_free(Path(path), overwrite=overwrite)
        write(self, Path(path))

    def _check(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise BadInput("kernel must be a kernel of scikit-learn, for example RBF(0.1): the prior of the function.")
        if self.solution not in SOLUTIONS:
            raise BadInput(f"solution must be one of {', '.join(SOLUTIONS)}, not {self.solution!r}.")
        if (self.variance is None) == (self.share is None):
            raise BadInput("Promise either a variance or a share of the prior's variance: give variance=… or share=….")
        if self.share is not None and not (isinstance(self.share, (int, float)) and 0 < self.share < 1):
            raise BadInput(
                f"share must be above 0 and below 1, not {self.share!r}: it is the share of the prior's variance that stays."
            )
        everywhere = isinstance(self.sensitive, str) and self.sensitive == "everywhere"
        if everywhere != (self.solution == "uniform"):
            raise BadInput('solution="uniform" and sensitive="everywhere" go together.')
        if self.solution in ("kernel", "uniform") and self.share is None and not isinstance(self.variance, Kernel):
            raise BadInput(f"solution={self.solution!r} needs share=…, or a kernel as variance=….")
        if (self.ledger is None) != (self.dataset is None):
            raise BadInput(
                "Give both ledger and dataset, or neither: a release is remembered by the name of its data set."
            )
        if self.ledger is not None and self.random_state is not None:
            raise BadInput(
                "A seeded release is not private and is not remembered: leave out the ledger, or random_state."
            )

    def _sensitive(self, x: Array) -> tuple[Array, Array | None, NDArray[np.intp]]:
        """Points that are checked, half the cells around them (none for points), and whom each stands for."""
        d = x.shape[1]
        if self.solution == "uniform":
            low, high = x.min(axis=0), x.max(axis=0)
            reach = 0.25 * (high - low)
            return cells(np.stack([low - reach, high + reach], axis=1)[None])
        try:
            given = np.asarray(self.sensitive, dtype=np.float64)
        except (TypeError, ValueError):
            given = np.empty(0)
        if d == 1 and given.ndim == 2 and given.shape[1] == 2:
            given = given[:, None, :]
        if given.ndim == 1 and d == 1 and len(given):
            given = given[:, None]
        if not given.size or not np.isfinite(given).all():
            raise BadInput(
                "sensitive must be points or regions, all finite: sensitive=[0.4, 0.6], or sensitive=[(0.4, 0.6)] for an "
                "interval."
            )
        if given.ndim == 2 and given.shape[1] == d:
            return given, None, np.arange(len(given))
        if given.ndim == 3 and given.shape[1:] == (d, 2):
            if (given[:, :, 0] > given[:, :, 1]).any():
                raise BadInput(
                    f"A region's low end is above its high end: "
                    f"{given[(given[:, :, 0] > given[:, :, 1]).any(axis=1)][0].tolist()}."
                )
            return cells(given)
        raise BadInput(
            f"sensitive has shape {given.shape}, but X has {d} columns: points are (g, {d}), regions (k, {d}, 2)."
        )

    def _promise(self, kernel: Kernel, at: tuple[Array, Array | None, NDArray[np.intp]]) -> Promise:
        points, half, owner = at
        if half is not None:
            _check_periods(kernel, half)
        count = int(owner.max()) + 1
        if self.share is not None:
            promised = self.share * prior_variance(kernel, points)
        elif isinstance(self.variance, Kernel):
            promised = prior_variance(self.variance, points)
        else:
            given = np.asarray(self.variance, dtype=np.float64)
            if given.ndim == 2 and self.solution == "strong" and given.shape == (count, count) and half is None:
                given = given.diagonal()
            if given.shape not in ((), (count,)):
                raise BadInput(
                    f"variance has shape {given.shape}: give one number, or one for each of the {count} points or regions."
                )
            promised = np.broadcast_to(given, count)[owner].astype(np.float64)
        return promise(kernel, points, promised, half, 0 if half is None else count)

    def _noise(self, x: Array) -> float | Array:
        if self.noise is None:
            return _white(self.kernel, x)
        noise = np.asarray(self.noise, dtype=np.float64)
        if noise.shape not in ((), (len(x),), (len(x), len(x))) or not np.isfinite(noise).all():
            raise BadInput(
                f"noise has shape {noise.shape}: give a variance, one for each of the {len(x)} records, or a covariance "
                f"matrix."
            )
        if noise.ndim == 2:
            if not np.allclose(noise, noise.T):
                raise BadInput("noise is a covariance matrix that is not symmetric.")
            least = float(np.linalg.eigvalsh(noise)[0])
            if least < -1e-10 * float(np.abs(noise).max()):
                raise BadInput(f"noise is a covariance matrix with the negative eigenvalue {least:.4g}.")
        elif noise.min() < 0:
            raise BadInput(f"noise is a variance and cannot be {noise.min():g}.")
        return float(noise) if noise.ndim == 0 else noise

    def _trained(self, x: Array, y: Array, noise: float | Array) -> tuple[Kernel, float]:
        return train(self.kernel, x, y, noise if self.noise is not None else 0.0, self.mean)

    def _solve(self, kernel: Kernel, x: Array, noise: float | Array, at: Any) -> Noise:
        """Find the noise, or refuse: nothing is drawn for a promise that is not certified."""
        matrix = np.asarray(self.variance, dtype=np.float64) if _is_matrix(self.variance) else None
        if self.noise is None:
            noise = _white(kernel, x)
        try:
            made = self._promise(kernel, at)
            self._raw = observe(kernel, x, noise, made.at)
            found = solve(
                kernel,
                x,
                self._raw,
                made,
                solution=self.solution,
                hidden=self.variance if isinstance(self.variance, Kernel) else None,
                share=self.share,
                xi=matrix,
            )
        except np.linalg.LinAlgError:  # a ValueError, too
            raise ReleaseRefused(
                "The noise could not be computed: a covariance matrix is singular beyond what rounding explains. Nothing "
                "is released."
            ) from None
        except ValueError as error:
            raise BadInput(f"{str(error)[0].upper()}{str(error)[1:]}.") from None
        if not found.certificate.held:
            one = found.certificate
            raise ReleaseRefused(
                f"The promise could not be certified: promised {one.promised:.6g}, attained {one.attained:.6g}, smallest "
                f"eigenvalue "
                f"{one.eigenvalue:.3g}. Nothing is released; a promise is never weakened."
            )
        return found

    _found: Noise | None = None  # of the release that is being made, which need not be computed twice

    def _settle(self, x: Array, noise: float | Array, at: Any, answer: dict[str, Any]) -> None:
        """Compute all that follows from a release: public numbers only."""
        kernel = self.kernel.clone_with_theta(np.array(answer["theta"])) if answer["theta"] else self.kernel
        found = self._found if self._found is not None else self._solve(kernel, x, noise, at)
        self._found = None
        self.kernel_, self.mean_, self.noise_ = kernel, float(answer["mean"]), noise
        self.X_, self.n_features_in_ = x, x.shape[1]
        self.factor_, self.certificate_ = found.factor, found.certificate
        self.released_ = np.array(answer["w"], dtype=np.float64)
        self.checked_, self.attained_ = at[0], found.attained
        self.private_ = self.random_state is None
        self.step_ = grid_step(found.floor)
        inside, _ = self._raw.into(self.factor_)
        self._a = self._raw.inner + inside @ inside.T
        self._weights = np.linalg.solve(self._a, self._raw.into((self.released_ - self.mean_)[:, None])[0])[:, 0]

    def _question(self, x: Array) -> str:
        """All that is public and decides the release, as text."""
        told = {
            "X": [list(map(float.hex, row)) for row in x.tolist()],
            "kernel": _exact(self.kernel),
            "sensitive": _told(self.sensitive),
            "variance": _told(self.variance),
            "noise": _told(self.noise),
            "share": self.share,
            "solution": self.solution,
            "mean": self.mean,
        }
        return json.dumps(told, sort_keys=True, default=repr)

    def _seed(self) -> bytes | None:
        return None if self.random_state is None else b"obfuscate %d" % int(self.random_state)


def _likeliest(raw: Any, factor: Array, w: Array) -> float:
    """The mean, from what is released alone: learned from y it would give a combination of the noise away."""
    ones = np.ones((len(w), 1))
    inside, _ = raw.into(ones)
    weights = raw.out(np.linalg.solve(raw.inner + factor @ factor.T, inside))
    weights = weights + (ones - raw.out(inside)) / raw.rest
    return float(weights[:, 0] @ w / weights.sum())


def _exact(kernel: Kernel) -> Any:
    """A kernel as plain values, to the last digit: its own text rounds, and a sum's parameters are those of a product."""
    parts = sorted(kernel.get_params(deep=False).items())
    plain = {name: _exact(v) if isinstance(v, Kernel) else repr(np.asarray(v).tolist()) for name, v in parts}
    return [f"{type(kernel).__module__}.{type(kernel).__qualname__}", plain]


def _check_periods(kernel: Kernel, half: Array) -> None:
    """Between checked points the margin looks at the corners of cells: a cell must not hold a whole period."""
    widest = 2 * float(np.linalg.norm(half, axis=-1).max())
    for one in (kernel, *kernel.get_params().values()):
        if isinstance(one, ExpSineSquared) and one.periodicity < 2 * widest:
            raise BadInput(
                f"The kernel's period {one.periodicity:g} is too short for these regions, whose cells are {widest:g} wide: "
                "split the regions, or give points."
            )


def _told(value: Any) -> Any:
    if isinstance(value, Kernel):
        return _exact(value)
    return value if value is None or isinstance(value, str) else repr(np.asarray(value, dtype=object).tolist())


def _white(kernel: Kernel, x: Array) -> float | Array:
    """Variance of the kernel's own white noise at each record; one number if it is the same for all."""
    white = np.maximum(kernel.diag(x) - prior_variance(kernel, x), 0.0)
    return float(white[0]) if np.ptp(white) <= 1e-12 * white.max() else np.asarray(white)


def _is_matrix(value: Any) -> bool:
    return not isinstance(value, Kernel) and value is not None and np.ndim(value) == 2


def _inputs(X: Any, columns: int | None = None) -> Array:
    x = np.asarray(X, dtype=np.float64) if not hasattr(X, "iloc") else X
    x = check_array(x[:, None] if getattr(x, "ndim", 2) == 1 else x, dtype=np.float64)
    if columns is not None and x.shape[1] != columns:
        raise BadInput(f"X has {x.shape[1]} features, but Obfuscator is expecting {columns} features as input.")
    return np.asarray(x)


def _outputs(y: Any) -> Array:
    y = np.asarray(column_or_1d(y), dtype=np.float64)
    if not np.isfinite(y).all():
        raise BadInput("y holds NaN or infinity: remove these records, for no noise can be added to them.")
    return y


def _check_duplicates(x: Array, noise: float | Array) -> None:
    """Two records at one input without measurement error must be equal, and then K(X, X) is singular."""
    v = np.asarray(noise)
    v = v.diagonal() if v.ndim == 2 else np.broadcast_to(v, len(x))
    order = np.lexsort(x.T)
    same = (x[order][1:] == x[order][:-1]).all(axis=1) & (v[order][1:] == 0) & (v[order][:-1] == 0)
    if same.any():
        first = int(np.flatnonzero(same)[0])
        pair = sorted((int(order[first]), int(order[first + 1])))
        raise BadInput(
            f"K(X, X) is singular: records {pair[0]} and {pair[1]} have the same input {x[pair[0]].tolist()} and no "
            f"noise. Remove one of them, or "
            "give the variance of the measurement error as noise=…."
        )
