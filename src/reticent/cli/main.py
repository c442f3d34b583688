"""The command line: what can be said to it.

Each command imports what it needs when it runs, so that help is quick.
"""

import re
import sys
from itertools import pairwise
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import reticent
from reticent.cli.commands.audit import audit_command
from reticent.cli.commands.bandit import bandit_app
from reticent.cli.commands.fit import fit_command
from reticent.cli.commands.ledger import ledger_app
from reticent.cli.commands.obfuscate import obfuscate_command
from reticent.cli.commands.plan import plan_command
from reticent.cli.commands.reproduce import reproduce_command
from reticent.cli.commands.sample import sample_command
from reticent.cli.commands.search import search_command
from reticent.cli.data_names import data_name, shown_argument
from reticent.cli.encoding import SPELLED
from reticent.cli.files.model_files import check_model_file
from reticent.cli.options import (
    DATABASE,
    DESCRIBED,
    DIALECT,
    Json,
    Quietly,
    Records,
    example,
    with_options,
)
from reticent.cli.terminal import advise, console, fail, guarded, line, print_json, progress

__all__ = ["app", "main"]


_WrongUse: Any = typer.BadParameter.__base__  # what it is called depends on the version of Typer

_DECIMAL_COMMA = re.compile(r"(-?\d*),(\d+)", re.ASCII)


def _decimal_comma(error: Any, given: list[str]) -> str:
    """A hint where a refused option has a decimal comma."""
    names = getattr(getattr(error, "param", None), "opts", ())
    for name, value in pairwise([part for one in given for part in one.split("=", 1)]):
        comma = _DECIMAL_COMMA.fullmatch(value)
        if name in names and comma is not None:
            return f": numbers have a decimal point, write {comma[1]}.{comma[2]}."
    return ""


class _Commands(TyperGroup):
    """All commands; with ``--json``, wrong use is told to machines too."""

    def invoke(self, ctx: Any) -> Any:
        given = list(ctx.args)  # which it empties
        json = "--json" in given
        try:
            return super().invoke(ctx)
        except _WrongUse as error:
            if (
                ctx.invoked_subcommand in ("fit", "search")
                and getattr(getattr(error, "param", None), "name", "") == "data"
            ):
                error.message = (
                    "The model comes first, then the file: reticent "
                    f"{ctx.invoked_subcommand} gp people.csv …"
                )
            if "extra argument" in error.message:
                error.message += ". Names with spaces go in quotes."
            error.message += _decimal_comma(error, given)
            if not json:
                raise
            fail("BadInput", error.format_message(), error.exit_code, json=True)


app = typer.Typer(
    name="reticent",
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,  # its tracebacks show values
    rich_markup_mode=None,  # plain help: narrower, and Rich need not be imported for it
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=example("reticent tour"),
)
app.add_typer(ledger_app, name="ledger")
app.add_typer(bandit_app, name="bandit")


def _version(wanted: bool) -> None:
    if wanted:
        print(f"reticent {reticent.__version__}")
        raise typer.Exit


@app.callback()
def reticent_command(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print the version and stop."
        ),
    ] = False,
) -> None:
    """Models that learn from everyone and tell on no one.

    Differentially private releases from sensitive records.
    """


@app.command(epilog=example("reticent tour --out tour"))
@guarded
def tour(
    out: Annotated[
        Path,
        typer.Option(
            metavar="FOLDER",
            help="Folder to make; if it is in use, the next free one: tour-2, tour-3, …",
        ),
    ] = Path("tour"),
    json: Json = False,
) -> None:
    """See it all at work, in half a minute, on people who never lived."""
    from reticent.cli.commands.tour import speaker, take

    screen = console()
    found = take(out, (lambda *_: None) if json else speaker(screen))
    if json:
        return print_json(found)
    folder = found["folder"]
    advise(
        f"open {folder}/report.html in a browser",
        f"reticent inspect {folder}/weight.reticent",
        f"reticent ledger history {folder}/budget.db",
        "reticent plan --help and reticent fit --help, for a file of your own",
    )


app.command(
    "plan",
    epilog=example(
        "reticent plan --x age=0:110 --y weight=2:150 --n 5000 --epsilon 0.1,0.3,1,3",
        "reticent plan --x age=0:110 --y weight=2:150 --n 5000 --error 2",
    ),
)(guarded(plan_command))


@app.command(epilog=example("reticent codebook patients.csv --out codebook.toml"))
@guarded
@with_options(dialect=DIALECT | DATABASE)
def codebook(
    data: Records,
    out: Annotated[
        Path,
        typer.Option(
            metavar="FILE", help="Codebook to write (.toml); an existing file is never replaced."
        ),
    ],
    dialect: Any = None,
    json: Json = False,
    quiet: Quietly = False,
) -> None:
    """Write a codebook to be filled in: what is public about each column of a file.

    From the names of the columns and, in a Parquet file, their types: no record is read, and no
    value stands in it. Fill in kinds, ranges, words, missing codes, units and labels from common
    knowledge or the study's own codebook; then give it as --codebook.
    """
    from reticent.cli.files.codebook_file import write_template

    columns = write_template(data, out, dialect)
    if json:
        print_json({"out": str(out), "columns": columns})
    elif not quiet:
        line("Written", f"{out}: {len(columns)} columns to be filled in, from their names alone")
        advise(
            f"fill in {out}, in any editor",
            f"reticent check {shown_argument(data)} --codebook {quote(str(out))}",
        )


@app.command(
    epilog=example(
        "reticent check visits.csv --codebook codebook.toml --person patient_id",
        "reticent check patients.csv --x age=0:110 --x sex=F,M --y weight=2:150",
    )
)
@guarded
@with_options(asked=DESCRIBED)
def check(
    data: Records,
    asked: Any = None,
    person: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="A column that says whose a record is."),
    ] = None,
    weight: Annotated[
        str | None,
        typer.Option(metavar="COLUMN=0:BOUND", help="A column of record weights, and its bound."),
    ] = None,
) -> None:
    """Look how a file is read: NOT FOR RELEASE, for whoever holds the records.

    Counts, exactly and without any protection, the cells of each column that are missing, not
    readable, not listed or outside the range, how many records people have, what weights there
    are, and hints at what may be the matter. Prints to the screen and writes nothing; charges
    nothing, and knows no ledger. Bounds must not be taken from
    what it shows: they are public.
    """
    from reticent.cli.views.data_check import look, print_check

    with progress(f"Looking at {data_name(data)}"):
        found = look(data, person=person, weight=weight, **asked)
    print_check(found, data)


app.command(
    "fit",
    epilog=example(
        "reticent ledger open budget.db patients --epsilon 3 --delta 1e-5",
        "reticent fit mean patients.csv --x age=0:110 --x height=40:220 \\",
        "    --epsilon 1 --delta 1e-6 --ledger budget.db --dataset patients \\",
        "    --out m.reticent",
        "reticent fit gp patients.csv --x age=0:110 --x height=40:220 \\",
        "    --y weight=2:150 --epsilon 1 --delta 1e-6 --out gp.reticent",
        "reticent fit gp-labels staff.csv --x age=18:70 --y salary=0:200000 \\",
        "    --epsilon 1 --delta 1e-6 --out labels.reticent",
        "reticent fit classifier patients.csv --x age=0:110 --x height=40:220 \\",
        "    --classes ill=no,yes --epsilon 1 --delta 1e-6 --out ill.reticent",
        "reticent fit table visits.csv --by 'ward=eyes,\"ear, nose, throat\"' \\",
        "    --mean stay=0:60 --rate died --person patient_id \\",
        "    --epsilon 1 --delta 1e-6 --out wards.reticent",
        "zcat patients.csv.gz | reticent fit mean - --x age=0:110 \\",
        "    --epsilon 1 --delta 1e-6 --out ages.reticent",
    ),
)(guarded(fit_command))

app.command(
    "search",
    epilog=example(
        "reticent search gp patients.csv --x age=0:110 --x height=40:220 \\",
        "    --y weight=2:150 --try x=age,age+height --try basis=15,40 \\",
        "    --epsilon 1 --delta 1e-6 --out best.reticent",
    ),
)(guarded(search_command))


@app.command(epilog=example("reticent inspect m.reticent"))
@guarded
def inspect(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A model file.")],
    json: Json = False,
) -> None:
    """Show a model file: the promise, the releases, the results."""
    check_model_file(file)
    from reticent.cli.commands.inspect import describe, print_model

    model, about = describe(file)
    if json:
        return print_json(about)
    print_model(console(), model, about)
    return advise(f"in Python, reticent.load({str(file)!r})")


@app.command(
    epilog=example(
        "reticent report m.reticent --out report.html",
        "reticent report m.reticent --out report.html --ledger budget.db",
    )
)
@guarded
def report(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A model file.")],
    out: Annotated[
        Path,
        typer.Option(
            metavar="FILE", help="HTML file to write; an existing file is never replaced."
        ),
    ],
    ledger: Annotated[
        str | None, typer.Option(metavar="LEDGER", help="Ledger whose account is shown.")
    ] = None,
    dataset: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Data set in it; the one the model was charged to if left out."
        ),
    ] = None,
    json: Json = False,
    quiet: Quietly = False,
) -> None:
    """Write the release report: one page to hand over.

    The page opens offline in any browser and holds the guarantee in plain words and exactly, the
    budget, the model, how good it is, what was public and what is not protected. It is made from
    the model's releases only, and charges nothing.
    """
    from reticent.files.output import check_new

    check_model_file(file)
    from reticent.models.serialization import load
    from reticent.obfuscation.files import is_curve
    from reticent.obfuscation.report import write_curve_report as write_curve
    from reticent.reporting.page.page import write_report

    check_new(out, "Somebody may have been given it")
    with progress(f"Drawing {file.name}", quiet=quiet):
        model = load(file)
        if is_curve(model):
            digest = write_curve(model, out, file=file)
        else:
            digest = write_report(model, out, file=file, ledger=ledger, dataset=dataset)
    if json:
        print_json({"out": str(out), "model_sha256": digest})
    elif not quiet:
        line("Written", str(out))
        line("Model", f"SHA-256 {digest}")
        if ledger is not None or is_curve(model):
            paid = None
        else:
            paid = model._params["dataset"]
        if paid is None:
            more = []
        else:
            more = [f"with --ledger LEDGER it also shows the budget of {paid!r}"]
        advise(f"open {out} in a browser; it needs no network and may be sent as it is", *more)


@app.command(epilog=example("reticent predict gp.reticent new.csv --out predictions.csv"))
@guarded
@with_options(dialect=DIALECT)
def predict(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A model file of gp, gp-labels, gp-binned, classifier, "
            "kmeans, factors or components.",
        ),
    ],
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="A CSV or Parquet file with the model's input columns; others are ignored.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(metavar="FILE", help="CSV file to write; an existing file is never replaced."),
    ],
    out_separator: Annotated[
        str | None,
        typer.Option(
            metavar="SIGN",
            help="Of the file that is written: , ; | or tab. A comma if left out; some "
            "spreadsheets need ';' and --out-decimal ','.",
        ),
    ] = None,
    out_decimal: Annotated[
        str | None,
        typer.Option(metavar="SIGN", help="Of the file that is written: . or , (a point)."),
    ] = None,
    dialect: Any = None,
    json: Json = False,
    quiet: Quietly = False,
) -> None:
    """Predict the output for each line of a file.

    Writes the inputs and, line by line in the same order, for an output that is called weight:
    weight, its mean; weight_std, the standard deviation of that mean; and weight_output_std, that
    of a single weight (a model with a noise column knows that only where DATA has this column too).
    Numbers have the digits that tell a thousandth of a standard deviation. For classes no and yes
    of a column that is called ill: ill, the likeliest class; ill_no and ill_yes, the chance of
    each. A line that lacks an input, or has a word that the model does not know, has no
    prediction: its cells stay empty. Predictions charge nothing: they use the model's releases
    only. The inputs given here are not protected, and need not be: nothing is learned from them.
    They are copied to the file that is written.
    """
    check_model_file(file)
    from reticent.cli.commands.predict import predict_file as run
    from reticent.cli.commands.predict import print_prediction
    from reticent.files.output import page_of

    with progress(f"Predicting {data_name(data)}", quiet=quiet) as advance:
        about = run(
            file,
            data,
            out,
            advance,
            out_separator=out_separator,
            out_decimal=out_decimal,
            **dialect,
        )
    if json:
        print_json(about)
    elif not quiet:
        print_prediction(about)
        advise(
            f"reticent report {quote(str(file))} --out "
            f"{quote(str(page_of(file)))}, to see how far to trust them"
        )


app.command(
    "obfuscate",
    epilog=example(
        "reticent obfuscate orbit.csv --x time --y radius --sensitive 3.5:4.2 \\",
        "    --variance 0.01 --length 0.2 --spread 0.3 --out W.csv --report page.html \\",
        "    --ledger budget.db --dataset orbit --new-ledger",
    ),
)(guarded(obfuscate_command))

app.command("sample", epilog=example("reticent sample m.reticent -n 1000 --out synthetic.csv"))(
    guarded(sample_command)
)

app.command("audit", epilog=example("reticent audit mean --quick"))(guarded(audit_command))

app.command(
    "reproduce",
    epilog=example(
        "reticent reproduce",
        "reticent reproduce dpgp-inference --quick",
        "reticent reproduce all --out studies",
    ),
)(guarded(reproduce_command))


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors=SPELLED)  # type: ignore[union-attr]
    app(prog_name="reticent")
