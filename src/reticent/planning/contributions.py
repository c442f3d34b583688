"""How much one person may count: what each contribution costs, from public numbers alone.

With ``contribution`` c, each of a person's k records has the weight 1/max(k, c): the total weight
of n people is n·mean(min(1, k/c)), and noise, whose scale does not depend on c, counts relative to
it.

* Answers about *people* ("how heavy are they?") take c = 1: every person counts once, and noise is
  least.
* Answers about *records* ("how long is a visit?") want every record to count alike. With c below k,
  records of people who have many count less: of all records' weight, s = Σ min(k, c) / Σ k is kept.
  The weights are those of all records alike times a factor of at most 1 with mean s, so the two
  distributions are at most 1 − s apart (in total variation), and a mean moves by at most (1 − s)
  times the difference between people with many records and others. Nobody knows that before; here
  it is assumed to be a tenth of the range (`DIFFERENCE`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot

from reticent.errors import BadInput
from reticent.privacy.accounting.composition import calibrate
from reticent.privacy.unit import REPLACE

__all__ = ["CONTRIBUTIONS", "DIFFERENCE", "Contribution", "contributions", "total_weight"]

CONTRIBUTIONS = (1, 2, 5, 10, 20, 50, 100)  # that are compared
# Assumed difference between means of people with many records and of others, by the range: a guess
# of ours, stated wherever it is used. With none, 1 would be best for records, too.
DIFFERENCE = 0.1


@dataclass(frozen=True)
class Contribution:
    """What to expect of one contribution at one ε.

    ``kept``: share of all records' weight that counts as it would if all records were alike.
    ``noise``: standard deviation of the privacy noise in the mean of one column, by its range.
    ``error``: of that mean as an answer about records, by the range: noise, and what is assumed of
    records that count less.
    """

    contribution: int
    epsilon: float
    kept: float
    noise: float
    error: float


def contributions(
    n: int,
    records: Sequence[int],
    epsilons: Sequence[float],
    delta: float,
    neighbours: str = REPLACE,
) -> list[Contribution]:
    """Compare contributions, up to the first that no person of the guess exceeds.

    ``records``: numbers of records of people, each of which about as many people have.

    >>> rows = contributions(10_000, [1, 2, 9], [1.0], 1e-6)
    >>> [(row.contribution, round(row.kept, 2)) for row in rows]
    [(1, 0.25), (2, 0.42), (5, 0.67), (10, 1.0)]
    >>> best = min(rows, key=lambda row: row.error)
    >>> best.contribution
    10
    """
    if not records or not all(type(k) is int and k >= 1 for k in records):
        raise BadInput("Numbers of records are whole numbers of at least 1.")
    enough = [c for c in CONTRIBUTIONS if c < max(records)]
    more = [c for c in CONTRIBUTIONS if c >= max(records)][:1]
    width = 1.0  # of the range that one person moves a sum by
    if neighbours != REPLACE:
        width = 0.5
    found = []
    for c in [*enough, *more]:
        kept = sum(min(k, c) for k in records) / sum(records)
        for epsilon in epsilons:
            noise = calibrate(epsilon, delta) * width / (n * total_weight(records, c))
            error = hypot(noise, (1 - kept) * DIFFERENCE)
            found.append(Contribution(c, epsilon, kept, noise, error))
    return found


def total_weight(records: Sequence[int], contribution: int) -> float:
    """Weight of a person on average, at most 1."""
    return sum(min(1.0, k / contribution) for k in records) / len(records)
