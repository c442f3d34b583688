"""Dask: each partition is summed where it lies, and counted once, also if a worker dies in the
middle.
"""

import os
import signal
import threading
import time

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster, wait

import reticent
from reticent.errors import BadInput, ReleaseRefused
from reticent.privacy.columns.words import Labels
from reticent.privacy.sources.base import Field, scan
from reticent.privacy.sources.clusters.dask import _partition_total
from tests.contract.odd_cells import ODD_CELLS
from tests.support.one_table import BOUNDS, Everything, people, released

# dask's own housekeeping, not ours: sockets and processes that it closes late, above
# all those of a killed worker
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:Port 8787 is already in use:UserWarning"),
]

FIELDS = (Field("a"), Field("label", Labels(("no", "yes"))), Field("k"))
N = 4000


def make_gram(folder=None):
    """A block sum that travels by value.

    With a folder it leaves a mark per block and takes its time.
    """

    def gram(block):
        if folder is not None:
            (folder / f"{os.getpid()}-{time.monotonic_ns()}").touch()
            time.sleep(0.2)
        q = np.trunc(np.nan_to_num(np.clip(block, -8, 8), nan=-3.0) * 2.0**16)
        return q.T @ q

    return gram


def slowly(folder):
    """A step that leaves a mark a partition, with its process, and takes its time."""

    def step(part):
        (folder / f"{os.getpid()}-{time.monotonic_ns()}").touch()
        time.sleep(0.2)
        return part

    return step


def kill_a_worker(folder):
    """Kill a process as soon as it has left marks and others are under way; it goes to a list."""
    killed = []

    def kill():
        while len(list(folder.iterdir())) < 6:
            time.sleep(0.01)
        killed.append(min(int(mark.name.split("-")[0]) for mark in folder.iterdir()))
        os.kill(killed[0], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    return killer, killed


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {"a": rng.normal(size=N), "unused": "text", "k": rng.integers(-5, 5, size=N)}
    )
    frame["label"] = rng.choice(["no", "yes", "other"], size=N)
    frame.loc[::13, "a"] = np.nan
    return frame


@pytest.fixture(scope="module")
def exact(frame):
    return scan(frame).total(FIELDS, make_gram(), rows=8192, threads=1).integers()


@pytest.fixture
def cluster():
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def test_same_integers_on_two_workers_and_after_a_kill(frame, exact, cluster, tmp_path):
    source = scan(dd.from_pandas(frame, npartitions=12))
    source.check(FIELDS)
    assert (source.names, source.width, source.known_n) == (("a", "unused", "k", "label"), 4, None)
    for rows in (7, 1000):
        total = source.total(FIELDS, make_gram(), rows=rows, threads=2)
        assert total.rows == N
        assert (total.integers() == exact).all()
    assert source.count() == N

    killer, killed = kill_a_worker(tmp_path)
    total = source.total(FIELDS, make_gram(tmp_path), rows=1000, threads=1)
    killer.join()
    assert killed[0] != os.getpid()
    assert len(list(tmp_path.iterdir())) > 12  # some partition was summed twice …
    assert total.rows == N  # … and none was counted twice
    assert (total.integers() == exact).all()


def test_people_are_counted_once_although_a_worker_was_killed(cluster, tmp_path):
    """In partitions that take their time, so that the worker dies while identifiers are counted."""
    slow = dd.from_pandas(people(), npartitions=12).map_partitions(
        slowly(tmp_path), meta=people().iloc[:0]
    )
    killer, killed = kill_a_worker(tmp_path)
    found = released(scan(slow), "id")
    killer.join()
    wanted = released(scan(people()), "id")
    assert killed[0] != os.getpid()
    assert found[1] == wanted[1]
    assert np.array_equal(found[0], wanted[0])


def test_same_integers_from_partitions_that_were_spilled_to_disk(frame, exact, tmp_path):
    """Partitions are kept by workers that may hold none in memory."""
    settings = {
        "distributed.worker.memory.target": 1e-9,
        "distributed.worker.memory.spill": 1e-9,
        "temporary-directory": str(tmp_path),
    }
    with (
        dask.config.set(settings),
        LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        kept = dd.from_pandas(frame, npartitions=6).persist()
        wait(kept)
        (spilled,) = client.run(lambda dask_worker: len(dask_worker.data.disk)).values()
        assert spilled == 6
        total = scan(kept).total(FIELDS, make_gram(), rows=1000, threads=1)
    assert total.rows == N
    assert (total.integers() == exact).all()


def test_other_rows_at_a_second_reading_are_refused():
    def at_random(part):
        return part.assign(age=np.random.default_rng().random(len(part)))

    frame = dd.from_pandas(people(), npartitions=2).map_partitions(
        at_random, meta=people().iloc[:0].assign(age=0.5)
    )
    event = reticent.Gaussian(noise_multiplier=2.0, count=2)
    curator = reticent.Curator(scan(frame), bounds=BOUNDS, targets=True, event=event)
    with pytest.raises(ReleaseRefused, match="records changed while they were read"):
        curator.release(Everything())  # which are counted in a reading of their own
    assert not curator.releases


def test_same_integers_without_a_cluster(frame, exact):
    source = scan(dd.from_pandas(frame.sample(frac=1, random_state=1), npartitions=3))
    assert (source.total(FIELDS, make_gram(), rows=500, threads=2).integers() == exact).all()
    rows = np.concatenate(list(source.blocks(FIELDS)))
    assert rows.shape == (N, 3)
    assert (make_gram()(rows).astype(np.int64) == exact).all()
    assert source.count() == N


def test_columns_are_checked_by_the_metadata(frame):
    def broken(part):
        raise AssertionError("a record was read")

    unread = dd.from_pandas(frame, npartitions=2).map_partitions(broken, meta=frame.iloc[:0])
    source = scan(unread)
    source.check(FIELDS)
    source.check([Field("unused")])  # a text may be one of a number
    with pytest.raises(BadInput, match="no column 'b'"):
        source.check([Field("b")])
    with pytest.raises(BadInput, match="y cannot be given"):
        scan(unread, y=frame["a"])
    with pytest.raises(BadInput, match="A dask Series cannot be read"):
        scan(unread["a"])
    with pytest.raises(ReleaseRefused, match="could not be computed") as caught:
        source.total(FIELDS, make_gram(), rows=10, threads=1)
    assert "record was read" not in str(caught.value)
    assert "AssertionError" not in str(caught.value)
    assert caught.value.__context__ is None


def test_a_partition_is_read_cell_by_cell_whatever_dtype_it_turned_out_to_have():
    """Where the frame promises numbers, one record may make a column of its partition one of
    objects.
    """
    fields = (Field(0), Field(1, Labels(("a", "b"))))
    work = (fields, lambda rows: rows[[0, 2, 3]], 10)
    for odd in ODD_CELLS.values():
        cells = np.empty((2, 4), dtype=object)
        cells[0, :] = [1.0, 2.0, 3.0, 4.0]
        cells[1, :] = ["a", "b", "b", "a"]
        cells[0, 1] = cells[1, 1] = odd
        frame = pd.DataFrame(
            {"x": pd.Series(cells[0], dtype=object), "y": pd.Series(cells[1], dtype=object)}
        )
        total = _partition_total(frame, work)
        assert total.rows == 4
        assert total.integers().tolist() == [[1, 0], [3, 1], [4, 0]]
