"""Numbers in reports, files and printed text, without the words around them."""

import contextlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np

NUMBER = re.compile(r"[-−+]?(?:\d+(?:,\d{3})*(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?|[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+")
# versions, days, times, users, checksums: not the same in every run, or made from words
PASSING = re.compile(
    r"\d+\.\d+\.\d+(?:\.\w+)?"
    r"|\d{4}-\d\d-\d\d"
    r"|\d\d:\d\d(?::\d\d)?"
    r"|\S+@\S+"
    r"|\b(?=\d*[a-f])(?=[a-f]*\d)[0-9a-f]{8,}\b"
)
DRAWN = ("d", "points", "x", "y", "width", "height", "transform", "r", "cx", "cy", "viewbox")
LAID_OUT = "boxes"  # where axes lie in a figure, which depends on the width of words


def numbers(text: str) -> list[str]:
    """All numbers of a text, in order."""
    return NUMBER.findall(PASSING.sub(" ", text))


class Page(HTMLParser):
    """Numbers of a report: in prose, in tables, in figures and in the data of figures."""

    def __init__(self) -> None:
        super().__init__()
        self.inside: list[str] = []
        self.prose: list[str] = []
        self.tables: list[str] = []
        self.labels: list[str] = []
        self.drawn: list[str] = []
        self.data: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember where we are; take what is drawn."""
        if tag in ("svg", "table", "style", "script", "title", "desc", "text"):
            self.inside.append(tag)
        if "svg" in self.inside:
            self.drawn += [value for name, value in attrs if name in DRAWN and value]

    def handle_endtag(self, tag: str) -> None:
        """Forget where we were."""
        if self.inside and self.inside[-1] == tag:
            self.inside.pop()

    def handle_data(self, data: str) -> None:
        """Sort text by where it stands."""
        where = self.inside
        if "style" in where:
            return
        if "script" in where:
            if data.lstrip().startswith(("[", "{")):
                self.data.append(data)
        elif "svg" in where:
            self.labels += numbers(data)
        else:
            (self.tables if "table" in where else self.prose).extend(numbers(data))


def page_parts(path: str | Path) -> dict[str, Any]:
    """What a report says in numbers.

    The paths of figures are a part of their own: they move if a word beside them is longer.
    """
    page = Page()
    page.feed(Path(path).read_text())
    data = []
    for text in page.data:
        with contextlib.suppress(json.JSONDecodeError):  # a program, not data
            data.append(nameless(json.loads(text, object_hook=_without_layout), words=False))
    return {
        "report, prose": page.prose,
        "report, tables": page.tables,
        "report, labels of figures": page.labels,
        "report, points in each path": [len(NUMBER.findall(path)) for path in page.drawn],
        "report, paths": page.drawn,
        "report, data of figures": data,
    }


def _without_layout(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name != LAID_OUT}


def nameless(value: Any, *, words: bool) -> Any:
    """JSON values as text, with the values of a dictionary in an order that names have no part in.

    Without ``words`` strings are left out, too.
    """
    if isinstance(value, dict):
        kept = (part for part in value.values() if words or not isinstance(part, str))
        return "{" + ", ".join(sorted(nameless(part, words=words) for part in kept)) + "}"
    if isinstance(value, (list, tuple)):
        kept = (part for part in value if words or not isinstance(part, str))
        return "[" + ", ".join(nameless(part, words=words) for part in kept) + "]"
    return json.dumps(value)


def file_parts(path: str | Path) -> dict[str, Any]:
    """What is in a model file: arrays, parameters, and the numbers that describe its releases."""
    from safetensors.numpy import load

    body = Path(path).read_bytes().partition(b"\n")[2]
    size = int.from_bytes(body[:8], "little")
    (header,) = json.loads(body[8 : 8 + size])["__metadata__"].values()
    fields = json.loads(header)
    about = [
        nameless(fields[name], words=False) for name in ("releases", "release") if name in fields
    ]
    return {
        "file, arrays": {name: np.asarray(array) for name, array in sorted(load(body).items())},
        "file, parameters": nameless(fields["params"], words=True),
        "file, about releases": about,
    }
