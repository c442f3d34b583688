"""Views of a fitted model and its file, for ``reticent fit`` and ``reticent inspect``.

A model holds releases and public numbers, so all of it may be shown.
"""

from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from reticent.about import ABOUT, checked_about
from reticent.cli.captured_warnings import captured_warnings
from reticent.cli.encoding import spelled
from reticent.cli.terminal import advise, aside, indented, ledger_word, line, table
from reticent.cli.views.curve import print_curve, print_seal
from reticent.cli.views.results import render_blocks, render_table
from reticent.errors import LedgerError
from reticent.files.output import page_of
from reticent.models.serialization import load, read
from reticent.obfuscation.files import describe_curve, is_curve
from reticent.privacy.ledger.ledger import Ledger
from reticent.reporting.attack_curve import composed_mu
from reticent.reporting.budget import COMPOSITION_NOTE, is_used_up, spendable
from reticent.reporting.columns import output_names, public_columns
from reticent.reporting.formatting import format_short, format_short_up
from reticent.reporting.presenter import SCREEN
from reticent.reporting.protected_unit import (
    assumed_unit,
    number_and_noun,
    protected_words,
    strength_warning,
    weighting_words,
)
from reticent.reporting.registry import presenter_of
from reticent.reporting.release_table import release_groups
from reticent.reporting.search_result import search_results, search_sentences, search_table

if TYPE_CHECKING:
    from rich.text import Text

    from reticent.reporting.presenter import Presenter

__all__ = ["describe", "print_fit", "print_model"]


def describe(path: Path) -> tuple[Any, dict[str, Any]]:
    """Load a model file: the model, and everything about it as plain values."""
    file = read(path)
    with captured_warnings() as notes:
        model = load(path)
    if is_curve(model):
        return model, describe_curve(model, path, file)
    guarantee = model.guarantee_
    presenter = presenter_of(model)
    return model, {
        "file": str(path),
        "sha256": file.digest,
        "signed_by": file.signer,
        "model": file.header["model"],
        "reticent": file.header["version"],
        "private": guarantee.private,
        "guarantee": {
            "epsilon": guarantee.epsilon,
            "delta": guarantee.delta,
            "epsilon_asked": model.epsilon,
            "relation": guarantee.relation,
            "records_per_person": guarantee.records_per_person,
            "person": guarantee.person,
            "neighbours": guarantee.neighbours,
            "units": guarantee.units,
            "contribution": model.releases_[0].contribution,
            "weight": model.releases_[0].weight,
            "weight_bound": model.releases_[0].weight_bound,
            "protects": protected_words(guarantee, model.releases_),
            "assumed": assumed_unit(guarantee, model),
            "mu": composed_mu(guarantee),
            "mechanisms": [event.to_dict() for event in guarantee.events],
            "warning": strength_warning(guarantee) or None,
            "statement": guarantee.statement,
        },
        "about": checked_about(model._params.get("about")),
        "releases": [
            {
                "statistic": one.statistic,
                "size": len(one.value),
                "n": one.n,
                "event": one.event.to_dict(),
                "noise_sd": [float(one.sd.min()), float(one.sd.max())],
                "bounds": one.bounds.to_dict(),
                "entry": one.entry,
            }
            for one in file.releases
        ],
        "results": presenter.results() | _search_values(presenter),
        "notes": [*notes, *presenter.notes()],
    }


def _search_values(presenter: "Presenter[Any]") -> dict[str, Any]:
    if presenter.source is presenter.model:
        return {}
    return {"search": search_results(presenter.source)}


def _heading(model: Any) -> "Text":
    """Give the first line.

    What it is, of how many records, and the seal that says whether the promise holds.
    """
    from rich.text import Text

    private = model.guarantee_.private
    if private:
        seal = (" PRIVATE ", "bold white on green4")
    else:
        seal = (" NOT PRIVATE ", "bold white on red3")
    return Text.assemble(
        (type(model).__name__, "bold"), f", {number_and_noun(model.releases_)}   ", seal, "\n"
    )


def _print_results(console: Any, presenter: "Presenter[Any]", notes: Sequence[str]) -> None:
    console.print(_heading(presenter.source))
    if presenter.source is not presenter.model:
        console.print(indented(render_table(search_table(presenter.source))))
        console.print()
        for sentence in search_sentences(presenter.source):
            aside(sentence)
        console.print()
    console.print(indented(render_blocks(presenter.summary())))
    console.print()
    counted = weighting_words(presenter.releases[0].unit)
    aside(
        " ".join([presenter.clipping, presenter.uncertainty, *counted, *presenter.remarks(SCREEN)])
    )
    for note in notes:
        console.print()
        console.print(indented(spelled(f"Note: {note}")))
    console.print()


def print_fit(
    console: Any,
    model: Any,
    notes: Sequence[str],
    *,
    ledger: str | None,
    dataset: str | None,
    out: Path,
    read: str = "",
) -> None:
    """Show what a fit gave, what it cost and, in words, how the file was read."""
    presenter = presenter_of(model)
    promise = presenter.guarantee
    _print_results(console, presenter, [*notes, *presenter.notes()])
    unprotected = ""
    if promise.relation == "label":
        unprotected = " (inputs are NOT protected)"
    line(
        "Promise",
        f"ε={format_short_up(promise.epsilon)}, δ={format_short_up(promise.delta)}, "
        f"protects {protected_words(promise, presenter.releases)}{unprotected}",
    )
    if promise.records_per_person > 1:
        aside(assumed_unit(promise, presenter.source)[0], margin=12)
    weak = strength_warning(promise)
    if weak:
        line("Warning", weak)
    if ledger is not None and dataset is not None:
        _print_account(ledger, dataset)
    else:
        line("Ledger", "none, so nothing remembers this: see reticent ledger open --help")
    if read:
        first, _, rest = read.partition(": ")
        line("Read", first)
        aside(rest[0].upper() + rest[1:], margin=12)
    line("Written", str(out))
    able = presenter.predicts or presenter.transforms
    file = quote(str(out))
    if able:
        predict = [f"reticent predict {file} new.csv --out predictions.csv"]
    else:
        predict = []
    if hasattr(presenter.model, "sample"):
        sample = [f"reticent sample {file} -n 1000 --out synthetic.csv"]
    else:
        sample = []
    if ledger is None:
        charged = ""
    else:
        charged = f" --ledger {ledger_word(ledger)}"
    advise(
        f"reticent inspect {file}",
        f"reticent report {file} --out {quote(str(page_of(out)))}{charged}",
        *predict,
        *sample,
    )


def _print_account(ledger: str, dataset: str) -> None:
    """Show the account after a charge.

    The model is written, so a ledger that cannot be asked any more is no failure.
    """
    account = Ledger(ledger)
    try:
        spent = account.spent(dataset)
        left = account.remaining(dataset)
        cap = account.account(dataset)
    except LedgerError:
        line(
            "Ledger", f'"{dataset}": charged. It cannot be asked now: reticent ledger show says why'
        )
        return
    more = (
        f"left ε={format_short(spendable(left))} for one more release with "
        f"δ={format_short_up(cap.delta)}"
    )
    if is_used_up(left, cap.epsilon):
        more = "which uses the budget up"
    line("Ledger", f'"{dataset}": spent ε={format_short_up(spent)}, {more}')
    if cap.delta:
        aside(COMPOSITION_NOTE, margin=12)


def print_model(console: Any, model: Any, about: dict[str, Any]) -> None:
    """Show a model file to a person."""
    from rich.text import Text

    if is_curve(model):
        return print_curve(model, about)
    first = about["releases"][0]
    presenter = presenter_of(model)
    _print_results(console, presenter, about["notes"])
    columns = public_columns(presenter.model)
    heads = ["column", "values", "stands for missing"][: len(columns[0])]
    console.print(Text("Bounds", "bold"), "(public, not taken from the data)")
    console.print(indented(table(*heads, left=len(heads), rows=columns)))
    if classes := presenter.class_names():
        (output,) = output_names(presenter.model)
        console.print(indented(f"{output} (classes)  {', '.join(classes)}"))
    if first["bounds"]["norm"] is not None:
        console.print(
            f"  at most {format_short(first['bounds']['norm'])} from the middle of the box"
        )

    console.print(Text("\nReleases", "bold"), "(all that was learned from the records)")
    releases = table("statistic", "numbers", "law of the noise", "noise sd", left=1)
    found = release_groups(model.releases_)
    for one in found:
        low = format_short(one.least_sd)
        high = format_short(one.most_sd)
        noise = low
        if low != high:
            noise = f"{low} – {high}"
        releases.add_row(one.short, one.numbers, one.kind, noise)
    console.print(indented(releases))
    for one in found:
        if one.about and one.about != one.short:
            aside(f"{one.title}.")

    console.print(Text("\nGuarantee", "bold"))
    guarantee = about["guarantee"]
    console.print(indented(guarantee["statement"]), "", sep="\n")
    console.print(indented(f"Protects {guarantee['protects']}."))
    console.print(indented(spelled(f"Assumed: {' '.join(guarantee['assumed'])}")))
    if guarantee["warning"]:
        console.print(indented(f"Warning: {guarantee['warning']}"))
    console.print()
    if about["about"]:
        console.print(Text("About this release", "bold"))
        for key, text in about["about"].items():
            console.print(indented(spelled(f"{ABOUT[key]}: {text}")))
        console.print()
    print_seal(about)
    return None
