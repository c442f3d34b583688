"""Honkela et al., Sec 6.3: nine pairs of length scale and noise level, one of them true.

Methods that choose, tried and shown.
"""

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reticent.studies.common.figures import Line, Panel, draw
from reticent.studies.common.results import Progress, ResultTable, Value, mean_error, plus_minus
from reticent.studies.honkela2021.data import noisy_sinc, sinc

__all__ = [
    "DELTA",
    "LENGTHS",
    "REACH",
    "SIGMAS",
    "TRUE",
    "Choice",
    "Method",
    "N",
    "SelectionTrial",
    "Trials",
    "picture",
    "record",
    "right",
    "selected_fraction",
    "selection_table",
    "tried",
]

Array = NDArray[np.float64]
Choice = tuple[float, float, Array]  # length, noise, and the mean of the fit
Method = Callable[[Array, Array, float, np.random.Generator], Choice]

N = 2048
DELTA = 1e-5
REACH = 1.3
LENGTHS = (1 / 3, 1.0, 3.0)
SIGMAS = (0.1 / 3, 0.1, 0.3)
TRUE = (1.0, 0.1)


class SelectionTrial(NamedTuple):
    """What a method chose, how good its fit was, and the CPU time it took."""

    length: float
    sigma: float
    rmse: float
    seconds: float


Trials = dict[tuple[str, float], list[SelectionTrial]]  # by method and ε


def tried(
    methods: Mapping[str, Method],
    cells: Iterable[tuple[str, float, int]],
    at: Array,
    stream: Sequence[int],
    progress: Progress,
) -> Trials:
    """Run each cell: a method, ε and the number of the repeat.

    ``stream``: the seed, and what tells studies apart.
    """
    trials: Trials = {}
    cells = list(cells)
    seed, study = stream
    for done, (method, epsilon, repeat) in enumerate(cells):
        progress(done, len(cells), f"{method}, ε={epsilon:g}")
        rng = np.random.default_rng([seed, repeat, study])
        x, y = noisy_sinc(N, TRUE[1], rng)
        start = time.process_time()
        length, sigma, mean = methods[method](x, y, epsilon, rng)
        seconds = time.process_time() - start
        rmse = float(np.sqrt(np.mean((mean - sinc(at)) ** 2)))
        trials.setdefault((method, epsilon), []).append(
            SelectionTrial(length, sigma, rmse, seconds)
        )
    return trials


def right(trials: Sequence[SelectionTrial], what: int | None = None) -> float:
    """How often both were right, or only the length (0) or the noise level (1)."""
    both = (0, 1) if what is None else (what,)
    return float(np.mean([all(math.isclose(one[i], TRUE[i]) for i in both) for one in trials]))


def selected_fraction(trials: Sequence[SelectionTrial], length: float, sigma: float) -> float:
    """How often this pair was chosen."""
    return float(
        np.mean(
            [math.isclose(one.length, length) and math.isclose(one.sigma, sigma) for one in trials]
        )
    )


def record(method: str, epsilon: float, trials: Sequence[SelectionTrial]) -> dict[str, Value]:
    """What both studies keep of a method at one ε."""
    rmse, error = mean_error(one.rmse for one in trials)
    return {
        "method": method,
        "epsilon": epsilon,
        "repeats": len(trials),
        "both_right": right(trials),
        "length_right": right(trials, 0),
        "sigma_right": right(trials, 1),
        "rmse": rmse,
        "rmse_error": error,
    }


def selection_table(trials: Trials, runs: str) -> ResultTable:
    """Shares of runs, or what else they are called, that were right."""
    rows = []
    for (method, epsilon), found in trials.items():
        shares = [f"{right(found, what):.2f}" for what in (None, 0, 1)]
        rows.append((method, f"{epsilon:g}", *shares, plus_minus([one.rmse for one in found])))
    headings = ("method", "ε", "both right", "length right", "noise right", "RMSE of the fit")
    return ResultTable(f"Share of {runs} that choose the true ones among nine", headings, rows)


def picture(out: Path, trials: Trials, runs: str) -> Path:
    """Like Fig 3: how often each pair was chosen.

    A row for each method, a line for each noise level.
    """
    options = {
        "ylim": (-0.03, 1.03),
        "xlabel": "length scale",
        "ylabel": f"share of {runs}",
        "xticks": range(3),
        "xticklabels": [f"{length:.2g}" for length in LENGTHS],
    }
    rows: dict[str, list[Panel]] = {}
    for (method, epsilon), found in trials.items():
        lines = []
        for sigma, colour in zip(SIGMAS, ("naive", "dots", "truth"), strict=True):
            shares = [selected_fraction(found, length, sigma) for length in LENGTHS]
            lines.append(Line(f"σ={sigma:.2g}", shares, range(3), colour=colour, marker="o"))
        rows.setdefault(method, []).append(Panel(f"{method}, ε={epsilon:g}", lines, options))
    return draw(out / "choices.png", list(rows.values()))
