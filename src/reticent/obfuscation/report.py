"""Report of an obfuscated curve: one offline page, made from what is released.

Its seal says that the promise is not differential privacy.
"""

from pathlib import Path
from typing import Any

import numpy as np

import reticent
from reticent.files.output import new_text
from reticent.models.serialization import read
from reticent.obfuscation import plots
from reticent.obfuscation.statements import promise_in_words
from reticent.reporting.figures.style import raw_svg
from reticent.reporting.formatting import format_number
from reticent.reporting.page.page import render
from reticent.reporting.page.svg import inline

__all__ = ["certificate_rows", "write_curve_report"]


def write_curve_report(
    model: Any, out: Path, *, file: Path | None = None, overwrite: bool = False
) -> str:
    """Write the report of a fitted ``Obfuscator``.

    Give the SHA-256 of the ``file`` that it was loaded from, if it was.
    """
    certificate = model.certificate_
    digest = ""
    if file is not None:
        digest = read(file).digest
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
        certificate=certificate,
        promise=promise_in_words(model),
        drawings=drawings,
        rows=certificate_rows(model),
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
        about = (
            "Released values as dots, what a reader concludes as a line with a band, and the "
            "sensitive part shaded."
        )
        caption = (
            "Dots are the released values. The line and its band (two standard deviations) are "
            "what anybody can conclude from them. Shaded: the sensitive part."
        )
        found.append(("curve", plots.draw_released_curve, "The released curve", about, caption))
    if len(model.factor_) <= plots.MOST_SHOWN:
        about = (
            "The covariance of the added noise: large near the sensitive part, "
            "and correlated there."
        )
        caption = (
            "Covariance of the added noise between records: blue where it "
            "moves together, orange where apart."
        )
        found.append(("noise", plots.covariance, "The noise", about, caption))
    return found


def certificate_rows(model: Any) -> list[list[str]]:
    """Rows of the certificate's table: a label and a formatted number each."""
    certificate = model.certificate_
    where = f"{certificate.checked:,} points"
    attained = "attained there"
    if certificate.regions:
        attained += ", between checked points too"
        where += f" that fill {certificate.regions} region"
        if certificate.regions > 1:
            where += "s"
    rows = [
        [
            "promised variance (where it is nearest to broken)",
            format_number(certificate.promised, 6),
        ],
        [attained, format_number(certificate.attained, 6)],
        ["attained over promised, smallest", f"{certificate.ratio:.9f}"],
        ["smallest eigenvalue of a constraint", format_number(certificate.eigenvalue, 3)],
        ["checked", where],
        ["planned releases, which keep it together", str(model.releases)],
        ["trace of the noise covariance", format_number(certificate.trace, 7)],
        ["least trace that any such noise has", format_number(certificate.bound, 7)],
        ["gap", format_number(certificate.gap, 2)],
        ["directions with noise", str(certificate.rank)],
        ["white noise on all values, sd", format_number(float(np.sqrt(model.floor_)), 3)],
        ["grid of the released values", format_number(model.step_, 3)],
    ]
    if certificate.converged:
        rows.append(
            [
                "change by the last point of the dense subset",
                format_number(certificate.converged, 2),
            ]
        )
    return rows
