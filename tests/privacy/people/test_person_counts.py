"""Person counts: everybody is found, and counted once a record, whatever the order."""

import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import reticent
from reticent.errors import ReleaseRefused
from reticent.privacy.curator import Curator
from reticent.privacy.people.person_counts import Identifiers, PersonCounts, checksum
from reticent.privacy.people.weights import total_checksum
from reticent.privacy.row_maps.column_moments import MeanSum
from reticent.privacy.sources import base, parquet
from reticent.privacy.sources.base import scan


def records_of(people, ids):
    """Number of records of each of these people; 0 for nobody, and for strangers."""
    return people.counts[people.numbers(ids)]


def pairs(ids):
    """Identifiers as a source gives them: halves of whole numbers, NaN for None."""
    return np.array([(np.nan, np.nan) if i is None else (0.0, float(i)) for i in ids])


def test_counts_do_not_depend_on_order_blocks_or_who_counts():
    rng = np.random.default_rng(1)
    ids = pairs([None if i == 0 else int(i) for i in rng.integers(0, 400, 5000)])
    whole = PersonCounts(9)
    whole.add(ids)
    parts = PersonCounts(9)
    for block in np.array_split(ids[rng.permutation(len(ids))], 13):
        part = PersonCounts(9)
        part.add(block)
        parts.merge(part)
    assert (
        records_of(whole, whole.identifiers(ids)).tolist()
        == records_of(parts, parts.identifiers(ids)).tolist()
    )
    assert sorted(whole.counts) == sorted(parts.counts)
    assert (whole.records, whole.people) == (parts.records, parts.people)
    several = PersonCounts(9)
    for block in np.array_split(ids, 13):
        several.add(block)
    assert whole.checksum == parts.checksum == several.checksum < 2**64


@pytest.mark.parametrize("key", range(6))
def test_checksums_of_parts_add_up_modulo_two_to_the_64(key):
    first, second, whole = (PersonCounts(key) for _ in range(3))
    first.add(pairs([1, None]))
    second.add(pairs([2, 1]))
    whole.add(pairs([1, None, 2, 1]))
    first.merge(second)
    assert first.checksum == whole.checksum


def test_half_of_all_slots_may_be_taken():
    people = PersonCounts(4)
    for few in (range(5), range(8)):
        people.add(pairs(few))
    assert people.counts.tolist() == [0, 2, 2, 2, 2, 2, 1, 1, 1]
    assert len(people._slots) == 16
    people.add(pairs([8]))
    assert len(people._slots) == 32
    assert len(people._ids) == len(people._counts) == 17
    assert records_of(people, people.identifiers(pairs(range(9)))).tolist() == [2] * 5 + [1] * 4


def test_many_people_in_many_blocks_are_brought_together():
    people = PersonCounts(3)
    for first in range(0, 300_000, 50_000):
        people.add(np.column_stack([np.zeros(60_000), np.arange(first, first + 60_000)]))
    assert people.people == 310_000
    asked = people.identifiers(np.array([[0.0, 50_001.0], [0.0, 1.0], [1.0, 1.0]]))
    assert records_of(people, asked).tolist() == [2, 1, 0]


def test_people_whose_words_are_equal_are_told_apart():
    """Keyed words of 64 bits may be equal; here they often are."""
    rng = np.random.default_rng(4)
    ids = rng.integers(0, 30, (4000, 2)).astype(np.float64)
    people = PersonCounts(3)
    people._first = people._second = np.uint64(1)
    for block in np.array_split(ids, 5):
        people.add(block)
    different, places, counts = np.unique(ids, axis=0, return_inverse=True, return_counts=True)
    assert people.people == len(different)
    assert records_of(people, people.identifiers(ids)).tolist() == counts[places].tolist()
    strangers = np.array([[31.0, 0.0], [0.0, 31.0], [np.nan, 1.0], [1.0, np.nan]])
    assert records_of(people, people.identifiers(strangers)).tolist() == [0, 0, 0, 0]


def unmixed(word):
    """The inverse of SplitMix64's finaliser."""
    for shift, factor in ((31, 0x94D049BB133111EB), (27, 0xBF58476D1CE4E5B9), (30, 1)):
        word ^= (word >> shift) ^ (word >> 2 * shift)
        word = word * pow(factor, -1, 2**64) % 2**64
    return (word - 0x9E3779B97F4A7C15) % 2**64


def test_pairs_are_told_apart_by_their_word_and_their_second():
    """The first of a pair is multiplied by an odd number, which can be undone modulo 2⁶⁴."""
    rng = np.random.default_rng(5)
    keys = rng.integers(0, 2**63, 20).tolist()
    for multipliers in zip(*((p._first, p._second) for p in map(PersonCounts, keys)), strict=True):
        assert len(set(multipliers)) == len(keys)  # both are secret
    for key in keys:
        people = PersonCounts(key)
        assert int(people._first) % 2 == int(people._second) % 2 == 1
        assert people._first != people._second
        ids = rng.integers(-(2**31), 2**53, (50, 2)).astype(np.float64)
        words, seconds = people.identifiers(ids)
        keyed = np.array([unmixed(int(word)) for word in words], np.uint64)
        back = (keyed - seconds * people._second).astype(object)
        inverse = pow(int(people._first), -1, 2**64)
        firsts = [int(word) * inverse % 2**64 for word in back]
        assert firsts == [int(first) % 2**64 for first in ids[:, 0]]


def test_people_are_found_wherever_their_words_lie():
    """Those who ask for the last slot of the table go on at its first; words may be equal."""
    people = PersonCounts(3)
    last = np.uint64(2**64 - 1)
    words = np.array([last, last, last, 0, 0, 1, last], np.uint64)
    seconds = np.array([7, 0, 9, 7, 0, 7, 7], np.uint64)
    numbers = people._put(Identifiers(words, seconds)).tolist()
    assert people.people == 6
    assert sorted(set(numbers)) == [1, 2, 3, 4, 5, 6]
    assert numbers[0] == numbers[6]
    assert people.numbers(Identifiers(words, seconds)).tolist() == numbers
    strangers = Identifiers(words[:4], np.array([8, 8, 2**64 - 2, 9], np.uint64))
    assert people.numbers(strangers).tolist() == [0, 0, 0, 0]
    for number in range(6, 40):  # the table grows, and everybody keeps their number
        some = np.array([number], np.uint64)
        assert people._put(Identifiers(some << np.uint64(58), some)).tolist() == [number + 1]
    assert people.people == 40
    assert people.numbers(Identifiers(words, seconds)).tolist() == numbers
    assert people.numbers(strangers).tolist() == [0, 0, 0, 0]
    assert 2 * people.people <= len(people._slots)


def test_blocks_are_given_the_numbers_of_their_people():
    people = PersonCounts(8)
    first = people.add(pairs([5, None, 7, 5]))
    second = people.add(pairs([None, 9, 7]))
    a, nobody, b, again = first.tolist()
    assert sorted([a, b]) == [1, 2]
    assert (nobody, again) == (0, a)
    assert second.tolist() == [0, 3, b]
    assert people.counts.tolist() == [0, *(2 for _ in range(2)), 1]
    ids = people.identifiers(pairs([5, 7, 9, None, 1]))
    assert people.numbers(ids).tolist() == [a, b, 3, 0, 0]
    chosen = np.array([False, False, True])
    assert people.mask(pairs([5, 9, None, 7, 1, 9]), chosen).tolist() == [0, 1, 0, 0, 0, 1]


def test_any_change_of_identifiers_changes_the_checksum():
    rng = np.random.default_rng(2)
    ids = [None, 0, 0, 1, 2, 3]
    for _ in range(50):
        key = int(rng.integers(0, 2**63))
        seals = {
            checksum(PersonCounts(key).identifiers(pairs(some)))
            for some in (
                ids,
                [0, 0, 0, 1, 2, 3],  # nobody becomes person 0
                [None, None, 0, 1, 2, 3],
                [None, 0, 1, 1, 2, 3],
                [None, 0, 0, 0, 3, 3],  # with the same sum
                [None, 0, 0, 1, 2],
                [*ids, None],
            )
        }
        assert len(seals) == 7
    one, other = (checksum(PersonCounts(key).identifiers(pairs(ids))) for key in (1, 2))
    assert one != other
    assert total_checksum(0) == PersonCounts(7).checksum == 0


def test_very_many_people_are_counted_in_memory_that_grows_with_them():
    """A table of at most 80 bytes for each, whatever the order in which they come."""
    people = PersonCounts(11)
    rng = np.random.default_rng(6)
    for block in np.array_split(rng.permutation(1_500_000), 10):
        people.add(np.column_stack([block // 1000, block % 1000]).astype(np.float64))
    assert people.people == 1_500_000
    assert set(people.counts.tolist()) == {0, 1}
    held = people._slots.nbytes + people._ids.nbytes + people._counts.nbytes
    assert held < 81 * people.people
    assert 2 * people.people <= len(people._slots)


# ---- people that are remembered by row

BOX = reticent.Bounds(x={"a": (-1.0, 1.0)})
IDS = [3, 3, None, 5, 8, 3, 5, 9, 9, 3]


def written(path, ids, *, value=0.5, **columns):
    rows = len(ids)
    values = np.linspace(-value, value, rows)
    table = pa.table({"a": values, "id": pa.array(ids, pa.int64()), **columns})
    pq.write_table(table, path, row_group_size=3)
    return path


def holder(source, **options):
    event = reticent.Gaussian(noise_multiplier=3.0, count=2)
    return Curator(source, bounds=BOX, event=event, person="id", seed=b"s", **options)


def released(curator):
    return [curator.release(MeanSum(1, 1)).value.tolist() for _ in range(2)]


@pytest.mark.parametrize("weighted", [False, True])
def test_remembered_people_give_the_same_sums(weighted, tmp_path, monkeypatch):
    rng = np.random.default_rng(3)
    ids = [None if i == 0 else int(i) for i in rng.integers(0, 40, 700)]
    ids[5] = 77  # a code for nobody
    columns = {}
    options = {}
    if weighted:
        columns = {"w": rng.uniform(-1, 6, len(ids))}
        options = {"weight": "w", "weight_bound": 5.0}
    files = [
        written(
            tmp_path / f"{start}.parquet",
            ids[start : start + 100],
            **{name: column[start : start + 100] for name, column in columns.items()},
        )
        for start in range(0, len(ids), 100)
    ]
    source = scan(files).with_nobody(["77"])
    remembering = holder(source, **options)
    found = released(remembering)
    people = remembering._weights.people
    assert people.by_row.shape == (len(ids),)
    assert people.counts[people.by_row].tolist() == [
        0 if one is None else ids.count(one) for one in ids
    ]
    monkeypatch.setattr(base, "MOST_REMEMBERED", len(ids) - 1)
    reading_again = holder(source, **options)
    assert released(reading_again) == found
    assert reading_again._weights.people.by_row is None
    in_memory = holder(
        scan(pa.concat_tables(map(pq.read_table, files))).with_nobody(["77"]), **options
    )
    assert released(in_memory) == found
    assert in_memory._weights.people.by_row is None


def test_identifiers_that_are_remembered_are_not_read_again(tmp_path, monkeypatch):
    curator = holder(scan(written(tmp_path / "a.parquet", IDS)))
    assert curator.n == 4
    reading = type(curator._source).blocks
    read = []

    def blocks(self, fields):
        read.extend(field.key for field in fields)
        return reading(self, fields)

    monkeypatch.setattr(type(curator._source), "blocks", blocks)
    released(curator)
    assert read == ["a", "a"]


@pytest.mark.parametrize("ids", [IDS, IDS[::-1], IDS[1:], [*IDS, 3], [4] * 10])
def test_a_file_that_is_written_again_is_refused(ids, tmp_path):
    """Whatever stands in it: its version is another, and people are not read again."""
    path = written(tmp_path / "a.parquet", IDS)
    curator = holder(scan(path))
    curator.release(MeanSum(1, 1))
    written(path, ids, value=0.25)
    with pytest.raises(ReleaseRefused, match="changed while they were read"):
        curator.release(MeanSum(1, 1))


@pytest.mark.parametrize("more", [0, 1])
def test_a_file_that_is_written_while_it_is_read_is_refused(more, tmp_path, monkeypatch):
    path = written(tmp_path / "a.parquet", IDS)
    curator = holder(scan(path))
    curator.release(MeanSum(1, 1))
    reading = type(curator._source).blocks

    def blocks(self, fields):
        yield from reading(self, fields)
        if more:
            yield np.zeros((1, len(fields)))
        else:
            written(path, IDS)

    monkeypatch.setattr(type(curator._source), "blocks", blocks)
    with pytest.raises(ReleaseRefused, match="changed while they were read"):
        curator.release(MeanSum(1, 1))


@pytest.mark.parametrize("change", ["version", "longer", "shorter"])
def test_people_are_not_remembered_if_the_file_changed_while_they_were_counted(
    change, tmp_path, monkeypatch
):
    """Then identifiers are read again, and their checksum tells."""
    path = written(tmp_path / "a.parquet", IDS)
    source = scan(path)
    reading = type(source).blocks

    def blocks(self, fields):
        found = np.vstack(list(reading(self, fields)))
        if change == "version":
            written(path, IDS)
        if change == "longer":
            found = np.vstack([found, found[:1]])
        if change == "shorter":
            found = found[:-1]
        yield found

    curator = holder(source)
    with monkeypatch.context() as patch:
        patch.setattr(type(source), "blocks", blocks)
        assert curator.n in (4, 5)
    assert curator._weights.people.by_row is None
    if change == "version":
        assert len(released(curator)) == 2
        return
    with pytest.raises(ReleaseRefused, match="changed while they were read"):
        curator.release(MeanSum(1, 1))


@pytest.mark.parametrize("settled", [0, parquet.SETTLED])
def test_a_file_that_is_written_at_one_tick_of_the_clock_is_not_taken_for_the_same(
    settled, tmp_path, monkeypatch
):
    """Before there are two of different times, identifiers are read again."""
    path = written(tmp_path / "a.parquet", range(20))
    length = path.stat().st_size
    tick = time.time_ns() - 10**6
    told = Path.stat

    def coarse(self, **options):
        found = told(self, **options)
        same = {"st_mtime_ns": tick, "st_ctime_ns": tick, "st_size": length, "st_ino": 1}
        return SimpleNamespace(st_dev=found.st_dev, **same)

    monkeypatch.setattr(parquet, "SETTLED", settled)
    curator = holder(scan(path))
    with monkeypatch.context() as patch:
        patch.setattr(Path, "stat", coarse)
        assert curator.n == 20
        written(path, [3] * 20)
        if settled:
            with pytest.raises(ReleaseRefused, match="changed while they were read"):
                curator.release(MeanSum(1, 1))
        else:  # all records are one person's, and each has the weight of a person
            assert curator.release(MeanSum(1, 1)).n == 20


def test_a_file_is_remembered_two_seconds_after_it_was_written(tmp_path, monkeypatch):
    path = written(tmp_path / "a.parquet", IDS)
    source = scan(path)
    changed = max(path.stat().st_mtime_ns, path.stat().st_ctime_ns)
    for after, known in ((2 * 10**9 - 1, False), (2 * 10**9, True)):
        monkeypatch.setattr(parquet, "SETTLED", 2 * 10**9)
        monkeypatch.setattr(time, "time_ns", lambda after=after: changed + after)
        assert (source.version() is not None) == known
    monkeypatch.setattr(time, "time_ns", lambda: changed - 10**12)  # a clock that is behind
    assert source.version() is None


def test_versions_tell_what_was_written_again(tmp_path):
    path = written(tmp_path / "a.parquet", IDS)
    source = scan(path)
    before = source.version()
    assert before == source.version() == scan(path).version()
    written(path, IDS)
    assert source.version() != before
    assert scan(pq.read_table(path)).version() is None
