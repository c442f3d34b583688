"""Systems that lack what Linux has: nothing may fail after a charge because of that."""

import os

import numpy as np

import reticent
from tests.attacks.harness import Outcome, attack


@attack("9", "Where os.sched_getaffinity is missing (macOS, Windows), a fit fails after its charge")
def processors() -> Outcome:
    ledger = reticent.Ledger("budget.db")
    ledger.open("people", epsilon=1, delta=1e-6)
    model = reticent.PrivateMean(
        bounds=reticent.Bounds(x=(-1, 1)),
        epsilon=0.5,
        delta=1e-7,
        ledger="budget.db",
        dataset="people",
    )
    real = getattr(os, "sched_getaffinity", None)
    if real is not None:
        del os.sched_getaffinity
    try:
        model.fit(np.zeros((100, 2)))
        said = "a model"
    except AttributeError as error:
        said = f"{type(error).__name__}: {error}"
    finally:
        if real is not None:
            os.sched_getaffinity = real
    charges = len(ledger.history("people"))
    return Outcome(said != "a model" and charges > 0, f"charged {charges} time, and got {said}")
