"""A fit that was charged and cannot be saved: the release must not be lost with the process."""

from pathlib import Path

import numpy as np
from typer.testing import CliRunner

import reticent
from reticent.cli.main import app
from tests.attacks.harness import Outcome, attack


@attack(
    "7",
    "Where saving fails after the charge, reticent fit says that the model is in memory, and ends",
)
def saving_fails() -> Outcome:
    np.savetxt("people.csv", np.linspace(0, 1, 100)[:, None], header="x", comments="")
    ledger = reticent.Ledger("budget.db")
    ledger.open("people", epsilon=1, delta=1e-6)
    real = reticent.PrivateMean.save

    def taken(self, path, **options):
        """Somebody makes the file while the model is fitted."""
        Path("m.reticent").touch()
        real(self, path, **options)

    words = (
        "fit mean people.csv --x x=0:1 --epsilon 0.5 --delta 1e-7 --ledger budget.db --dataset "
        "people --out m.reticent"
    )
    reticent.PrivateMean.save = taken
    try:
        answer = CliRunner().invoke(app, words.split())
    finally:
        reticent.PrivateMean.save = real
    said = " ".join(answer.output.split())
    rescued = [path for path in Path().glob("*.reticent") if path.stat().st_size]
    charges = len(ledger.history("people"))
    figure = f"charged {charges} time, {len(rescued)} model files"
    if "in memory" in said:
        figure += ", and it says that the model is still in memory"
    return Outcome(charges > 0 and not rescued, figure)
