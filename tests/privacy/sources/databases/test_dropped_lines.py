"""Lines that a program drops as it cannot read them: which ones hangs on the columns asked for.

If readings of one fit gave other records, one line would decide whether it is refused.
"""

import duckdb
import pytest

import reticent
from reticent.privacy.row_maps.column_moments import MeanSum

PEOPLE = 40
BOX = reticent.Bounds(x={"a": (0.0, 1.0)})
TYPES = "{'id': 'BIGINT', 'a': 'DOUBLE', 'b': 'DOUBLE'}"


@pytest.fixture(params=["query", "relation"])
def scan(request, tmp_path):
    """A file of lines, read by DuckDB, which drops what is no number."""

    def call(last):
        lines = [f"{i % PEOPLE},0.5,1" for i in range(2 * PEOPLE)]
        path = tmp_path / "lines.csv"
        path.write_text("\n".join(["id,a,b", *lines, last]) + "\n")
        query = f"SELECT * FROM read_csv('{path}', ignore_errors = true, columns = {TYPES})"
        if request.param == "relation":
            return reticent.scan(duckdb.sql(query))
        duckdb.connect(str(tmp_path / "clinic.db")).close()
        return reticent.scan(f"duckdb:///{tmp_path}/clinic.db", query=query)

    return call


@pytest.mark.parametrize(
    ("last", "records", "people"),
    [("99,0.5,1", 81, 41), ("99,x,1", 80, 40), ("x,0.5,1", 81, 40), ("99,0.5,x", 81, 41)],
)
def test_a_fit_reads_the_same_records_each_time(last, records, people, scan):
    event = reticent.Gaussian(noise_multiplier=1.0, count=2)
    source = scan(last)
    curator = reticent.Curator(source, bounds=BOX, event=event, seed=b"lines")
    assert [curator.release(MeanSum(1, 1)).n for _ in range(2)] == [records, records]
    of_people = reticent.Curator(source, bounds=BOX, event=event, person="id", seed=b"lines")
    assert [of_people.release(MeanSum(1, 1)).n for _ in range(2)] == [people, people]


@pytest.mark.parametrize("person", [None, "id"])
def test_a_search_reads_the_same_records_each_time(person, scan):
    search = reticent.PrivateSearch(
        reticent.PrivateHistogram(),
        {"bins": [2, 4]},
        bounds=BOX,
        epsilon=2,
        delta=1e-5,
        person=person,
        random_state=0,
    )
    halves = search.fit(scan("99,x,1")).releases_[0]
    assert halves.n == (80 if person is None else 40)
