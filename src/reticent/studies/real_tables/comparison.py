"""Fit each table by the command line at ε = 1, and put the exact answers beside it.

A *place* is a group of records (a bin of a number and a level of words) with at least 100 complete
records. The exact answer is the mean, rate or count of the group. The private one is the mean of
the model's predictions over the group (or the table's cell), with its stated standard error; for
predictions the sampling error of the group's mean is added, since a model estimates the function
and not the mean of these records.
"""

import json
import math
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from reticent.models.serialization import load
from reticent.studies.real_tables.exports import EXPORTS, Export

__all__ = ["Place", "compare", "main"]

FEWEST = 100  # complete records of a place
POINTS = 40  # of a place, whose covariance says how sure the mean of predictions is
WITHIN = 2.5  # standard errors


@dataclass(frozen=True)
class Place:
    """One answer beside the exact one."""

    table: str
    place: str
    records: int
    exact: float
    private: float
    standard_error: float

    @property
    def distance(self) -> float:
        """In standard errors."""
        return abs(self.private - self.exact) / self.standard_error


def compare(name: str, folder: Path, *, epsilon: float = 1.0, delta: float = 1e-6) -> list[Place]:
    """Export one table, fit it by the command line, and compare it in all places."""
    export = EXPORTS[name]
    folder.mkdir(parents=True, exist_ok=True)
    data, codebook = export.write(folder)
    model = folder / f"{name}.reticent"
    model.unlink(missing_ok=True)
    kind, *options = export.options
    command = [sys.executable, "-m", "reticent", "fit", kind, str(data), *options]
    command += ["--codebook", str(codebook), "--epsilon", str(epsilon), "--delta", str(delta)]
    done = subprocess.run(
        [*command, "--out", str(model)], capture_output=True, text=True, check=False
    )
    (folder / f"{name}.txt").write_text(done.stdout + done.stderr, encoding="utf-8")
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stdout}{done.stderr}")
    fitted: Any = load(model)
    frame = export.frame()
    if kind == "table":
        return list(_cells(name, export, fitted, frame))
    return list(_predictions(name, export, fitted, frame))


def _grouped(export: Export, frame: Any) -> Iterator[tuple[str, Any]]:
    """The records of each place, with a name."""
    keys = []
    for column, edges in export.groups.items():
        values = frame[column]
        if edges:
            if values.dtype.kind not in "iuf":  # dates, by year
                values = values.str[:4].astype(float)
            binned = np.digitize(values.astype(float), edges) - 1
            labels = [f"{column} {low:g} to {high:g}" for low, high in pairwise(edges)]
            keys.append([labels[i] if 0 <= i < len(labels) else None for i in binned])
        else:
            keys.append(values.where(values.notna(), None).tolist())
    names = [None if None in key else ", ".join(map(str, key)) for key in zip(*keys, strict=True)]
    frame = frame.assign(_place=names)
    for place, some in frame.groupby("_place"):
        yield str(place), some.drop(columns="_place")


def _predictions(name: str, export: Export, model: Any, frame: Any) -> Iterator[Place]:
    rng = np.random.default_rng(0)
    classes = getattr(model, "classes_", None)
    outputs = frame[export.output]
    if classes is not None:
        frame = frame.assign(_output=(outputs == classes[-1]).astype(float).where(outputs.notna()))
    else:
        frame = frame.assign(_output=outputs.where(outputs != export.missing_code))
    for place, some in _grouped(export, frame):
        mean, std = _predict(model, some)
        complete = ~np.isnan(mean) & some["_output"].notna().to_numpy()
        if complete.sum() < FEWEST:
            continue
        chosen = some[complete]
        y = chosen["_output"].to_numpy(dtype=float)
        if classes is None:
            points = chosen.iloc[rng.choice(len(chosen), min(POINTS, len(chosen)), replace=False)]
            variance = float(model.predict(points, return_cov=True)[1].mean())
        else:
            variance = float(std[complete].mean()) ** 2
        variance += float(y.var()) / len(y)
        yield Place(
            name,
            place,
            len(y),
            float(y.mean()),
            float(mean[complete].mean()),
            math.sqrt(max(variance, 1e-300)),
        )


def _predict(model: Any, frame: Any) -> tuple[Any, Any]:
    if getattr(model, "classes_", None) is None:
        return model.predict(frame, return_std=True)
    low, high = model.predict_proba_band(frame)
    return model.predict_proba(frame)[:, -1], (high - low)[:, -1] / (2 * 1.96)


def _cells(name: str, export: Export, model: Any, frame: Any) -> Iterator[Place]:
    numbers = frame[export.output]
    if numbers.dtype.kind not in "iuf":
        numbers = numbers.map({"no": 0.0, "yes": 1.0})
    frame = frame.assign(_output=numbers)
    cells = {", ".join(str(row[key]) for key in export.groups): row for row in model.table_}
    for place, some in _grouped(export, frame):
        row = cells[place]
        known = some["_output"].dropna()
        answers = {"count": float(len(some))}
        for told in ("mean", "rate"):
            if f"{export.output}_{told}" in row:
                answers[f"{export.output}_{told}"] = float(known.mean())
        for answer, exact in answers.items():
            yield Place(
                name, f"{place}: {answer}", len(some), exact, row[answer], row[f"{answer}_sd"]
            )


def main(folder: Path, names: list[str]) -> list[Place]:
    """Compare the tables, print a line for each, and write all places down."""
    places: list[Place] = []
    print(f"{'table':12s} {'places':>6s} {'within 2.5 se':>13s}   worst place")
    for name in names:
        found = compare(name, folder)
        places += found
        near = np.mean([place.distance <= WITHIN for place in found])
        worst = max(found, key=lambda place: place.distance)
        print(
            f"{name:12s} {len(found):6d} {near:13.0%}   {worst.place}: {worst.private:.4g} ± "
            f"{worst.standard_error:.2g}, exactly {worst.exact:.4g}",
            flush=True,
        )
    near = np.mean([place.distance <= WITHIN for place in places])
    print(f"{'all':12s} {len(places):6d} {near:13.0%}")
    text = json.dumps([asdict(place) for place in places], indent=1)
    (folder / "places.json").write_text(text, encoding="utf-8")
    return places
