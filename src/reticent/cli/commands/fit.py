"""``reticent fit``: what can be said to it."""

from collections.abc import Callable
from typing import Annotated, Any

import typer

from reticent.cli.data_names import data_name
from reticent.cli.options import (
    ASKED,
    Json,
    LevelColumn,
    ModelFile,
    Quietly,
    Records,
    option,
    with_options,
)
from reticent.cli.terminal import console, print_json, progress

__all__ = ["MODEL_OPTIONS", "fit_and_show", "fit_command", "read_bins"]

# Options by the class's parameter; the help begins with the models that have it. A new option is a
# line here.
MODEL_OPTIONS = {
    "bins": option(
        str,
        "NUMBER",
        "histogram, gp-binned, table: number of bins of each column; gp-binned also 12,8.",
    ),
    "by": option(
        list[str],
        "COLUMN=…",
        "table: a key, whose groups are told apart: sex=F,M, or edges age=0:18:65:110; one each.",
    ),
    "count": (
        Annotated[
            bool | None,
            typer.Option("--count/--no-count", help="table: the number of records of each group."),
        ],
        None,
    ),
    "mean": option(list[str], "COLUMN=LOW:HIGH", "table: a column whose mean is told."),
    "rate": option(list[str], "COLUMN", "table: a column of yes and no; died=alive/dead."),
    "total": option(list[str], "COLUMN=LOW:HIGH", "table: a column whose sum is told."),
    "quantile": option(list[str], "COLUMN=LOW:HIGH", "table: a column whose quartiles are told."),
    "smooth": (
        Annotated[
            bool | None,
            typer.Option("--smooth", help="table: small groups borrow from the others."),
        ],
        None,
    ),
    "kind": option(str, "KIND", "gp-binned: mean of the output, or count of records (no --y)."),
    "protect": option(
        str,
        "WHAT",
        "gp-binned: records, or labels where all inputs are public; records if left out.",
    ),
    "noise": option(
        float,
        "SD",
        "gp, gp-labels, gp-binned: spread of outputs with the same inputs; learned if left out.",
    ),
    "outcome": option(
        str,
        "KIND",
        "gp, gp-labels: what outputs are: real or binary; of gp also count or positive. If left "
        "out, binary of yes and no, real of others; gp finds out whether numbers are two values.",
    ),
    "noise_column": (LevelColumn, None),
    "n_clusters": option(int, "K", "kmeans: number of clusters; 8 if left out."),
    "n_components": option(
        int,
        "K",
        "mixture, factors, components: how many of them (mixture: if left out, chosen for free).",
    ),
    "basis": option(
        int, "NUMBER", "gp, classifier: number of basis functions; chosen from ε and n if left out."
    ),
    "method": option(
        str, "METHOD", "classifier: softmax (nearly always best), labels or dirichlet."
    ),
    "covariance_type": option(
        str, "TYPE", "mixture: full (if left out), tied, diag or spherical.", "--covariance"
    ),
    "mechanism": option(str, "NAME", "gp-labels: cloak (if left out), functional or inducing."),
}


def read_bins(text: str | None) -> int | list[int] | str | None:
    """Read ``--bins 12`` or, one number for each input, ``--bins 12,8``.

    What is neither is left for the model to refuse.

    >>> read_bins("12"), read_bins("12,8"), read_bins("many")
    (12, [12, 8], 'many')
    """
    numbers = [part.strip() for part in (text or "").split(",")]
    if not all(part.isascii() and part.isdigit() for part in numbers):
        return text
    found = [int(part) for part in numbers]
    if len(found) > 1:
        return found
    return found[0]


# models that take more than a few seconds: what to say, and how many releases they make
_SLOW = {"gp-labels": ("A release in eight steps, about a minute for 2,000 different inputs:", 8)}


@with_options(asked=ASKED, own=MODEL_OPTIONS)
def fit_command(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="mean, histogram, covariance, table (by group), gp, gp-binned or gp-labels "
            "(regressions; the last has public inputs), classifier, kmeans, mixture, factors or "
            "components.",
        ),
    ],
    data: Records,
    out: ModelFile,
    asked: Any = None,
    own: Any = None,
    json: Json = False,
    quiet: Quietly = False,
) -> None:
    """Fit a model to a file, charge the budget, and write the release.

    In a CSV file one line is one record (save a file with line breaks inside quotes as Parquet);
    the header line tells what separates the columns. A cell that is not what was said of its column
    ("72 kg" where numbers are, a word that is not listed) is missing, and a record that lacks a
    value is left out: both silently, because what stands in a cell is private. reticent check shows
    it to whoever may see the records.
    """
    own["bins"] = read_bins(own["bins"])
    slow = _SLOW.get(model)  # its releases are counted, so that the time left is known
    with progress(
        f"{slow[0] if slow else 'Reading'} {data_name(data)}", slow and slow[1], quiet=quiet
    ) as advance:
        show = fit_and_show(model, data, **asked, own=own, out=out, advance=advance)
    show(json, quiet)


def fit_and_show(model: str, data: str, **asked: Any) -> Callable[[bool, bool], None]:
    """Fit as asked.

    Give what then shows the result, to a machine or, unless that is to be ``quiet``, to a person.
    """
    from reticent.cli.fit_run import fit

    fitted, notes, read = fit(model, data, **asked)
    out = asked["out"]

    def show(json: bool, quiet: bool) -> None:
        from reticent.cli.commands.inspect import describe, print_fit

        try:
            if json:
                about = describe(out)[1]
                said = {"notes": list(dict.fromkeys([*notes, *about["notes"]]))} | (
                    {"read": read} if read else {}
                )
                print_json({**about, **said})
            elif not quiet:
                account = {"ledger": asked["ledger"], "dataset": asked["dataset"]}
                print_fit(console(), fitted, notes, **account, out=out, read=read)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                f"The model is in {out}, and what it cost stays charged."
            ) from None

    return show
