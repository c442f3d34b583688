"""What each model's results look like, for people and for machines. One entry per model in ``MODELS``.

Everything shown here is computed from releases; nothing reads a record.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import floor, log10
from typing import TYPE_CHECKING, Any

from reticent.apps.terminal import table

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["MODELS", "Model", "column_names", "measured", "model_of", "sparkline"]

_ROWS = 20  # of a bar chart; finer histograms are shown in groups of bins
_BAR = 36
_LEVELS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class Model:
    """One word of ``reticent fit``: the class behind it, the options it has of its own, and its results."""

    estimator: str
    options: tuple[str, ...]
    numbers: Callable[[Any], dict[str, Any]]
    show: Callable[[Any], "RenderableType"]


def model_of(estimator: Any) -> Model:
    """Find the entry of a fitted estimator."""
    return next(model for model in MODELS.values() if model.estimator == type(estimator).__name__)


def column_names(model: Any) -> list[str]:
    """Give the names of a model's columns, or their numbers where they have none."""
    names: list[str] = getattr(model, "feature_names_in_", [])
    return [str(name) for name in names] if len(names) else [f"column {i}" for i in range(model.n_features_in_)]


def measured(value: float, sd: float) -> str:
    """Write a number with the standard deviation of its noise, both to the digit where the noise begins.

    >>> measured(41.3719, 0.0283), measured(-1234.5, 87.0)
    ('41.372 ± 0.028', '-1,234 ± 87')
    """
    digits = min(max(1 - floor(log10(sd)), 0), 12) if sd > 0 else 6
    return f"{value:,.{digits}f} ± {sd:,.{digits}f}"


def sparkline(values: Sequence[float]) -> str:
    """Draw counts in one line of text."""
    most = max(max(values), 1e-300)
    return "".join(_LEVELS[round(max(v, 0.0) / most * (len(_LEVELS) - 1))] for v in values)


def _mean_numbers(model: Any) -> dict[str, Any]:
    columns = zip(column_names(model), model.mean_.tolist(), model.mean_sd_.tolist(), strict=True)
    return {"mean": {name: {"value": value, "noise_sd": sd} for name, value, sd in columns}}


def _mean_table(model: Any) -> "RenderableType":
    rows = table("column", "mean ± privacy noise")
    for name, value, sd in zip(column_names(model), model.mean_, model.mean_sd_, strict=True):
        rows.add_row(name, measured(value, sd))
    return rows


def _histogram_numbers(model: Any) -> dict[str, Any]:
    columns = zip(column_names(model), model.edges_.tolist(), model.counts_.tolist(), strict=True)
    return {
        "noise_sd": model.counts_sd_,
        "histogram": {name: {"edges": edges, "counts": counts} for name, edges, counts in columns},
    }


def _histogram_chart(model: Any) -> "RenderableType":
    from rich.console import Group
    from rich.text import Text

    group = -(-model.counts_.shape[1] // _ROWS)
    noise = model.counts_sd_ * group**0.5
    charts: list[RenderableType] = []
    for name, edges, counts in zip(column_names(model), model.edges_, model.counts_, strict=True):
        starts = range(0, len(counts), group)
        sums = [float(counts[i : i + group].sum()) for i in starts]
        most = max(max(sums), 1.0)
        rows = table(name, f"count ± {noise:,.0f}" if noise >= 1 else f"count ± {noise:.1g}", "", left=1)
        rows.columns[2].justify = "left"
        for i, total in zip(starts, sums, strict=True):
            label = f"{edges[i]:g} – {edges[min(i + group, len(counts))]:g}"
            # a released count is a whole number plus 1/2, which would always be rounded to an even one
            rows.add_row(label, f"{floor(total):,}", Text("█" * round(max(total, 0) / most * _BAR), style="cyan"))
        charts += [rows, Text("")]
    return Group(*charts[:-1])


def _covariance_numbers(model: Any) -> dict[str, Any]:
    return {
        **_mean_numbers(model),
        "columns": column_names(model),
        "covariance": model.covariance_.tolist(),
        "covariance_noise_sd": model.covariance_sd_.tolist(),
        "correlation": model.correlation_.tolist(),
    }


def _covariance_tables(model: Any) -> "RenderableType":
    from rich.console import Group
    from rich.text import Text

    names = column_names(model)
    spreads = table("column", "mean ± privacy noise", "standard deviation")
    for j, name in enumerate(names):
        spreads.add_row(name, measured(model.mean_[j], model.mean_sd_[j]), f"{model.covariance_[j, j] ** 0.5:,.4g}")
    correlations = table("correlation", *names)
    for name, row in zip(names, model.correlation_, strict=True):
        correlations.add_row(name, *(f"{value:.2f}" for value in row))
    return Group(spreads, Text(""), correlations)


MODELS = {
    "mean": Model("PrivateMean", (), _mean_numbers, _mean_table),
    "histogram": Model("PrivateHistogram", ("bins",), _histogram_numbers, _histogram_chart),
    "covariance": Model("PrivateCovariance", (), _covariance_numbers, _covariance_tables),
}
