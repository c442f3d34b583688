"""Files that lie elsewhere give the same integers as those of this machine."""

import gzip
import io

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reticent.cli.data_names import data_name
from reticent.errors import BadInput
from reticent.privacy.sources.base import scan
from tests.support.one_table import N, people, released


@pytest.fixture
def store():
    """A file system in memory, with the table of all tests of reading."""
    memory = fsspec.filesystem("memory")
    text = people().to_csv(index=False).encode()
    memory.pipe("/clinic/people.csv", text)
    memory.pipe("/clinic/people.csv.gz", gzip.compress(text))
    book = io.BytesIO()
    people().to_excel(book, index=False)
    memory.pipe("/clinic/people.xlsx", book.getvalue())
    table = pa.Table.from_pandas(people())
    for name, part in (("1", table[:200]), ("2", table[200:])):
        written = io.BytesIO()
        pq.write_table(part, written)
        memory.pipe(f"/parts/{name}.parquet", written.getvalue())
    memory.pipe("/parts/_notes.txt", b"nothing")
    yield memory
    memory.store.clear()
    memory.pseudo_dirs[:] = [""]


@pytest.mark.parametrize("person", [None, "id"])
def test_the_same_integers(store, person):
    wanted = released(scan(people()), person)
    for address in ("clinic/people.csv", "clinic/people.csv.gz", "clinic/people.xlsx", "parts"):
        found = released(scan(f"memory://{address}"), person)
        assert found[1] == wanted[1], address
        assert np.array_equal(found[0], wanted[0]), address


def test_files_of_this_machine_have_addresses_too(tmp_path):
    people().to_parquet(tmp_path / "people.parquet")
    assert scan(f"file://{tmp_path}/people.parquet").known_n == N
    with pytest.raises(BadInput, match=r"There is no file file://.*none\.csv"):
        scan(f"file://{tmp_path}/none.csv")


def test_a_file_that_is_replaced_or_removed_is_refused(store):
    source = scan("memory://clinic/people.csv")
    store.pipe("/clinic/people.csv", b"age\n3\n")
    with pytest.raises(BadInput, match=r"columns of memory://clinic/people\.csv have changed"):
        source.count()
    store.rm("/clinic/people.csv")
    with pytest.raises(BadInput, match=r"There is no file memory://clinic/people\.csv"):
        source.count()
    store.pipe("/parts/1.parquet", b"PAR1 and no more")
    with pytest.raises(BadInput, match=r"memory://parts/1.parquet cannot be read"):
        scan("memory://parts")


def test_what_cannot_be_read_is_refused(store):
    for address, words in {
        "memory://parts/_notes.txt": "not named like a file that can be read",
        "memory://clinic/none.csv": "There is no file memory://clinic/none.csv",
        "memory://empty": "There is no file",
        "memory://": "no CSV or Parquet file in the folder",
        "memory://clinic/none.csv?key=secret": "There is no file memory://clinic/none.csv. ",
        "nowhere://clinic/people.csv": "no way to read from an address nowhere://",
        "s3://anna:secret@clinic/people.csv": "There is a password in the address",
        "s3://anna:sec/secret@clinic/people.csv": "There is a password in the address",
        "memory://secret@clinic/none.csv": "There is no file memory://clinic/none.csv",
        "memory://clinic/none.csv#token=secret": "There is no file memory://clinic/none.csv. ",
        "memory://anna:secret?@clinic/people.csv": "There is a password in the address",
        "memory://anna:secret#@clinic/people.csv": "There is a password in the address",
        "memory://secret?@clinic/none.csv": "There is no file memory://…",
        "memory://secret@empty?": "There is no file memory://empty",
    }.items():
        with pytest.raises(BadInput, match=words) as refused:
            scan(address)
        assert "secret" not in str(refused.value)
        assert "secret" not in data_name(address)
        assert refused.value.__context__ is None


class Signed(fsspec.AbstractFileSystem):
    """A server whose names are addresses, as those of https:// are."""

    protocol = "signed"
    address = "signed://clinic/people.parquet?sig=SECRETKEY#part"
    held = b""

    @classmethod
    def _strip_protocol(cls, path):
        return path

    def info(self, path, **kwargs):
        if path != self.address:
            raise FileNotFoundError(path)
        return {"name": path, "size": len(self.held), "type": "file"}

    def _open(self, path, mode="rb", **kwargs):
        self.info(path)
        return io.BytesIO(self.held)


def test_a_signed_address_is_read_by_its_name_and_shown_without_its_key(monkeypatch):
    fsspec.register_implementation("signed", Signed, clobber=True)
    written = io.BytesIO()
    pq.write_table(pa.Table.from_pandas(people()), written)
    monkeypatch.setattr(Signed, "held", written.getvalue())
    source = scan(Signed.address)
    assert released(source, "id")[1] == released(scan(people()), "id")[1]
    assert "SECRETKEY" not in f"{source.paths} {source.paths[0]}"
    monkeypatch.setattr(Signed, "held", written.getvalue()[:-20])
    with pytest.raises(BadInput, match=r"^signed://clinic/people.parquet cannot be read"):
        scan(Signed.address)


@pytest.mark.parametrize("name", ["people.csv", "people.xlsx"])
def test_what_a_store_says_of_a_failure_does_not_leave(store, name, monkeypatch):
    def failing(*args, **kwargs):
        raise RuntimeError("403 url=https://store/x?sig=SECRETKEY")

    monkeypatch.setattr(type(store), "_open", failing)
    with pytest.raises(BadInput, match=f"memory://clinic/{name} could not be read") as refused:
        scan(f"memory://clinic/{name}")
    assert "SECRETKEY" not in str(refused.value)
    assert refused.value.__suppress_context__
