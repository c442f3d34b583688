"""Files of obfuscated curves: ``reticent inspect`` and ``reticent predict``, for what `Obfuscator.save` wrote."""

from pathlib import Path
from typing import Any

from reticent.apps.outfile import new_text
from reticent.apps.tables import TableWriter
from reticent.apps.terminal import BadFile, aside, compact, console, indented, line
from reticent.errors import ReticentError
from reticent.models.obfuscator import Obfuscator
from reticent.models.storage import ModelFile
from reticent.privacy.sources import Field, scan

__all__ = [
    "describe_curve",
    "is_curve",
    "predict_curve",
    "print_curve",
    "print_promise",
    "print_seal",
    "read_columns",
    "signed",
    "told",
]


NOT_SIGNED = "no: nothing proves who wrote this file"


def is_curve(model: Any) -> bool:
    """Whether a loaded model is an obfuscated curve."""
    return isinstance(model, Obfuscator)


def told(model: Any) -> dict[str, Any]:
    """What a release says, as plain values."""
    return {
        "private": model.private_,
        "differential_privacy": False,
        "conditional": model.conditional_,
        "statement": model.statement_,
        "certificate": model.certificate_.to_dict(),
        "kernel": str(model.kernel_),
        "theta": model.kernel_.theta.tolist(),
        "mean": model.mean_,
        "trained_on": model.trained_on_,
        "releases": model.releases,
        "number": model.number_,
        "columns": list(model.names_),
        "records": len(model.released_),
    }


def describe_curve(model: Any, path: Path, file: ModelFile) -> dict[str, Any]:
    """Everything about the file of a curve, as plain values."""
    names = {"model": file.header["model"], "reticent": file.header["version"]}
    return {"file": str(path), "sha256": file.digest, "signed_by": file.signer, **names, **told(model)}


def print_curve(model: Any, about: dict[str, Any]) -> None:
    """Show a released curve to a person."""
    from rich.text import Text

    seal = (
        (" INFERENTIAL PRIVACY, NOT DP ", "bold white on blue")
        if model.private_
        else (" NOT PRIVATE ", "white on red3")
    )
    *inputs, output = about["columns"]
    console().print(Text.assemble(("Obfuscator", "bold"), f", {about['records']:,} values   ", seal, "\n"))
    line("Curve", f"{output} over {', '.join(inputs)}")
    print_promise(model)
    aside(f"Kernel {model.kernel_}, mean {compact(model.mean_)}.", 12)
    console().print(Text("\nGuarantee", "bold"))
    console().print(indented(about["statement"]), "", sep="\n")
    print_seal(about)


def print_seal(about: dict[str, Any]) -> None:
    """Say what the file's SHA-256 is, and who signed it."""
    from rich.text import Text

    for title, text in (("SHA-256", about["sha256"]), ("Signed", signed(about["signed_by"]))):
        console().print(Text(f"{title:<9}", "bold"), Text(text), sep="", soft_wrap=True)


def signed(signer: str | None) -> str:
    """Say who signed a file: the fingerprint of the key."""
    return NOT_SIGNED if signer is None else f"by the key with the fingerprint {signer}"


def print_promise(model: Any) -> None:
    """Say what is promised, what is attained, and how much noise it took."""
    from reticent.apps.obfuscation_report import promise_in_words  # with all that draws

    one = model.certificate_
    line("Promise", promise_in_words(model) + (", CONDITIONAL" if model.conditional_ else ""))
    line(
        "Attained",
        f"{compact(one.attained)} at least, promised {compact(one.promised)}; checked at {one.checked:,} points",
    )
    if model.releases > 1:
        line("Release", f"number {model.number_} of {model.releases} planned ones, which keep the promise together")
    line("Noise", f"trace {compact(one.trace)}, within {one.gap:.0e} of the least possible; {one.rank} directions")


def read_columns(data: str, names: list[str]) -> Any:
    """Read columns of a file as numbers. A curve, and where it is predicted, are their owner's: messages may name lines."""
    import numpy as np

    try:
        source = scan(data)
        known = list(source.names or ())
        for name in names:
            if name not in known:
                raise BadFile(f"there is no column {name!r}. Columns: {', '.join(known)}.")
        fields = tuple(Field(name) for name in names)
        source.check(fields)
        table = np.vstack(list(source.blocks(fields)))
    except ReticentError as error:
        raise BadFile(f"{data} cannot be used: {error}") from None
    bad = np.flatnonzero(~np.isfinite(table).all(axis=1))
    if len(bad):
        raise BadFile(f"{data}: record {bad[0] + 1} has a cell that is no number. Remove it, or fill it in.")
    return table


def predict_curve(model: Any, data: str, out: Path) -> dict[str, Any]:
    """Write what a reader of the release can conclude at the inputs in ``data``: mean and standard deviation."""
    *inputs, output = model.names_
    at = read_columns(data, inputs)
    mean, sd = model.predict(at, return_std=True)
    columns = [output if output not in inputs else f"predicted_{output}", f"{output}_std"]
    with new_text(out) as text:
        lines = TableWriter(text)
        lines.line([*inputs, *columns])
        for row, one, spread in zip(at.tolist(), mean.tolist(), sd.tolist(), strict=True):
            lines.line([*map(repr, row), f"{one:.9g}", f"{spread:.6g}"])
    return {
        "model": "Obfuscator",
        "private": model.private_,
        "outputs": [output],
        "about": f"{columns[0]}: the mean; {columns[1]}: its standard deviation, what anybody can conclude from the release.",
        "records": len(at),
        "missing": 0,
        "outside": 0,
        "inputs": inputs,
        "columns": [*inputs, *columns],
        "out": str(out),
    }
