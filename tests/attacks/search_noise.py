"""Events that are not what they are counted as.

Laplace noise in a search, and subclasses of events.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

import reticent
from reticent.privacy.selection.private_selection import Candidate
from tests.attacks.harness import Outcome, attack


@dataclass(frozen=True)
class First(reticent.Sum):
    """The first column."""

    columns = 1
    norm2 = 1
    norm1 = 1

    def rows(self, records):
        return records[:, :1]


def searched(noise: reticent.Gaussian, data: np.ndarray, multiplier: float) -> reticent.Curator:
    """A search of one run that is paid for with ``multiplier`` and uses ``noise``."""
    source = reticent.scan(data)
    bounds = reticent.Bounds(x=(-1, 1)).resolve(source, targets=False)[0]
    return reticent.Curator(
        source,
        bounds=bounds,
        event=reticent.Selection(noise_multiplier=multiplier, stop=1.0),
        candidates=[Candidate(bounds, bounds, noise, noise)],
    )


def judged(index: int, training: reticent.Curator, validation: reticent.Curator) -> float:
    training.release(First())
    return float(validation.release(First()).value[0])


@attack("7", "A search that is paid for as Gaussian runs with Laplace noise")
def laplace() -> Outcome:
    z = 1.0
    choice = searched(reticent.Laplace(noise_multiplier=z), np.full((10, 1), 0.5), z).choose(judged)
    claimed = 2 * float(norm.cdf(1 / (2 * z))) - 1
    true = 1 - math.exp(-1 / (2 * z))
    figure = f"δ at ε = 0 is {true:.3f} of one run, {claimed:.3f} was paid for"
    return Outcome(len(choice.training) == 1 and true > claimed, figure)


class Shrinking(reticent.Gaussian):
    """Says 10 until it was charged, and a millionth after that."""

    charged = False

    @property
    def noise_multiplier(self) -> float:
        return 1e-6 if Shrinking.charged else 10.0

    def to_json(self) -> str:
        return reticent.Gaussian(noise_multiplier=10.0).to_json()

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None


def _shrinking() -> Shrinking:
    event = object.__new__(Shrinking)
    object.__setattr__(event, "count", 1)
    return event


@attack("7", "A subclass of an event is charged with one multiplier and used with another")
def subclass() -> Outcome:
    reticent.Ledger("budget.db").open("people", epsilon=1, delta=1e-6)
    data = np.linspace(-1, 1, 1000)[:, None] ** 2
    curator = reticent.Curator(
        reticent.scan(data),
        bounds=reticent.Bounds(x=(-1, 1)),
        event=_shrinking(),
        ledger="budget.db",
        dataset="people",
    )
    Shrinking.charged = True
    off = float(abs(curator.release(First()).value[0] - data.sum()))
    spent = reticent.Ledger("budget.db").spent("people")
    return Outcome(
        off < 0.01,
        f"charged ε = {spent:.2g}; the sum of 1,000 records is released to within {off:.1e}",
    )
