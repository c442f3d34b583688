"""Two ways to bound what a person adds to a sum: weights by number of rows, or clipping her sum.

    weights     each of k_i rows counts min(1, c/k_i): a person moves the sum by at most c rows
    own sum     all rows count, then the person's own sum is shortened to at most C: w_i =
                min(1, C/‖Σ_j f_ij‖)

Both are meant to give the sum over all rows. Weights need how many rows a person has; clipping
needs her own sum, so all of her rows must be brought together (people × size of the statistic in
memory, 40 GB for 10⁶ people and 100 basis functions). Plain NumPy, no privacy: compared are the
noise (c against C, in rows) at equal shares of the sum lost, and the least error at ε = 1 over all
c and C, as if the best were known.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reticent.privacy.accounting.composition import calibrate
from reticent.studies.common.results import Findings, Progress, ResultTable, Value
from reticent.studies.own.panels import PANELS, Panel, simulated

__all__ = ["run"]

Array = NDArray[np.float64]

_LOST = (0.015, 0.05, 0.2)  # shares of the sum
_EPSILON = 1.0
_DELTA = 1e-6
_FUNCTIONS = 20  # of a Gram matrix
_FUNCTIONS_OF_TWO = (5, 4)
_GRID = 400  # bounds that are tried


def run(out: Path, *, repeats: int, quick: bool, seed: int, progress: Progress) -> Findings:
    """Compute and tabulate; nothing is random but the simulated table of ``quick``."""
    if quick:
        panels = [simulated(np.random.default_rng(seed))]
    else:
        panels = [load() for load in PANELS.values()]
    statistics: dict[str, Callable[[Panel], Array]] = {"sums by group": _sums, "Gram": _grams}
    records: list[dict[str, Value]] = []
    cells = [(panel, name) for panel in panels for name in statistics]
    for done, (panel, name) in enumerate(cells):
        progress(done, len(cells), f"{panel.name}, {name}")
        records.append(_compared(panel, name, statistics[name](panel)))
    headings = (
        "table",
        "statistic",
        *(f"c and C, {lost:.1%} lost" for lost in _LOST),
        "least error, weights",
        "own sum",
        "people count once",
    )
    rows = [_row(record) for record in records]
    findings = Findings(
        "Weights against clipping each person's own sum",
        records,
        [ResultTable("Noise in rows, and error in shares of the sum", headings, rows, left=2)],
        notes=[
            f"Error: root of squared share lost and of squared noise over the squared length of "
            f"the sum, ε = {_EPSILON:g}, δ = {_DELTA:g}, one person added or removed. People "
            "count once: noise alone, in shares of the sum over people of their mean rows."
        ],
    )
    findings.write(out)
    return findings


# ---- what each person adds


def _sums(panel: Panel) -> Array:
    """Σ_j of (1, u)/√2 in the group of each row; shape (people, 2·groups)."""
    u = _scaled(panel.output, *panel.output_range)
    found = np.zeros((panel.people, 2 * panel.groups))
    np.add.at(found, (panel.person, panel.group), 1 / np.sqrt(2))
    np.add.at(found, (panel.person, panel.groups + panel.group), u / np.sqrt(2))
    return found


def _grams(panel: Panel) -> Array:
    """Σ_j of φφᵀ, φ of length at most 1 from cosines and output; shape (people, size²)."""
    columns: list[Array] = []
    for column, ends in zip(panel.inputs.T, panel.ranges, strict=True):
        functions = _FUNCTIONS
        if len(panel.ranges) > 1:
            functions = _FUNCTIONS_OF_TWO[len(columns)]
        angles = np.pi * (1 + _scaled(column, *ends)) / 2
        columns.append(np.cos(np.outer(angles, np.arange(functions))))
    features = columns[0]
    for more in columns[1:]:
        features = (features[:, :, None] * more[:, None, :]).reshape(len(features), -1)
    features = features / np.sqrt(features.shape[1])
    output = _scaled(panel.output, *panel.output_range)
    rows = np.column_stack([features, output]) / np.sqrt(2)
    order = np.argsort(panel.person, kind="stable")
    parts = np.split(rows[order], np.cumsum(panel.records_of_each)[:-1])
    return np.array([(part.T @ part).ravel() for part in parts])


def _scaled(values: Array, low: float, high: float) -> Array:
    return np.clip((2 * values - low - high) / (high - low), -1, 1)


# ---- the two rules


def _compared(panel: Panel, name: str, own: Array) -> dict[str, Value]:
    """``own``: what each person's rows add up to, shape (people, size)."""
    total = own.sum(axis=0)
    length = float(np.linalg.norm(total))
    counts = panel.records_of_each.astype(np.float64)
    norms = np.linalg.norm(own, axis=1)
    by_weights = _curve(own, total, counts)
    by_norms = _curve(own, total, norms)
    record: dict[str, Value] = {"table": panel.name, "statistic": name, "numbers": own.shape[1]}
    for lost in _LOST:
        record[f"weights_{lost:g}"] = _bound_at(by_weights, lost)
        record[f"own_{lost:g}"] = _bound_at(by_norms, lost)
    noise = calibrate(_EPSILON, _DELTA) * np.sqrt(_free_numbers(own.shape[1], name))
    for rule, (bounds, lost_shares) in (("weights", by_weights), ("own", by_norms)):
        errors = np.hypot(lost_shares, noise * bounds / length)
        record[f"error_{rule}"] = float(errors.min())
        record[f"best_{rule}"] = float(bounds[errors.argmin()])
    once = (own / counts[:, None]).sum(axis=0)
    record["error_once"] = float(noise / np.linalg.norm(once))
    return record


def _free_numbers(size: int, name: str) -> float:
    """How many variances the squared error of the noise adds up to.

    All numbers of a sum; of a Gram matrix the diagonal, and each pair off it: both places of a
    pair hold one number with half of the variance.
    """
    if name != "Gram":
        return float(size)
    side = round(np.sqrt(size))
    return side + side * (side - 1) / 2


def _curve(own: Array, total: Array, lengths: Array) -> tuple[Array, Array]:
    """Bounds on lengths, and the share of the sum that shortening to each of them loses."""
    bounds = np.geomspace(max(lengths.max() / 1e4, 1e-3), lengths.max(), _GRID)
    size = float(np.linalg.norm(total))
    lost = []
    for bound in bounds:
        shorter = np.minimum(1.0, bound / np.maximum(lengths, 1e-300))
        lost.append(float(np.linalg.norm(total - shorter @ own)) / size)
    return bounds, np.array(lost)


def _bound_at(curve: tuple[Array, Array], lost: float) -> float:
    """The smallest bound that loses no more than this share."""
    bounds, shares = curve
    return float(bounds[np.flatnonzero(shares <= lost)[0]])


def _row(record: dict[str, Value]) -> tuple[str, ...]:
    pairs = []
    for lost in _LOST:
        weights = float(record[f"weights_{lost:g}"])
        own = float(record[f"own_{lost:g}"])
        pairs.append(f"{weights:.3g}, {own:.3g} ({weights / own:.1f} ×)")
    errors = [f"{float(record[name]):.4f}" for name in ("error_weights", "error_own", "error_once")]
    return (str(record["table"]), str(record["statistic"]), *pairs, *errors)
