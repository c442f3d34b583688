"""What is in a fitted model and in its file, shown to a person by ``reticent fit`` and ``reticent inspect``.

A model holds releases and public numbers, so all of it may be shown.
"""

from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from reticent.apps.accounts import spendable
from reticent.apps.chances import class_names
from reticent.apps.curve_files import describe_curve, is_curve, print_curve, print_seal
from reticent.apps.letters import spelled
from reticent.apps.notes import COMPOSED, heard
from reticent.apps.outfile import page_of
from reticent.apps.outputs import output_names, public_ranges
from reticent.apps.release_groups import groups
from reticent.apps.results import model_of
from reticent.apps.searched import search_numbers, search_table, search_words, seen
from reticent.apps.terminal import advise, aside, compact, compact_up, indented, ledger_word, line, table
from reticent.errors import LedgerError
from reticent.models.storage import load, read
from reticent.privacy.ledger import Ledger

if TYPE_CHECKING:
    from rich.text import Text

__all__ = ["describe", "print_fit", "print_model"]


def describe(path: Path) -> tuple[Any, dict[str, Any]]:
    """Load a model file: the model, and everything about it as plain values."""
    file = read(path)
    with heard() as notes:
        model = seen(load(path))
    if is_curve(model):
        return model, describe_curve(model, path, file)
    guarantee = model.guarantee_
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
            "statement": guarantee.statement,
        },
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
        "results": model_of(model).numbers(model) | _search(model),
        "notes": [*notes, *model_of(model).notes(model)],
    }


def _search(model: Any) -> dict[str, Any]:
    return {"search": search_numbers(model.search)} if hasattr(model, "search") else {}


def _heading(model: Any) -> "Text":
    """Give the first line: what it is, of how many records, and the seal that says whether the promise holds."""
    from rich.text import Text

    private = model.guarantee_.private
    seal = (" PRIVATE ", "bold white on green4") if private else (" NOT PRIVATE ", "bold white on red3")
    return Text.assemble((type(model).__name__, "bold"), f", {model.releases_[0].n:,} records   ", seal, "\n")


def _print_results(console: Any, model: Any, notes: Sequence[str]) -> None:
    console.print(_heading(model))
    if hasattr(model, "search"):
        console.print(indented(search_table(model.search)))
        console.print()
        for words in search_words(model.search):
            aside(words)
        console.print()
    console.print(indented(model_of(model).show(model)))
    console.print()
    shown = model_of(model)
    aside(" ".join([shown.filled, shown.covers, *shown.remarks(model)]))
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
    model = seen(model)
    promise = model.guarantee_
    _print_results(console, model, [*notes, *model_of(model).notes(model)])
    whom = f"one {promise.relation}{' (inputs are NOT protected)' if promise.relation == 'label' else ''}"
    if promise.records_per_person > 1:
        whom = f"one person with up to {promise.records_per_person} records"
    line("Promise", f"ε={compact_up(promise.epsilon)}, δ={compact_up(promise.delta)}, protects {whom}")
    if ledger is not None and dataset is not None:
        _print_account(ledger, dataset)
    else:
        line("Ledger", "none, so nothing remembers this: see reticent ledger open --help")
    if read:
        first, _, rest = read.partition(": ")
        line("Read", first)
        aside(rest[0].upper() + rest[1:], margin=12)
    line("Written", str(out))
    able = model_of(model).outputs or model_of(model).places
    file = quote(str(out))
    predict = [f"reticent predict {file} new.csv --out predictions.csv"] if able else []
    sample = [f"reticent sample {file} -n 1000 --out synthetic.csv"] if hasattr(model, "sample") else []
    charged = "" if ledger is None else f" --ledger {ledger_word(ledger)}"
    advise(
        f"reticent inspect {file}",
        f"reticent report {file} --out {quote(str(page_of(out)))}{charged}",
        *predict,
        *sample,
    )


def _print_account(ledger: str, dataset: str) -> None:
    """Show the account after a charge; the model is written, so a ledger that cannot be asked any more is no failure."""
    account = Ledger(ledger)
    try:
        spent, left = account.spent(dataset), account.remaining(dataset)
        delta = account.account(dataset).delta
    except LedgerError:
        line("Ledger", f'"{dataset}": charged. It cannot be asked now: reticent ledger show says why')
        return
    more = f"left ε={compact(spendable(left))} for one more release with δ={compact_up(delta)}"
    line("Ledger", f'"{dataset}": spent ε={compact_up(spent)}, {more}')
    if delta:
        aside(COMPOSED, margin=12)


def print_model(console: Any, model: Any, about: dict[str, Any]) -> None:
    """Show a model file to a person."""
    from rich.text import Text

    if is_curve(model):
        return print_curve(model, about)
    first = about["releases"][0]
    _print_results(console, model, about["notes"])
    ranges = [(name, compact(low), compact(high)) for name, low, high in public_ranges(model)]
    console.print(Text("Bounds", "bold"), "(public, not taken from the data)")
    console.print(indented(table("column", "low", "high", rows=ranges)))
    if model.releases_[0].bounds.classes is not None:
        console.print(indented(f"{output_names(model)[0]} (classes)  {', '.join(class_names(model))}"))
    if first["bounds"]["norm"] is not None:
        console.print(f"  at most {compact(first['bounds']['norm'])} from the middle of the box")

    console.print(Text("\nReleases", "bold"), "(all that was learned from the records)")
    releases = table("statistic", "numbers", "law of the noise", "noise sd", left=1)
    found = groups(model.releases_)
    for one in found:
        low, high = compact(one.least_sd), compact(one.most_sd)
        releases.add_row(one.name, one.numbers, one.kind, low if low == high else f"{low} – {high}")
    console.print(indented(releases))
    for one in found:
        if one.about:
            aside(f"{one.title}.")

    console.print(Text("\nGuarantee", "bold"))
    console.print(indented(about["guarantee"]["statement"]), "", sep="\n")
    print_seal(about)
    return None
