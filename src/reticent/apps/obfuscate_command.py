"""``reticent obfuscate``: release a curve so that part of it stays unknown. Inferential privacy, not differential privacy."""

import csv
import re
from pathlib import Path
from typing import Annotated, Any

import typer

from reticent.apps.options import Json, Quiet
from reticent.apps.outfile import check_new, new_text
from reticent.apps.terminal import BadFile, advise, aside, compact, line, print_json, progress
from reticent.errors import BadInput, ReticentError

__all__ = ["obfuscate_command"]

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_SENSITIVE = re.compile(rf"({_NUMBER})(?::({_NUMBER}))?", re.ASCII)
_LEAST_LENGTH, _MOST_LENGTH = 1e-2, 1e1  # of a learned length scale, relative to the inputs' range


def _regions(texts: list[str]) -> list[tuple[float, float]]:
    """Read ``3.5:4.2``, or ``3.5`` for a single point."""
    found = []
    for text in texts:
        match = _SENSITIVE.fullmatch(text.strip())
        if match is None:
            raise BadInput(f"--sensitive takes LOW:HIGH, or one number, for example --sensitive 3.5:4.2, not {text!r}.")
        low = float(match[1])
        found.append((low, float(match[2]) if match[2] else low))
    return found


def _curve(data: str, x: str, y: str) -> tuple[Any, Any]:
    """Read two columns of a file. The curve is its owner's own, so messages may name lines."""
    import numpy as np

    from reticent.privacy.sources import Field, scan

    try:
        source = scan(data)
        names = list(source.names or ())
        for name in (x, y):
            if name not in names:
                raise BadInput(f"There is no column {name!r}. Columns: {', '.join(names)}.")
        fields = (Field(x), Field(y))
        source.check(fields)
        table = np.vstack(list(source.blocks(fields)))
    except ReticentError as error:
        raise BadFile(f"{data} cannot be obfuscated. {error}") from None
    bad = np.flatnonzero(~np.isfinite(table).all(axis=1))
    if len(bad):
        raise BadFile(f"{data}: record {bad[0] + 1} has a cell that is no number. Remove it, or fill it in.")
    return table[:, 0], table[:, 1]


def obfuscate_command(
    data: Annotated[str, typer.Argument(metavar="DATA", help="A CSV or Parquet file with the curve.")],
    x: Annotated[str, typer.Option("--x", metavar="COLUMN", help="The input, for example time: public.")],
    y: Annotated[str, typer.Option("--y", metavar="COLUMN", help="The output, whose values are partly hidden.")],
    sensitive: Annotated[
        list[str], typer.Option(metavar="LOW:HIGH", help="A sensitive interval, or point; one for each.")
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="CSV file to write; an existing file is never replaced.")],
    variance: Annotated[
        float | None,
        typer.Option(metavar="NUMBER", help="Variance that sensitive values keep, in the output's unit squared."),
    ] = None,
    share: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="Or: the share of the prior's variance that they keep, below 1."),
    ] = None,
    solution: Annotated[
        str,
        typer.Option(metavar="KIND", help="weak (each value by itself), strong, kernel (needs --share) or diagonal."),
    ] = "weak",
    length: Annotated[
        float | None,
        typer.Option(metavar="NUMBER", help="Length scale of the curve, in units of the input; learned if left out."),
    ] = None,
    noise: Annotated[
        float | None,
        typer.Option(metavar="VARIANCE", help="Variance of the measurement error in the output; none if left out."),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="HTML page to write: figure and certificate.")
    ] = None,
    ledger: Annotated[
        str | None, typer.Option(metavar="LEDGER", help="Ledger that remembers the release and refuses another.")
    ] = None,
    dataset: Annotated[str | None, typer.Option(metavar="NAME", help="Name of the curve in the ledger.")] = None,
    new_ledger: Annotated[bool, typer.Option("--new-ledger", help="Make the ledger if there is none.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Release a curve so that part of it stays unknown, with the least possible noise.

    Inferential privacy, NOT differential privacy: whoever reads the release, knows the noise's law and takes the curve for a
    Gaussian process cannot infer the sensitive values better than promised. The kernel is a squared exponential; its variance,
    length scale and mean are learned from the curve, and are released with it. A curve is released once: with a ledger,
    asking again gives the same release.
    """
    import numpy as np
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel

    from reticent.apps.obfuscation_report import promise_in_words
    from reticent.apps.obfuscation_report import write as write_report
    from reticent.models.obfuscator import Obfuscator
    from reticent.privacy.ledger import Ledger

    regions = _regions(sensitive)
    for file in filter(None, (out, report)):
        check_new(file, "Somebody may have been given it")
    # time=… is what reticent fit takes; the range is not needed here
    name, output = (text.partition("=")[0] for text in (x, y))
    at, values = _curve(data, name, output)
    reach = float(np.ptp(at)) or 1.0
    for low, high in regions:
        if high < at.min() or low > at.max():
            raise BadInput(
                f"--sensitive {low:g}:{high:g} lies outside the curve, whose {name} goes from {at.min():g} to {at.max():g}: "
                f"nothing would be hidden. Give the interval in units of {name}."
            )
    # nothing here may depend on the values: a ledger knows the question by it
    scale = (_LEAST_LENGTH * reach, _MOST_LENGTH * reach) if length is None else "fixed"
    kernel = ConstantKernel(1.0, (1e-12, 1e12)) * RBF(length or 0.1 * reach, scale)
    points = all(low == high for low, high in regions)
    model = Obfuscator(
        kernel,
        sensitive=[low for low, _ in regions] if points else regions,
        variance=variance,
        share=share,
        solution=solution,
        noise=noise,
        ledger=ledger,
        dataset=dataset,
    )
    if ledger is not None and new_ledger:
        Ledger(ledger).create()
    with progress(f"Hiding part of {Path(data).name}", quiet=quiet):
        released = model.obfuscate(at, values)
    with new_text(out) as text:
        lines = csv.writer(text, lineterminator="\n")
        lines.writerow([name, output])
        lines.writerows([repr(float(a)), repr(float(w))] for a, w in zip(at, released, strict=True))
    if report is not None:
        write_report(model, report, (name, output))
    one = model.certificate_
    if json:
        about = {"out": str(out), "records": len(at), "private": model.private_, "differential_privacy": False}
        return print_json({**about, "statement": model.statement_, "certificate": one.to_dict(), **_learned(model)})
    if quiet:
        return None
    line("Released", f"{len(at):,} values of {output} to {out}")
    line("Promise", promise_in_words(model))
    line(
        "Attained",
        f"{compact(one.attained)} at least, promised {compact(one.promised)}; checked at {one.checked:,} points",
    )
    line("Noise", f"trace {compact(one.trace)}, within {one.gap:.0e} of the least possible; {one.rank} directions")
    line("Seal", "inferential privacy, NOT differential privacy")
    aside("It holds against readers whose knowledge of the curve is the Gaussian process below, and nothing else.", 12)
    aside(f"Released with it: kernel {model.kernel_}, mean {compact(model.mean_)}.", 12)
    if ledger is None:
        aside("No ledger remembers it. Do not release this curve again: fresh noise could be averaged away.", 12)
        return advise("--ledger budget.db --dataset NAME --new-ledger, so that it is remembered")
    return advise(
        f"open {report} in a browser" if report else "reticent obfuscate … --report page.html, for a page to hand over"
    )


def _learned(model: Any) -> dict[str, Any]:
    return {"kernel": str(model.kernel_), "theta": model.kernel_.theta.tolist(), "mean": model.mean_}
