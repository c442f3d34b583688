"""The release report: one page that a person can hand over.

It opens offline, fetches nothing, and is made from releases only. The same model file gives the
same bytes. All text that comes from elsewhere (names of columns and of data sets) is escaped, and
the page's own policy lets no script run but the one that is part of reticent.
"""

import base64
import hashlib
import re
import tempfile
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reticent.files.output import new_text
from reticent.models.serialization import read
from reticent.reporting.attack_curve import FALSE_ALARMS, percent, recognised
from reticent.reporting.budget import budget
from reticent.reporting.figures.palette import COLOURS
from reticent.reporting.figures.style import raw_svg
from reticent.reporting.formatting import format_number, format_number_up, signature_statement
from reticent.reporting.page import sections
from reticent.reporting.page.svg import inline
from reticent.reporting.presenter import PAGE
from reticent.reporting.registry import presenter_of

if TYPE_CHECKING:
    from markupsafe import Markup
    from matplotlib.transforms import Bbox

    from reticent.models.base import PrivateEstimator
    from reticent.models.selection.private_search import PrivateSearch
    from reticent.privacy.accounting.guarantee import Guarantee
    from reticent.reporting.presenter import Json, Presenter, Section

__all__ = ["render", "write_report"]

_WIDTHS = {"wide": 7.2, "narrow": 3.6}  # inches; the page shows the one that there is room for


def write_report(
    model: "PrivateEstimator",
    out: Path,
    *,
    file: Path | None = None,
    ledger: str | None = None,
    dataset: str | None = None,
    expected: Mapping[str, float] | None = None,
    overwrite: bool = False,
) -> str:
    """Write the report of a fitted model to ``out``.

    Gives the SHA-256 of the model file that it names.

    ``file``: where the model was loaded from, if it was. ``ledger``: shows its account of
    ``dataset``, or, if that is not given, of the data set that the model was charged to.
    ``expected``: a row of a plan.
    """
    signer = getattr(model, "_signer", None)  # of the file that it was loaded from
    presenter = presenter_of(model)
    version, digest = _file(model, file)
    charged_to = model._params["dataset"]
    account = None
    if ledger is not None:
        account = budget(model.releases_, ledger, dataset or charged_to)
    parts = [
        _drawn_section(presenter, section, number)
        for number, section in enumerate(presenter.sections())
    ]
    search = None
    if presenter.source is not presenter.model:
        search = _drawn_search(presenter.source)
    page = render(
        "report.html",
        headline=sections.headline(presenter),
        words=sections.guarantee_words(presenter),
        documentation=sections.documentation(presenter),
        attack=_drawn_attack_curve(presenter.guarantee),
        budget=account,
        charged_to=charged_to,
        search=search,
        parts=parts,
        numbers=[part["numbers"] for part in parts if part["numbers"]],
        quality=presenter.quality(),
        notes=presenter.notes(PAGE),
        expected=expected,
        public=sections.public(presenter),
        reproduce={
            **sections.reproduction(presenter),
            "digest": digest,
            "written_by": version,
        },
        signed=signature_statement(signer),
    )
    with new_text(out, overwrite=overwrite) as text:
        text.write(page)
    return digest


def _file(model: "PrivateEstimator", file: Path | None) -> tuple[str, str]:
    """Give version and SHA-256 of the model's file, or of the one that ``save`` would write."""
    if file is not None:
        found = read(file)
        return found.header["version"], found.digest
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model.reticent")
        return _file(model, Path(folder) / "model.reticent")


def render(template: str, **parts: Any) -> str:
    """Fill a page in; all that comes from elsewhere is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("reticent.reporting.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        number=format_number,
        number_up=format_number_up,
        drawing=Markup,
        typeset=typeset,
        unbroken=unbroken,
    )
    style, script = (
        files("reticent.reporting.page").joinpath("templates", name).read_text("utf-8")
        for name in _FILES
    )
    seal = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = environment.get_template(template)
    return page.render(
        colours=COLOURS, style=Markup(style), script=Markup(script), script_hash=seal, **parts
    )


_FILES = ("report.css", "report.js")


def typeset(text: str) -> "Markup":
    """A sentence as print has it: 10⁻⁶ for 1e-06, and raised exponents."""
    from markupsafe import Markup, escape

    numbers = re.sub(r"\b\d[\d.]*e[-+]?\d+", lambda found: format_number(float(found[0]), 6), text)
    return Markup(re.sub(r"\be\^(\S+)", r"e<sup>\1</sup>", str(escape(numbers))))


def unbroken(text: str) -> str:
    """A sentence whose lines do not end between a number and its % or ±."""
    return re.sub(r"(?<=\d) (?=[%±])|(?<=±) (?=\d)", "\N{NO-BREAK SPACE}", text)


def _drawn_attack_curve(guarantee: "Guarantee") -> dict[str, str]:
    """Draw the attacker's curve, and say one point of it."""
    from reticent.reporting.figures.assessment.attack import attacker

    rates = (FALSE_ALARMS, 0.25, 0.5)
    said = [
        f"{percent(best)} at {percent(rate)}"
        for rate, best in zip(rates, recognised(guarantee, rates), strict=True)
    ]
    about = (
        "The most that an attacker recognises, for the false alarms that they "
        f"accept: {', '.join(said)}."
    )
    drawing = inline(raw_svg(attacker(guarantee)), "attacker", "The attacker’s curve", about)
    found = percent(float(recognised(guarantee, FALSE_ALARMS)))
    return {"drawing": drawing, "recognised": found, "false_alarms": percent(FALSE_ALARMS)}


def _drawn_search(search: "PrivateSearch") -> "Json":
    """Draw what a search chose from, wide and narrow, with words and numbers beside it."""
    from reticent.reporting.figures.assessment.search import search as draw_search
    from reticent.reporting.search_result import (
        search_description,
        search_sentences,
        search_table,
    )

    description = search_description(search)
    drawings = {
        name: inline(
            raw_svg(draw_search(search, width=width)), f"search-{name}", "The search", description
        )
        for name, width in _WIDTHS.items()
    }
    return {
        "words": search_sentences(search),
        "table": search_table(search),
        "drawings": drawings,
    }


def _drawn_section(presenter: "Presenter[Any]", section: "Section", number: int) -> "Json":
    """Draw a section, wide and narrow, and give it with the values under the pointer."""
    panels = len(section.readings)
    description = f"{section.description} The numbers are in the tables below."
    drawings = {}
    boxes = {}
    for name, width in _WIDTHS.items():
        figure = presenter.figure(width, number)
        drawings[name] = inline(raw_svg(figure), f"{name}-{number}", section.title, description)
        boxes[name] = [_corners(axes.get_position()) for axes in figure.axes[:panels]]
    numbers = None
    if panels:
        numbers = {
            "output": section.output,
            "classes": presenter.class_names() or None,
            "panels": section.readings,
            "boxes": boxes,
        }
    return {"section": section, "drawings": drawings, "numbers": numbers, "number": number}


def _corners(box: "Bbox") -> list[float]:
    """Left, top, right and bottom of a panel, as fractions of the figure, from its top left."""
    return [round(value, 4) for value in (box.x0, 1 - box.y1, box.x1, 1 - box.y0)]
