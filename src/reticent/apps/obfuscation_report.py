"""The report of an obfuscated curve: one page, offline, made from what is released, with a seal that says that it is not DP."""

from pathlib import Path
from typing import Any

import numpy as np

import reticent
from reticent.apps import obfuscation_plots as plots
from reticent.apps.canvas import raw_svg
from reticent.apps.figures import figure
from reticent.apps.outfile import new_text
from reticent.apps.report import render
from reticent.apps.svg import inline
from reticent.models.storage import read

__all__ = ["promise_in_words", "write"]

_WORDS = {
    "weak": "each sensitive value by itself",
    "strong": "every linear combination of the sensitive values",
    "kernel": "every linear combination of the sensitive values",
    "uniform": "every input",
    "diagonal": "each sensitive value by itself, with independent noise",
}


def promise_in_words(model: Any) -> str:
    """Say what is promised, and where."""
    one = model.certificate_
    what = (
        f"{figure(100 * model.share, 3)} % of the prior variance"
        if model.share
        else f"a variance of {figure(one.promised)}"
    )
    together = f", by {model.releases} releases together" if model.releases > 1 else ""
    return f"{what} for {_WORDS[one.solution]}{together}"


def write(model: Any, out: Path, *, file: Path | None = None, overwrite: bool = False) -> str:
    """Write the report of a fitted ``Obfuscator``; give the SHA-256 of the ``file`` that it was loaded from, if it was."""
    one = model.certificate_
    digest = "" if file is None else read(file).digest
    names = (", ".join(model.names_[:-1]), model.names_[-1])
    drawings = [
        {
            "wide": inline(raw_svg(draw(model, names, 7.2)), f"{name}-wide", title, about),
            "narrow": inline(raw_svg(draw(model, names, 3.6)), f"{name}-narrow", title, about),
            "caption": caption,
        }
        for name, draw, title, about, caption in _drawings(model)
    ]
    page = render(
        "obfuscation.html",
        model=model,
        names=names,
        certificate=one,
        promise=promise_in_words(model),
        drawings=drawings,
        rows=_rows(model),
        sd=float(np.sqrt(np.maximum((model.factor_**2).sum(axis=1) + model.floor_, 0)).max()),
        version=reticent.__version__,
        digest=digest,
    )
    with new_text(out, overwrite=overwrite) as text:
        text.write(page)
    return digest


def _drawings(model: Any) -> list[tuple[str, Any, str, str, str]]:
    found = []
    if model.n_features_in_ == 1:
        about = "Released values as dots, what a reader concludes as a line with a band, and the sensitive part shaded."
        caption = (
            "Dots are the released values. The line and its band (two standard deviations) are what anybody can conclude from "
            "them. Shaded: the sensitive part."
        )
        found.append(("curve", plots.curve, "The released curve", about, caption))
    if len(model.factor_) <= plots.MOST_SHOWN:
        about = "The covariance of the added noise: large near the sensitive part, and correlated there."
        caption = "Covariance of the added noise between records: blue where it moves together, orange where apart."
        found.append(("noise", plots.covariance, "The noise", about, caption))
    return found


def _rows(model: Any) -> list[list[str]]:
    one = model.certificate_
    where = f"{one.checked:,} points" + (
        f" that fill {one.regions} region{'s' if one.regions > 1 else ''}" if one.regions else ""
    )
    rows = [
        ["promised variance (where it is nearest to broken)", figure(one.promised, 6)],
        ["attained there" + (", between checked points too" if one.regions else ""), figure(one.attained, 6)],
        ["attained over promised, smallest", f"{one.ratio:.9f}"],
        ["smallest eigenvalue of a constraint", figure(one.eigenvalue, 3)],
        ["checked", where],
        ["planned releases, which keep it together", str(model.releases)],
        ["trace of the noise covariance", figure(one.trace, 7)],
        ["least trace that any such noise has", figure(one.bound, 7)],
        ["gap", figure(one.gap, 2)],
        ["directions with noise", str(one.rank)],
        ["white noise on all values, sd", figure(float(np.sqrt(model.floor_)), 3)],
        ["grid of the released values", figure(model.step_, 3)],
    ]
    if one.converged:
        rows.append(["change by the last point of the dense subset", figure(one.converged, 2)])
    return rows
