"""Pictures of the documentation, drawn by the pages' own snippets while the site is built.

A page that has a line ``<!-- picture: NAME | what is to be seen -->`` saves ``NAME.svg`` in one of
its snippets. Before the site is built, all snippets of the page are run, and have to give what the
page says they give; the drawing is kept twice, for light and for dark paper, and the line becomes
the drawing. Whoever reads the file as it is sees no broken picture.
"""

import doctest
import itertools
import os
import re
import tempfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from unittest import mock

from reticent.reporting.figures.palette import COLOURS

__all__ = ["draw", "placed"]

_MARK = re.compile(r"<!-- picture: ([\w-]+) \| (.+?) -->", re.DOTALL)
_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
_DARK = dict(COLOURS.values())
_COLOUR = re.compile("|".join(_DARK))
_IMAGE = """```{{image}} /docs/drawn/{name}-{paper}.svg
:alt: {alt}
:class: only-{paper} drawn
```"""


def placed(page: str) -> str:
    """Give the page with its marks replaced by the drawings."""
    return _MARK.sub(
        lambda mark: "\n\n".join(_image(mark, paper) for paper in ("light", "dark")), page
    )


def _image(mark: re.Match[str], paper: str) -> str:
    return _IMAGE.format(name=mark[1], paper=paper, alt=" ".join(mark[2].split()))


def draw(folder: Path) -> None:
    """Draw what the pages in ``folder`` ask for, if a page is newer than its drawings."""
    (folder / "drawn").mkdir(exist_ok=True)
    for page in sorted(folder.glob("*.md")):
        names = [mark[1] for mark in _MARK.finditer(page.read_text())]
        there = [folder / "drawn" / f"{name}-dark.svg" for name in names]
        if any(not one.exists() or one.stat().st_mtime < page.stat().st_mtime for one in there):
            _run(page, names, folder / "drawn")


def _run(page: Path, names: list[str], drawn: Path) -> None:
    test = doctest.DocTestParser().get_doctest(page.read_text(), {}, page.name, str(page), 0)
    home = Path.cwd()
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        try:
            # the same noise each time: a site that is built from one text looks one
            # way, and never fails by chance
            with mock.patch("os.urandom", _keys(page.name, os.urandom)):
                failed, _ = doctest.DocTestRunner(optionflags=_FLAGS).run(test)
        finally:
            os.chdir(home)
        if failed:
            raise RuntimeError(f"{page}: {failed} of its snippets do not give what the page says")
        for name in names:
            light = (Path(place) / f"{name}.svg").read_text().replace("fill: #ffffff", "fill: none")
            (drawn / f"{name}-light.svg").write_text(light)
            (drawn / f"{name}-dark.svg").write_text(_darkened(light))


def _keys(page: str, true: Callable[[int], bytes]) -> Callable[[int], bytes]:
    """What stands in for the system's random numbers.

    Keys of noise (32 bytes) by page and number, else true ones.
    """
    count = itertools.count()
    return lambda size: (
        sha256(f"{page} {next(count)}".encode()).digest() if size == 32 else true(size)
    )


def _darkened(light: str) -> str:
    """Exchange the library's colours; and black, which is what has no colour of its own."""
    ink = COLOURS["ink"][1]
    return (
        _COLOUR.sub(lambda match: _DARK[match[0]], light)
        .replace("#000000", ink)
        .replace("<svg ", f'<svg fill="{ink}" ', 1)
    )
