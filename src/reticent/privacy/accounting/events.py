"""Events: what a mechanism did, frozen and storable.

An account stores events and never epsilons: an event can be composed exactly with every other one,
now and under better accounting later, while an epsilon has already forgotten how it came about. A
kind of event, once released, keeps its meaning for ever; kinds are only added.

Only these kinds themselves are events. A subclass could say one thing when it is charged and
another when noise is made from it, so `checked_event` refuses it wherever an event is charged,
counted or used.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from dataclasses import fields as dataclass_fields
from typing import Any, ClassVar, TypeVar

from reticent.errors import BadInput

__all__ = [
    "Event",
    "Gaussian",
    "Laplace",
    "Pure",
    "Selection",
    "checked_event",
    "event_from_dict",
    "event_from_json",
    "is_event",
]

# 2^-240 < 1/multiplier^2 < 2^240 keeps the fixed-point sums of gaussian.py exact enough to round up
# safely.
_LEAST = 1e-9
_MOST = 1e30


@dataclass(frozen=True)
class Event:
    """Abstract: ``count`` independent uses of one mechanism, possibly chosen adaptively."""

    count: int = 1
    kind: ClassVar[str] = ""

    def __post_init__(self) -> None:
        if not self.kind:
            raise TypeError("Event is abstract: use Gaussian, Laplace, Pure or Selection.")
        if (
            isinstance(self.count, bool)
            or not isinstance(self.count, int)
            or not 1 <= self.count <= 10**9
        ):
            raise BadInput(
                f"count must be a whole number from 1 to 10^9, not {self.count!r}.",
                parameter="count",
            )
        # Not a subclass of int, whose arithmetic may be another.
        object.__setattr__(self, "count", int(self.count))
        for name in (field.name for field in dataclass_fields(self) if field.type is float):
            value = getattr(self, name)
            if (
                isinstance(value, bool)
                or not isinstance(value, (int, float))
                or not _LEAST <= value <= _MOST
            ):
                raise BadInput(
                    f"{name} must be a number from {_LEAST:g} to {_MOST:g}, not {value!r}.",
                    parameter=name,
                )
            object.__setattr__(self, name, float(value))

    def __str__(self) -> str:
        (name, value) = next(
            (k.replace("_", " "), v) for k, v in asdict(self).items() if k != "count"
        )
        releases = "release"
        if self.count > 1:
            releases = "releases"
        return f"{self.count} {self.kind} {releases} ({name} {value:.4g})"

    def to_dict(self) -> dict[str, Any]:
        """Return the event as plain JSON values; ``event_from_dict`` is its inverse."""
        return {"kind": self.kind, **asdict(self)}

    def to_json(self) -> str:
        """Return the one canonical text of the event (sorted keys, shortest exact floats)."""
        return json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True)
class Gaussian(Event):
    """Gaussian noise of standard deviation ``noise_multiplier`` × L2 sensitivity."""

    noise_multiplier: float = math.nan
    kind: ClassVar[str] = "gaussian"


@dataclass(frozen=True)
class Laplace(Event):
    """Laplace noise of scale ``noise_multiplier`` × L1 sensitivity."""

    noise_multiplier: float = math.nan
    kind: ClassVar[str] = "laplace"


@dataclass(frozen=True)
class Pure(Event):
    """Any mechanism with pure ``epsilon``-DP.

    The exponential mechanism, randomised response, another tool's release.
    """

    epsilon: float = math.nan
    kind: ClassVar[str] = "pure"


@dataclass(frozen=True)
class Selection(Event):
    """The best of a random number K of runs.

    Each run has Gaussian noise of ``noise_multiplier`` × L2 sensitivity in all.
    ``shape`` 1: K is geometric, P(K = k) = γ(1−γ)^(k−1); ``shape`` 0: logarithmic, P(K = k) ∝
    (1−γ)^k/k; γ = ``stop``, a multiple of 2⁻⁴⁰. ``most`` > 0: K = min(geometric, ``most``). Only
    the best run's releases leave, and not how many there were.
    """

    noise_multiplier: float = math.nan
    shape: int = 1
    stop: float = 1.0
    most: int = 0
    kind: ClassVar[str] = "selection"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 2**-20 <= self.stop <= 1 or not (self.stop * 2**40).is_integer():
            raise BadInput(
                f"stop must be a multiple of 2^-40 from 2^-20 to 1, not {self.stop!r}.",
                parameter="stop",
            )
        for name, value in (("shape", self.shape), ("most", self.most)):
            if isinstance(value, bool) or not isinstance(value, int):
                raise BadInput(f"{name} must be a whole number, not {value!r}.", parameter=name)
            object.__setattr__(self, name, int(value))
        if (
            self.shape not in (0, 1)
            or not 0 <= self.most <= 10**9
            or (self.shape == 0 and self.most)
        ):
            raise BadInput(
                "shape must be 0 or 1, and most 0 (no limit) or a number of "
                "runs, which needs shape 1."
            )

    def __str__(self) -> str:
        distribution = ("logarithmic", "geometric")[self.shape]
        searches = "1 search"
        if self.count > 1:
            searches = f"{self.count} searches"
        return (
            f"{searches} ({distribution} number of runs, stop {self.stop:.4g}, noise multiplier "
            f"{self.noise_multiplier:.4g})"
        )


_KINDS: dict[str, type[Event]] = {cls.kind: cls for cls in (Gaussian, Laplace, Pure, Selection)}
E = TypeVar("E", bound=Event)


def is_event(event: object) -> bool:
    """Whether it is one of the known kinds of events itself, and not a subclass."""
    # `in` would ask a metaclass of theirs.
    return any(type(event) is kind for kind in _KINDS.values())


def checked_event(event: E, *kinds: type[Event]) -> E:
    """Return a copy of an event that is of one of ``kinds`` itself, or refuse it.

    A copy, so that what is used later is what was looked at now.

    >>> checked_event(Gaussian(noise_multiplier=2.0), Gaussian, Laplace).noise_multiplier
    2.0
    """
    for kind in kinds:
        if type(event) is kind:
            return type(event)(
                **{field.name: getattr(event, field.name) for field in dataclass_fields(kind)}
            )
    names = " or ".join(kind.__name__ for kind in kinds)
    raise BadInput(f"Give a {names} event, not {event!r}; subclasses are not taken.")


def event_from_dict(fields: Mapping[str, Any]) -> Event:
    """Rebuild an event from ``Event.to_dict``."""
    rest: dict[str, Any] = {}
    if isinstance(fields, Mapping):
        rest = dict(fields)
    cls = _KINDS.get(str(rest.pop("kind", "")))
    if cls is None or set(rest) != {field.name for field in dataclass_fields(cls)}:
        raise BadInput(
            f"Not an event that this version knows: {fields!r}. Known kinds: {', '.join(_KINDS)}."
        )
    return cls(**rest)


def event_from_json(text: str) -> Event:
    """Rebuild an event from ``Event.to_json``."""
    try:
        fields = json.loads(text)
    except ValueError:
        fields = text
    return event_from_dict(fields)
