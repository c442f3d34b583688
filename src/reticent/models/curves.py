"""What an `Obfuscator` is told, checked and in one order; what it remembers of its release; and what it says in words."""

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils.validation import check_array, column_or_1d

from reticent.errors import BadInput, BudgetExceeded
from reticent.maths.obfuscation import prior_variance
from reticent.maths.obfuscation_kernels import check_falls_with_distance
from reticent.maths.obfuscation_promise import cells
from reticent.maths.obfuscation_solution import Noise
from reticent.maths.obfuscation_training import train
from reticent.privacy.given import whole

__all__ = [
    "ANOTHER",
    "FORMAT",
    "UNPROTECTED",
    "Memory",
    "Places",
    "check_another",
    "check_duplicates",
    "check_number",
    "check_regions",
    "each",
    "error_covariance",
    "error_variance",
    "in_order",
    "inputs",
    "names",
    "numbers",
    "outputs",
    "places",
    "promised",
    "question",
    "reordered",
    "statement",
    "taught",
]

Array = NDArray[np.float64]
Places = tuple[
    Array, Array | None, NDArray[np.intp]
]  # checked points, half the cells around them, whom each stands for
UNPROTECTED = "curve-unprotected"
FORMAT = 2  # of questions and releases; in 1, of version 0.1.0, noise was a variance and records had any order
_ALIKE = 1 - 1e-6  # correlation of two curves that are one; those of two laps of an orbit are less alike
_SHARED = 0.1  # of the records of another curve, that may stand in this one by chance
ANOTHER = "another curve"
_STATEMENT = (
    "Inferential privacy, NOT differential privacy: to somebody who knows the released values, the inputs, the mean, the "
    "kernel and the noise covariances, and whose knowledge of the function is this Gaussian process, each sensitive value "
    "keeps at least the promised variance. Nothing is promised against other knowledge, or for other values."
)
_SEEDED = (
    "NOT PRIVATE: the noise was drawn from a seed (random_state), so whoever knows the seed can take it away again. Use "
    "it for tests only."
)
_TRAINED = {
    None: "",
    ANOTHER: (
        " The kernel's hyperparameters, and the mean if it was not given, were learned from another curve and are released "
        "as they are: nothing in that curve is protected, and it must tell nothing of this one."
    ),
    UNPROTECTED: (
        " CONDITIONAL: the kernel's hyperparameters were learned from the curve itself and are released as they are. The "
        "promise is for a kernel that was fixed beforehand; what the hyperparameters tell about the sensitive values is NOT "
        "counted, and it can be nearly all."
    ),
}


def inputs(X: Any, columns: int | None = None) -> Array:
    """X as a matrix, with so many columns if that is known. −0.0 becomes 0.0: to every kernel they are one place."""
    x = np.asarray(X, dtype=np.float64) if not hasattr(X, "iloc") else X
    x = check_array(x[:, None] if getattr(x, "ndim", 2) == 1 else x, dtype=np.float64)
    if columns is not None and x.shape[1] != columns:
        raise BadInput(f"X has {x.shape[1]} features, but Obfuscator is expecting {columns} features as input.")
    return np.asarray(x) + 0.0


def in_order(x: Array) -> NDArray[np.intp]:
    """The order in which records are released, whatever order they come in: by the first input, then by the second, ….

    Records at the same place stay in the order they came in. The outputs decide nothing: the order would tell on them.
    """
    return np.lexsort(x.T[::-1])


def reordered(v: float | Array, order: NDArray[np.intp]) -> float | Array:
    """The variance, variances (n,) or covariance matrix (n, n) of measurement errors, for records in another order."""
    if isinstance(v, float):
        return v
    if v.ndim == 1:
        return v[order]
    return v[np.ix_(order, order)]


def outputs(y: Any) -> Array:
    """Give y as a vector of finite numbers."""
    y = numbers("y", column_or_1d(y))
    if not np.isfinite(y).all():
        raise BadInput("y holds NaN or infinity: remove these records, for no noise can be added to them.")
    return y


def numbers(name: str, value: Any) -> Array:
    """Give a parameter as an array of numbers; say which one it is, if it holds something else."""
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise BadInput(f"{name} must be made of numbers, not {value!r:.60}.") from None


def names(X: Any, y: Any, columns: int) -> list[str]:
    """What the inputs and the output are called: by the frames they come in, or by what they are."""
    own = [str(one) for one in getattr(X, "columns", [])]
    plain = ["input"] if columns == 1 else [f"input {i + 1}" for i in range(columns)]
    last = getattr(y, "name", None)
    return [*(own if len(own) == columns else plain), last if isinstance(last, str) else "output"]


def check_number(number: Any, releases: int) -> None:
    """Refuse a release that was not planned, before anything is read."""
    if not whole(number):
        raise BadInput(f"number says which of the planned releases is meant: 1, 2, …, not {number!r}.")
    if number > releases:
        raise BudgetExceeded(
            f"Release number {number} was asked for, and {releases} {'is' if releases == 1 else 'are'} planned "
            "(releases=…): one more would break the promise that all of them keep together. Nothing was read. Plan all "
            "releases before the first one: each then has more noise."
        )


def check_duplicates(x: Array, errors: float | Array) -> None:
    """Two records at one input without measurement error must be equal, and then K(X, X) is singular."""
    v = np.asarray(errors)
    v = v.diagonal() if v.ndim == 2 else np.broadcast_to(v, len(x))
    order = np.lexsort(x.T)
    same = (x[order][1:] == x[order][:-1]).all(axis=1) & (v[order][1:] == 0) & (v[order][:-1] == 0)
    if same.any():
        first = int(np.flatnonzero(same)[0])
        pair = sorted((int(order[first]), int(order[first + 1])))
        raise BadInput(
            f"K(X, X) is singular: records {pair[0]} and {pair[1]} have the same input {x[pair[0]].tolist()} and no "
            "noise. Remove one of them, or give the standard deviation of the measurement error as noise=…."
        )


def check_another(other: tuple[Array, Array], curve: tuple[Array, Array]) -> None:
    """Refuse to take a curve, or a part of it, for another one: what is learned from it would tell on it.

    Values at the same inputs are compared: equal but for rounding, or as good as proportional. A courtesy: whoever moves the
    inputs as well is not found out.
    """
    own = {row.tobytes(): value for row, value in zip(*curve, strict=True)}
    pairs = [(value, own[row.tobytes()]) for row, value in zip(*other, strict=True) if row.tobytes() in own]
    if not pairs:
        return
    a, b = np.array(pairs).T
    shared = int((np.abs(a - b) <= 1e-3 * np.std(curve[1]) + 1e-12 * np.abs(b)).sum())
    spread = np.std(a) * np.std(b)
    alike = len(a) > 3 and spread > 0 and abs(np.mean((a - a.mean()) * (b - b.mean()))) > _ALIKE * spread
    if shared > _SHARED * len(other[0]) or alike:
        many = f"{shared} of its {len(other[0])} records are records of this one"
        what = many if shared > _SHARED * len(other[0]) else "its values follow those of this one"
        raise BadInput(
            f"train_on is no other curve: {what}, and what is learned "
            f"from them tells on it. Give another curve, or the kernel itself; or, for a conditional promise, {UNPROTECTED!r}."
        )


class Memory:
    """What one object has released: a question that was asked before gets the answer it got, a further draw is refused.

    Without a ledger one object releases one curve. Two questions may always be about the same function, whatever their
    inputs: those of one curve in another order, without a record, moved a little, or left and right of a sensitive
    value. Only a ledger knows curves by their names.

    Answers are kept by question, by where a ledger remembers them (None: nowhere), and by the seed of a test. Those that
    were drawn from a seed, or whose stamp is missing, are not private and count for nothing.
    """

    def __init__(self) -> None:
        self._answers: dict[tuple[Any, ...], dict[str, Any]] = {}

    def find(self, question: str, place: Any = None, *, seeded: Any = None) -> dict[str, Any] | None:
        """Give the remembered answer; None, if one may be drawn."""
        if place is not None:  # a ledger remembers, and is asked every time
            refused = any(answer["private"] for key, answer in self._answers.items() if key[1] is None)
        else:
            known = self._answers.get((question, None, seeded))
            if known is not None or seeded is not None:
                return known
            refused = any(answer["private"] for answer in self._answers.values())
        if refused:
            raise BudgetExceeded(
                "This object has released a curve already, with other inputs or parameters or another ledger: if this is the "
                "same curve, a further draw would break the promise. Ask as before to get the same release; "
                "for another curve make a new Obfuscator (sklearn.base.clone), or name both in a ledger; for several "
                "releases of one curve plan them beforehand (releases=…)."
            )
        return None

    def keep(self, question: str, answer: dict[str, Any], place: Any = None, *, seeded: Any = None) -> None:
        """Remember an answer."""
        self._answers[question, place, seeded] = answer


def error_variance(noise: Any, n: int) -> float | Array:
    """The variance V of measurement errors with standard deviation ``noise``: one for all, or (n,), one for each record."""
    sd = numbers("noise", noise)
    if sd.shape not in ((), (n,)):
        raise BadInput(
            f"noise has shape {sd.shape}: give one standard deviation, or one for each of the {n} records; a covariance "
            "matrix as noise_covariance=…."
        )
    if not (sd >= 0).all():
        raise BadInput(f"noise is a standard deviation and cannot be {sd.min():g}: give 0, or a positive number.")
    with np.errstate(over="ignore", under="ignore"):
        variance = sd**2
    if not np.isfinite(variance).all():
        raise BadInput(
            f"noise has a square that is not finite, of {sd.max():g}: give a standard deviation below 1e150."
        )
    return float(variance) if variance.ndim == 0 else variance


def error_covariance(covariance: Any, n: int) -> Array:
    """The covariance V of measurement errors: a matrix (n, n), or (n,), the variances of independent errors."""
    v = numbers("noise_covariance", covariance)
    if v.shape not in ((n,), (n, n)) or not np.isfinite(v).all():
        raise BadInput(
            f"noise_covariance has shape {v.shape}, or is not finite: give a covariance matrix of shape ({n}, {n}), or the "
            f"variances of the {n} records' errors; one standard deviation for all as noise=…."
        )
    if v.ndim == 2:
        if not np.allclose(v, v.T):
            raise BadInput("noise_covariance is not symmetric: give (V + V.T) / 2, if that is what is meant.")
        least = float(np.linalg.eigvalsh(v)[0])
        if least < -1e-10 * float(np.abs(v).max()):
            raise BadInput(
                f"noise_covariance has the negative eigenvalue {least:.4g}: no errors have it. Add at least that much to "
                "its diagonal, or give variances."
            )
    elif v.min() < 0:
        raise BadInput(f"noise_covariance holds the variance {v.min():g}: give 0, or a positive number.")
    return v


def check_regions(kernel: Kernel, variance: Any, columns: int) -> None:
    """Refuse regions for a prior, or for a promised H, that is not known to fall with distance."""
    for one in (kernel, variance):
        if isinstance(one, Kernel):
            try:
                check_falls_with_distance(one, columns)
            except ValueError as error:
                raise BadInput(f"{str(error)[0].upper()}{str(error)[1:]}.") from None


def places(sensitive: Any, x: Array, *, everywhere: bool) -> Places:
    """Points that are checked, half the cells around them (none for points), and whom each stands for."""
    d = x.shape[1]
    if everywhere:
        low, high = x.min(axis=0), x.max(axis=0)
        reach = 0.25 * (high - low)
        return cells(np.stack([low - reach, high + reach], axis=1)[None])
    try:
        given = np.asarray(sensitive, dtype=np.float64)
    except (TypeError, ValueError):
        given = np.empty(0)
    if d == 1 and given.ndim == 2 and given.shape[1] == 2:
        given = given[:, None, :]
    if given.ndim == 1 and d == 1 and len(given):
        given = given[:, None]
    if not given.size or not np.isfinite(given).all():
        raise BadInput(
            "sensitive must be points or regions, all finite: sensitive=[0.4, 0.6], or sensitive=[(0.4, 0.6)] for an interval."
        )
    if given.ndim == 2 and given.shape[1] == d:
        return given, None, np.arange(len(given))
    if given.ndim == 3 and given.shape[1:] == (d, 2):
        turned = (given[:, :, 0] > given[:, :, 1]).any(axis=1)
        if turned.any():
            raise BadInput(
                f"A region's low end is above its high end: {given[turned][0].tolist()}. Give it as (low, high) for each input."
            )
        return cells(given)
    raise BadInput(
        f"sensitive has shape {given.shape}, but X has {d} columns: points are (g, {d}), regions (k, {d}, 2)."
    )


def promised(variance: Any, share: float | None, kernel: Kernel, at: Places, *, matrix: bool) -> Array:
    """Give the variance that is promised at each checked point; a ``matrix`` Ξ has it on its diagonal."""
    points, half, owner = at
    if share is not None:
        return share * prior_variance(kernel, points)
    if isinstance(variance, Kernel):
        return prior_variance(variance, points)
    given, count = numbers("variance", variance), int(owner.max()) + 1
    if given.ndim == 2 and given.shape == given.T.shape and not np.allclose(given, given.T):
        raise BadInput("variance is a matrix Ξ that is not symmetric: give (Ξ + Ξᵀ) / 2, if that is what is meant.")
    if matrix and half is None and given.shape == (count, count):
        given = given.diagonal()
    if given.shape not in ((), (count,)):
        raise BadInput(
            f"variance has shape {given.shape}: give one number, or one for each of the {count} points or regions."
        )
    return np.asarray(np.broadcast_to(given, count)[owner], dtype=np.float64)


def statement(trained_on: str | None, releases: int, *, private: bool) -> str:
    """What is promised, in words."""
    if not private:
        return _SEEDED
    together = f" It is kept by all {releases} planned releases together." if releases > 1 else ""
    return _STATEMENT + together + _TRAINED[trained_on]


def question(x: Array, **told: Any) -> str:
    """All that is public and decides the release, as text. ``x``: the inputs in the order of ``in_order``."""
    rows = [list(map(float.hex, row)) for row in x.tolist()]
    rest = {name: _told(value) for name, value in told.items()}
    return json.dumps({"format": FORMAT, "X": rows, **rest}, sort_keys=True, default=repr)


def _told(value: Any) -> Any:
    if isinstance(value, Kernel):
        return _exact(value)
    if value is None or isinstance(value, (str, int, float)):
        return value
    return repr(np.asarray(value, dtype=object).tolist())


def _exact(kernel: Kernel) -> Any:
    """A kernel as plain values, to the last digit: its own text rounds, and a sum's parameters are those of a product."""
    parts = sorted(kernel.get_params(deep=False).items())
    plain = {name: _exact(v) if isinstance(v, Kernel) else repr(np.asarray(v).tolist()) for name, v in parts}
    return [f"{type(kernel).__module__}.{type(kernel).__qualname__}", plain]


def taught(*told: Any) -> tuple[Kernel, float]:
    """Learn kernel and mean, or say why that cannot be done."""
    try:
        return train(*told)
    except ValueError as error:
        raise BadInput(f"{str(error)[0].upper()}{str(error)[1:]}.") from None


def each(found: Noise, releases: int) -> tuple[Array, float]:
    """The noise of each of so many releases, which together have the noise that was found: factor and floor."""
    if releases == 1:
        return found.factor, found.floor
    return found.factor * (np.sqrt(releases) * (1 + 4 * np.finfo(np.float64).eps)), found.floor * releases
