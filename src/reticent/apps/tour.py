"""``reticent tour``: the main job from end to end on people who never lived, so that the truth may be shown beside it.

The tour changes nothing that is there: if its folder is not empty it goes to the next free one (tour-2, tour-3, …), with a
data file, a ledger and model files of its own. A ledger is never deleted, because what was spent cannot be taken back.
"""

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import reticent
from reticent.apps.figures import sparkline
from reticent.apps.letters import spelled
from reticent.apps.registry import RANGES, people, write_csv
from reticent.apps.terminal import BadFile, compact, table
from reticent.errors import BudgetExceeded
from reticent.privacy.bounds import Bounds
from reticent.privacy.ledger import Ledger
from reticent.privacy.sources import scan

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["speaker", "take"]

Say = Callable[..., None]

_PEOPLE, _SEED = 5_000, 1  # the seed is of the made-up people; the noise of the releases has none
_DATASET, _CAP, _DELTA = "registry", 3.0, 1e-5
_BINS = 22  # five years of age each
_TOO_MUCH = 3.0
_MARGIN = 17  # where the words begin: two spaces, number, title


def take(folder: Path, say: Say) -> dict[str, Any]:
    """Run the tour; ``say(title, text, *more)`` hears of each step. Gives the results as plain values."""
    if folder.is_file():
        raise BadFile(f"{folder} is a file, and the tour makes a folder: choose another name for --out.")
    folder = _free(folder)
    folder.mkdir(parents=True, exist_ok=True)
    data, ledger = folder / "people.csv", Ledger(folder / "budget.db")
    table_ = people(_PEOPLE, _SEED)
    write_csv(table_, data)
    say(
        "Registry",
        f"{_PEOPLE:,} made-up people: {', '.join(table_)}",
        f"{data} (nobody lived, so the truth may be shown below)",
    )
    ledger.open(_DATASET, _CAP, _DELTA)
    say("Ledger", f'{folder / "budget.db"}: data set "{_DATASET}", cap ε={_CAP:g} δ={compact(_DELTA)}')
    try:
        found = _fits(folder, data, table_, say)
        found["ledger"] = _balance(ledger, say)
        found["refusal"] = _one_too_many(folder, data, say)
    except KeyboardInterrupt:
        spent = ledger.spent(_DATASET)
        raise KeyboardInterrupt(f"The tour's own ledger in {folder} was charged ε={spent:.3g}; no other.") from None
    return {"folder": str(folder), "records": _PEOPLE, **found}


def _free(folder: Path) -> Path:
    """Give the folder, or the first numbered one beside it that is not in use."""
    if _unused(folder):
        return folder
    name = folder.resolve().name
    return next(one for number in count(2) if _unused(one := folder.parent / f"{name}-{number}"))


def _unused(folder: Path) -> bool:
    return not folder.exists() or (folder.is_dir() and not any(folder.iterdir()))


def _fit(estimator: str, folder: Path, data: Path, columns: list[str], epsilon: float, **own: Any) -> Any:
    model = getattr(reticent, estimator)(
        bounds=Bounds(x={name: RANGES[name] for name in columns}),
        epsilon=epsilon,
        delta=_DELTA,
        ledger=str(folder / "budget.db"),
        dataset=_DATASET,
        **own,
    )
    return model.fit(scan(data))


def _fits(folder: Path, data: Path, truth: dict[str, Any], say: Say) -> dict[str, Any]:
    columns = ["age", "height", "weight", "systolic"]
    mean = _fit("PrivateMean", folder, data, columns, 0.5)
    mean.save(folder / "mean.reticent")
    rows = table("", "private", "truth", "error")
    for name, value in zip(columns, mean.mean_.tolist(), strict=True):
        exact = float(truth[name].mean())
        rows.add_row(name, f"{value:.2f}", f"{exact:.2f}", f"{abs(value - exact):.2f}")
    say("Mean", "ε=0.5, one release", rows)

    histogram = _fit("PrivateHistogram", folder, data, ["age"], 0.5, bins=_BINS)
    histogram.save(folder / "histogram.reticent")
    exact_counts = np.histogram(truth["age"], histogram.edges_[0])[0]
    off = float(np.abs(histogram.counts_[0] - exact_counts).mean())
    rows = table("", "ages from 0 to 110, five years each", left=2)
    rows.add_row("private", sparkline(histogram.counts_[0].tolist()))
    rows.add_row("truth", sparkline(exact_counts.tolist()))
    most = int(exact_counts.max())
    say("Histogram", "ε=0.5, one release", rows, f"counts of up to {most} people are off by {off:.0f} on average")

    covariance = _fit("PrivateCovariance", folder, data, columns, 1.0)
    covariance.save(folder / "covariance.reticent")
    exact_correlation = np.corrcoef([truth[name] for name in columns])
    rows = table("correlation of", "private", "truth", "error")
    for i, j in ((1, 2), (0, 3), (0, 2)):
        value, exact = float(covariance.correlation_[i, j]), float(exact_correlation[i, j])
        rows.add_row(f"{columns[i]} and {columns[j]}", f"{value:.2f}", f"{exact:.2f}", f"{abs(value - exact):.2f}")
    say("Covariance", "ε=1, one release", rows)
    return {
        "mean": dict(zip(columns, mean.mean_.tolist(), strict=True)),
        "true_mean": {name: float(truth[name].mean()) for name in columns},
        "histogram_mean_error": off,
        "correlation": covariance.correlation_.tolist(),
        "true_correlation": exact_correlation.tolist(),
    }


def _balance(ledger: Ledger, say: Say) -> dict[str, Any]:
    spent, left = ledger.spent(_DATASET), ledger.remaining(_DATASET)
    say(
        "Ledger",
        f"spent ε={compact(spent)}, left ε={compact(left)} for one more release",
        "composed exactly: added up one by one, the three would be ε=2",
    )
    return {"spent": spent, "left": left, "head": ledger.verify()}


def _one_too_many(folder: Path, data: Path, say: Say) -> str:
    """Ask for more than is left, and show the answer."""
    try:
        _fit("PrivateMean", folder, data, ["age"], _TOO_MUCH)
    except BudgetExceeded as refusal:
        say("Too much", f"one more fit, with ε={_TOO_MUCH:g}", str(refusal))
        return str(refusal)
    raise AssertionError("the ledger granted more than its cap")


def speaker(console: Any) -> Say:
    """Give the function that prints numbered, aligned steps."""
    from rich.table import Table
    from rich.text import Text

    numbers = count(1)

    def say(title: str, text: str, *more: "str | RenderableType") -> None:
        step = Table.grid(padding=0)
        for width in (5, _MARGIN - 5, None):
            step.add_column(width=width, overflow="fold")
        step.add_row(Text(f"  {next(numbers)}", "dim"), Text(title, "bold cyan"), spelled(text))
        for part in more:
            step.add_row("", "", spelled(part) if isinstance(part, str) else part)
        console.print(step)

    return say
