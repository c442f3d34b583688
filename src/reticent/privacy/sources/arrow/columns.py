"""Columns of Arrow's record batches: what may be read as what, and the codes of their cells.

The same code for Parquet files, streams, lazy frames and databases. Proof: reading.md, 6.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reticent.privacy.columns.base import Kind
from reticent.privacy.columns.identifiers import Identifier
from reticent.privacy.sources.base import DtypeKind, Field
from reticent.privacy.sources.cell_values import Column
from reticent.privacy.sources.codes import TextColumns, code_array, code_texts

__all__ = ["arrow_codes", "arrow_kind", "batch_codes"]


def arrow_kind(kind: pa.DataType) -> DtypeKind:
    """Return what an Arrow type says of a column."""
    t = pa.types
    if t.is_integer(kind) or t.is_floating(kind) or t.is_decimal(kind) or t.is_boolean(kind):
        return "number"
    if t.is_dictionary(kind):
        return "category"
    if _is_text(kind):
        return "text"
    if t.is_date(kind) or t.is_timestamp(kind):
        return "moment"
    return "other"


def batch_codes(
    batch: pa.RecordBatch, names: Sequence[str], fields: Sequence[Field]
) -> NDArray[np.float64]:
    """Return the codes of a batch, shape ``(rows, fields)``; ``names`` are the fields' columns."""
    block = np.empty((batch.num_rows, len(fields)))
    texts = TextColumns(batch.column)
    for place, (name, field) in enumerate(zip(names, fields, strict=True)):
        cells = batch.column(name)
        if _is_text(cells.type):
            block[:, place] = texts.codes(name, field.kind)
        else:
            block[:, place] = arrow_codes(cells, field.kind)
    return block


def arrow_codes(cells: pa.Array, kind: Kind | None) -> Column:
    """Return the codes of a column of a batch."""
    if pa.types.is_dictionary(cells.type):
        return _dictionary_codes(cells, kind)
    if _is_text(cells.type):
        return code_texts(cells, kind)
    if isinstance(kind, Identifier) and pa.types.is_integer(cells.type) and cells.null_count:
        codes = code_array(_as_array(cells.fill_null(0)), kind)  # with nulls it would be floats
        codes[cells.is_null().to_numpy(zero_copy_only=False)] = np.nan
        return codes
    return code_array(_as_array(cells), kind)


def _dictionary_codes(cells: pa.DictionaryArray, kind: Kind | None) -> Column:
    """Codes of the entries of a dictionary, once each, then by their places.

    Nothing is decoded: all texts together may be longer than 32-bit offsets reach.
    """
    entries = arrow_codes(cells.dictionary, kind)
    absent = arrow_codes(pa.nulls(1, cells.dictionary.type), kind)
    places = cells.indices.cast(pa.int64()).fill_null(len(entries))
    codes: Column = np.concatenate([entries, absent])[places.to_numpy(zero_copy_only=False)]
    return codes


def _is_text(kind: pa.DataType) -> bool:
    t = pa.types
    return bool(t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind))


def _as_array(cells: pa.Array) -> NDArray[Any]:
    return np.asarray(cells.to_numpy(zero_copy_only=False))
