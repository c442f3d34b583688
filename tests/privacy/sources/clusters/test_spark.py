"""Spark: each partition is summed where it lies, and counted once, also if a task or an executor is
lost in the middle.
"""

import os
import pickle
import signal
import threading
import time
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import reticent
from reticent.errors import BadInput, ReleaseRefused
from reticent.privacy.columns.words import Labels
from reticent.privacy.sources.base import Field, scan
from reticent.privacy.sources.clusters.partitions import PartitionTotal
from reticent.privacy.sources.clusters.spark import _merge
from tests.support.one_table import BOUNDS, Everything, N, people, released

# PySpark's own: what it thinks of pandas 3, and sockets that it closes late
pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning:pyspark"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

FIELDS = (Field("age"), Field("sex", Labels(("F", "M"))), Field("weight"))
PARTS = 6


@pytest.fixture(scope="module")
def frame(spark, tmp_path_factory):
    """The table of all tests of reading, in partitions that are files."""
    path = tmp_path_factory.mktemp("tables") / "people"
    table = pa.Table.from_pandas(people(), preserve_index=False)
    spark.createDataFrame(table).repartition(PARTS).write.parquet(str(path))
    return spark.read.option("mergeSchema", "false").parquet(str(path)).repartition(PARTS, "id")


def gram(block):
    q = np.trunc(np.nan_to_num(np.clip(block, -8, 8), nan=-3.0) * 2.0**16)
    return q.T @ q


def slowly(folder):
    """A step that leaves a mark a partition, with its executor's process, and takes its time.

    The first partition of all ends its own process half-way.
    """

    def step(batches):
        with open(f"/proc/{os.getppid()}/stat") as parent:
            executor = parent.read().rpartition(")")[2].split()[1]
        (folder / f"{executor}-{time.monotonic_ns()}").touch()
        for batch in batches:
            try:
                (folder / "ended").mkdir()
            except FileExistsError:
                yield batch
            else:
                yield batch[: len(batch) // 2]
                os._exit(1)
            time.sleep(0.5)

    return step


def marks(folder):
    return sorted(path.name for path in folder.iterdir() if "-" in path.name)


def kill_an_executor(folder, after):
    """Kill the executor of the last mark, as soon as there are some; its process goes to a list."""
    killed = []

    def kill():
        while len(marks(folder)) < after:
            time.sleep(0.01)
        killed.append(int(marks(folder)[-1].partition("-")[0]))
        assert "java" in Path(f"/proc/{killed[0]}/comm").read_text()
        os.kill(killed[0], signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    return thread, killed


def test_the_same_integers(frame):
    source = scan(frame)
    assert source.names == ("id", "age", "sex", "visit", "weight")
    assert (source.known_n, source.local, source.ordered) == (None, False, False)
    for person in (None, "id"):
        wanted = released(scan(people()), person)
        found = released(source, person)
        assert found[1] == wanted[1]
        assert np.array_equal(found[0], wanted[0])
    bounds = reticent.Bounds(x={"age": (0, 110)})
    model = reticent.PrivateMean(bounds=bounds, epsilon=1, delta=1e-6).fit(frame)
    assert model.releases_[0].n == N


def test_the_same_integers_after_a_task_and_an_executor_were_lost(frame, tmp_path):
    wanted = scan(people()).total(FIELDS, gram, rows=100, threads=1)
    slow = scan(frame.mapInArrow(slowly(tmp_path), frame.schema))
    thread, killed = kill_an_executor(tmp_path, after=4)
    total = slow.total(FIELDS, gram, rows=100, threads=2)
    thread.join()
    assert killed
    assert (tmp_path / "ended").exists()
    assert len(marks(tmp_path)) > PARTS + 1  # some partitions were read again …
    assert total.rows == N  # … and none was counted twice
    assert (total.integers() == wanted.integers()).all()


def test_people_are_counted_once_although_an_executor_was_lost(frame, tmp_path):
    wanted = released(scan(people()), "id")
    slow = scan(frame.mapInArrow(slowly(tmp_path), frame.schema))
    thread, killed = kill_an_executor(tmp_path, after=3)
    found = released(slow, "id")
    thread.join()
    assert killed
    assert found[1] == wanted[1]
    assert np.array_equal(found[0], wanted[0])


def test_cells_of_all_types_are_read_as_from_memory(spark):
    table = pa.table(
        {
            "a.b": pa.array([Decimal("1.25"), None, Decimal("-3.50")], pa.decimal128(9, 2)),
            "A": pa.array([True, None, False]),
            "a": pa.array([1, None, 2**53 + 1], pa.int64()),
            "`day`": pa.array([18000, None, 0], pa.date32()),
            "moment": pa.array([10**15, None, 1], pa.timestamp("us")),
            "zoned": pa.array([10**15, None, 1], pa.timestamp("us", tz="Europe/Berlin")),
            "text": pa.array([" 7", None, "x" * 70]),
            "small": pa.array([1.5, None, float("nan")], pa.float32()),
            "list": pa.array([[1], None, []]),
        }
    )
    frame = spark.createDataFrame(table).coalesce(1)
    date = reticent.Date("1960-01-01", "2030-01-01")
    number = reticent.Number(-10, 10)
    fields = [Field(name, number) for name in ("a.b", "A", "a", "text", "small")]
    fields += [Field(name, date) for name in ("`day`", "moment", "zoned")]
    source = scan(frame)
    source.check(fields)
    blocks = np.vstack(list(source.blocks(fields)))
    assert np.array_equal(blocks, np.vstack(list(scan(table).blocks(fields))), equal_nan=True)
    assert source.count() == 3
    people = [source.count_people([Field("a"), Field("A")], 7) for _ in range(2)]
    assert people[0].people == 2
    assert people[0].records == 3
    assert people[0].checksum == people[1].checksum
    with pytest.raises(BadInput, match="dtype array<bigint> and cannot be read as numbers"):
        source.check([Field("list")])


def test_other_rows_at_a_second_reading_are_refused(frame):
    def at_random(batches):
        for batch in batches:
            columns = [*batch.columns[:-1], pa.array(np.random.default_rng().random(len(batch)))]
            yield pa.RecordBatch.from_arrays(columns, schema=batch.schema)

    source = scan(frame.mapInArrow(at_random, frame.schema))
    event = reticent.Gaussian(noise_multiplier=2.0, count=2)
    curator = reticent.Curator(source, bounds=BOUNDS, targets=True, event=event)
    with pytest.raises(ReleaseRefused, match="records changed while they were read"):
        curator.release(Everything())  # which are counted in a reading of their own
    assert not curator.releases


def test_an_error_quotes_no_record_and_comes_after_the_charge(frame, tmp_path):
    def fail(batches):
        raise ValueError("Anna is ill")
        yield from batches

    ledger = reticent.Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")
    ledger.open("people", epsilon=10, delta=1e-5)
    curator = reticent.Curator(
        scan(frame.mapInArrow(fail, frame.schema)),  # nothing runs yet
        bounds=BOUNDS,
        targets=True,
        event=reticent.Gaussian(noise_multiplier=20.0),
        ledger=ledger.url,
        dataset="people",
    )
    assert len(ledger.history("people")) == 1
    with pytest.raises(ReleaseRefused, match="Spark frame could not be computed") as caught:
        curator.release(Everything())
    assert "Anna" not in str(caught.value)
    assert "ValueError" not in str(caught.value)
    assert caught.value.__context__ is None


def test_what_cannot_be_read_is_refused_before_anything_runs(spark, frame):
    with pytest.raises(BadInput, match="no column 'height'"):
        scan(frame).check([Field("height")])
    with pytest.raises(BadInput, match="y cannot be given beside a Spark frame"):
        scan(frame, y=np.zeros(N))
    with pytest.raises(BadInput, match="beside the records go with arrays"):
        scan(frame, person=np.zeros(N))
    with pytest.raises(BadInput, match="A Column of Spark cannot be read"):
        scan(frame.age)
    with pytest.raises(BadInput, match="names are not unique"):
        scan(frame.select("age", "age"))
    with pytest.raises(BadInput, match="streaming frame has no end"):
        scan(spark.readStream.format("rate").load())


def test_a_frame_of_pandas_on_spark_is_sent_back():
    """By what it is, whether or not PySpark is there."""

    class DataFrame:
        __module__ = "pyspark.pandas.frame"

        def to_spark(self):
            raise AssertionError("nothing runs")

    with pytest.raises(BadInput, match=r"Give frame\.to_spark\(\)"):
        scan(DataFrame())


def test_a_partition_that_comes_twice_is_refused():
    def sums(partitions):
        total = PartitionTotal()
        total.add(np.array([5]), rows=2)
        totals = [pickle.dumps(total)] * len(partitions)
        yield pa.record_batch({"partition": pa.array(partitions), "total": pa.array(totals)})

    (merged,) = _merge(sums([0, 1, 4]))
    total = pickle.loads(merged.column(0)[0].as_py())
    assert (total.rows, total.integers().tolist()) == (6, [15])
    with pytest.raises(ReleaseRefused, match="twice"):
        list(_merge(sums([0, 1, 0])))


def test_lines_that_spark_drops_are_the_same_at_each_reading(spark, tmp_path):
    """It drops those that it cannot read in the columns that are asked for."""
    lines = [f"{i % 40},0.5,1" for i in range(80)]
    (tmp_path / "lines.csv").write_text("\n".join(["id,a,b", *lines, "99,x,1"]) + "\n")
    reader = spark.read.schema("id long, a double, b double").option("header", True)
    frame = reader.option("mode", "DROPMALFORMED").csv(str(tmp_path / "lines.csv"))
    for person, units in ((None, 80), ("id", 40)):
        model = reticent.PrivateMean(
            bounds=reticent.Bounds(x={"a": (0.0, 1.0)}), epsilon=1, delta=1e-6, person=person
        )
        assert model.fit(frame).releases_[0].n == units
