"""The release report: one page that a person can hand over. It opens offline, fetches nothing, and is made from releases only.

The same model file gives the same bytes. All text that comes from elsewhere (names of columns and of data sets) is escaped, and
the page's own policy lets no script run but the one that is part of reticent.
"""

import base64
import hashlib
import re
import tempfile
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from reticent.apps import plots, report_facts
from reticent.apps.attacker import FALSE_ALARMS, percent, recognised
from reticent.apps.canvas import raw_svg
from reticent.apps.chances import class_names
from reticent.apps.colours import COLOURS
from reticent.apps.curve_files import signed
from reticent.apps.figures import figure, figure_up
from reticent.apps.outfile import new_text
from reticent.apps.outputs import output_name, outputs
from reticent.apps.report_budget import budget
from reticent.apps.report_classes import class_panels, class_readings
from reticent.apps.results import model_of
from reticent.apps.search_plot import search as plot_search
from reticent.apps.searched import seen
from reticent.apps.slices import BAND, Grid, Line, grid, lines
from reticent.apps.svg import inline
from reticent.models.storage import read

__all__ = ["render", "write"]

_WIDTHS = {"wide": 7.2, "narrow": 3.6}  # inches; the page shows the one that there is room for


def write(
    model: Any,
    out: Path,
    *,
    file: Path | None = None,
    ledger: str | None = None,
    dataset: str | None = None,
    expected: Mapping[str, float] | None = None,
    overwrite: bool = False,
) -> str:
    """Write the report of a fitted model to ``out``; give the SHA-256 of the model file that it names.

    ``file``: where the model was loaded from, if it was. ``ledger``: shows its account of ``dataset``, or, if that is not
    given, of the data set that the model was charged to. ``expected``: a row of a plan.
    """
    signer = getattr(model, "_signer", None)  # of the file that it was loaded from
    model = seen(model)
    header, digest = _file(model, file)
    account = None if ledger is None else budget(model, ledger, dataset)
    parts = [_part(one, number) for number, one in enumerate(outputs(model))]
    page = render(
        "report.html",
        headline=report_facts.headline(model),
        words=report_facts.words(model),
        attack=_attack(model.guarantee_),
        budget=account,
        charged_to=model._params["dataset"],
        search=_search(model.search) if hasattr(model, "search") else None,
        parts=parts,
        numbers=[part["numbers"] for part in parts if part["numbers"]],
        quality=report_facts.quality(model),
        expected=expected,
        public=report_facts.public(model),
        reproduce={**report_facts.reproduce(model), "digest": digest, "written_by": header["version"]},
        signed=signed(signer),
    )
    with new_text(out, overwrite=overwrite) as text:
        text.write(page)
    return digest


def _file(model: Any, file: Path | None) -> tuple[dict[str, Any], str]:
    """Give the header and the SHA-256 of the model's file, or of the one that ``save`` would write."""
    if file is not None:
        found = read(file)
        return found.header, found.digest
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model.reticent")
        return _file(model, Path(folder) / "model.reticent")


def render(template: str, **parts: Any) -> str:
    """Fill a page in; all that comes from elsewhere is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("reticent.apps"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(figure=figure, figure_up=figure_up, drawing=Markup, typeset=_typeset, unbroken=_unbroken)
    style, script = (files("reticent.apps").joinpath("templates", name).read_text("utf-8") for name in _FILES)
    seal = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = environment.get_template(template)
    return page.render(colours=COLOURS, style=Markup(style), script=Markup(script), script_hash=seal, **parts)


_FILES = ("report.css", "report.js")


def _typeset(text: str) -> Any:
    """A sentence as print has it: 10⁻⁶ for 1e-06, and raised exponents."""
    from markupsafe import Markup, escape

    numbers = re.sub(r"\b\d[\d.]*e[-+]?\d+", lambda found: figure(float(found[0]), 6), text)
    return Markup(re.sub(r"\be\^(\S+)", r"e<sup>\1</sup>", str(escape(numbers))))


def _unbroken(text: str) -> str:
    """A sentence whose lines do not end between a number and its %."""
    return re.sub(r"(?<=\d) %", "\N{NO-BREAK SPACE}%", text)


def _attack(promise: Any) -> dict[str, str]:
    """Draw the attacker's curve, and say one point of it."""
    rates = (FALSE_ALARMS, 0.25, 0.5)
    said = [f"{percent(best)} at {percent(rate)}" for rate, best in zip(rates, recognised(promise, rates), strict=True)]
    about = f"The most that an attacker recognises, for the false alarms that they accept: {', '.join(said)}."
    drawing = inline(raw_svg(plots.attacker(promise)), "attacker", "The attacker’s curve", about)
    found = percent(float(recognised(promise, FALSE_ALARMS)))
    return {"drawing": drawing, "recognised": found, "false_alarms": percent(FALSE_ALARMS)}


def _search(search: Any) -> dict[str, Any]:
    """Draw what a search chose from, for wide and for narrow pages, with words and numbers to read beside it."""
    told = report_facts.searched(search)
    drawings = {
        name: inline(raw_svg(plot_search(search, width=width)), f"search-{name}", "The search", told["described"])
        for name, width in _WIDTHS.items()
    }
    return {**told, "drawings": drawings}


def _part(model: Any, number: int) -> dict[str, Any]:
    """Draw a model, or one of its outputs, for wide and for narrow pages, with words and numbers to read beside it."""
    panels: list[Any] = []
    classes = class_names(model) if model_of(model).labels else None
    if classes is not None:
        panels = class_panels(model)
    elif model_of(model).outputs:
        panels = [grid(model)] * 2 if model.n_features_in_ == 2 else []
        panels += lines(model)
    drawings, boxes = {}, {}
    title, about = report_facts.title(model), report_facts.described(model)
    for name, width in _WIDTHS.items():
        drawn = plots.release(model, width=width)
        drawings[name] = inline(raw_svg(drawn), f"{name}-{number}", title, about)
        places = [axes.get_position() for axes in drawn.axes[: len(panels)]]
        boxes[name] = [[round(v, 4) for v in (one.x0, 1 - one.y1, one.x1, 1 - one.y0)] for one in places]
    read = _numbers if classes is None else class_readings
    numbers: dict[str, Any] | None = None
    if panels:
        told = {"output": output_name(model), "classes": classes}
        numbers = {**told, "panels": [read(one) for one in panels], "boxes": boxes}
    return {"results": report_facts.results(model), "drawings": drawings, "numbers": numbers, "number": number}


def _numbers(panel: Line | Grid) -> dict[str, Any]:
    """Give what a reader is told at each point: the mean, and the half-widths of the 95 % bands of mean and output."""
    where: dict[str, Any]
    if isinstance(panel, Line):
        where, places = {"names": [panel.name], "ends": [panel.ends], "inset": panel.inset}, [panel.at]
    else:
        where, places = {"names": panel.names, "ends": panel.ends}, [panel.x, panel.y]
    values = {"mean": panel.mean, "known": BAND * panel.sds["privacy"]}
    if "noise" in panel.sds:
        values["spread"] = BAND * panel.sds["noise"]
    said = {name: _rounded(value.ravel()) for name, value in values.items()}
    return {**where, "at": [_rounded(one) for one in places], **said}


def _rounded(values: Any) -> list[float]:
    return [float(f"{value:.4g}") for value in values]
