"""Doors that a second review found open after the breaches were closed."""

import csv
import hashlib
import itertools
import os
import shutil
from unittest import mock

import numpy as np
from typer.testing import CliRunner

import reticent
from reticent.cli.main import app
from reticent.privacy import random_bits
from reticent.privacy.accounting import composition as accounting
from tests.attacks.audit import quick_verdicts
from tests.attacks.harness import Outcome, attack

_FIT = (
    "fit mean people.csv --x x=0:1 --epsilon 0.5 --delta 1e-7 --ledger "
    "budget.db --dataset people --out m.reticent"
)


@attack("7", "Ctrl-C when the result of a fit is shown: it says that nothing was charged")
def interrupted_after_the_charge() -> Outcome:
    np.savetxt("people.csv", np.linspace(0, 1, 100)[:, None], header="x", comments="")
    ledger = reticent.Ledger("budget.db")
    ledger.open("people", epsilon=1, delta=1e-6)
    from reticent.cli.commands import inspect as inspection

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


@attack("11", "The audit misses noise that repeats: every fit draws from one of two keys")
def noise_of_two_keys() -> Outcome:
    numbers = itertools.count()

    class TwoKeys:
        """The operating system, but for its random numbers."""

        @staticmethod
        def urandom(length):
            return hashlib.sha256(b"key %d" % (next(numbers) % 2)).digest()[:length]

    real = random_bits.os
    with mock.patch.object(random_bits, "os", TwoKeys):
        TwoKeys.getpid = real.getpid
        [verdict] = quick_verdicts("mean", 1)
    return Outcome(verdict == "holds", f"every second fit has the same noise: {verdict}")


@attack(
    "7",
    "A column whose name begins with a wide equals sign is run from a file of synthetic records",
)
def wide_formulas() -> Outcome:
    import pandas as pd

    names = [
        "＝HYPERLINK(A1)",
        "\n=1+1",
    ]  # some spreadsheets take the first for a formula, some the second
    data = pd.DataFrame({name: np.linspace(0, 1, 300) for name in names})
    bounds = reticent.Bounds(x=dict.fromkeys(names, (0, 1)))
    reticent.GaussianMixture(n_components=1, bounds=bounds, epsilon=5, delta=1e-6).fit(data).save(
        "m.reticent"
    )
    done = CliRunner().invoke(app, ["sample", "m.reticent", "-n", "5", "--out", "synthetic.csv"])
    assert done.exit_code == 0, done.output
    with open("synthetic.csv", newline="", encoding="utf-8") as file:
        first = next(csv.reader(file))
    runs = [name for name in first if not name.startswith("'")]
    return Outcome(
        bool(runs), f"{len(runs)} of {len(first)} names of columns are written as they are"
    )


@attack("2a", "A link to the ledger's folder is set to a copy of it while a charge is made")
def switched_link() -> Outcome:
    os.makedirs("one")
    os.symlink("one", "current")
    ledger = reticent.Ledger("current/budget.db")
    ledger.open("people", epsilon=1, delta=1e-6)
    shutil.copytree("one", "two")
    real = accounting.account_epsilon

    def switch(*args):
        """In the middle of a charge, under its lock."""
        os.unlink("current")
        os.symlink("two", "current")
        return real(*args)

    with mock.patch.object(accounting, "account_epsilon", switch):
        ledger.charge("people", reticent.Gaussian(noise_multiplier=5.0))
    recorded = len(ledger.history("people"))
    return Outcome(
        recorded == 0, f"1 charge acknowledged, {recorded} recorded, and the ledger verifies"
    )
