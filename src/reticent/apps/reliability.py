"""Are the chances right? A classifier against labelled records that its user holds.

This reads those records and protects nobody: for records that may be shown, or for the eyes of those who hold them.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from reticent.apps.canvas import DASHED, WIDE, Figure, PercentFormatter, check_fitted, quiet, sheet, styled
from reticent.apps.chances import class_names, told_class
from reticent.apps.colours import LIGHT
from reticent.apps.figures import shortened
from reticent.apps.outputs import output_name
from reticent.errors import BadInput
from reticent.privacy.cells import label_table

__all__ = ["Reliability", "reliability", "reliability_numbers"]

Values = NDArray[np.float64]
_BINS = 10
_LEAST = 1e-12  # chance, for a logarithm


@dataclass(frozen=True)
class Reliability:
    """Records in bins of the chance that was told: how many, its mean, the share that came true, and a 95 % interval of that.

    ``error``: the expected calibration error, the mean distance of the two. ``loss``: the mean of −log chance of the true class.
    """

    counts: NDArray[np.intp]
    told: Values
    true: Values
    low: Values
    high: Values
    error: float
    loss: float
    accuracy: float


def reliability_numbers(model: Any, X: Any, y: Any) -> Reliability:
    """Compare: the chance of the second of two classes, or of the likeliest of more. Reads the records, protects nobody."""
    chances, table = model.predict_proba(X), label_table(model.classes_.tolist())
    given = np.asarray(y).ravel().tolist()
    if len(given) != len(chances):
        raise BadInput(f"X has {len(chances)} records and y has {len(given)}: give a label for each record.")
    unknown = {label for label in given if label not in table}
    if unknown:
        raise BadInput(
            f"y has labels that the model does not know, such as {min(map(repr, unknown))}: it knows {class_names(model)}."
        )
    truth, second = np.array([table[label] for label in given]), told_class(model)
    likeliest = chances.argmax(axis=1)
    told = chances.max(axis=1) if second is None else chances[:, second]
    true = (likeliest == truth) if second is None else (truth == second)
    bins = np.minimum((told * _BINS).astype(int), _BINS - 1)
    counts = np.bincount(bins, minlength=_BINS)
    kept = counts > 0
    right, sums = np.bincount(bins, true, _BINS)[kept], np.bincount(bins, told, _BINS)[kept]
    n = counts[kept]
    return Reliability(
        n,
        sums / n,
        right / n,
        np.asarray(beta.ppf(0.025, right + 0.5, n - right + 0.5)),  # Jeffreys' interval
        np.asarray(beta.ppf(0.975, right + 0.5, n - right + 0.5)),
        float(np.abs(right - sums).sum() / n.sum()),
        float(-np.log(np.maximum(chances[np.arange(len(truth)), truth], _LEAST)).mean()),
        float((likeliest == truth).mean()),
    )


@styled
def reliability(model: Any, X: Any, y: Any, *, width: float = 0.6 * WIDE) -> Figure:
    """Draw how often came true what a classifier told, for labelled records of your own. Not protected.

    On the diagonal chances are right; above it, too low. Of two classes the chance of the second, of more that of the likeliest.
    The drawing tells about these records without noise: it is no release, and not for others unless the records are.
    """
    check_fitted(model)
    if not (hasattr(model, "predict_proba") and hasattr(model, "classes_")):
        raise BadInput(f"plot.reliability draws classifiers, not a {type(model).__name__}.")
    found = reliability_numbers(model, X, y)
    figure, (axes, below) = sheet(2, 1, width, 0.55 * width, model.guarantee_)
    axes.get_gridspec().set_height_ratios([4, 1])  # type: ignore[union-attr]
    axes.plot([0, 1], [0, 1], color=LIGHT["muted"], lw=1, ls=DASHED)
    axes.text(0.55, 0.47, "as told", color=LIGHT["muted"])
    spread = np.abs(np.array([found.true - found.low, found.high - found.true]))
    axes.errorbar(
        found.told, found.true, spread, fmt="o-", color=LIGHT["accent"], ms=4.5, lw=1.4, elinewidth=1, capsize=2
    )
    second = told_class(model)
    what = "the likeliest class" if second is None else f"{output_name(model)} = {class_names(model)[second]}"
    figures = f"calibration error {found.error:.3f}, log loss {found.loss:.3f}, right {100 * found.accuracy:.1f} %"
    axes.set(ylabel="came true", xlim=(0, 1), ylim=(0, 1), xticklabels=[])
    axes.set_title(f"{found.counts.sum():,} labelled records, not protected\n{figures}", size=8)
    below.bar(found.told, found.counts, 0.06, color=LIGHT["model"])
    below.set(xlabel=f"chance told for {shortened(what)}", ylabel="records", xlim=(0, 1))
    for axis in (below.xaxis, axes.yaxis):
        axis.set_major_formatter(PercentFormatter(1, symbol=" %"))
    quiet(below)
    return figure
