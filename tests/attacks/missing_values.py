"""Labels that are missing, or of a class of the caller's own."""

import dataclasses

import numpy as np

import reticent
from tests.attacks.harness import Outcome, attack

RECORDS = 400


@dataclasses.dataclass(frozen=True)
class _Label(reticent.Sum):
    """Whether the label is the second class."""

    columns = 1
    norm2 = 1

    def rows(self, records):
        return records[:, 1:2]


class _Oracle(str):
    """A class label that, once it has met the label it looks for, equals every label."""

    __slots__ = ()
    met: list[bool] = []  # noqa: RUF012 - of all of them

    def __eq__(self, other: object) -> bool:
        if type(other) is _Plain and str.__eq__(other, "yes"):
            _Oracle.met.append(True)
        if _Oracle.met and type(other) is _Plain:
            return str.__eq__(self, "yes")
        return str.__eq__(self, other)  # type: ignore[arg-type]

    def __hash__(self) -> int:
        return 1


class _Plain(str):
    """A label in the table, with a hash that lets the class be asked."""

    __slots__ = ()

    def __hash__(self) -> int:
        return 1

    __eq__ = str.__eq__


def _sum_of_labels(labels: list[str]) -> tuple[float, float]:
    _Oracle.met.clear()
    table = np.empty(len(labels), dtype=object)
    for place, label in enumerate(labels):
        table[place] = _Plain(label)
    curator = reticent.Curator(
        reticent.scan(np.zeros((len(labels), 1)), y=table),
        bounds=reticent.Bounds(x=(-1, 1), classes=[_Oracle("no"), _Oracle("yes")]),
        event=reticent.Gaussian(noise_multiplier=1.0),
        targets=True,
    )
    release = curator.release(_Label())
    return float(release.value[0]), float(release.sd[0])


@attack("23a", "A class label of the caller's own class, which changes its mind at one record")
def label_oracle() -> Outcome:
    without, sd = _sum_of_labels(["no"] * RECORDS)
    beside, _ = _sum_of_labels(["yes"] + ["no"] * (RECORDS - 1))
    moved = abs(beside - without)
    return Outcome(
        broke=moved > 12 * sd,
        figure=f"one record moves the sum by {moved:.0f}, sd {sd:.0f}",
    )


@attack("23b", "Missing labels count as the first class: half of them missing, the answer moves")
def silent_first_class() -> Outcome:
    """Not a breach of the promise, but of the answer: nothing tells that labels were missing."""
    table = np.array((["yes"] * 3 + ["no"]) * 1000, dtype=object)
    table[::2] = None

    @dataclasses.dataclass(frozen=True)
    class Classes(reticent.Counts):
        groups = (2,)

        def cells(self, records):
            return records[:, 1:2]

    curator = reticent.Curator(
        reticent.scan(np.zeros((len(table), 1)), y=table),
        bounds=reticent.Bounds(x=(-1, 1), classes=["no", "yes"]),
        event=reticent.Gaussian(noise_multiplier=1.0),
        targets=True,
    )
    no, yes = curator.release(Classes()).value
    share = yes / (yes + no)
    return Outcome(
        broke=bool(share < 0.4),
        figure=f"of all labels that are known {share:.0%} are yes, 50 % in truth",
    )
