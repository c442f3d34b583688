"""The command line: what can be said to it. Each command imports what it needs when it runs, so that help is quick."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import reticent
from reticent.apps.audit_command import audit_command
from reticent.apps.bandit_commands import bandit_app
from reticent.apps.ledger_commands import ledger_app
from reticent.apps.letters import SPELLED
from reticent.apps.obfuscate_command import obfuscate_command
from reticent.apps.options import Classes, Json, LevelColumn, Quiet, example
from reticent.apps.reproduce import reproduce_command
from reticent.apps.sample_command import sample_command
from reticent.apps.search_command import search_command
from reticent.apps.terminal import advise, console, fail, guarded, line, print_json, progress

__all__ = ["app", "main"]


_WrongUse: Any = typer.BadParameter.__base__  # what it is called depends on the version of Typer


class _Commands(TyperGroup):
    """All commands; with ``--json``, wrong use is told to machines too."""

    def invoke(self, ctx: Any) -> Any:
        json = "--json" in ctx.args  # which it empties
        try:
            return super().invoke(ctx)
        except _WrongUse as error:
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
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Models that learn from everyone and tell on no one: differentially private releases from sensitive records."""


@app.command(epilog=example("reticent tour --out tour"))
@guarded
def tour(
    out: Annotated[
        Path,
        typer.Option(metavar="FOLDER", help="Folder to make; if it is in use, the next free one: tour-2, tour-3, …"),
    ] = Path("tour"),
    json: Json = False,
) -> None:
    """See it all at work, in half a minute, on people who never lived."""
    from reticent.apps.tour import speaker, take

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


@app.command(
    epilog=example(
        "reticent plan --x age=0:110 --y weight=2:150 --n 5000 --epsilon 0.1,0.3,1,3",
        "reticent plan --x age=0:110 --y weight=2:150 --n 5000 --error 2",
    )
)
@guarded
def plan(
    x: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN=LOW:HIGH", help="An input and its public range; one for each.")
    ] = None,
    y: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN=LOW:HIGH", help="The output and its public range.")
    ] = None,
    n: Annotated[
        str | None, typer.Option("--n", metavar="NUMBERS", help="Number of records, or several to compare: 1000,5000.")
    ] = None,
    epsilon: Annotated[str, typer.Option(metavar="NUMBERS", help="Values of ε to compare.")] = "0.1,0.3,1,3",
    delta: Annotated[
        float | None, typer.Option(metavar="NUMBER", help="As for reticent fit; 1e-6 if left out.")
    ] = None,
    noise: Annotated[
        float | None,
        typer.Option(
            metavar="SD", help="Spread of outputs with the same inputs; if left out, a tenth of the output's range."
        ),
    ] = None,
    noise_column: LevelColumn = None,
    norm: Annotated[
        float | None,
        typer.Option(metavar="NUMBER", help="Public bound on the inputs' distance from the middle of the ranges."),
    ] = None,
    records_per_person: Annotated[int, typer.Option(metavar="K", help="Protect people with up to K records each.")] = 1,
    basis: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBERS", help="Numbers of basis functions to compare; if left out, what fit would choose."
        ),
    ] = None,
    error: Annotated[
        float | None, typer.Option(metavar="SIZE", help="Which ε, and how many records, would bring the error to this?")
    ] = None,
    draws: Annotated[int, typer.Option(metavar="N", help="Functions to simulate; four times as many halve the ±.")] = 6,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw it: a new .png or .svg, or .html with the table.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """See which error to expect from which ε, before any record is read.

    Draws functions from the prior of reticent fit gp, makes up records of them, with inputs spread evenly over their ranges, fits
    them as real ones, and measures how far off the fits are. Real functions may be easier or harder than such ones. Reads
    nothing, charges nothing.
    """
    from reticent.apps.plan_command import answers, check_out, print_plan, question, write

    own = {"noise": noise, "noise_column": noise_column, "norm": norm, "records_per_person": records_per_person}
    asked = question(x or (), y or (), n, epsilon, delta=delta, basis=basis, **own)
    asked.check(draws, error)
    if out is not None:
        check_out(out)
    with progress("Simulating fits", asked.fits(draws), quiet=quiet) as advance:
        found = asked.answer(draws, advance)
    with progress("Looking for the answer", quiet=quiet):
        told = [] if error is None else answers(asked, found, error)
    if out is not None:
        write(asked, found, out)
    if json:
        return print_json({**found.for_machines(), "answers": told})
    print_plan(asked, found, told, error, quiet=quiet)
    return None


@app.command(
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
    )
)
@guarded
def fit(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="mean, histogram, covariance, gp, gp-binned or gp-labels (regressions; the last has public inputs), classifier, "
            "kmeans, mixture, factors or components.",
        ),
    ],
    data: Annotated[str, typer.Argument(metavar="DATA", help="A CSV or Parquet file, or a folder of them.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="Model file to write; an existing file is never replaced.")],
    x: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=LOW:HIGH",
            help="A column and its public range; one for each. A missing value counts as the middle, a value outside as the "
            "nearest edge; the ± of results does not cover this.",
        ),
    ] = None,
    y: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN=LOW:HIGH", help="gp, gp-labels: a column to predict, and its public range."),
    ] = None,
    classes: Classes = None,
    epsilon: Annotated[
        float | None, typer.Option(metavar="NUMBER", help="Strength of the promise: smaller protects more.")
    ] = None,
    delta: Annotated[
        float | None, typer.Option(metavar="NUMBER", help="Chance that the promise may fail; well below 1/records.")
    ] = None,
    norm: Annotated[
        float | None,
        typer.Option(metavar="NUMBER", help="Public bound on a record's distance from the middle of the ranges."),
    ] = None,
    bins: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER", help="histogram, gp-binned: number of bins of each column; gp-binned also 12,8."
        ),
    ] = None,
    kind: Annotated[
        str | None, typer.Option(metavar="KIND", help="gp-binned: mean of the output, or count of records (no --y).")
    ] = None,
    protect: Annotated[
        str | None,
        typer.Option(
            metavar="WHAT", help="gp-binned: records, or labels where all inputs are public; records if left out."
        ),
    ] = None,
    noise: Annotated[
        float | None,
        typer.Option(
            metavar="SD", help="gp, gp-labels, gp-binned: spread of outputs with the same inputs; learned if left out."
        ),
    ] = None,
    noise_column: LevelColumn = None,
    n_clusters: Annotated[
        int | None, typer.Option(metavar="K", help="kmeans: number of clusters; 8 if left out.")
    ] = None,
    n_components: Annotated[
        int | None, typer.Option(metavar="K", help="mixture, factors, components: how many of them.")
    ] = None,
    basis: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER", help="gp, classifier: number of basis functions; chosen from ε and n if left out."
        ),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(metavar="METHOD", help="classifier: softmax (nearly always best), labels or dirichlet."),
    ] = None,
    covariance: Annotated[
        str | None, typer.Option(metavar="TYPE", help="mixture: full (if left out), tied, diag or spherical.")
    ] = None,
    mechanism: Annotated[
        str | None, typer.Option(metavar="NAME", help="gp-labels: cloak (if left out), functional or inducing.")
    ] = None,
    ledger: Annotated[
        str | None, typer.Option(metavar="LEDGER", help="Ledger to charge, before any record is read.")
    ] = None,
    dataset: Annotated[str | None, typer.Option(metavar="NAME", help="Data set to charge in the ledger.")] = None,
    records_per_person: Annotated[
        int, typer.Option(metavar="K", help="Protect people who have up to K records each.")
    ] = 1,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fit a model to a file, charge the budget, and write the release.

    In a CSV file one line is one record (remove line breaks inside quoted fields first), and fields are separated by
    commas (tabs in a .tsv file). A cell that is not a plain number (text, "72 kg", "40,5") counts as missing, because
    whether a cell is a number is private.
    """
    from reticent.apps.binned import read_bins
    from reticent.apps.fit import fit as run
    from reticent.apps.inspection import describe, print_fit

    with progress(f"Reading {Path(data).name}", quiet=quiet):
        fitted, notes = run(
            model,
            data,
            x=x or (),
            y=y or (),
            classes=classes or (),
            norm=norm,
            epsilon=epsilon,
            delta=delta,
            own={
                "bins": read_bins(bins),
                "kind": kind,
                "protect": protect,
                "noise": noise,
                "noise_column": noise_column,
                "basis": basis,
                "method": method,
                "mechanism": mechanism,
                "n_clusters": n_clusters,
                "n_components": n_components,
                "covariance_type": covariance,
            },
            ledger=ledger,
            dataset=dataset,
            records_per_person=records_per_person,
            out=out,
        )
    if json:
        about = describe(out)[1]
        return print_json({**about, "notes": list(dict.fromkeys([*notes, *about["notes"]]))})
    if not quiet:
        print_fit(console(), fitted, notes, ledger=ledger, dataset=dataset, out=out)
    return None


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
    from reticent.apps.inspection import describe, print_model

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
    out: Annotated[Path, typer.Option(metavar="FILE", help="HTML file to write; an existing file is never replaced.")],
    ledger: Annotated[str | None, typer.Option(metavar="LEDGER", help="Ledger whose account is shown.")] = None,
    dataset: Annotated[
        str | None, typer.Option(metavar="NAME", help="Data set in it; the one the model was charged to if left out.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write the release report: one page to hand over.

    The page opens offline in any browser and holds the guarantee in plain words and exactly, the budget, the model, how good
    it is, what was public and what is not protected. It is made from the model's releases only, and charges nothing.
    """
    from reticent.apps.curve_files import is_curve
    from reticent.apps.obfuscation_report import write as write_curve
    from reticent.apps.outfile import check_new
    from reticent.apps.report import write
    from reticent.models.storage import load

    check_new(out, "Somebody may have been given it")
    with progress(f"Drawing {file.name}", quiet=quiet):
        model = load(file)
        digest = (
            write_curve(model, out, file=file)
            if is_curve(model)
            else write(model, out, file=file, ledger=ledger, dataset=dataset)
        )
    if json:
        print_json({"out": str(out), "model_sha256": digest})
    elif not quiet:
        line("Written", str(out))
        line("Model", f"SHA-256 {digest}")
        advise(f"open {out} in a browser; it needs no network and may be sent as it is")


@app.command(epilog=example("reticent predict gp.reticent new.csv --out predictions.csv"))
@guarded
def predict(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A model file that reticent fit gp, or classifier, wrote.")
    ],
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA", help="A CSV or Parquet file with the model's input columns; others are ignored."
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="CSV file to write; an existing file is never replaced.")],
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Predict the output for each line of a file.

    Writes the inputs and, line by line in the same order, for an output that is called weight: weight, its mean;
    weight_std, the standard deviation of that mean; and weight_output_std, that of a single weight (a model with a noise column
    knows that only where DATA has this column too). Numbers have the digits that tell a thousandth of a standard
    deviation. For classes no and yes of a column that is called ill: ill, the likeliest class; ill_no and ill_yes, the chance of
    each. Predictions charge nothing: they use the model's releases only. The
    inputs given here are not protected, and need not be: nothing is learned from them. They are copied to the file that is
    written.
    """
    from reticent.apps.predict import predict as run
    from reticent.apps.predict import print_prediction

    with progress(f"Predicting {Path(data).name}", quiet=quiet) as advance:
        about = run(file, data, out, advance)
    if json:
        print_json(about)
    elif not quiet:
        print_prediction(about)


app.command(
    "obfuscate",
    epilog=example(
        "reticent obfuscate orbit.csv --x time --y radius --sensitive 3.5:4.2 \\",
        "    --variance 0.01 --length 0.2 --spread 0.3 --out W.csv --report page.html \\",
        "    --ledger budget.db --dataset orbit --new-ledger",
    ),
)(guarded(obfuscate_command))

app.command("sample", epilog=example("reticent sample m.reticent -n 1000 --out synthetic.csv"))(guarded(sample_command))

app.command("audit", epilog=example("reticent audit mean --quick"))(guarded(audit_command))

app.command(
    "reproduce",
    epilog=example(
        "reticent reproduce", "reticent reproduce dpgp-inference --quick", "reticent reproduce all --out studies"
    ),
)(guarded(reproduce_command))


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors=SPELLED)  # type: ignore[union-attr]
    app(prog_name="reticent")
