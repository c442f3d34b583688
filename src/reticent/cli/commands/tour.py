"""``reticent tour``.

The main job from end to end on people who never lived, so that the truth may be shown beside it.
The tour changes nothing that is there: if its folder is not empty it goes to the next free one
(tour-2, tour-3, …), with a data file, a ledger, a model file and a report of its own. A ledger is
never deleted, because what was spent cannot be taken back.
"""

from collections.abc import Callable
from dataclasses import asdict
from itertools import count
from math import hypot
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

import reticent
from reticent.cli.demo_data import RANGES, mean_weight, people, write_csv
from reticent.cli.encoding import spelled
from reticent.cli.files.model_files import save_or_rescue
from reticent.cli.terminal import progress
from reticent.errors import BadFile
from reticent.reporting.budget import spendable
from reticent.reporting.formatting import format_short, format_short_up
from reticent.reporting.presenters.effects import BAND

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["speaker", "take"]

Say = Callable[..., None]

# the seed is of the made-up people; the noise of the releases has none
_PEOPLE = 5_000
_OTHERS = 2_000
_SEED = 1
_DATASET = "registry"
_CAP = 3.0
_DELTA = 1e-5
_EPSILON = 1.0
_LESS = 0.3
_DRAWS = 6  # simulated functions: enough to show what a plan is
_SPREAD = 12.0  # kg, of people of the same age and height: a public guess, for the plan
_INPUTS = ("age", "height")
_OUTPUT = "weight"
_MARGIN = 15  # where the words begin: two spaces, number, title


def take(folder: Path, say: Say) -> dict[str, Any]:
    """Run the tour; ``say(title, text, *more)`` hears of each step.

    Gives the results as plain values.
    """
    if folder.is_file():
        raise BadFile(
            f"{folder} is a file, and the tour makes a folder: choose another name for --out."
        )
    folder = _free(folder)
    folder.mkdir(parents=True, exist_ok=True)
    data = folder / "people.csv"
    ledger = reticent.Ledger(folder / "budget.db")
    write_csv(people(_PEOPLE, _SEED), data)
    given = ", ".join(
        f"{name} {RANGES[name][0]:g}–{RANGES[name][1]:g}" for name in (*_INPUTS, _OUTPUT)
    )
    say("Registry", f"{_PEOPLE:,} people who never lived, in {data}", f"public ranges: {given}")
    expected = _plan(say)
    ledger.open(_DATASET, _CAP, _DELTA)
    say(
        "Ledger",
        f'{folder / "budget.db"}: data set "{_DATASET}", cap ε={_CAP:g} '
        f"δ={format_short(_DELTA)}, spent 0",
    )
    try:
        model = _fit_and_report(folder, data, say)
        found = _compare(model, say)
        found["ledger"] = _balance(ledger, say)
        model.report(folder / "report.html", expected=expected)
        say(
            "Report",
            f"{folder / 'report.html'}: the page that you would hand over",
            "its errors are over other places than these people; it says which",
        )
    except KeyboardInterrupt:
        spent = ledger.spent(_DATASET)
        raise KeyboardInterrupt(
            f"The tour's own ledger in {folder} was charged ε={format_short_up(spent)}; no other."
        ) from None
    return {"folder": str(folder), "records": _PEOPLE, "expected": expected, **found}


def _free(folder: Path) -> Path:
    """Give the folder, or the first numbered one beside it that is not in use."""
    if _unused(folder):
        return folder
    name = folder.resolve().name
    return next(one for number in count(2) if _unused(one := folder.parent / f"{name}-{number}"))


def _unused(folder: Path) -> bool:
    return not folder.exists() or (folder.is_dir() and not any(folder.iterdir()))


def _model(**own: Any) -> Any:
    bounds = reticent.Bounds(
        x={name: RANGES[name] for name in _INPUTS}, y={_OUTPUT: RANGES[_OUTPUT]}
    )
    return reticent.GPRegressor(bounds=bounds, epsilon=_EPSILON, delta=_DELTA, **own)


def _plan(say: Say) -> dict[str, float]:
    """Simulate, without any record, what to expect; give the row for the fit that is to come."""
    with progress("Simulating fits", 3 * _DRAWS) as advance:
        model = _model(noise=_SPREAD)
        less, chosen = reticent.plan(
            model, _PEOPLE, [_LESS, _EPSILON], draws=_DRAWS, progress=advance
        ).rows
    say(
        "Plan",
        f"ε={_EPSILON:g}: {_error_words(chosen.rmse, chosen.output_error)}",
        f"ε={_LESS:g}: {less.rmse:.1f} and {less.output_error:.1f} kg; without privacy: "
        f"{chosen.non_private_rmse:.1f} and {hypot(chosen.non_private_rmse, _SPREAD):.1f} kg",
        f"simulated, no record read: {_DRAWS} functions, off by {chosen.rmse_least:.1f} to "
        f"{chosen.rmse_most:.1f} kg",
        f"mean: of people of one age and height, taken to spread by {_SPREAD:g} kg",
    )
    return asdict(chosen)


def _error_words(mean: float, one: float) -> str:
    """Say both kinds of error in the same words wherever they are said."""
    return f"error of the mean {mean:.1f} kg, of one {_OUTPUT} {one:.1f} kg"


def _fit_and_report(folder: Path, data: Path, say: Say) -> Any:
    model = _model(ledger=str(folder / "budget.db"), dataset=_DATASET)
    start = perf_counter()
    with progress(f"Fitting {type(model).__name__}"):
        model.fit(reticent.scan(data))
    charged = f"The tour's own ledger in {folder} was charged; no other."
    save_or_rescue(model, folder / "weight.reticent", lambda: charged)
    numbers = sum(len(release.value) for release in model.releases_)
    say(
        "Fit",
        f"{type(model).__name__}: {_OUTPUT} from {' and '.join(_INPUTS)}, ε={_EPSILON:g}",
        f"{len(model.releases_)} releases, {numbers:,} noisy numbers in all, "
        f"{perf_counter() - start:.1f} s",
    )
    return model


def _compare(model: Any, say: Say) -> dict[str, Any]:
    """Meet people who are not in the data.

    Nobody lived, so the truth about them, and about their mean, is public.
    """
    others = people(_OTHERS, _SEED + 1)
    inputs = np.column_stack([others[name] for name in _INPUTS])
    mean, std = model.predict(inputs, return_std=True)
    off = others[_OUTPUT] - mean
    error = float(np.sqrt(np.mean(off**2)))
    spread = float(np.std(others[_OUTPUT]))
    predictive_variance = sum(model.variance_parts(inputs).values())
    covered = float(np.mean(np.abs(off) <= BAND * np.sqrt(predictive_variance)))
    expected = float(np.sqrt(np.mean(predictive_variance)))
    wrong = mean - mean_weight(others["age"], others["height"])
    mean_error = float(np.sqrt(np.mean(wrong**2)))
    mean_covered = float(np.mean(np.abs(wrong) <= BAND * std))
    say(
        "Result",
        _error_words(mean_error, error),
        f"on {_OTHERS:,} other people, whose weights spread by {spread:.1f} kg",
        f"for them the fit itself expects {expected:.1f} kg of one {_OUTPUT}",
        f"95 % bands hold {100 * mean_covered:.1f} % of the true means, "
        f"{100 * covered:.1f} % of the {_OUTPUT}s",
        "places side by side err alike: other tours hold some 75 to 98 % of the true means",
    )
    errors = {"error": error, "mean_error": mean_error, "told": expected, "spread": spread}
    return {**errors, "coverage": covered, "mean_coverage": mean_covered}


def _balance(ledger: reticent.Ledger, say: Say) -> dict[str, Any]:
    spent = ledger.spent(_DATASET)
    left = ledger.remaining(_DATASET)
    say(
        "Ledger",
        f"spent ε={format_short_up(spent)}, left ε={format_short(spendable(left))} for "
        "one more release (composed exactly)",
    )
    return {"spent": spent, "left": left, "head": ledger.verify()}


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
