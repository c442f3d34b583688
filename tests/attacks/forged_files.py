"""Model files that no `save` wrote, each with the right SHA-256.

They must be refused, in words, or gain nothing.
"""

import copy
import json
import struct
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

import reticent
from tests.attacks.harness import Outcome, attack

FILE = Path("m.reticent")
Header = dict[str, Any]


def saved() -> tuple[bytes, Header, Header, bytes]:
    """Save a seeded mean.

    The beginning of the file's first line, its outer header, what is said in it, and its arrays.
    """
    model = reticent.PrivateMean(
        bounds=reticent.Bounds(x=[(0, 1)]), epsilon=1, delta=1e-6, random_state=1
    )
    model.fit(np.full((100, 1), 0.5)).save(FILE, overwrite=True)
    first, _, body = FILE.read_bytes().partition(b"\n")
    size = int.from_bytes(body[:8], "little")
    outer = json.loads(body[8 : 8 + size])
    return first[:11], outer, json.loads(outer["__metadata__"]["reticent"]), body[8 + size :]


def write(magic: bytes, outer: Header, fields: object, arrays: bytes) -> None:
    """Write a file with other contents, and a SHA-256 that is right."""
    outer = copy.deepcopy(outer)
    outer["__metadata__"]["reticent"] = fields if isinstance(fields, str) else json.dumps(fields)
    text = json.dumps(outer).encode()
    text += b" " * (-len(text) % 8)
    body = struct.pack("<Q", len(text)) + text + arrays
    FILE.write_bytes(magic + sha256(body).hexdigest().encode() + b"\n" + body)


def forged(change: Callable[[Header], None]) -> Any:
    """Load a file whose header was changed."""
    magic, outer, fields, arrays = saved()
    change(fields)
    write(magic, outer, fields, arrays)
    return reticent.load(FILE)


@attack("4l", "A file's event says less was spent than its parameters do")
def forged_event() -> Outcome:
    def change(fields: Header) -> None:
        fields["releases"][0]["event"]["noise_multiplier"] = 1e20
        fields["releases"][0]["private"] = True

    promise = forged(change).guarantee_
    return Outcome(
        promise.epsilon < 0.9,
        f"ε = {promise.epsilon:.1g} beside epsilon=1; private={promise.private}",
    )


@attack("4m", "A file edited by hand forgets that its noise came from a seed")
def forged_stamp() -> Outcome:
    promise = forged(lambda fields: fields["releases"][0].update(private=True)).guarantee_
    return Outcome(promise.private, f"private={promise.private}, from a fit with random_state=1")


@attack("4n", "A file names a ledger, and report() connects to it")
def forged_ledger() -> Outcome:
    url = "postgresql://somebody.invalid:1/x"
    model = forged(lambda fields: fields["params"].update(ledger=url, dataset="p"))
    return Outcome(
        model._params["ledger"] == url, f"report() would connect to {model._params['ledger']}"
    )


@attack("4o", "Numbers of records that no data set has")
def forged_counts() -> Outcome:
    taken = []
    for n in (0, -7, float("nan"), 3.5):
        try:
            with np.errstate(all="ignore"):
                forged(lambda fields, n=n: fields["releases"][0].update(n=n))
        except reticent.CorruptModel:
            continue
        taken.append(n)
    return Outcome(
        bool(taken), f"accepted: n = {', '.join(map(str, taken)) or 'none'}", refused=not taken
    )


@attack("4p", "A file that is nested deeply ends a program with RecursionError")
def deep() -> Outcome:
    magic, outer, fields, arrays = saved()
    ended = []
    nested: object = 1
    for _ in range(300):
        nested = {"Dict": {"a": nested}}
    deep_params = copy.deepcopy(fields)
    deep_params["params"]["bounds"] = nested
    for contents in (
        "[" * 200_000 + "]" * 200_000,
        [1, 2],
        deep_params,
        {**fields, "params": [1]},
        {**fields, "model": 5},
    ):
        write(magic, outer, contents, arrays)
        try:
            reticent.load(FILE)
        except reticent.CorruptModel:
            continue
        except Exception as error:
            ended.append(type(error).__name__)
    return Outcome(
        bool(ended), f"ends with: {', '.join(ended) or 'CorruptModel'}", refused=not ended
    )
