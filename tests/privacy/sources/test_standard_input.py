"""A table that is piped in gives the same integers as a file, and is written nowhere."""

import gzip
import io
import pickle
import subprocess
import sys
import zipfile

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather

from reticent.errors import BadInput
from reticent.privacy.sources.base import scan
from tests.support.one_table import people, released


@pytest.fixture
def pipe(monkeypatch):
    """Put bytes where a program finds its standard input."""

    def put(held: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(held)))

    return put


def written() -> dict[str, bytes]:
    text = people().to_csv(index=False).encode()
    table = io.BytesIO()
    people().to_parquet(table)
    return {"csv": text, "csv.gz": gzip.compress(text), "parquet": table.getvalue()}


@pytest.mark.parametrize("person", [None, "id"])
@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet"])
def test_the_same_integers(pipe, kind, person):
    wanted = released(scan(people()), person)
    pipe(written()[kind])
    found = released(scan("-"), person)
    assert found[1] == wanted[1]
    assert np.array_equal(found[0], wanted[0])


def test_it_can_be_read_again(pipe):
    pipe(written()["csv"])
    source = scan("-")
    assert source.count() == source.count() == len(people())


def test_nothing_on_standard_input_is_refused(pipe, monkeypatch):
    pipe(b"")
    with pytest.raises(BadInput, match="Standard input is empty"):
        scan("-")
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(BadInput, match="Nothing is piped in"):
        scan("-")


def test_a_file_cut_short_is_refused_without_its_words(pipe):
    pipe(written()["parquet"][:-20])
    with pytest.raises(BadInput, match="standard input cannot be read: it is truncated"):
        scan("-")


def other_formats() -> dict[str, bytes]:
    """Tables as other programs write them, with names in them that nobody shall see."""
    frame = people().assign(name="ZoeSecretname")
    table = pa.Table.from_pandas(frame)
    found = {"feather": io.BytesIO(), "stata": io.BytesIO(), "zip": io.BytesIO()}
    feather.write_feather(table, found["feather"], compression="uncompressed")
    frame.to_stata(found["stata"], write_index=False)
    with zipfile.ZipFile(found["zip"], "w") as archive:
        archive.writestr("people.csv", frame.to_csv(index=False))
    held = {name: file.getvalue() for name, file in found.items()}
    held["pickle"] = pickle.dumps(frame)
    held["utf-16"] = frame.to_csv(index=False).encode("utf-16-le")  # without its mark
    return held


@pytest.mark.parametrize("kind", ["feather", "stata", "zip", "pickle", "utf-16"])
def test_what_is_no_table_is_refused_and_not_shown(kind, pipe):
    """Else what stands before the first line feed were names of columns, which errors show."""
    pipe(other_formats()[kind])
    with pytest.raises(BadInput, match="standard input") as refused:
        scan("-").position("age")
    assert "Secretname" not in str(refused.value).replace("\\x00", "").replace("\0", "")
    assert "\0" not in str(refused.value)


def test_zero_bytes_are_refused_in_the_first_line_alone(pipe):
    pipe(b"a\0,b\n1,2\n")
    with pytest.raises(BadInput, match="standard input is no text"):
        scan("-")
    pipe(b"a,b\n1\0,2\n")
    assert scan("-").count() == 1


def test_the_command_line_reads_what_another_program_writes(tmp_path):
    fit = "fit mean - --x age=0:110 --epsilon 1 --delta 1e-6 --out m.reticent"
    done = subprocess.run(
        [sys.executable, "-m", "reticent", *fit.split()],
        input=written()["csv"],
        capture_output=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["m.reticent"]
