"""What an attack is, what came of it, and the list of all attacks."""

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Literal

import reticent

Verdict = Literal["succeeds", "no advantage", "refused"]


@dataclass(frozen=True)
class Outcome:
    """What an attack achieved.

    More than the promise allows or not, and the figure that shows it.
    """

    broke: bool
    figure: str
    refused: bool = False

    @property
    def verdict(self) -> Verdict:
        """One word for the table."""
        if self.broke:
            return "succeeds"
        return "refused" if self.refused else "no advantage"


@dataclass(frozen=True)
class Attack:
    """An attack: the item of the review that it belongs to, what it tries, and the function that
    tries it.
    """

    item: str
    title: str
    name: str
    function: Callable[[], Outcome]

    def run(self) -> Outcome:
        """Try it.

        An error of reticent's own is a refusal; any other error is a fault of the attack.
        """
        try:
            return self.function()
        except reticent.ReticentError as error:
            return Outcome(broke=False, refused=True, figure=first_sentence(error))


ATTACKS: list[Attack] = []


def attack(item: str, title: str) -> Callable[[Callable[[], Outcome]], Callable[[], Outcome]]:
    """Put a function on the list of attacks; ``item`` is the number in the review, such as "1a"."""

    def listed(function: Callable[[], Outcome]) -> Callable[[], Outcome]:
        name = f"{function.__module__.rpartition('.')[2]}.{function.__name__}"
        ATTACKS.append(Attack(item, title, name, function))
        return function

    return listed


def first_sentence(error: BaseException, most: int = 90) -> str:
    """The beginning of a refusal, for the table."""
    text = " ".join(str(error).split())
    return text if len(text) <= most else text[: most - 1] + "…"


def all_attacks() -> list[Attack]:
    """Import every module of this package, and give the attacks in the order of the
    review's items.
    """
    import tests.attacks as package

    for module in pkgutil.iter_modules(package.__path__):
        if not module.name.startswith(("test_", "__")):
            importlib.import_module(f"tests.attacks.{module.name}")
    return sorted(
        ATTACKS,
        key=lambda one: (int("".join(c for c in one.item if c.isdigit())), one.item, one.name),
    )


def as_record(one: Attack, outcome: Outcome) -> dict[str, object]:
    """A line of the table, for JSON."""
    return {
        "item": one.item,
        "title": one.title,
        "name": one.name,
        **asdict(outcome),
        "verdict": outcome.verdict,
    }
