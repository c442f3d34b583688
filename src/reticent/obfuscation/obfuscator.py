"""Obfuscator of curves: the least noise that hides part of a function (Tuo & Bhattacharya 2023).

    Step 1   mean and kernel: given, or by maximum likelihood from another curve
    Step 2   Σ such that nobody can infer f(s) better than promised; W = y + z, z ~ N(0, Σ)
    Step 3   the predictor that an honest user builds from W, the mean, the kernel, V and Σ, all of
             which are public

**Inferential privacy, not differential privacy**: the promise holds for somebody who believes in
the Gaussian process and nothing else. The proof is beside this file, in obfuscator.md.
"""

import threading
from dataclasses import KW_ONLY, dataclass, field, fields
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from reticent.errors import BadInput, BudgetExceeded, ReleaseRefused
from reticent.obfuscation.inputs import (
    SensitivePoints,
    as_inputs,
    as_numbers,
    as_outputs,
    check_duplicates,
    check_other_curve,
    check_regions,
    curve_names,
    error_covariance,
    error_variance,
    promised_variances,
    release_order,
    reorder_errors,
    sensitive_points,
    train_prior,
)
from reticent.obfuscation.memory import FORMAT, Memory, release_question
from reticent.obfuscation.noise import grid_step, obfuscated
from reticent.obfuscation.parameters import check_parameters, check_release_number
from reticent.obfuscation.register import recall, recall_or
from reticent.obfuscation.solver.certificate import Noise, solve
from reticent.obfuscation.solver.constraints import promise
from reticent.obfuscation.solver.covariance import (
    Raw,
    between,
    observe,
    prior_variance,
    white_noise,
)
from reticent.obfuscation.statements import ANOTHER, UNPROTECTED, statement
from reticent.privacy.statistics.exact_sum import one_blas_thread

__all__ = ["Obfuscator"]

Array = NDArray[np.float64]
Order = NDArray[np.intp]
_ONE_AT_A_TIME = threading.RLock()  # two threads that ask at once get one draw
_MOST_SHOWN = 6000  # records whose whole covariance matrix is made


@dataclass(repr=False, eq=False)
class Obfuscator(BaseEstimator):  # type: ignore[misc]
    """Release a curve so that chosen parts of it stay unknown, with the least noise that does it.

    Parameters
    ----------
    kernel : scikit-learn kernel
        The prior covariance of the function, with the hyperparameters that it has, unless
        ``train_on`` is given.
    sensitive : array, or "everywhere"
        Points: shape (g, d), or (g,) with one input. Regions: boxes of shape (k, d, 2), or pairs
        (low, high) with one input. Regions, and "everywhere", need a kernel that falls with
        distance: RBF, Matern (nu 0.5, 1.5, 2.5 or inf), RationalQuadratic, ExpSineSquared (of one
        input, with a period that is long against the cells), ConstantKernel, WhiteKernel, and sums,
        products and whole powers of these. Others are refused: give points.
    variance : number, array, matrix or kernel
        The promised posterior variance: one for all, or one for each point or region. With
        ``solution="strong"`` also a matrix Ξ; with "kernel" and "uniform" a kernel H.
    share : float
        Instead of ``variance``: promise this share of the prior, H = share · K.
    solution : str
        "weak": each sensitive value by itself, with the least noise (default). "strong", "kernel":
        all linear combinations of sensitive values. "uniform": all inputs. "diagonal": independent
        noise, to compare with.
    noise : number or array, optional
        The standard deviation of the measurement error in ``y``: one for all, or of shape (n,), one
        for each record. Default: that of a WhiteKernel in ``kernel``, or none.
    noise_covariance : array, optional
        Instead of ``noise``: the covariance matrix V of the measurement errors, of shape (n, n); or
        of shape (n,), their variances, if they are independent.
    mean : float, optional
        The prior mean. Default: a constant, learned from ``train_on`` if that is another curve, or
        else from what is released (from the curve itself it would tell on it).
    train_on : (X, y), or "curve-unprotected", optional
        Learn the hyperparameters that are not "fixed", by maximum likelihood, from another curve
        whose values are public or have nothing to do with the hidden ones; or from the curve
        itself. They are released, and what they tell about their own curve is **not counted**:
        learned from the curve itself they can tell all of it, so the promise is then conditional,
        and says so. The search stays within the kernel's bounds, and the prior's variance within a
        factor 100 of the values' mean square.
    releases : int
        How many releases are planned. They have independent noise, so much more of it that all of
        them together keep the promise: ``obfuscate(X, y, number=2)`` gives the second one. More are
        refused.
    ledger, dataset : str, optional
        Where the release is remembered. Asking again gives the same release, in whatever order the
        records come; asking something else about the data set is refused.
    random_state : int, optional
        Makes the noise repeatable, for tests. Whatever is released with it is stamped
        ``private_ = False``.

    Attributes
    ----------
    released_, covariance_ : arrays of shapes (n,) and (n, n)
        W, and the covariance of the noise in it: Σ, times the number of planned releases. In the
        order of the records.
    certificate_ : Certificate
        Promised and attained variance, smallest eigenvalue, gap to the least possible noise; for
        all releases together.
    kernel_, mean_
        What was learned or given.
    noise_, noise_covariance_ : float or array of shape (n,), and array of shape (n, n)
        The standard deviation of the measurement errors, and their covariance V.
    trained_on_ : None, "another curve" or "curve-unprotected"
        Where hyperparameters were learned.
    private_, conditional_, statement_ : bool, bool, str

    Privacy
    -------
    Inferential privacy, not differential privacy: ``statement_`` says against whom. Released: W,
    mean, kernel, V and Σ. Must be public: the inputs X and all parameters; ``train_on`` as it says
    there. One plan of releases for each curve. Without a ledger nothing remembers it but this
    object: it releases one curve, gives the same release when it is asked again, and refuses
    another question, for it cannot know whether that is about the same curve. A clone, a copy made
    before the release, and another process know nothing of it: only a ledger does.

    Examples
    --------
    >>> import numpy as np, reticent
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> t = np.linspace(0, 1, 41)
    >>> hide = reticent.Obfuscator(RBF(0.2), sensitive=[(0.4, 0.5)], variance=0.5, mean=0.0)
    >>> W = hide.obfuscate(t, np.sin(6 * t))
    >>> mean, sd = hide.predict(np.linspace(0.4, 0.5, 7), return_std=True)
    >>> bool((sd**2 >= 0.5).all()), hide.certificate_.held
    (True, True)
    """

    kernel: Any = None
    _: KW_ONLY
    sensitive: Any = None
    variance: Any = None
    share: float | None = None
    solution: str = "weak"
    noise: Any = None
    noise_covariance: Any = None
    mean: float | None = None
    train_on: Any = None
    releases: int = 1
    ledger: str | None = None
    dataset: str | None = None
    random_state: int | None = None
    # of the question that was asked last, which need not be computed twice
    _found: tuple[Noise, Raw] | None = field(default=None, init=False)
    _solved: tuple[Any, ...] = field(default=(), init=False)

    def obfuscate(self, X: Any, y: Any, *, number: int = 1) -> Array:
        """Find the noise, draw it once, and give W.

        With several planned releases, the one with this ``number``. A question that was asked
        before gets the answer it got, and ``y`` is not looked at.
        """
        self._check()
        check_release_number(number, self.releases)
        x = as_inputs(X)
        names = curve_names(X, y, x.shape[1])
        y = as_outputs(y)
        check_consistent_length(x, y)
        check_duplicates(x, self._errors(self.kernel, x, np.arange(len(x))))
        order = release_order(x)
        at = self._places(x)  # also what no training can mend is refused now
        with _ONE_AT_A_TIME, one_blas_thread():
            answer = self._asked(x[order], y[order], order, at)
            w = answer["w"][number - 1]
            if w is None:
                raise BudgetExceeded(
                    f"This is release number {self.number_} of {self.releases}, rebuilt: it does "
                    f"not hold number {number}, and a new draw would break the promise. Ask the "
                    "ledger that remembers them all."
                )
            self._settle(
                x[order], order, at, {**answer, "w": w, "number": int(number), "names": names}
            )
        return np.array(self.released_)

    def fit(self, X: Any, y: Any) -> Self:
        """Obfuscate, as scikit-learn calls it."""
        self.obfuscate(X, y)
        return self

    @classmethod
    def from_release(cls, X: Any, release: dict[str, Any], **params: Any) -> Self:
        """Rebuild from ``release()`` and the public parameters, without the raw data.

        Bit for bit on the same machine.
        """
        model = cls(**{**params, "ledger": None, "dataset": None, "train_on": None})
        model._check()
        if release.get("format") != FORMAT:
            raise BadInput(
                "This release was made by version 0.1.0 of reticent, in which noise was a "
                "variance: it cannot be rebuilt here. Read it with that version; the released "
                "values themselves are as good as ever."
            )
        if release.get("releases", model.releases) != model.releases:
            raise BadInput(
                f"This is one of {release['releases']} planned releases, not "
                f"of {model.releases}: say releases=…."
            )
        x = as_inputs(X)
        order = release_order(x)
        w = np.asarray(release["w"], dtype=np.float64)
        check_consistent_length(x, w)
        ordered = {**release, "w": w[order].tolist()}
        with one_blas_thread():
            model._settle(x[order], order, model._places(x), ordered)
        looks = [
            ordered["w"] if i + 1 == release["number"] else None for i in range(model.releases)
        ]
        # it remembers, too
        model._memory().keep(
            model._question(x[order], order), {**ordered, "private": model.private_, "w": looks}
        )
        return model

    def release(self) -> dict[str, Any]:
        """Give all that leaves, as plain values.

        W, the mean, what was learned (in logarithms), where, and what it is called.
        """
        check_is_fitted(self, "released_")
        theta = []
        if self.trained_on_:
            theta = self.kernel_.theta.tolist()
        values = {
            "w": self.released_.tolist(),
            "theta": theta,
            "mean": self.mean_,
            "trained_on": self.trained_on_,
        }
        stamps = {
            "format": FORMAT,
            "number": self.number_,
            "releases": self.planned_,
            "private": self.private_,
        }
        return {**values, **stamps, "names": list(self.names_)}

    def save(
        self, path: str | Path, *, overwrite: bool = False, sign_with: str | Path | None = None
    ) -> None:
        """Write the release and the public parameters to a file.

        It holds nothing else; ``reticent.load`` reads it.
        """
        from reticent.models.serialization import save_curve

        check_is_fitted(self, "released_")
        self._check_unchanged()
        save_curve(self, path, overwrite=overwrite, sign_with=sign_with)

    @property
    def covariance_(self) -> Array:
        """factor_·factor_ᵀ + floor_·I."""
        check_is_fitted(self, "factor_")
        if len(self.factor_) > _MOST_SHOWN:
            raise BadInput(
                f"Σ of {len(self.factor_):,} records is not made whole: use factor_ (Σ = "
                "factor_·factor_ᵀ + floor_·I)."
            )
        return np.asarray(self.factor_ @ self.factor_.T + self.floor_ * np.eye(len(self.factor_)))

    @property
    def noise_(self) -> float | Array:
        """The standard deviation of the measurement errors: one for all, or one for each record."""
        check_is_fitted(self, "released_")
        v = np.asarray(self._v)
        sd = np.sqrt(v.diagonal() if v.ndim == 2 else v)
        if sd.ndim == 0:
            return float(sd)
        return sd

    @property
    def noise_covariance_(self) -> Array:
        """V, the covariance of the measurement errors."""
        check_is_fitted(self, "released_")
        n = len(self.released_)
        if n > _MOST_SHOWN:
            raise BadInput(
                f"V of {n:,} records is not made whole: use noise_, the standard deviations."
            )
        v = np.array(self._v)
        if v.ndim == 2:
            return v
        return np.diag(np.broadcast_to(v, n))

    @property
    def conditional_(self) -> bool:
        """Whether something was released that the promise does not count."""
        check_is_fitted(self, "released_")
        return bool(self.trained_on_ == UNPROTECTED)

    @property
    def statement_(self) -> str:
        """What is promised, in words."""
        check_is_fitted(self, "released_")
        return statement(self.trained_on_, self.planned_, private=self.private_)

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """What an honest user knows of f(X) from the release.

        Mean, and standard deviation if asked for (Eqs 3, 4).
        """
        check_is_fitted(self, "released_")
        at = as_inputs(X, self.n_features_in_)
        cross = between(self.kernel_, self._ordered, at)
        inside, outside = self._raw.into(cross)
        mean = self.mean_ + inside.T @ self._weights
        if not return_std:
            return mean
        reduction = (
            np.einsum("ij,ij->j", inside, np.linalg.solve(self._a, inside))
            + outside / self._raw.rest
        )
        return mean, np.sqrt(np.maximum(prior_variance(self.kernel_, at) - reduction, 0))

    def report(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the release report.

        One page for people (HTML, opens offline), made from what is released alone.
        """
        from reticent.models.serialization import check_free
        from reticent.obfuscation.report import write_curve_report

        check_is_fitted(self, "released_")
        self._check_unchanged()
        check_free(Path(path), overwrite=overwrite)
        write_curve_report(self, Path(path), overwrite=overwrite)

    def _check(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise BadInput(
                "kernel must be a kernel of scikit-learn, for example "
                "RBF(0.1): the prior of the function.",
                parameter="kernel",
            )
        everywhere = isinstance(self.sensitive, str) and self.sensitive == "everywhere"
        check_parameters(
            variance=self.variance,
            share=self.share,
            solution=self.solution,
            noise=self.noise,
            everywhere=everywhere,
            releases=self.releases,
            ledger=self.ledger,
            dataset=self.dataset,
        )
        if self.noise is not None and self.noise_covariance is not None:
            raise BadInput(
                "Give noise (standard deviations) or noise_covariance (variances), not both."
            )
        if self.mean is not None and not (
            np.ndim(self.mean) == 0 and np.isfinite(as_numbers("mean", self.mean))
        ):
            raise BadInput(
                f"mean must be one finite number, not {self.mean!r}; left out, "
                "the release tells it.",
                parameter="mean",
            )
        if (
            self.solution in ("kernel", "uniform")
            and self.share is None
            and not isinstance(self.variance, Kernel)
        ):
            raise BadInput(f"solution={self.solution!r} needs share=…, or a kernel as variance=….")
        other = isinstance(self.train_on, (tuple, list)) and len(self.train_on) == 2
        if not (
            self.train_on is None
            or other
            or (isinstance(self.train_on, str) and self.train_on == UNPROTECTED)
        ):
            raise BadInput(
                "train_on must be another curve, (X, y), to learn hyperparameters from; or, if the "
                f"promise may be conditional, {UNPROTECTED!r}; or left out, and the kernel is "
                "taken as it is.",
                parameter="train_on",
            )
        if self.ledger is not None and self.random_state is not None:
            raise BadInput(
                "A seeded release is not private and not remembered: leave out "
                "the ledger, or random_state."
            )

    def _asked(self, x: Array, y: Array, order: Order, at: SensitivePoints) -> dict[str, Any]:
        """Give the answer that this object or a ledger remembers.

        Or make one, if that breaks no promise.

        ``x`` and ``y`` are sorted; ``order`` says where each record stood in the caller's order,
        which ``noise`` has.
        """
        question = self._question(x, order)
        memory = self._memory()
        place = None if self.ledger is None else (self.ledger, self.dataset)
        if (question, place, self.random_state) != self._solved:
            self._found = None
            self._solved = (question, place, self.random_state)
        known = memory.find(question, place, seeded=self.random_state)
        if known is None:
            known = {
                **self._answer(question, x, y, order, at),
                "releases": self.releases,
                "private": self.random_state is None,
            }
            memory.keep(question, known, place, seeded=self.random_state)
        return known

    def _memory(self) -> Memory:
        return self.__dict__.setdefault("_made", Memory())

    def _answer(
        self, question: str, x: Array, y: Array, order: Order, at: SensitivePoints
    ) -> dict[str, Any]:
        """Give the answer that a ledger remembers, or make one.

        All planned releases, drawn at once.
        """
        place = (str(self.ledger), str(self.dataset), question) if self.ledger is not None else None
        if place is not None and (known := recall(*place)) is not None:
            return dict(known)
        trained, kernel, mean = self._trained(x, y, order)
        found, raw = self._found = self._solve(kernel, x, order, at)
        factor, floor = found.per_release(self.releases)

        def draw() -> dict[str, Any]:
            w = [obfuscated(y, factor, floor, seed=self._seed(i)) for i in range(self.releases)]
            level = mean
            if mean is None:
                level = raw.mean(np.mean(w, axis=0), found.factor)
            theta = []
            if trained:
                theta = kernel.theta.tolist()
            return {
                "w": [values.tolist() for values in w],
                "theta": theta,
                "mean": level,
                "trained_on": trained,
            }

        if place is None:
            return draw()
        answer = dict(recall_or(*place, draw))
        if answer["theta"] != (kernel.theta.tolist() if trained else []):
            self._found = None  # another process was first, with a kernel of its own
        return answer

    def _places(self, x: Array) -> SensitivePoints:
        at = sensitive_points(self.sensitive, x, everywhere=self.solution == "uniform")
        if at.half_cells is not None:
            check_regions(self.kernel, self.variance, x.shape[1])
        return at

    def _given_errors(self, n: int) -> float | Array | None:
        """V of n measurement errors in the caller's order, as variance, variances or matrix.

        None: that of the kernel.
        """
        if self.noise_covariance is not None:
            return error_covariance(self.noise_covariance, n)
        if self.noise is not None:
            return error_variance(self.noise, n)
        return None

    def _errors(self, kernel: Kernel, x: Array, order: Order) -> float | Array:
        """V of the measurement errors at ``x``, whose records stood at ``order`` before sorting."""
        v = self._given_errors(len(x))
        if v is None:
            return white_noise(kernel, x)
        return reorder_errors(v, order)

    def _trained(self, x: Array, y: Array, order: Order) -> tuple[str | None, Kernel, float | None]:
        """Give where hyperparameters are learned, if they are, and Step 1: kernel and mean.

        None: from W, later.
        """
        given = self._given_errors(len(x))
        error: float | Array = 0.0  # a white kernel brings its own
        if given is not None:
            error = reorder_errors(given, order)
        if self.train_on is None or (self.train_on == UNPROTECTED and not self.kernel.theta.size):
            return None, self.kernel, self.mean
        if isinstance(self.train_on, str):
            return UNPROTECTED, train_prior(self.kernel, x, y, error, self.mean)[0], self.mean
        other = as_inputs(self.train_on[0], x.shape[1])
        values = as_outputs(self.train_on[1])
        check_consistent_length(other, values)
        if np.ndim(error):
            raise BadInput(
                "noise is of each record of the curve, and says nothing of train_on: give one "
                "standard deviation, or train beforehand and give the kernel.",
                parameter="noise",
            )
        check_duplicates(other, error if given is not None else white_noise(self.kernel, other))
        check_other_curve((other, values), (x, y))
        return ANOTHER, *train_prior(self.kernel, other, values, error, self.mean)

    def _solve(
        self, kernel: Kernel, x: Array, order: Order, at: SensitivePoints
    ) -> tuple[Noise, Raw]:
        """Find the noise, or refuse: nothing is drawn for a promise that is not certified."""
        given = self.variance
        if not isinstance(given, Kernel) and np.ndim(given) == 2:
            matrix = np.asarray(given, dtype=np.float64)
        else:
            matrix = None
        promised = promised_variances(
            given, self.share, kernel, at, matrix=self.solution == "strong"
        )
        try:
            made = promise(kernel, at.points, promised, at.half_cells, at.regions)
            raw = observe(kernel, x, self._errors(kernel, x, order), made.at)
            found = solve(
                kernel,
                x,
                raw,
                made,
                solution=self.solution,
                hidden=self.variance if isinstance(self.variance, Kernel) else None,
                share=self.share,
                xi=matrix,
            )
        except np.linalg.LinAlgError:  # a ValueError, too
            raise ReleaseRefused(
                "The noise could not be computed: a covariance matrix is singular beyond what "
                "rounding explains. Nothing is released. Promise less, give the measurement "
                "error's standard deviation (noise=…), or a shorter length scale."
            ) from None
        except ValueError as error:
            raise BadInput(f"{str(error)[0].upper()}{str(error)[1:]}.") from None
        if not found.certificate.held:
            short = found.certificate
            raise ReleaseRefused(
                f"The promise could not be certified: promised {short.promised:.6g}, attained "
                f"{short.attained:.6g}, smallest eigenvalue {short.eigenvalue:.3g}. Nothing is "
                "released; a promise is never weakened. Promise less, hide smaller regions, or "
                "give the standard deviation of the measurement error (noise=…)."
            )
        return found, raw

    def _settle(self, x: Array, order: Order, at: SensitivePoints, answer: dict[str, Any]) -> None:
        """Compute all that follows from a release: public numbers only.

        ``x`` and the answer are sorted.
        """
        if answer["theta"]:
            kernel = self.kernel.clone_with_theta(np.array(answer["theta"]))
        else:
            kernel = self.kernel
        if self._found is None:
            self._found = self._solve(kernel, x, order, at)
        found, raw = self._found
        back = np.argsort(order)  # to the caller's order
        w = np.array(answer["w"], dtype=np.float64)
        factor, floor = found.per_release(self.releases)
        self.kernel_ = kernel
        self.mean_ = float(answer["mean"])
        self.trained_on_ = answer["trained_on"]
        self.number_ = answer["number"]
        self.n_features_in_ = x.shape[1]
        self.names_ = list(answer["names"])
        self.certificate_ = found.certificate
        self.checked_ = at.points
        self.attained_ = found.attained
        self.private_ = bool(answer.get("private", False))
        self.planned_ = answer.get("releases", self.releases)
        self.X_ = x[back]
        self.released_ = w[back]
        self.factor_ = factor[back]
        self.floor_ = floor
        self._v = reorder_errors(self._errors(kernel, x, order), back)
        self.step_ = grid_step(self.floor_)
        self._ordered = x
        self._order = order
        self._settled = self._question(x, order)
        self._raw = raw.with_floor(floor)
        inside, _ = self._raw.into(factor)
        self._a = self._raw.inner + inside @ inside.T
        self._weights = np.linalg.solve(self._a, self._raw.into((w - self.mean_)[:, None])[0])[:, 0]

    def _question(self, x: Array, order: Order) -> str:
        if self.train_on is None or isinstance(self.train_on, str):
            trained = self.train_on
        else:
            trained = ANOTHER
        given = self._given_errors(len(x))
        errors = None
        if given is not None:
            errors = reorder_errors(given, order)
        public = ("kernel", "sensitive", "variance", "share", "solution", "mean", "releases")
        params = {name: getattr(self, name) for name in public}
        return release_question(x, train_on=trained, errors=errors, **params)

    def _check_unchanged(self) -> None:
        """Files and reports say the parameters: those of the release, or nothing."""
        if self._question(self._ordered, self._order) != self._settled:
            raise BadInput(
                "Parameters were changed after the release, which was made with others: a file or "
                "a report would say what is not so. Set them back (set_params)."
            )

    def _seed(self, number: int) -> bytes | None:
        if self.random_state is None:
            return None
        return b"obfuscate %d %d" % (int(self.random_state), number)


# A subclass that forgets to set a parameter must fail, not have the default: no ledger.
for _parameter in fields(Obfuscator):
    if _parameter.init:
        delattr(Obfuscator, _parameter.name)
