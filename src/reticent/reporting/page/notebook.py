"""A fitted model in a notebook: a fragment of HTML that needs nothing from elsewhere.

It is made from releases only, as the report is. Its styles are about its own element, and its
colours follow the notebook's theme, light or dark.
"""

import hashlib
from typing import TYPE_CHECKING, Any

from reticent.reporting.figures.palette import COLOURS
from reticent.reporting.figures.style import raw_svg
from reticent.reporting.page.page import render
from reticent.reporting.page.sections import headline
from reticent.reporting.page.svg import inline
from reticent.reporting.presenter import NOTEBOOK
from reticent.reporting.registry import has_presenter, presenter_of
from reticent.reporting.search_result import search_sentences, search_table

if TYPE_CHECKING:
    from reticent.models.base import PrivateEstimator
    from reticent.reporting.presenter import Presenter

__all__ = ["notebook_fragment"]

_WIDTH = 7.2  # inches
_ROLES = ("paper", "ink", "muted", "rule", "kept", "broken")  # colours that the template names


def notebook_fragment(model: "PrivateEstimator") -> str | None:
    """Give what a notebook shows of a fitted model; None if nothing presents such models."""
    if not has_presenter(model):
        return None
    presenter = presenter_of(model)
    drawings = _drawings(presenter)
    search = None
    if presenter.source is not presenter.model:
        search = {
            "table": search_table(presenter.source),
            "sentences": search_sentences(presenter.source),
        }
    drawn = "".join(drawings)
    return render(
        "notebook.html",
        headline=headline(presenter),
        statement=presenter.statement,
        notes=presenter.notes(NOTEBOOK),
        search=search,
        blocks=presenter.summary(NOTEBOOK),
        drawings=drawings,
        remarks=[presenter.clipping, presenter.uncertainty, *presenter.remarks(NOTEBOOK)],
        roles=[name for name in COLOURS if name in _ROLES or f"var(--{name})" in drawn],
    )


def _drawings(presenter: "Presenter[Any]") -> list[str]:
    """Draw each section as an ``svg`` element.

    Its ids come from what is drawn: a notebook may show many models, and the same one twice.
    """
    drawings = []
    for number, section in enumerate(presenter.sections()):
        document = raw_svg(presenter.figure(_WIDTH, number))
        digest = hashlib.sha256(document.encode()).hexdigest()
        name = f"reticent-{digest[:12]}-{number}"
        drawings.append(inline(document, name, section.title, section.description))
    return drawings
