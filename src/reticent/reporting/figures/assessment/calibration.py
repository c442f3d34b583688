"""Calibration figure: a classifier's probabilities against labelled records that its user holds.

This reads those records and protects nobody: for records that may be shown, or for the eyes of
those who hold them.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from reticent.errors import BadInput
from reticent.privacy.sources.cell_values import label_table
from reticent.reporting.columns import output_names
from reticent.reporting.figures.palette import LIGHT
from reticent.reporting.figures.style import (
    DASHED,
    WIDE,
    Figure,
    PercentFormatter,
    check_fitted,
    quiet,
    sheet,
    styled,
)
from reticent.reporting.formatting import truncate_name
from reticent.reporting.presenters.class_probabilities import class_names, reference_class

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from reticent.models.gp.classifier import GPClassifier

__all__ = ["Reliability", "reliability", "reliability_numbers"]

Values = NDArray[np.float64]
_BINS = 10
_LEAST_PROBABILITY = 1e-12  # for a logarithm


@dataclass(frozen=True)
class Reliability:
    """Records in bins of the predicted probability, (bins,) each.

    ``predicted``: its mean. ``observed``: the fraction of the records for which it came true, and
    from ``low`` to ``high`` a 95 % interval of that. ``error``: the expected calibration error, the
    mean distance of the two. ``loss``: the mean of −log probability of the true class.
    """

    counts: NDArray[np.intp]
    predicted: Values
    observed: Values
    low: Values
    high: Values
    error: float
    loss: float
    accuracy: float


def reliability_numbers(model: "GPClassifier", X: "ArrayLike", y: "ArrayLike") -> Reliability:
    """Compare predicted with observed: of two classes the second, of more the likeliest.

    Reads the records, protects nobody.
    """
    probabilities = model.predict_proba(X)
    index = label_table(model.classes_.tolist())
    labels = np.asarray(y).ravel().tolist()
    if len(labels) != len(probabilities):
        raise BadInput(
            f"X has {len(probabilities)} records and y has {len(labels)}: give a label for each "
            "record."
        )
    unknown = {label for label in labels if label not in index}
    if unknown:
        raise BadInput(
            f"y has labels that the model does not know, such as {min(map(repr, unknown))}: it "
            f"knows {class_names(model)}."
        )
    truth = np.array([index[label] for label in labels])
    second = reference_class(model)
    likeliest = probabilities.argmax(axis=1)
    if second is None:
        predicted = probabilities.max(axis=1)
        observed = likeliest == truth
    else:
        predicted = probabilities[:, second]
        observed = truth == second
    bins = np.minimum((predicted * _BINS).astype(int), _BINS - 1)
    counts = np.bincount(bins, minlength=_BINS)
    filled = counts > 0
    right = np.bincount(bins, observed, _BINS)[filled]
    sums = np.bincount(bins, predicted, _BINS)[filled]
    n = counts[filled]
    return Reliability(
        n,
        sums / n,
        right / n,
        np.asarray(beta.ppf(0.025, right + 0.5, n - right + 0.5)),  # Jeffreys' interval
        np.asarray(beta.ppf(0.975, right + 0.5, n - right + 0.5)),
        float(np.abs(right - sums).sum() / n.sum()),
        float(
            -np.log(
                np.maximum(probabilities[np.arange(len(truth)), truth], _LEAST_PROBABILITY)
            ).mean()
        ),
        float((likeliest == truth).mean()),
    )


@styled
def reliability(
    model: "GPClassifier", X: "ArrayLike", y: "ArrayLike", *, width: float = 0.6 * WIDE
) -> Figure:
    """Draw how often came true what a classifier predicted, for labelled records of your own.

    Not protected. On the diagonal probabilities are right; above it, too low. Of two classes that
    of the second, of more that of the likeliest. The drawing tells about these records without
    noise: it is no release, and not for others unless the records are.
    """
    check_fitted(model)
    if not (hasattr(model, "predict_proba") and hasattr(model, "classes_")):
        raise BadInput(f"plot.reliability draws classifiers, not a {type(model).__name__}.")
    found = reliability_numbers(model, X, y)
    figure, (axes, below) = sheet(2, 1, width, 0.55 * width, model.guarantee_)
    axes.get_gridspec().set_height_ratios([4, 1])  # type: ignore[union-attr]
    axes.plot([0, 1], [0, 1], color=LIGHT["muted"], lw=1, ls=DASHED)
    axes.text(0.55, 0.47, "as told", color=LIGHT["muted"])
    spread = np.abs(np.array([found.observed - found.low, found.high - found.observed]))
    axes.errorbar(
        found.predicted,
        found.observed,
        spread,
        fmt="o-",
        color=LIGHT["accent"],
        ms=4.5,
        lw=1.4,
        elinewidth=1,
        capsize=2,
    )
    second = reference_class(model)
    event = "the likeliest class"
    if second is not None:
        event = f"{output_names(model)[0]} = {class_names(model)[second]}"
    numbers = (
        f"calibration error {found.error:.3f}, log loss {found.loss:.3f}, right "
        f"{100 * found.accuracy:.1f} %"
    )
    axes.set(ylabel="came true", xlim=(0, 1), ylim=(0, 1), xticklabels=[])
    axes.set_title(f"{found.counts.sum():,} labelled records, not protected\n{numbers}", size=8)
    below.bar(found.predicted, found.counts, 0.06, color=LIGHT["model"])
    below.set(xlabel=f"chance told for {truncate_name(event)}", ylabel="records", xlim=(0, 1))
    for axis in (below.xaxis, axes.yaxis):
        axis.set_major_formatter(PercentFormatter(1, symbol=" %"))
    quiet(below)
    return figure
