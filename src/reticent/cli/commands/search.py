"""``reticent search``: which candidates a command line means, and the search that tries them."""

import re
from collections.abc import Callable, Sequence
from itertools import product
from typing import Annotated, Any

import typer

from reticent.cli.commands.fit import fit_and_show
from reticent.cli.data_names import data_name
from reticent.cli.options import (
    ASKED,
    Json,
    LevelColumn,
    ModelFile,
    Quietly,
    Records,
    option,
    with_options,
)
from reticent.cli.terminal import progress
from reticent.errors import BadInput

__all__ = ["candidates", "parse_tries", "search_command", "searching"]

_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)
_WORDS = {"true": True, "false": False, "none": None}


def parse_value(text: str) -> Any:
    """A number, a word of Python's (True, None), or text."""
    if _NUMBER.fullmatch(text):
        if re.fullmatch(r"[-+]?\d+", text):
            return int(text)
        return float(text)
    return _WORDS.get(text.lower(), text)


def parse_tries(texts: Sequence[str]) -> dict[str, list[Any]]:
    """Read ``basis=20,50``: a parameter and the values to try.

    ``x=age,age+height`` are sets of input columns.

    >>> parse_tries(["basis=20,50", "x=age,age+height"])
    {'basis': [20, 50], 'x': [('age',), ('age', 'height')]}
    """
    from reticent.models.base import COMMON

    tries: dict[str, list[Any]] = {}
    for text in texts:
        name, _, values = text.partition("=")
        parts = [part.strip() for part in values.split(",")]
        if not name or not all(parts):
            raise BadInput(
                f"--try takes NAME=VALUE,VALUE,… for example --try basis=20,50, not {text!r}."
            )
        if name in tries:
            raise BadInput(f"--try was given twice for {name!r}: give all its values at once.")
        if name in COMMON:
            raise BadInput(f"--try cannot set {name!r}: it has an option of its own.")
        if name == "x":
            tries[name] = [tuple(part.split("+")) for part in parts]
        else:
            tries[name] = [parse_value(part) for part in parts]
    return tries


def candidates(
    tries: dict[str, list[Any]], bounds: Any, level: str | None = None
) -> list[dict[str, Any]]:
    """All combinations.

    Sets of columns become bounds with these columns only, and that of noise levels if there is one.
    """
    from reticent.privacy.bounds import Bounds

    known = dict(zip(bounds.x_names, bounds.x_kinds, strict=True))
    if not bounds.y:
        outputs = None
    else:
        outputs = dict(zip(bounds.y_names, bounds.y_kinds, strict=True))
    if not bounds.classes:
        classes = None
    else:
        classes = {bounds.y_names[0]: bounds.class_kind or bounds.classes}
    made = []
    for values in product(*tries.values()):
        one = dict(zip(tries, values, strict=True))
        columns = one.pop("x", None)
        if columns is not None:
            for name in columns:
                if name not in known:
                    raise BadInput(
                        f"--try x: there is no input {name!r} with a range. "
                        f"Inputs: {', '.join(known)}."
                    )
            used = columns if level is None or level in columns else (*columns, level)
            one["bounds"] = Bounds(
                x={name: known[name] for name in used}, y=outputs, classes=classes, norm=bounds.norm
            )
        made.append(one)
    return made


def searching(texts: Sequence[str], **options: Any) -> Callable[[Any], Any]:
    """Give what turns an estimator into a search of these candidates."""
    from reticent.models.base import COMMON
    from reticent.models.selection.private_search import PrivateSearch

    tries = parse_tries(texts)
    if not tries:
        raise BadInput(
            "A search needs something to try: --try NAME=VALUE,VALUE,… for "
            "example --try basis=20,50."
        )

    def wrapped(estimator: Any) -> Any:
        common = {name: getattr(estimator, name) for name in COMMON}
        chosen = {name: value for name, value in options.items() if value is not None}
        return PrivateSearch(
            estimator,
            candidates(tries, estimator.bounds, getattr(estimator, "noise_column", None)),
            **common,
            **chosen,
        )

    return wrapped


_HOW = {
    "scheme": option(
        str, "SCHEME", "papernot-steinke (less noise) or liu-talwar (as in the paper)."
    ),
    "scoring": option(
        str,
        "SCORE",
        "gp: absolute, squared or likelihood; classifier: accuracy or log; others: density.",
    ),
    "mean": option(str, "MEAN", "Of the scores: robust, clipped or coinpress."),
    "expected_runs": option(
        float, "NUMBER", "Runs to expect; eight for each candidate if left out.", "--runs"
    ),
}


@with_options(asked=ASKED, how=_HOW)
def search_command(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="As for reticent fit.")],
    data: Records,
    out: ModelFile,
    tries: Annotated[
        list[str] | None,
        typer.Option(
            "--try",
            metavar="NAME=V1,V2,…",
            help="A parameter of the model and the values to try; of several, all combinations. "
            "x=age,age+height tries sets of columns.",
        ),
    ] = None,
    asked: Any = None,
    noise_column: LevelColumn = None,
    how: Any = None,
    json: Json = False,
    quiet: Quietly = False,
) -> None:
    """Choose among candidates by private runs, and write the best one's release.

    A random number of runs, each with a candidate drawn at random, fitted on one half of the
    records and judged on the other; only the best run is released. The search is charged as a whole
    before it starts. It must be the first charge of its account: give it a data set name of its own
    otherwise.
    """
    wrap = searching(tries or (), **how)
    own = {"noise_column": noise_column}
    with progress(f"Searching {data_name(data)}", quiet=quiet, timed=False):
        show = fit_and_show(model, data, **asked, own=own, out=out, wrap=wrap)
    show(json, quiet)
