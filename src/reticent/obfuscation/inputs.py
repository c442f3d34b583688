"""Arguments of an `Obfuscator`: checked, as arrays, with the records in one order."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils.validation import check_array, column_or_1d

from reticent.errors import BadInput
from reticent.obfuscation.solver.constraints import cells
from reticent.obfuscation.solver.covariance import prior_variance
from reticent.obfuscation.solver.decreasing_kernels import check_falls_with_distance
from reticent.obfuscation.solver.marginal_likelihood import train
from reticent.obfuscation.statements import UNPROTECTED

__all__ = [
    "SensitivePoints",
    "as_inputs",
    "as_numbers",
    "as_outputs",
    "check_duplicates",
    "check_other_curve",
    "check_regions",
    "curve_names",
    "error_covariance",
    "error_variance",
    "promised_variances",
    "release_order",
    "reorder_errors",
    "sensitive_points",
    "train_prior",
]

Array = NDArray[np.float64]
Order = NDArray[np.intp]
# Two curves with this correlation are one; those of two laps of an orbit are less alike.
_SAME_CURVE_CORRELATION = 1 - 1e-6
# The largest fraction of another curve's records that may be records of this one by coincidence.
_COINCIDENCES = 0.1


class SensitivePoints(NamedTuple):
    """Points at which the promise is checked.

    Attributes
    ----------
    points : array of shape (g, d)
        The sensitive points, or the centres of the cells that sensitive regions are divided into.
    half_cells : array of shape (g, d), or None
        Half the size of the cell around each point, in units of the inputs. None for points.
    owner : array of shape (g,)
        Index of the point or region, as the caller gave it, that each checked point belongs to.
    """

    points: Array
    half_cells: Array | None
    owner: NDArray[np.intp]

    @property
    def regions(self) -> int:
        """Number of regions; 0 for points."""
        if self.half_cells is None:
            return 0
        return int(self.owner.max()) + 1


def as_inputs(X: Any, columns: int | None = None) -> Array:
    """X as a matrix of shape (n, d); BadInput if d is not ``columns``, where that is known.

    −0.0 becomes 0.0: to every kernel they are one place.
    """
    x = X
    if not hasattr(X, "iloc"):
        x = np.asarray(X, dtype=np.float64)
    if getattr(x, "ndim", 2) == 1:
        x = x[:, None]
    x = check_array(x, dtype=np.float64)
    if columns is not None and x.shape[1] != columns:
        raise BadInput(
            f"X has {x.shape[1]} features, but Obfuscator is expecting {columns} features as input."
        )
    return np.asarray(x) + 0.0


def release_order(x: Array) -> Order:
    """The order (n,) in which records are released, whatever order they come in.

    By the first input, then by the second, …. Records at the same place stay in the order they came
    in. Outputs must not decide: the order would disclose something about them.
    """
    return np.lexsort(x.T[::-1])


def reorder_errors(v: float | Array, order: Order) -> float | Array:
    """Covariance of measurement errors for records in another order.

    ``v``: one variance, variances (n,), or a covariance matrix (n, n).
    """
    if isinstance(v, float):
        return v
    if v.ndim == 1:
        return v[order]
    return v[np.ix_(order, order)]


def as_outputs(y: Any) -> Array:
    """y as a vector (n,) of finite numbers."""
    y = as_numbers("y", column_or_1d(y))
    if not np.isfinite(y).all():
        raise BadInput(
            "y holds NaN or infinity: remove these records, for no noise can be added to them."
        )
    return y


def as_numbers(name: str, value: Any) -> Array:
    """The parameter ``name`` as an array of numbers."""
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise BadInput(
            f"{name} must be made of numbers, not {value!r:.60}.", parameter=name
        ) from None


def curve_names(X: Any, y: Any, columns: int) -> list[str]:
    """Names of the d inputs and of the output: those of data frames, or "input" and "output"."""
    names = [str(name) for name in getattr(X, "columns", [])]
    if len(names) != columns:
        names = [f"input {i + 1}" for i in range(columns)]
        if columns == 1:
            names = ["input"]
    output = getattr(y, "name", None)
    if not isinstance(output, str):
        output = "output"
    return [*names, output]


def check_duplicates(x: Array, errors: float | Array) -> None:
    """Refuse two records at one input without measurement error: K(X, X) is then singular.

    ``x``: inputs (n, d). ``errors``: one variance, variances (n,), or a covariance matrix (n, n).
    """
    v = np.asarray(errors)
    if v.ndim == 2:
        v = v.diagonal()
    else:
        v = np.broadcast_to(v, len(x))
    order = np.lexsort(x.T)
    same = (x[order][1:] == x[order][:-1]).all(axis=1) & (v[order][1:] == 0) & (v[order][:-1] == 0)
    if same.any():
        first = int(np.flatnonzero(same)[0])
        pair = sorted((int(order[first]), int(order[first + 1])))
        raise BadInput(
            f"K(X, X) is singular: records {pair[0]} and {pair[1]} have the same input "
            f"{x[pair[0]].tolist()} and no noise. Remove one of them, or give the standard "
            "deviation of the measurement error as noise=…."
        )


def check_other_curve(other: tuple[Array, Array], curve: tuple[Array, Array]) -> None:
    """Refuse to train on the curve itself, or on a part of it, as if it were another curve.

    Both are pairs of inputs (n, d) and outputs (n,). Outputs at the same inputs are compared: equal
    but for rounding, or as good as proportional. It guards against mistakes, not against a caller
    who moves the inputs as well.
    """
    own = {row.tobytes(): value for row, value in zip(*curve, strict=True)}
    pairs = [
        (value, own[row.tobytes()])
        for row, value in zip(*other, strict=True)
        if row.tobytes() in own
    ]
    if not pairs:
        return
    a, b = np.array(pairs).T
    equal = int((np.abs(a - b) <= 1e-3 * np.std(curve[1]) + 1e-12 * np.abs(b)).sum())
    scale = np.std(a) * np.std(b)
    correlated = (
        len(a) > 3
        and scale > 0
        and abs(np.mean((a - a.mean()) * (b - b.mean()))) > _SAME_CURVE_CORRELATION * scale
    )
    if equal > _COINCIDENCES * len(other[0]):
        reason = f"{equal} of its {len(other[0])} records are records of this one"
    elif correlated:
        reason = "its values follow those of this one"
    else:
        return
    raise BadInput(
        f"train_on is no other curve: {reason}, and what is learned from them tells on it. Give "
        f"another curve, or the kernel itself; or, for a conditional promise, {UNPROTECTED!r}.",
        parameter="train_on",
    )


def error_variance(noise: Any, n: int) -> float | Array:
    """Variance V of measurement errors with standard deviation ``noise``, in squared units of y.

    One for all records, or of shape (n,).
    """
    sd = as_numbers("noise", noise)
    if sd.shape not in ((), (n,)):
        raise BadInput(
            f"noise has shape {sd.shape}: give one standard deviation, or one for each of the {n} "
            "records; a covariance matrix as noise_covariance=….",
            parameter="noise",
        )
    if not (sd >= 0).all():
        raise BadInput(
            f"noise is a standard deviation and cannot be {sd.min():g}: give "
            "0, or a positive number.",
            parameter="noise",
        )
    with np.errstate(over="ignore", under="ignore"):
        variance = sd**2
    if not np.isfinite(variance).all():
        raise BadInput(
            f"noise has a square that is not finite, of {sd.max():g}: give a "
            "standard deviation below 1e150.",
            parameter="noise",
        )
    if variance.ndim == 0:
        return float(variance)
    return variance


def error_covariance(covariance: Any, n: int) -> Array:
    """Covariance V of measurement errors, in squared units of y.

    A matrix (n, n), or the variances (n,) of independent errors.
    """
    v = as_numbers("noise_covariance", covariance)
    if v.shape not in ((n,), (n, n)) or not np.isfinite(v).all():
        raise BadInput(
            f"noise_covariance has shape {v.shape}, or is not finite: give a covariance matrix of "
            f"shape ({n}, {n}), or the variances of the {n} records' errors; one standard "
            "deviation for all as noise=….",
            parameter="noise_covariance",
        )
    if v.ndim == 2:
        if not np.allclose(v, v.T):
            raise BadInput(
                "noise_covariance is not symmetric: give (V + V.T) / 2, if that is what is meant.",
                parameter="noise_covariance",
            )
        least = float(np.linalg.eigvalsh(v)[0])
        if least < -1e-10 * float(np.abs(v).max()):
            raise BadInput(
                f"noise_covariance has the negative eigenvalue {least:.4g}: no errors have it. Add "
                "at least that much to its diagonal, or give variances.",
                parameter="noise_covariance",
            )
    elif v.min() < 0:
        raise BadInput(
            f"noise_covariance holds the variance {v.min():g}: give 0, or a positive number.",
            parameter="noise_covariance",
        )
    return v


def check_regions(kernel: Kernel, variance: Any, columns: int) -> None:
    """Refuse regions for a prior, or for a promised H, that is not known to fall with distance."""
    for covariance in (kernel, variance):
        if isinstance(covariance, Kernel):
            try:
                check_falls_with_distance(covariance, columns)
            except ValueError as error:
                raise BadInput(f"{str(error)[0].upper()}{str(error)[1:]}.") from None


def sensitive_points(sensitive: Any, x: Array, *, everywhere: bool) -> SensitivePoints:
    """Points at which a promise about ``sensitive`` is checked, for inputs ``x`` (n, d).

    ``everywhere``: the box of all inputs, and a quarter of its size beyond on each side.
    """
    d = x.shape[1]
    if everywhere:
        low = x.min(axis=0)
        high = x.max(axis=0)
        beyond = 0.25 * (high - low)
        return SensitivePoints(*cells(np.stack([low - beyond, high + beyond], axis=1)[None]))
    try:
        found = np.asarray(sensitive, dtype=np.float64)
    except (TypeError, ValueError):
        found = np.empty(0)
    if d == 1 and found.ndim == 2 and found.shape[1] == 2:
        found = found[:, None, :]
    if found.ndim == 1 and d == 1 and len(found):
        found = found[:, None]
    if not found.size or not np.isfinite(found).all():
        raise BadInput(
            "sensitive must be points or regions, all finite: sensitive=[0.4, 0.6], or "
            "sensitive=[(0.4, 0.6)] for an interval.",
            parameter="sensitive",
        )
    if found.ndim == 2 and found.shape[1] == d:
        return SensitivePoints(found, None, np.arange(len(found)))
    if found.ndim == 3 and found.shape[1:] == (d, 2):
        turned = (found[:, :, 0] > found[:, :, 1]).any(axis=1)
        if turned.any():
            raise BadInput(
                f"A region's low end is above its high end: {found[turned][0].tolist()}. Give it "
                "as (low, high) for each input."
            )
        return SensitivePoints(*cells(found))
    raise BadInput(
        f"sensitive has shape {found.shape}, but X has {d} columns: points are "
        f"(g, {d}), regions (k, {d}, 2).",
        parameter="sensitive",
    )


def promised_variances(
    variance: Any, share: float | None, kernel: Kernel, sensitive: SensitivePoints, *, matrix: bool
) -> Array:
    """Posterior variance (g,) that is promised at each checked point, in squared units of y.

    ``matrix``: ``variance`` may be a matrix Ξ, which has it on its diagonal.
    """
    points = sensitive.points
    if share is not None:
        return share * prior_variance(kernel, points)
    if isinstance(variance, Kernel):
        return prior_variance(variance, points)
    promised = as_numbers("variance", variance)
    count = int(sensitive.owner.max()) + 1
    square = promised.ndim == 2 and promised.shape == promised.T.shape
    if square and not np.allclose(promised, promised.T):
        raise BadInput(
            "variance is a matrix Ξ that is not symmetric: give (Ξ + Ξᵀ) / 2, "
            "if that is what is meant.",
            parameter="variance",
        )
    if matrix and sensitive.half_cells is None and promised.shape == (count, count):
        promised = promised.diagonal()
    if promised.shape not in ((), (count,)):
        raise BadInput(
            f"variance has shape {promised.shape}: give one number, or one for "
            f"each of the {count} points or regions.",
            parameter="variance",
        )
    return np.asarray(np.broadcast_to(promised, count)[sensitive.owner], dtype=np.float64)


def train_prior(
    kernel: Kernel, x: Array, y: Array, errors: float | Array, mean: float | None
) -> tuple[Kernel, float]:
    """Kernel and mean by maximum likelihood; BadInput says why that cannot be done."""
    try:
        return train(kernel, x, y, errors, mean)
    except ValueError as error:
        raise BadInput(f"{str(error)[0].upper()}{str(error)[1:]}.") from None
