"""Memory of one `Obfuscator`: the public question that a release answers, and the answers given.

A further draw for the same curve would let noise be averaged away; so what was asked before gets
the answer it got. `register` is the same across objects and processes.
"""

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Kernel

from reticent.errors import BudgetExceeded

__all__ = ["FORMAT", "Memory", "release_question"]

Array = NDArray[np.float64]
# of questions and releases; in 1, of version 0.1.0, noise was a variance and records had any order
FORMAT = 2


def release_question(x: Array, **parameters: Any) -> str:
    """All that is public and decides the release, as text.

    ``x``: the inputs (n, d) in the order of ``release_order``.
    """
    rows = [list(map(float.hex, row)) for row in x.tolist()]
    rest = {name: _plain_parameter(value) for name, value in parameters.items()}
    return json.dumps({"format": FORMAT, "X": rows, **rest}, sort_keys=True, default=repr)


def _plain_parameter(value: Any) -> Any:
    if isinstance(value, Kernel):
        return _exact_kernel(value)
    if value is None or isinstance(value, (str, int, float)):
        return value
    return repr(np.asarray(value, dtype=object).tolist())


def _exact_kernel(kernel: Kernel) -> Any:
    """A kernel as plain values, to the last digit.

    Its own text rounds, and a sum's parameters are those of a product.
    """
    parts = sorted(kernel.get_params(deep=False).items())
    plain = {}
    for name, value in parts:
        if isinstance(value, Kernel):
            plain[name] = _exact_kernel(value)
        else:
            plain[name] = repr(np.asarray(value).tolist())
    return [f"{type(kernel).__module__}.{type(kernel).__qualname__}", plain]


class Memory:
    """Answers that one object has released.

    A question that was asked before gets the answer it got, a further draw is refused. Without a
    ledger one object releases one curve. Two questions may always be about the same function,
    whatever their inputs: those of one curve in another order, without a record, moved a little, or
    left and right of a sensitive value. Only a ledger knows curves by their names.

    Answers are kept by question, by where a ledger remembers them (None: nowhere), and by the seed
    of a test. Those that were drawn from a seed, or whose stamp is missing, are not private and
    count for nothing.
    """

    def __init__(self) -> None:
        self._answers: dict[tuple[Any, ...], dict[str, Any]] = {}

    def find(
        self, question: str, place: Any = None, *, seeded: Any = None
    ) -> dict[str, Any] | None:
        """Give the remembered answer; None, if one may be drawn."""
        if place is not None:  # a ledger remembers, and is asked every time
            refused = any(
                answer["private"] for key, answer in self._answers.items() if key[1] is None
            )
        else:
            known = self._answers.get((question, None, seeded))
            if known is not None or seeded is not None:
                return known
            refused = any(answer["private"] for answer in self._answers.values())
        if refused:
            raise BudgetExceeded(
                "This object has released a curve already, with other inputs or parameters or "
                "another ledger: if this is the same curve, a further draw would break the "
                "promise. Ask as before to get the same release; for another curve make a new "
                "Obfuscator (sklearn.base.clone), or name both in a ledger; for several releases "
                "of one curve plan them beforehand (releases=…)."
            )
        return None

    def keep(
        self, question: str, answer: dict[str, Any], place: Any = None, *, seeded: Any = None
    ) -> None:
        """Remember an answer."""
        self._answers[question, place, seeded] = answer
