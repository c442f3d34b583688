"""``reticent codebook``: a codebook to be filled in."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reticent.cli.columns import DataOptions
from reticent.cli.data_names import data_name
from reticent.cli.options import DIALECT
from reticent.codebook import template
from reticent.errors import BadInput
from reticent.files.output import check_new, new_text

__all__ = ["write_template"]


def write_template(data: str, out: Path, dialect: Mapping[str, Any]) -> list[str]:
    """Write a template for a file's columns to a new file; give their names. Reads no record."""
    if out.suffix.lower() != ".toml":
        raise BadInput(f"--out {out} must end in .toml: that is what a codebook is written in.")
    check_new(out, "Somebody may have filled it in")
    said = DataOptions.read(**dialect)
    source = said.scan(data)
    written_as = {name: said.dialect[name] for name in DIALECT if name in said.dialect}
    text = template(source, data_name(data), written_as)
    with new_text(out) as written:
        written.write(text)
    return list(source.names or ())
