"""``reticent obfuscate``: release a curve so that part of it stays unknown.

Inferential privacy, not differential privacy.
"""

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from reticent.cli.files.model_files import save_or_rescue
from reticent.cli.options import Json, Quietly, flag, option, with_options
from reticent.cli.terminal import advise, aside, line, print_json, progress
from reticent.errors import BadInput, ReleaseRefused
from reticent.files.csv_tables import TableWriter
from reticent.files.output import check_new, new_text
from reticent.reporting.formatting import format_short

__all__ = ["obfuscate_command"]

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_SENSITIVE = re.compile(rf"({_NUMBER})(?::({_NUMBER}))?", re.ASCII)
_MORE = (
    "reticent obfuscate … --model W.reticent --report page.html, for a file to "
    "keep and a page to hand over"
)
# of a learned length scale, relative to the inputs' range
_LEAST_LENGTH = 1e-2
_MOST_LENGTH = 1e1


def _parse_regions(texts: list[str]) -> list[tuple[float, float]]:
    """Read ``3.5:4.2``, or ``3.5`` for a single point."""
    found = []
    for text in texts:
        match = _SENSITIVE.fullmatch(text.strip())
        if match is None:
            raise BadInput(
                "--sensitive takes LOW:HIGH, one number, or everywhere, for example --sensitive "
                f"3.5:4.2, not {text!r}."
            )
        low = float(match[1])
        high = low
        if match[2]:
            high = float(match[2])
        if high < low:
            raise BadInput(
                f"--sensitive {text} does not have low < high: did you mean {match[2]}:{match[1]}?"
            )
        found.append((low, high))
    return found


def _check_known(length: float | None, spread: float | None, *, trained: bool) -> None:
    """Say what is missing before anything is read.

    A kernel is given, or there is something to learn it from.
    """
    for name, value in (("--length", length), ("--spread", spread)):
        if value is not None and not 0 < value < float("inf"):
            raise BadInput(f"{name} must be a positive number, not {value:g}.")
    missing = [
        text for text, value in (("length scale", length), ("spread", spread)) if value is None
    ]
    if missing and not trained:
        raise ReleaseRefused(
            f"The {' and the '.join(missing)} of the curve {'is' if len(missing) == 1 else 'are'} "
            "not given. Learned from the curve itself they would be released with it and tell on "
            "it. Say what is known beforehand of such curves,\n"
            "      --length 0.2 --spread 1.5      (over which input they change, and by how much: "
            "a standard deviation)\n"
            "  or learn it from another curve, whose values are no secret,\n"
            "      --train-on earlier.csv\n"
            "  or, if a conditional promise will do, from this one: --unprotected-training"
        )


def _kernel(length: float | None, spread: float | None, width: float) -> Any:
    """The kernel, with what is not given left to be learned. Depends on nothing that is hidden."""
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel

    if spread is None:
        variance = ConstantKernel(1.0, (1e-12, 1e12))
    else:
        variance = ConstantKernel(spread**2, "fixed")
    bounds = (_LEAST_LENGTH * width, _MOST_LENGTH * width) if length is None else "fixed"
    return variance * RBF(length or 0.1 * width, bounds)


_OPTIONS = {
    "variance": option(
        float, "NUMBER", "Variance that sensitive values keep, in the output's unit squared."
    ),
    "share": option(
        float, "SHARE", "Or: the share of the prior's variance that they keep, below 1."
    ),
    "solution": option(
        str,
        "KIND",
        "weak (each value by itself), strong, kernel (needs --share), uniform "
        "(everywhere) or diagonal.",
        default="weak",
    ),
    "length": option(float, "NUMBER", "Length scale of such curves, in units of the input."),
    "spread": option(
        float, "NUMBER", "Standard deviation of such curves about their mean, in the output's unit."
    ),
    "mean": option(float, "NUMBER", "Mean of such curves; concluded from the release if left out."),
    "train_on": option(
        str,
        "FILE",
        "Learn what is not given from another curve, with the same columns; it is not protected.",
    ),
    "unprotected_training": flag(
        "--unprotected-training",
        "Learn it from this curve: it tells on it, the promise is conditional.",
    ),
    "noise": option(
        float,
        "NUMBER",
        "Standard deviation of the measurement error in the output; none if left out.",
    ),
    "releases": option(
        int, "K", "How many releases are planned: together they keep the promise.", default=1
    ),
    "number": option(int, "NUMBER", "Which of the planned releases is written.", default=1),
    "model_file": option(
        Path, "FILE", "Model file to write, for reticent inspect, predict and report.", "--model"
    ),
    "report": option(Path, "FILE", "HTML page to write: figure and certificate."),
    "ledger": option(str, "LEDGER", "Ledger that remembers the release and refuses another."),
    "dataset": option(str, "NAME", "Name of the curve in the ledger."),
    "new_ledger": flag("--new-ledger", "Make the ledger if there is none."),
}
_HANDED_ON = (
    "variance",
    "share",
    "solution",
    "noise",
    "mean",
    "releases",
    "ledger",
    "dataset",
)  # to the obfuscator
_CHECKED_FIRST = ("variance", "share", "solution", "noise", "releases", "ledger", "dataset")


@with_options(given=_OPTIONS)
def obfuscate_command(
    data: Annotated[
        str, typer.Argument(metavar="DATA", help="A CSV or Parquet file with the curve.")
    ],
    x: Annotated[
        str, typer.Option("--x", metavar="COLUMN", help="The input, for example time: public.")
    ],
    y: Annotated[
        str,
        typer.Option("--y", metavar="COLUMN", help="The output, whose values are partly hidden."),
    ],
    sensitive: Annotated[
        list[str],
        typer.Option(
            metavar="LOW:HIGH", help="A sensitive interval, or point; one for each. Or: everywhere."
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(metavar="FILE", help="CSV file to write; an existing file is never replaced."),
    ],
    given: Any,
    json: Json = False,
    quiet: Quietly = False,
) -> None:
    """Release a curve so that part of it stays unknown, with the least possible noise.

    Inferential privacy, NOT differential privacy: whoever reads the release, knows the noise's law
    and takes the curve for a Gaussian process cannot infer the sensitive values better than
    promised. The kernel is a squared exponential; give its length scale and spread, or another
    curve to learn them from: they are released. A curve is released once, or as often as was
    planned: with a ledger, asking again gives the same release.
    """
    length, spread, train_on, unprotected, ledger, model_file, report = (
        given[name]
        for name in (
            "length",
            "spread",
            "train_on",
            "unprotected_training",
            "ledger",
            "model_file",
            "report",
        )
    )
    everywhere = sensitive == ["everywhere"]
    if everywhere:
        regions = []
    else:
        regions = _parse_regions(sensitive)
    from reticent.obfuscation.parameters import check_parameters, check_release_number

    check_parameters(**{name: given[name] for name in _CHECKED_FIRST}, everywhere=everywhere)
    check_release_number(given["number"], given["releases"])
    if train_on is not None and unprotected:
        raise BadInput(
            "--train-on and --unprotected-training exclude each other: the "
            "first one needs no second."
        )
    if given["releases"] > 1 and ledger is None:
        raise BadInput(
            "--releases needs a ledger, which keeps them apart: --ledger "
            "budget.db --dataset NAME --new-ledger."
        )
    _check_known(length, spread, trained=train_on is not None or unprotected)

    import numpy as np

    from reticent.cli.views.curve import print_promise
    from reticent.obfuscation.files import read_columns, release_values
    from reticent.obfuscation.obfuscator import Obfuscator
    from reticent.obfuscation.report import write_curve_report as write_report
    from reticent.obfuscation.statements import UNPROTECTED
    from reticent.privacy.ledger.ledger import Ledger

    for file in filter(None, (out, report, model_file)):
        check_new(file, "Somebody may have been given it")
    # time=… is what reticent fit takes; the range is not needed here
    name, output = (text.partition("=")[0] for text in (x, y))
    at, values = read_columns(data, [name, output]).T
    width = float(np.ptp(at)) or 1.0
    for low, high in regions:
        if high < at.min() or low > at.max():
            raise BadInput(
                f"--sensitive {low:g}:{high:g} lies outside the curve, whose "
                f"{name} goes from {at.min():g} to {at.max():g}: nothing would "
                f"be hidden. Give the interval in units of {name}."
            )
    points = all(low == high for low, high in regions)
    if train_on is None:
        other = None
    else:
        other = tuple(read_columns(train_on, [name, output]).T)
    if everywhere:
        protected: Any = "everywhere"
    elif points:
        protected = [low for low, _ in regions]
    else:
        protected = regions
    model = Obfuscator(
        _kernel(length, spread, width),
        sensitive=protected,
        train_on=UNPROTECTED if unprotected else other,
        **{name: given[name] for name in _HANDED_ON},
    )
    if ledger is not None and given["new_ledger"]:
        Ledger(ledger).create()
    with progress(f"Hiding part of {Path(data).name}", quiet=quiet):
        released = model.obfuscate(at, values, number=given["number"])
    model.names_ = [name, output]
    with new_text(out) as text:
        lines = TableWriter(text)
        lines.line([name, output])
        lines.lines([repr(float(a)), repr(float(w))] for a, w in zip(at, released, strict=True))
    if model_file is not None:
        save_or_rescue(model, model_file, lambda: f"The released values are in {out}.")
    if report is not None:
        write_report(model, report)
    if json:
        return print_json({"out": str(out), **release_values(model)})
    if quiet:
        return None
    line("Released", f"{len(at):,} values of {output} to {out}")
    print_promise(model)
    line("Seal", "inferential privacy, NOT differential privacy")
    aside(
        "It holds against readers whose knowledge of the curve is the "
        "Gaussian process below, and nothing else.",
        12,
    )
    if model.conditional_:
        aside(
            "CONDITIONAL: the kernel was learned from the curve itself. What it tells about the "
            "hidden part is not counted, and can be nearly all of it.",
            12,
        )
    aside(f"Released with it: kernel {model.kernel_}, mean {format_short(model.mean_)}.", 12)
    if ledger is None:
        aside(
            "No ledger remembers it. Do not release this curve again: fresh "
            "noise could be averaged away.",
            12,
        )
        return advise("--ledger budget.db --dataset NAME --new-ledger, so that it is remembered")
    if report:
        shown = [f"open {report} in a browser"]
    else:
        shown = []
    if model_file:
        kept = [f"reticent inspect {model_file}"]
    else:
        kept = []
    return advise(*(shown + kept or [_MORE]))
