"""Schema: which columns of a source a set of bounds is for.

Bounds name columns, or give their number; a source has names, or positions. Here the two are
matched, by names and shapes alone, before anything is charged; no record is read. Inputs come
first, then the column of known noise levels if there is one, then outputs or labels.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

from reticent.errors import BadInput, BoundsMissing
from reticent.privacy.columns.base import Kind
from reticent.privacy.columns.words import Labels, MissingIndicator
from reticent.privacy.sources.base import Field, Source

if TYPE_CHECKING:
    from reticent.privacy.bounds import Bounds

__all__ = ["by_position", "resolve", "shaped"]


def shaped(bounds: "Bounds", source: Source, *, targets: bool) -> Source:
    """Tell a source of lists how many columns it has: one for each range.

    Any other source knows it already.
    """
    inputs = None
    if not bounds.broadcast:
        inputs = bounds.columns_in + (bounds.noise_column is not None)
    outputs = 1
    if targets and bounds.classes is None:
        outputs = max(1, len(bounds.y))
    return source.shaped(inputs, outputs)


def resolve(
    bounds: "Bounds", source: Source, *, targets: bool
) -> tuple["Bounds", tuple[Field, ...]]:
    """Fit the bounds to a source's columns.

    Concrete bounds, and the columns to ask the source for. Looks at names and shapes only.
    ``targets`` says whether the model uses y at all; without, a noise level is not used either,
    and X may have its column or not.
    """
    source = shaped(bounds, source, targets=targets)
    bounds, fields = _inputs(bounds, source, targets=targets)
    if not targets:
        return bounds.inputs_alone(), fields
    if bounds.noise_column is not None:
        fields += tuple(filter(None, [bounds.noise_column.field(source, len(bounds.x))]))
    return bounds, fields + _outputs(bounds, source, fields)


def by_position(bounds: "Bounds") -> tuple["Bounds", tuple[Field, ...]]:
    """Bounds and columns of records that are rows: inputs, a noise level, then outputs or a label.

    For streams and bandits, which have no source. Beside a number that may be missing stands
    whether it is.
    """
    given = bounds.columns_in
    concrete, fields = _with_indicators(bounds, range(given))
    if concrete.x_kinds == bounds.x_kinds:
        concrete = bounds
    if bounds.noise_column is not None:
        fields += (Field(given, bounds.noise_column.kind),)
        given += 1
    outputs = enumerate(_output_kinds(bounds))
    return concrete, fields + tuple(Field(given + i, kind) for i, kind in outputs)


def _inputs(
    bounds: "Bounds", source: Source, *, targets: bool
) -> tuple["Bounds", tuple[Field, ...]]:
    """Bounds with a range and a name for each input, and the inputs' columns."""
    noise = bounds.noise_column
    if bounds.x_names is not None:
        given = bounds.given_inputs()
        needed = tuple(bounds.x_names[i] for i in given)
        if noise is not None and targets:
            needed += (str(noise.name),)
        _need_names(source, "x", needed)
        return _with_indicators(bounds, [bounds.x_names[i] for i in given])
    outputs = _named_outputs(bounds, source) if targets else []
    apart = {*outputs, *source.apart}
    places = [i for i in range(source.width - source.targets) if i not in apart]
    known = bounds.columns_in + (noise is not None)
    found = len(places)
    if not bounds.broadcast and found != known and (targets or found != bounds.columns_in):
        raise BadInput(
            f"X has {found} features, but the bounds are for {known}: give one range per "
            "column, or choose columns by name, as in Bounds(x={'age': (0, 110)})."
        )
    names = source.names
    if noise is not None and found == known:
        at = places.pop(noise.at)
        noise = replace(noise, name=None if names is None else names[at])
    kinds = bounds.x_kinds
    if bounds.broadcast:
        kinds = bounds.x_kinds * len(places)
    else:
        kinds = tuple(bounds.x_kinds[i] for i in bounds.given_inputs())
    concrete = bounds.with_columns(
        kinds,
        None if names is None else tuple(names[i] for i in places),
        noise,
    )
    return _with_indicators(concrete, places)


def _with_indicators(
    bounds: "Bounds", keys: Sequence[str | int]
) -> tuple["Bounds", tuple[Field, ...]]:
    """Bounds and fields of the inputs; beside a number that may be missing, whether it is."""
    kinds: list[Kind] = []
    names: list[str] = []
    fields: list[Field] = []
    for key, i in zip(keys, bounds.given_inputs(), strict=True):
        kind = bounds.x_kinds[i]
        name = "" if bounds.x_names is None else bounds.x_names[i]
        columns = [(kind, name)]
        if kind.keep_missing and kind.levels is None:
            columns.append((MissingIndicator(kind), f"{name} is missing"))
        for one, called in columns:
            kinds.append(one)
            names.append(called)
            fields.append(Field(key, one))
    concrete = bounds.with_columns(
        tuple(kinds), None if bounds.x_names is None else tuple(names), bounds.noise_column
    )
    return concrete, tuple(fields)


def _named_outputs(bounds: "Bounds", source: Source) -> list[int]:
    """Positions of the outputs that stand among the inputs, by name."""
    if source.targets:
        return []
    names = source.names or ()
    return [source.position(name) for name in bounds.y_names or () if name in names]


def _outputs(bounds: "Bounds", source: Source, inputs: tuple[Field, ...]) -> tuple[Field, ...]:
    """Columns of the outputs, or of the label. None of them is among the inputs."""
    wanted = 1
    if bounds.classes is None:
        wanted = len(bounds.y)
    if not wanted:
        raise BoundsMissing(
            "The outputs have no bounds, and reticent never takes them from the data (that "
            "would leak the extreme records). Give their plausible range, for example "
            "Bounds(x=..., y=(0, 150)), or classes=[...] for labels."
        )
    if source.targets:
        if source.targets != wanted:
            raise BadInput(f"y has {source.targets} columns, but the bounds are for {wanted}.")
        first = source.width - source.targets
        return tuple(Field(first + i, kind) for i, kind in enumerate(_output_kinds(bounds)))
    if bounds.y_names is None:
        raise BadInput(
            "The model requires y to be passed, but the target y is None, "
            "and its bounds have no column name: pass y, or name its "
            "column in the bounds, as in y={'weight': (2, 150)}."
        )
    _need_names(source, "y", bounds.y_names)
    outputs = _named_outputs(bounds, source)
    for field in inputs:  # a model of labels would hand its inputs over, and the label with them
        if source.position(field.key) in outputs:
            raise BadInput(
                f"Column {field.key!r} is both an input and the output: a column can be "
                "one of them. Take it out of x."
            )
    kinds = _output_kinds(bounds)
    return tuple(Field(name, kind) for name, kind in zip(bounds.y_names, kinds, strict=True))


def _output_kinds(bounds: "Bounds") -> tuple[Kind, ...]:
    if bounds.classes is not None:
        return (bounds.class_kind or Labels(bounds.classes),)
    return bounds.y_kinds


def _need_names(source: Source, what: str, names: Iterable[str]) -> None:
    if source.names is None:
        raise BadInput(
            f"The bounds of {what} are by name, but the data have no column names: pass a data "
            "frame, or bounds as a list."
        )
    for name in names:
        if name not in source.names:
            raise BadInput(
                f"There is no column {name!r}. Columns: {', '.join(source.names)}."
                f"{_hint(name, source.names)}"
            )


def _hint(name: str, names: tuple[str, ...]) -> str:
    """What may have been meant by a column that is not there."""
    close = get_close_matches(name.lower(), [known.lower() for known in names], 1)
    meant = [known for known in names if known.lower() in close]
    if meant:
        return f" Did you mean {meant[0]!r}?"
    return ""
