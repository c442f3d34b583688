"""``reticent plan``: which error to expect from which ε, told to a person, a machine or a file."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, hypot, inf, log, log10
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from reticent.cli.columns import DATA_OPTIONS, DataOptions
from reticent.cli.options import UNIT
from reticent.cli.parsing.unit_options import check_unit_columns, parse_unit, unit_words
from reticent.cli.terminal import advise, aside, console, indented, line, table
from reticent.errors import BadInput, BoundsMissing
from reticent.files.output import check_new, new_text
from reticent.privacy.bounds import Bounds
from reticent.privacy.unit import PrivacyUnit
from reticent.reporting.formatting import decimal_places, format_short

if TYPE_CHECKING:
    from reticent.planning.contributions import Contribution
    from reticent.planning.plan import Plan

__all__ = [
    "Question",
    "answers",
    "check_out",
    "parse_numbers",
    "parse_question",
    "print_plan",
    "write_plan",
]

_KINDS = (".png", ".svg", ".html")
_USUAL_WEIGHT = 0.5  # of the bound: what a plan assumes of weights on average, and says
_HEADINGS = ("basis", "error of the mean", "least – most", "of one output", "in 95 % bands")
_READ_AS = (
    "Error of the mean: how far the curve will be off, on average over the functions drawn; and "
    "the least and most of these, since some are easier than others. Of one output: how far single "
    "records will be from it. In 95 % bands: how much of the true curve they will hold. A guess: "
    "the curve that is drawn without any data. Basis: functions it is made of."
)


@dataclass(frozen=True)
class Question:
    """What was asked on the command line, checked.

    A model to plan, numbers of records, values of ε.
    """

    model: Any
    n: list[int]
    epsilons: list[float]
    options: str  # those that reticent fit has, too
    bases: list[int] | None = None
    records_guess: list[int] | None = None  # numbers of records of a person, equally frequent

    @property
    def noun(self) -> str:
        """What there are n of: records or people."""
        if self.model.person is not None:
            return "people"
        return "records"

    @property
    def weight(self) -> float:
        """How much a person or record counts on average."""
        share = 1.0
        if self.records_guess is not None and self.model.contribution > 1:
            from reticent.planning.contributions import total_weight

            share = total_weight(self.records_guess, self.model.contribution)
        if self.model.weight is not None:
            share *= _USUAL_WEIGHT
        return share

    def contributions(self) -> "list[Contribution]":
        """What each contribution costs; nothing without a guess of records per person."""
        if self.records_guess is None:
            return []
        from reticent.planning.contributions import contributions

        return contributions(
            self.n[-1], self.records_guess, self.epsilons, self.model.delta, self.model.neighbours
        )

    def fits(self, draws: int) -> int:
        """How many simulated fits the answer takes."""
        return len(self.n) * len(self.bases or [0]) * (len(self.epsilons) + 1) * draws

    def check(self, draws: int, error: float | None) -> None:
        """Refuse what makes no sense before any work."""
        if draws < 1:
            raise BadInput(f"--draws must be at least 1, not {draws}.")
        if error is not None and not 0 < error < inf:
            raise BadInput(
                f"--error must be a positive number, in the units of {self.output}, not {error:g}."
            )
        from sklearn.base import clone

        clone(self.model).set_params(epsilon=1.0)._event()

    def answer(self, draws: int, advance: Callable[[int], None]) -> "Plan":
        """Simulate."""
        from reticent.planning.plan import plan

        return plan(
            self.model,
            self.n,
            self.epsilons,
            draws=draws,
            progress=advance,
            basis=self.bases,
            weight=self.weight,
        )

    def fit(self, epsilon: float, found: "Plan") -> str:
        """The command that does what was planned, with the best basis if some were compared."""
        near = min(found.rows, key=lambda row: (-row.n, abs(log(row.epsilon / epsilon)), row.rmse))
        if self.bases:
            basis = f" --basis {near.basis}"
        else:
            basis = ""
        return (
            f"reticent fit gp FILE {self.options}{basis} --epsilon {epsilon:g} --delta "
            f"{self.delta} --out m.reticent"
        )

    @property
    def delta(self) -> str:
        """δ in a few letters."""
        return format_short(self.model.delta)

    @property
    def output(self) -> str:
        """The name of the output."""
        return str(self.model.bounds.y_names[0])

    @property
    def inputs(self) -> str:
        """The names of the inputs."""
        return ", ".join(self.model._bounds().x_names)

    def assumptions(self, found: "Plan") -> str:
        """What the expected errors rest on."""
        low, high = self.model.bounds.y[0]
        if self.model.noise_column is None:
            how = "--noise changes that"
        else:
            how = "by levels of their own, evenly on a log scale"
        return (
            f"Expected on average over {found.draws} functions drawn from the model's own prior, "
            f"inside {self.output} {low:g} – {high:g}, with {self.inputs} spread evenly and single "
            f"outputs spread by {format_short(found.noise)} around the function ({how}). "
            "The function "
            "is the mean of outputs with the same inputs. Real functions may be easier or harder, "
            f"as those drawn are.{self._about_people()} No record was read, nothing was charged."
        )

    def _about_people(self) -> str:
        """What is assumed of people's records and of weights."""
        words = ""
        if self.model.person is not None:
            words += (
                " People are made up with one record each; if they have more, errors are no larger."
            )
        if self.model.weight is not None:
            words += f" Weights are assumed to be {_USUAL_WEIGHT:.0%} of their bound on average."
        return words


def parse_numbers(option: str, text: str, kind: type) -> list[Any]:
    """Read a list of positive numbers.

    >>> parse_numbers("--epsilon", "0.1,1", float)
    [0.1, 1.0]
    """
    try:
        values = [kind(part) for part in text.replace("_", "").split(",")]
    except ValueError:
        values = []
    if not values or not all(0 < value < float("inf") for value in values):
        if kind is int:
            what = "whole numbers"
        else:
            what = "numbers"
        raise BadInput(
            f"{option} takes positive {what} with commas between them, for "
            f"example {option} 1,10, not {text!r}."
        )
    return sorted(set(values))


def parse_question(
    x: Sequence[str],
    y: Sequence[str],
    n: str | None,
    epsilon: str,
    *,
    delta: float | None,
    basis: str | None = None,
    **own: Any,
) -> Question:
    """Check what was asked; ``own`` are parameters of the model and of its bounds."""
    about = {name: own.pop(name) for name in DATA_OPTIONS if name in own}
    level = own["noise_column"]
    said = DataOptions.read(x=x, y=y, **about)
    columns = said.columns(outputs=True, labels=False, noise_column=level)
    own["noise_column"] = columns.noise_column
    inputs = [name for name in columns.x if name != columns.noise_column]
    outputs = columns.y
    if not inputs or not outputs:
        if not inputs:
            what = "each input"
            missing = "--x age=0:110"
        else:
            what = "the output"
            missing = "--y weight=2:150"
        raise BoundsMissing(
            f"a plan needs the range of {what}, from the codebook or common knowledge, for example "
            f"{missing}: the privacy noise depends on it."
        )
    if n is None:
        raise BadInput(
            "How many records will there be? Give --n, for example --n 5000, "
            "or --n 1000,5000 to compare; with --person, the number of people. It need not be "
            "exact here."
        )
    if basis is None:
        bases = None
    else:
        bases = parse_numbers("--basis", basis, int)
    sizes = parse_numbers("--n", n, int)
    epsilons = parse_numbers("--epsilon", epsilon, float)
    norm = own.pop("norm")
    unit = parse_unit(**{name: own.pop(name) for name in UNIT}, codebook=said.codebook)
    check_unit_columns(unit, (), (*columns.x, *outputs), "")
    guess = _records_guess(own.pop("records_guess"), unit)
    bounds = Bounds(x=columns.x, y=outputs, norm=norm)
    from reticent.models.gp.regressor import GPRegressor
    from reticent.planning.simulated_fits import DELTA

    whom = unit.to_dict()
    whom.pop("relation")  # the model's own
    model = GPRegressor(bounds=bounds, delta=DELTA if delta is None else delta, **whom, **own)
    options = (
        [f"--x {quote(one)}" for one in x]
        + [f"--y {quote(one)}" for one in y]
        + ([] if said.codebook is None else [f"--codebook {quote(said.codebook.path)}"])
        + [f"--keep-missing {quote(one)}" for one in said.keep_missing]
        + ([] if norm is None else [f"--norm {norm:g}"])
    )
    if own["noise"] is not None:
        options.append(f"--noise {own['noise']:g}")
    if level is not None:
        options.append(f"--noise-column {quote(level)}")
    options += unit_words(unit)
    return Question(model, sizes, epsilons, " ".join(options), bases, guess)


def _records_guess(text: str | None, unit: PrivacyUnit) -> list[int] | None:
    """Numbers of records of a person, each about equally frequent."""
    if text is None:
        if unit.contribution > 1:
            raise BadInput(
                "--contribution in a plan needs --records-per-person-guess, a public guess of how "
                "many records people have, for example --records-per-person-guess 1,2,10: how much "
                "weight there is follows from it."
            )
        return None
    if unit.person is None:
        raise BadInput("--records-per-person-guess goes with --person, the column of people.")
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and int(part) > 0 for part in parts):
        raise BadInput(
            "--records-per-person-guess takes whole numbers with commas between them, for example "
            f"1,2,10, not {text!r}."
        )
    return [int(part) for part in parts]


def _table_lines(found: "Plan") -> list[tuple[str, ...]]:
    """The table, line by line: n, ε, number of functions, and what to expect."""
    lines: list[tuple[str, ...]] = []
    for n in sorted({row.n for row in found.rows}):
        rows = [row for row in found.rows if row.n == n]
        digits = min(max(decimal_places(min(row.rmse for row in rows)) + 1, 0), 6)

        def cells(
            n: int, name: str, functions: str, error: float, digits: int = digits
        ) -> tuple[str, ...]:
            return (
                f"{n:,}",
                name,
                functions,
                f"{error:,.{digits}f}",
                "",
                f"{hypot(error, found.noise):,.{digits}f}",
                "",
            )

        each = len(rows) // len(found.bases)
        for start in range(0, len(rows), each):
            for row in rows[start : start + each]:
                error = f"{row.rmse:,.{digits}f} ± {row.rmse_se:,.{digits}f}"
                reach = f"{row.rmse_least:,.{digits}f} – {row.rmse_most:,.{digits}f}"
                output = f"{row.output_error:,.{digits}f}"
                inside = f"{100 * row.coverage:.0f} %"
                lines.append(
                    (f"{n:,}", f"{row.epsilon:g}", f"{row.basis}", error, reach, output, inside)
                )
            if found.bases == (None,):
                same = ""
            else:
                same = f"{rows[start].basis}"
            lines.append(cells(n, "no privacy", same, rows[start].non_private_rmse))
        lines.append(cells(0, "a guess", "", rows[0].prior_sd))
    return lines


def print_plan(
    asked: Question, found: "Plan", answers: Sequence[str], error: float | None, *, quiet: bool
) -> None:
    """Show a plan to a person; ``answers`` are those for this ``error``."""
    from rich.text import Text

    screen = console()
    several = len(asked.n) > 1
    if several:
        size = ""
    else:
        size = f", {asked.n[0]:,} {asked.noun}"
    screen.print(
        Text.assemble(
            ("Plan", "bold"), f" for {asked.output} from {asked.inputs}{size}, δ={asked.delta}\n"
        )
    )
    if several:
        rows = table(asked.noun, "ε", *_HEADINGS, left=0)
    else:
        rows = table("ε", *_HEADINGS)
    for cells in _table_lines(found):
        private = cells[1][0].isdigit()
        rows.add_row(
            *(Text(cell, "" if private else "dim") for cell in (cells if several else cells[1:]))
        )
    screen.print(indented(rows))
    print()
    aside(_READ_AS)
    print()
    aside(asked.assumptions(found))
    _print_contributions(screen, asked)
    for note in found.notes:
        screen.print()
        screen.print(indented(f"Note: {note}"))
    if answers:
        print()
    for words in answers:
        line("Answer", words)
    if not quiet:
        advise(asked.fit(_starting_epsilon(asked, found, error), found))


def _print_contributions(screen: Any, asked: Question) -> None:
    """Which contribution to take for answers about records, and for answers about people."""
    from rich.text import Text

    if asked.noun != "people":
        return
    compared = asked.contributions()
    screen.print()
    if not compared:
        aside(
            "Contribution: 1 for answers about people, always. For answers about records, "
            "--records-per-person-guess compares others."
        )
        return
    best = {
        epsilon: min((one for one in compared if one.epsilon == epsilon), key=lambda one: one.error)
        for epsilon in asked.epsilons
    }
    noise = [f"noise at ε={epsilon:g}" for epsilon in asked.epsilons]
    rows = table("contribution", "records kept", *noise)
    for c in dict.fromkeys(one.contribution for one in compared):
        own = [one for one in compared if one.contribution == c]
        cells = [
            Text(f"{100 * one.noise:.2g} %", "bold" if best[one.epsilon] is one else "")
            for one in own
        ]
        marked = [
            Text.assemble(cell, " *" if best[one.epsilon] is one else "  ")
            for cell, one in zip(cells, own, strict=True)
        ]
        rows.add_row(str(c), f"{100 * own[0].kept:.0f} %", *marked)
    screen.print(indented(rows))
    screen.print()
    from reticent.planning.contributions import DIFFERENCE

    aside(
        "Answers about people: contribution 1, always. Answers about records: noise is that in the "
        "mean of one column, by its range; records kept is how much of the records' weight counts "
        "as if all were alike. The star is where both together are expected to do least harm, if "
        f"people with many records differ from others by {DIFFERENCE:.0%} of the range: a guess, "
        "and yours to make. If they do not differ, 1 is best."
    )


def _starting_epsilon(asked: Question, found: "Plan", error: float | None) -> float:
    """The ε of the command to start from: the one that the error needs, rounded up.

    Or the one nearest to one.
    """
    if error is None:
        needed = None
    else:
        needed = found.epsilon_for(error, n=asked.n[-1]).value
    if needed is None:
        return min(asked.epsilons, key=lambda epsilon: abs(epsilon - 1))
    step = 10.0 ** (floor(log10(needed)) - 1)
    return float(f"{ceil(needed / step - 1e-9) * step:.2g}")


def answers(asked: Question, found: "Plan", error: float) -> list[str]:
    """Which ε, and how many records, an error needs, and why; in words."""
    told = []
    for n in asked.n:
        epsilon, why = found.epsilon_for(error, n=n)
        words = f"an error of {error:g} with {n:,} {asked.noun} "
        if epsilon is None:
            told.append(f"{words}is out of reach: {why}")
        else:
            less = epsilon <= asked.epsilons[0]
            told.append(
                f"{words}needs "
                f"{f'ε={epsilon:g} or less' if less else f'about ε={epsilon:.2g}: {why}'}"
            )
    last = found.epsilon_for(error, n=asked.n[-1]).value
    smaller = [epsilon for epsilon in asked.epsilons if last is None or epsilon < last]
    if smaller:
        records, why = found.records_for(error, smaller[-1])
        if records is not None:
            needs = f"about {_two_digits(records):,} {asked.noun}"
        else:
            needs = "more than we can tell"
        told.append(f"at ε={smaller[-1]:g} it needs {needs}{': ' if why else ''}{why}")
    return told


def _two_digits(number: float) -> int:
    """Two digits: it is an estimate."""
    return int(float(f"{number:.1e}"))


def check_out(out: Path) -> None:
    """Find out before any work whether the picture can be written."""
    if out.suffix not in _KINDS:
        raise BadInput(f"--out takes a name that ends in {', '.join(_KINDS)}, not {out.name!r}.")
    check_new(out, "It is not replaced")


def write_plan(asked: Question, found: "Plan", out: Path) -> None:
    """Write the picture, or a page with the table and the picture."""
    from reticent.reporting.figures.style import raw_svg

    figure = found.figure()
    if out.suffix == ".png":
        figure.savefig(out, dpi=200)
        return
    picture = raw_svg(figure)
    with new_text(out) as file:
        file.write(
            picture
            if out.suffix == ".svg"
            else _plan_page(asked, found, picture[picture.index("<svg") :])
        )


def _plan_page(asked: Question, found: "Plan", picture: str) -> str:
    def cells(tag: str, texts: Sequence[str]) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(text)}</{tag}>" for text in texts) + "</tr>"

    title = escape(f"Plan for {asked.output} from {asked.inputs}, δ={asked.delta}")
    rows = "\n".join(cells("td", one) for one in _table_lines(found))
    notes = "\n".join(f"<p>Note: {escape(note)}</p>" for note in found.notes)
    return f"""<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
body {{ font: 1rem/1.5 system-ui, sans-serif; max-width: 46rem; margin: 3rem auto;
  padding: 0 1rem }}
body {{ color: #1b2430; background: #fefefe }}
svg {{ width: 100%; height: auto }} table {{ border-collapse: collapse; width: 100% }}
td, th {{ text-align: right; padding: .3rem .6rem; border-bottom: 1px solid #d3d9e1;
  font-weight: normal }}
th {{ color: #566070 }}
</style>
<h1>{title}</h1>
{picture}
<table>{cells("th", (asked.noun, "ε", *_HEADINGS))}
{rows}
</table>
<p>{escape(asked.assumptions(found))}</p>
{notes}
</html>
"""
