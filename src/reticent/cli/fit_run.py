"""``reticent fit``: from a file and its public bounds to a model file, paid for and charged."""

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import reticent
from reticent.about import ABOUT, checked_about
from reticent.cli.captured_warnings import captured_warnings
from reticent.cli.class_labels import as_the_column_has_them
from reticent.cli.columns import DataOptions, column_name, split_name
from reticent.cli.data_names import data_name
from reticent.cli.files.model_files import check_place, save_or_rescue
from reticent.cli.model_words import MODEL_WORDS, ModelWord, model_word
from reticent.cli.options import UNIT
from reticent.cli.parsing.column_hints import check_codebook, check_columns
from reticent.cli.parsing.unit_options import check_unit_columns, parse_unit
from reticent.cli.table_columns import TABLE_COLUMNS, table_columns
from reticent.codebook import Codebook, read_codebook
from reticent.errors import BadFile, BadInput, BoundsMissing, LedgerError
from reticent.privacy.bounds import Bounds
from reticent.privacy.columns.words import YesNo
from reticent.privacy.people.unit import PrivacyUnit
from reticent.privacy.sources.base import Source
from reticent.validation import check_epsilon_delta

if TYPE_CHECKING:
    from reticent.privacy.ledger.ledger import Entry

__all__ = ["checked", "fit"]


@dataclass(frozen=True)
class FitRequest:
    """What was asked of ``reticent fit``, checked as far as that needs no model: see `checked`."""

    model: ModelWord
    source: Source
    bounds: Bounds
    options: Mapping[str, Any]  # the model's own
    unit: PrivacyUnit
    about: Mapping[str, str] | None  # public text for readers of the release


def checked(
    word: str,
    data: str,
    *,
    x: Sequence[str],
    y: Sequence[str],
    classes: Sequence[str],
    norm: float | None,
    epsilon: float | None,
    delta: float | None,
    own: Mapping[str, Any],
    ledger: str | None,
    dataset: str | None,
    **rest: Any,
) -> FitRequest:
    """Refuse what is wrong with a request, before models and what they need are imported.

    ``x``, ``y`` and ``classes`` are the texts of the options; ``own`` the model's own options, None
    where they were left out; ``rest`` says who is protected (`UNIT`), what readers of the release
    are told (`ABOUT`), and how the file is read (`DataOptions`).
    """
    model = model_word(word)
    protected = {name: rest.pop(name) for name in UNIT if name in rest}
    about = {name: rest.pop(name) for name in ABOUT if name in rest}
    about_data = rest
    for name, value in own.items():
        if value is not None and name not in model.options:
            raise BadInput(f"{word} has no option --{name.replace('_', '-')}: leave it out.")
    predicts = model.outputs and own.get("kind") != "count"
    _check_targets(word, model, y, classes, predicts=predicts)
    given = [("--x", x), ("--y", y), ("--classes", classes)]
    if "by" in model.options:
        given += [(f"--{name}", own.get(name) or ()) for name in TABLE_COLUMNS]
        codebook = about_data.get("codebook")
        x, own = table_columns(x, own, None if codebook is None else read_codebook(codebook))
    said = DataOptions.read(x=x, y=y, classes=classes, **about_data)
    unit = parse_unit(**protected, codebook=said.codebook)
    text = _about(about, said.codebook)
    columns = said.columns(
        outputs=predicts,
        labels=model.labels,
        noise_column=own.get("noise_column"),
        alike=not model.outputs,
        unit=unit,
    )
    source = said.scan(data, unit)
    names = source.names or ()
    inputs = [name for name in columns.x if name != columns.noise_column]
    outputs = columns.y
    labels = columns.classes
    if not inputs:
        raise _not_given("inputs", data, names, outputs or labels)
    if predicts and not (outputs or labels):
        missing = "classes" if model.labels else "output"
        if said.codebook is not None:
            raise _not_chosen(missing, said.codebook)
        raise _not_given(missing, data, _likely(missing, source), columns.x)
    for option, texts in given:
        check_columns(option, texts, names, data_name(data))
    check_codebook(said.codebook, (*columns.x, *outputs, *labels), names, data_name(data))
    check_unit_columns(unit, names, (*columns.x, *outputs, *labels), data_name(data))
    _check_promise(epsilon, delta)
    if (ledger is None) != (dataset is None):
        raise BadInput(
            "Give both --ledger and --dataset, or neither: a charge needs an account to go to."
        )
    listed = {
        name: known if isinstance(known, YesNo) else as_the_column_has_them(known, source, name)
        for name, known in labels.items()
    }
    bounds = Bounds(x=columns.x, y=outputs or None, classes=listed or None, norm=norm)
    _check_data(source, bounds, data, unit, targets=predicts)
    options = {name: value for name, value in own.items() if value is not None}
    if columns.noise_column is not None:
        options["noise_column"] = columns.noise_column
    return FitRequest(model, source, bounds, options, unit, text)


def _about(given: Mapping[str, str | None], codebook: Codebook | None) -> dict[str, str] | None:
    """Public text for readers of the release: of the options, else of the codebook."""
    texts = {} if codebook is None else dict(codebook.release)
    for name, text in given.items():
        if text is None:
            continue
        try:
            checked_about({name: text})
        except BadInput as error:
            option = f"--{name.replace('_', '-')}"
            raise BadInput(str(error).replace(f"about[{name!r}]", option)) from None
        texts[name] = text
    return checked_about(texts) or None


def _check_targets(
    word: str,
    model: ModelWord,
    y: Sequence[str],
    classes: Sequence[str],
    *,
    predicts: bool,
) -> None:
    """Refuse ``--y`` and ``--classes`` where the model predicts nothing, or something else."""
    if y and not predicts:
        raise BadInput(f"{word} has no outputs: leave --y out, or give the column with --x.")
    if y and model.labels:
        listed = quote(f"{column_name(split_name(y[0])[0])}=no,yes")
        raise BadInput(
            f"{word} predicts labels, which have no range: in place of --y {y[0]} list all labels "
            f"that can stand in the column, for example --classes {listed}; or predict numbers, "
            "with reticent fit gp."
        )
    if classes and not model.labels:
        able = " or ".join(
            f"reticent fit {other}" for other, one in MODEL_WORDS.items() if one.labels
        )
        raise BadInput(
            f"{word} does not predict labels: leave --classes out. Models that do: {able}."
        )


def fit(
    word: str,
    data: str,
    *,
    epsilon: float | None,
    delta: float | None,
    ledger: str | None,
    dataset: str | None,
    out: Path,
    sign: Path | None = None,
    wrap: Callable[[Any], Any] = lambda estimator: estimator,
    advance: Callable[[int], None] | None = None,
    **asked: Any,
) -> tuple[Any, list[str], str]:
    """Fit the model that is called ``word`` and save it.

    Give it, what should be noted, and how the file was read.

    ``asked`` are the remaining options (see `checked`). ``wrap`` may make something else of the
    estimator, such as a search; ``advance`` hears of each release where these are slow. All that
    can be known before is checked before anything is charged.
    """
    promise = {"epsilon": epsilon, "delta": delta, "ledger": ledger, "dataset": dataset}
    request = checked(
        word, data, epsilon=epsilon, delta=delta, ledger=ledger, dataset=dataset, **asked
    )
    check_place(out)
    from reticent.models.base import IncompleteRecords

    if sign is not None:
        from reticent.models.signature import private_key

        private_key(sign)  # refuses what cannot be signed with
    unit = request.unit.to_dict()
    unit.pop("relation")  # the model's own
    estimator = getattr(reticent, request.model.estimator)(
        bounds=request.bounds, about=request.about, **unit, **promise, **request.options
    )
    estimator = wrap(estimator)
    estimator._event()  # refuses parameters that make no sense
    charged = _Charged(ledger, dataset)
    try:
        with captured_warnings(IncompleteRecords) as notes:  # the presenter tells these
            _fit_with_progress(estimator, request.source, advance)
        save_or_rescue(estimator, out, charged.words, sign=sign)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(charged.words()) from None
    return estimator, notes, _read_as(request.source, data)


def _fit_with_progress(
    estimator: Any, source: Source, advance: Callable[[int], None] | None
) -> None:
    if advance is not None:
        estimator._listen = advance
    try:
        estimator.fit(source)
    finally:
        estimator.__dict__.pop("_listen", None)


def _read_as(source: Source, data: str) -> str:
    """How the cells of a text file were read.

    Said always, because whether any is not a number is private.
    """
    if source.kind(0) != ("any", "text"):
        return ""  # the file itself says which columns hold numbers
    return (
        f"{data_name(data)} is text: a cell that is not what was said of its column (a word among "
        "numbers, 72 kg, a word that is not listed) counted as missing, and a record that lacks a "
        "value was left out. Which did is private. If you may see the records, reticent check "
        "shows how the file is read."
    )


def _check_promise(epsilon: float | None, delta: float | None) -> None:
    """Ask for what was not given."""
    missing = []
    if epsilon is None:
        missing.append("--epsilon, for example --epsilon 1 (smaller protects more)")
    if delta is None:
        missing.append(
            "--delta, the chance that the promise may fail: well below 1/(number of records), for "
            "example --delta 1e-6"
        )
    if not missing:
        check_epsilon_delta(epsilon, delta, pure=True)
    else:
        if len(missing) == 2:
            why = "There are no defaults, because both are"
        else:
            why = "There is no default, because it is"
        raise BadInput(
            f"How strong shall the promise be? Give {'; and '.join(missing)}. "
            f"{why} yours to decide."
        )


class _Charged:
    """What was charged to an account since this object was made."""

    def __init__(self, ledger: str | None, dataset: str | None) -> None:
        self._ledger = ledger
        self._dataset = dataset
        self._before = len(self._history())

    def _history(self) -> "list[Entry]":
        if self._ledger is None or self._dataset is None:
            return []
        from reticent.privacy.ledger.ledger import Ledger

        return Ledger(self._ledger).history(self._dataset)

    def words(self) -> str:
        if self._ledger is None:
            return "There is no ledger (--ledger), so nothing was charged anywhere."
        try:
            new = self._history()[self._before :]
        except LedgerError:
            return (
                f"The ledger cannot be asked now. What was charged to data set {self._dataset!r} "
                "stays charged: reticent ledger history shows it."
            )
        if not new:
            return f"Nothing was charged to data set {self._dataset!r}."
        what = "; ".join(f"entry {entry.number}, {entry.what}, {entry.event.kind}" for entry in new)
        return f"Charged to data set {self._dataset!r}, and stays charged: {what}."


def _check_data(
    source: Source, bounds: Bounds, data: str, unit: PrivacyUnit, *, targets: bool
) -> None:
    """Tell a fault of the file (exit code 5) from wrong use (2).

    The curator checks it all again. Whether there are records is told only where their number, or
    that of people, is public.
    """
    fields = bounds.resolve(source, targets=targets)[1]
    try:
        source.check(fields)
    except BadInput as error:
        raise BadFile(f"{data_name(data, whole=True)}: {error}") from None
    if source.known_n == 0 and unit.number_is_public:
        raise BadFile(f"{data_name(data, whole=True)} has no records.")


_NEVER = "and reticent never takes them from the data (that would leak the extreme records).\n"
# what was not given: words, the option that gives it, what to put there, and columns
# that we know something of
_MISSING = {
    "inputs": (
        f"the inputs have no bounds, {_NEVER}Give each input column its plausible range, or its "
        "words (sex=F,M), from the codebook or common knowledge",
        "--x",
        "LOW:HIGH",
        {"age": "0:110", "height": "40:220"},
    ),
    "output": (
        f"the output has no bounds, {_NEVER}Say which column of numbers to predict, and its "
        "plausible range, from the codebook or common knowledge",
        "--y",
        "LOW:HIGH",
        {"weight": "2:150"},
    ),
    "classes": (
        "the classes are not given, and reticent never takes them from the data (a label that one "
        "person has would tell of them).\nSay which column to predict, and all labels that can "
        "stand in it, from the codebook",
        "--classes",
        "LABEL,LABEL",
        {"ill": "no,yes"},
    ),
}


def _likely(what: str, source: Source) -> list[str]:
    """Names of columns; numbers first for an output, others first for classes, by the schema."""
    names = list(source.names or ())
    numbers = {name for name in names if source.kind(source.position(name))[0] == "number"}
    return sorted(names, key=lambda name: (name in numbers) == (what == "classes"))


def _not_chosen(what: str, codebook: Codebook) -> BoundsMissing:
    """The refusal where a codebook describes the columns, and none is to be predicted."""
    if what == "classes":
        option = "--classes"
        use = "class"
        able = [name for name, kind in codebook.kinds.items() if kind.levels is not None]
    else:
        option = "--y"
        use = "y"
        able = [name for name, kind in codebook.kinds.items() if kind.has_output_range]
    words = f'which column is to be predicted? {codebook.path} has none whose use is "{use}"'
    if not able:
        kinds = "words" if what == "classes" else "numbers"
        return BoundsMissing(f"{words}, and none of {kinds}, which it would have to be.")
    example = f"{option} {quote(column_name(able[0]))}"
    return BoundsMissing(
        f'{words}: give it that, use = "{use}", or name it here, for example {example}. Columns '
        f"that can be: {', '.join(able)}."
    )


def _not_given(what: str, data: str, names: Sequence[str], taken: Container[str]) -> BoundsMissing:
    """The refusal, with an example for columns of this file that are not taken yet."""
    words, option, value, known = _MISSING[what]
    free = [name for name in names if name not in taken]
    if known.keys() <= set(free) or not free:
        shown = known
    else:
        shown = dict.fromkeys(free[: len(known)], value)
    example = " ".join(
        f"{option} {quote(f'{column_name(name)}={value}')}" for name, value in shown.items()
    )
    if what == "classes":
        more = "A record whose label is missing or not listed is left out.\n"
    else:
        more = ""
    columns = (
        f"Columns in {data_name(data)}: {', '.join(names)} (column names are treated as public)."
    )
    return BoundsMissing(f"{words}, for example\n      {example}\n{more}{columns}")
