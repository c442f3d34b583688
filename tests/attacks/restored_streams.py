"""Streams that go on from a state: what was paid for must be what goes on."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

import reticent
from reticent.privacy.streams.correlated_noise import BinaryTree, Correlation, Toeplitz
from reticent.privacy.streams.stream import Stream
from tests.attacks.harness import Outcome, attack

BOX = reticent.Bounds(x=[(-1, 1)])
RECORDS = np.array([[0.25], [0.5], [-1.0]])


@dataclass(frozen=True)
class Total(reticent.Sum):
    """Σ x."""

    columns: ClassVar[int] = 1
    norm2: ClassVar[int] = 1

    def rows(self, records: NDArray[np.float64]) -> NDArray[np.float64]:
        return records[:, :1]


def paid(**how: object) -> Stream:
    return Stream(**{"bounds": BOX, "event": reticent.Gaussian(noise_multiplier=40.0), **how})


@attack("4a", "A stream that paid for much noise goes on with hardly any")
def another_event() -> Outcome:
    ledger = reticent.Ledger("budget.db")
    ledger.open("people", epsilon=0.2, delta=1e-6)
    first = paid(ledger="budget.db", dataset="people")
    first.add(Total(), RECORDS)
    event = reticent.Gaussian(noise_multiplier=1e-6)
    second = paid(event=event, ledger="budget.db", dataset="people", state=first.state())
    released = second.release(Total())
    wrong = abs(float(released.value[0] - RECORDS.sum()))
    spent = ledger.spent("people")
    return Outcome(
        wrong < 1e-3,
        f"the exact sum to {wrong:.0e} for ε = {spent:.2g}; private={released.private}",
    )


@attack("4b", "Running sums that go on with another correlation each time draw their noise anew")
def another_correlation() -> Outcome:
    steps = 256
    state = None
    weight = 0.0
    plain = Toeplitz([1 << 30] + [0] * (steps - 1))
    for step in range(steps):
        which: Correlation = BinaryTree() if step % 2 else plain
        stream = paid(
            event=reticent.Gaussian(noise_multiplier=1.0),
            correlation=which,
            steps=steps,
            state=state,
        )
        if not step:
            stream.add(Total(), np.array([[0.5]]))
        weight += float(stream.release(Total()).scale[0]) ** -2
        state = stream.state()
    mu = 2 * weight**0.5  # one record moves every sum by up to 2
    return Outcome(mu > 1.01, f"μ = {mu:.1f} is realised where 1 was paid")


def _washed(change: dict[str, object], **how: object) -> Outcome:
    """Go on with one parameter changed.

    Whether the release then says something better than was paid.
    """
    first = paid(**how)
    first.add(Total(), RECORDS)
    before = first.release(Total())
    second = paid(**{**how, **change}, state=first.state())
    second.add(Total(), RECORDS)
    after = second.release(Total())
    figure = (
        f"noise {before.scale[0]:.3g} → {after.scale[0]:.3g}, "
        f"private={before.private} → {after.private}"
    )
    broke = after.scale[0] < 0.99 * before.scale[0] or (after.private and not before.private)
    return Outcome(bool(broke), figure)


@attack("4c", "A stream with a seed goes on without one, and calls itself private")
def no_seed() -> Outcome:
    return _washed({"seed": None}, seed=b"1")


@attack("4d", "A stream for people with five records goes on for people with one")
def fewer_records() -> Outcome:
    return _washed({"records_per_person": 1}, records_per_person=5)


@attack("4e", "Running sums made for 1000 steps go on with the noise of two")
def fewer_steps() -> Outcome:
    return _washed({"steps": 2}, correlation=BinaryTree(), steps=1000)


@attack("4f", "A record that was held to narrow bounds is added up with records held to wide ones")
def other_bounds() -> Outcome:
    event = reticent.Gaussian(noise_multiplier=1.0)
    first = paid(event=event)
    first.add(Total(), RECORDS)
    wide = paid(event=event, bounds=reticent.Bounds(x=[(-1000, 1000)]), state=first.state())
    wide.release(Total())
    return Outcome(True, "the sums of both are released as one, and mean neither")


@attack("7", "records_per_person = 1.999 counts as 1")
def part_of_a_record() -> Outcome:
    scale = paid(records_per_person=1.999)
    scale.add(Total(), RECORDS)
    found = float(scale.release(Total()).scale[0])
    return Outcome(found < 1.9 * 80, f"noise {found:.0f}, where 1.999 records of a person need 160")
