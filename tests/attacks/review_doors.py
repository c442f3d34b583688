"""Doors that a second review found open after the breaches were closed."""

import numpy as np
from typer.testing import CliRunner

import reticent
from reticent.apps.cli import app
from tests.attacks.harness import Outcome, attack

_FIT = "fit mean people.csv --x x=0:1 --epsilon 0.5 --delta 1e-7 --ledger budget.db --dataset people --out m.reticent"


@attack("7", "Ctrl-C when the result of a fit is shown: it says that nothing was charged")
def interrupted_after_the_charge() -> Outcome:
    np.savetxt("people.csv", np.linspace(0, 1, 100)[:, None], header="x", comments="")
    ledger = reticent.Ledger("budget.db")
    ledger.open("people", epsilon=1, delta=1e-6)
    import reticent.apps.inspection as inspection

    def stopped(*args, **options):
        raise KeyboardInterrupt

    real = inspection.print_fit
    inspection.print_fit = stopped
    try:
        answer = CliRunner().invoke(app, _FIT.split())
    finally:
        inspection.print_fit = real
    said = " ".join(answer.output.split())
    charges = len(ledger.history("people"))
    false = charges > 0 and "Nothing was charged" in said
    return Outcome(false, f"charged {charges} time; it says: {said[:70]}")
