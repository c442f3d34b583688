"""Weights of records: whole numbers, at most one in all for each person, whatever holds them."""

import threading

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import reticent
from reticent.errors import BadInput, ReleaseRefused
from reticent.privacy.curator import Curator
from reticent.privacy.people.person_counts import PersonCounts
from reticent.privacy.people.unit import PrivacyUnit
from reticent.privacy.people.weight_columns import weight_columns
from reticent.privacy.people.weights import (
    ONE,
    RecordWeights,
    add_limbs,
    equal_weights,
    joined,
    total_checksum,
    weighted_chunk,
)
from reticent.privacy.record_sum import RecordSum
from reticent.privacy.reference import reference_weights
from reticent.privacy.row_maps.column_moments import MeanSum
from reticent.privacy.row_maps.score_sum import in_own_places
from reticent.privacy.selection.random_split import RecordSplit, SubsetReadAgain, split_records
from reticent.privacy.sources.base import Field, scan
from reticent.privacy.statistics.enforced import enforce
from tests.contract.cases import STATISTICS

pytestmark = pytest.mark.filterwarnings("ignore:delta = :UserWarning")

BOX = reticent.Bounds(x={"a": (-1.0, 1.0)})
EVENT = reticent.Gaussian(noise_multiplier=3.0)
MEAN = MeanSum(1, 1)


def pairs(ids):
    """Identifiers as a source gives them: halves of whole numbers, NaN for None."""
    return np.array([(np.nan, np.nan) if i is None else (0.0, float(i)) for i in ids])


def counted(ids, key=5):
    people = PersonCounts(key)
    people.add(pairs(ids))
    return people


# ---- weights


def test_weights_of_a_person_add_up_to_one_at_most():
    rng = np.random.default_rng(0)
    ids = [int(i) for i in rng.geometric(0.02, 3000)]
    people = counted(ids)
    for contribution in (1, 3, 50):
        weights = RecordWeights(0, people, contribution).integers(pairs(ids))
        assert weights.tolist() == reference_weights(ids, contribution=contribution)
        sums = np.bincount(ids, weights=weights)
        assert sums.max() <= ONE
        if contribution == 1:
            present = np.unique(ids)
            assert (sums[present] > ONE - np.bincount(ids)[present]).all()


@pytest.mark.parametrize("k", [1, 2, 3, 1000, 10**6, 2**24, 2**24 + 1])
def test_a_person_with_very_many_records(k):
    people = PersonCounts(1)
    people.add(pairs([1, 2]))
    people.counts[people.numbers(people.identifiers(pairs([1])))] = k
    one, other = RecordWeights(0, people).integers(pairs([1, 2])).tolist()
    assert other == ONE
    assert one == ONE // k
    assert ONE - k < one * k <= ONE


def test_a_million_records_of_one_person_weigh_as_one():
    ids = np.zeros((10**6 + 1, 2))
    ids[-1, 1] = 1.0
    people = PersonCounts(1)
    for block in np.array_split(ids, 7):
        people.add(block)
    weights = RecordWeights(0, people).integers(ids)
    assert weights[-1] == ONE
    assert int(weights[:-1].sum()) == 16 * 10**6 <= ONE


@pytest.mark.parametrize(
    ("stated", "share"),
    [
        (2.0, 0.5),
        (4.0, 1.0),
        (1e300, 1.0),
        (np.inf, 1.0),
        (0.0, 0.0),
        (-1.0, 0.0),
        (-np.inf, 0.0),
        (np.nan, 0.0),
        (4 * 2.0**-24, 2.0**-24),
        (3.9 * 2.0**-24, 0.0),
        (5e-324, 0.0),
    ],
)
def test_stated_weights_are_held_to_their_bound(stated, share):
    weights, seal = RecordWeights(0, None, bound=4.0).integers_and_checksum(np.array([[stated]]))
    assert weights.tolist() == [int(share * ONE)]
    assert seal == 0
    assert weights.tolist() == reference_weights(None, stated=[stated], bound=4.0)


def test_nobody_and_strangers_weigh_nothing():
    people = counted([1, 1, None])
    assert people.people == 1
    assert people.records == 3
    assert RecordWeights(0, people).integers(pairs([None, 2, 1])).tolist() == [0, 0, ONE // 2]
    assert RecordWeights(0, counted([None])).integers(pairs([None, 2])).tolist() == [0, 0]


def test_weights_are_taken_apart_into_parts_that_add_up():
    rng = np.random.default_rng(0)
    for weights in (
        rng.integers(0, ONE + 1, 1000),
        rng.choice([0, 1, ONE], 1000),
        np.array([ONE, 0, ONE - 1, 1, 64, 63]),
        np.arange(300) * 55_555,
        np.append(np.arange(999) * 16_001, ONE),  # many, and the largest
        np.arange(200_000) * 83,  # more than 2¹⁶ different ones
        np.zeros(4, np.int64),
        np.array([], np.int64),
    ):
        total = np.zeros(len(weights), np.int64)
        for weight, rows in equal_weights(weights):
            assert 0 < weight <= ONE
            total[rows] += weight
        assert total.tolist() == weights.tolist()


def test_few_weights_whose_mixed_bits_agree_are_told_apart():
    """62 of 1,000 rows: two of them agree in 14 bits in some of these draws."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        weights = rng.choice(rng.integers(1, ONE + 1, 62), 1000)
        groups = list(equal_weights(weights))
        assert {weight for weight, _ in groups} == set(weights.tolist())
        for weight, rows in groups:
            assert (weights[rows] == weight).all()
        assert sum(len(rows) for _, rows in groups) == 1000


def test_a_record_is_in_one_group_or_in_one_for_each_digit():
    assert RecordWeights(0, None).most_groups == 1
    assert RecordWeights(0, None, bound=2.0).most_groups == 5
    weights = np.random.default_rng(0).integers(0, ONE + 1, 1000)
    rows = np.concatenate([rows for _, rows in equal_weights(weights)])
    assert np.bincount(rows).max() <= 5


@pytest.mark.parametrize("size", [2**53, 2**55])
@pytest.mark.parametrize("sign", [1, -1])
def test_limbs_are_exact_up_to_their_bounds(size, sign):
    rng = np.random.default_rng(0)
    limbs = np.zeros((2, 4), np.int64)
    expected = [0, 0, 0]
    for _ in range(16):
        block = sign * (size - rng.integers(0, 3, 3))
        block[0] = -block[0]
        weight = int(ONE - rng.integers(0, 2))
        add_limbs(limbs[:, :-1], block, weight)
        expected = [a + int(b) * weight for a, b in zip(expected, block, strict=True)]
        assert (limbs[0] >= 0).all()
        assert (limbs[0] < 2**35).all()
        assert (np.abs(limbs[1]) <= 2**54).all()
    assert joined(limbs.astype(object), (3,)).tolist() == expected


def test_totals_of_nothing_and_checksums_that_wrap_around():
    for shape in ((3,), (2, 2), (1,)):
        nothing = joined(0, shape)
        assert nothing.shape == shape
        assert nothing.dtype == object
        assert not nothing.any()
    limbs = np.array([[1, 2, 5], [0, 1, 2**32]], dtype=object)  # two numbers, and a checksum
    assert joined(limbs, (2,)).tolist() == [1, 2 + 2**35]
    assert total_checksum(limbs) == 5
    limbs[:, -1] = 2**32 + 7, 2**32 - 1
    assert total_checksum(limbs) == 7
    assert total_checksum(0) == 0


def test_pieces_of_a_chunk_are_few_enough_for_the_limbs():
    """At most 2¹⁷ rows a block, as weights.md says, for every statistic."""
    for statistic, _, _ in STATISTICS.values():
        rows = statistic.block_rows
        assert rows <= 2**17
        for columns in (1, 2, 5, 1000, 10**7):
            assert rows <= weighted_chunk(rows, columns) <= min(2**10 * rows, 2**20)


# ---- sources

IDS = [3, 3, None, 5, 2**60 + 1, 2**60, 3, 5, -4, 3]
VALUES = np.linspace(-1.5, 1.5, len(IDS))


def sources(folder):
    table = pa.table({"a": VALUES, "id": pa.array(IDS, pa.int64())})
    pq.write_table(table, folder / "t.parquet")
    lines = [f"{a!r},{'' if i is None else i}" for a, i in zip(VALUES.tolist(), IDS, strict=True)]
    (folder / "t.csv").write_text("a,id\n" + "\n".join(lines) + "\n")
    nullable = pd.DataFrame({"a": VALUES, "id": pd.array(IDS, dtype="Int64")})
    yield scan(table)
    yield scan(pl.from_arrow(table))
    yield scan(nullable)
    yield scan(folder / "t.parquet")
    yield scan(folder / "t.csv")
    yield scan(dd.from_pandas(nullable, npartitions=3))
    yield scan(nullable[["a"]], person=pd.array(IDS, dtype="Int64").astype(object))
    yield scan(pl.DataFrame({"a": VALUES}), person=IDS)


def sums(source, *, contribution=1, threads=1):
    name = "person" if "person" in source.beside else "id"
    unit = PrivacyUnit(person=name, contribution=contribution)
    columns = weight_columns(source, unit)
    people = source.count_people(columns.person, columns.key)
    weights = columns.weights(1, people)
    record_sum = RecordSum(source, (Field("a"),), BOX, threads, weights, columns.fields)
    return people, record_sum.total(enforce(MEAN))


def test_every_source_gives_the_same_integers(tmp_path):
    weights = reference_weights(IDS)
    steps = [int(np.trunc(np.clip(v, -1, 1) * 2.0**24)) for v in VALUES]
    expected = sum(w * s for w, s in zip(weights, steps, strict=True))
    for source in sources(tmp_path):
        for threads in (1, 2):
            people, (rows, total) = sums(source, threads=threads)
            assert (people.people, people.records, rows) == (5, 10, 10)
            assert total.tolist() == [expected]


TEXT_IDS = [None if one is None else f"person {one}" for one in IDS]


def test_texts_give_the_integers_of_numbers(tmp_path):
    numbers = sums(scan(pl.DataFrame({"a": VALUES, "id": IDS})))[1]
    column = pa.array(TEXT_IDS, pa.string())
    for name, kind in (
        ("plain", column),
        ("dictionary", column.dictionary_encode()),
        ("large", column.cast(pa.large_string())),
    ):
        pq.write_table(pa.table({"a": VALUES, "id": kind}), tmp_path / f"{name}.parquet")
        assert sums(scan(tmp_path / f"{name}.parquet"))[1] == numbers
        assert sums(scan(pa.table({"a": VALUES, "id": kind})))[1] == numbers
    frame = pd.DataFrame({"a": VALUES, "id": TEXT_IDS})
    assert sums(scan(frame))[1] == numbers
    assert sums(scan(dd.from_pandas(frame, npartitions=3)))[1] == numbers
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert sums(scan(tmp_path / "t.csv"))[1] == numbers
    quoted = frame.to_csv(index=False, quoting=2).replace('""', "")  # all but numbers
    (tmp_path / "q.csv").write_text(quoted)
    assert sums(scan(tmp_path / "q.csv"))[1] == numbers


@pytest.mark.parametrize(
    ("ids", "people"),
    [
        ([4] * 10, 1),  # constant
        (list(range(10)), 10),  # all different
        ([1.5, 1.5, 2.0, 2.0, 2.0, np.nan, np.inf, -np.inf, 1e300, 0.1], 6),  # floats
        ([np.nan] * 10, 0),
    ],
)
def test_unusual_columns_of_identifiers_weigh_as_the_reference_says(ids, people):
    source = scan(pl.DataFrame({"a": VALUES, "id": ids}))
    known = [None if np.isnan(one) else one for one in ids]
    steps = [int(np.trunc(np.clip(v, -1, 1) * 2.0**24)) for v in VALUES]
    expected = sum(w * s for w, s in zip(reference_weights(known), steps, strict=True))
    found, (rows, total) = sums(source)
    assert (found.people, rows, total.tolist()) == (people, 10, [expected])


def test_identifiers_are_compared_in_both_halves():
    """Whole numbers that agree below 2³², or above it alone, are different people."""
    ids = [1, 1 + 2**32, 2, 2 + 2**32, 1]
    people, _ = sums(scan(pl.DataFrame({"a": VALUES[:5], "id": ids})))
    assert people.people == 4


def test_a_position_behind_the_last_column_is_refused():
    records = scan(np.zeros((20, 2)))
    assert weight_columns(records, PrivacyUnit(person="1")).person[0].key == 1
    with pytest.raises(BadInput, match="no column names"):
        weight_columns(records, PrivacyUnit(person="2"))


def test_codes_for_nobody_weigh_nothing(tmp_path):
    (tmp_path / "t.csv").write_text("a,id\n.5,NA\n.5,NA\n.25,7\n.5,999\n.5,NAN\n.5,\n")
    source = scan(tmp_path / "t.csv")
    assert sums(source)[0].people == 4
    people, (rows, total) = sums(source.with_nobody(["NA", "999"]))
    assert (people.people, rows) == (4, 6)  # they are counted: else the number would tell of one
    assert total.tolist() == [3 * 2**46]  # a quarter and a half, on two grids
    assert sums(source.with_nobody([]))[0].people == 4


@pytest.mark.parametrize("somebody", ["1234", "5678", "jos\u00e9"])
def test_how_a_fit_reads_does_not_tell_who_is_there(somebody, tmp_path):
    """Fits of one account show their numbers of people: two of them must not differ by a person."""
    rows = [f"0,{name}" for name in (*range(100, 129), somebody)]
    (tmp_path / "t.csv").write_text("a,id\n" + "\n".join(rows) + "\n", encoding="utf-8")
    source = scan(tmp_path / "t.csv")
    readings = [
        source,
        source.with_nobody(["1234"]),
        scan(tmp_path / "t.csv", encoding="ascii"),
        scan(tmp_path / "t.csv", encoding="cp1252"),
    ]
    assert {sums(one)[0].people for one in readings} == {30}


def test_codes_hold_for_lists_and_for_weights():
    """A code for nobody is a weight like any other, and the other way round."""
    records = [[0.5, "NA", 4.0], [0.5, "NA", 4.0], [0.5, 999, 4.0], [0.25, 8, 999.0]]
    box = reticent.Bounds(x=[(-1.0, 1.0)])
    unit = PrivacyUnit(person="1", weight="2", weight_bound=4.0)
    for data in (records, np.array(records, dtype=object)):
        source = scan(data).with_nobody(["NA"], weightless=["999"]).shaped(3, 0)
        columns = weight_columns(source, unit)
        people = source.count_people(columns.person, columns.key)
        weights = columns.weights(1, people)
        sums = RecordSum(source, (Field(0),), box, 1, weights, columns.fields)
        assert people.people == 3
        assert sums.total(enforce(MEAN))[1].tolist() == [2**47]


def test_with_one_record_each_the_sums_are_those_without_people():
    rng = np.random.default_rng(3)
    data = pl.DataFrame({"a": rng.uniform(-1, 1, 500), "id": rng.permutation(500)})
    _, (_, total) = sums(scan(data))
    plain = RecordSum(scan(data), (Field("a"),), BOX, 1)
    assert (plain.total(enforce(MEAN))[1] * ONE == total).all()


# ---- releases


def curator(data, **options):
    return Curator(scan(data), bounds=BOX, event=EVENT, seed=b"seed", **options)


def test_a_release_is_the_same_whatever_order_records_come_in():
    rng = np.random.default_rng(4)
    data = pl.DataFrame({"a": rng.uniform(-1, 1, 300), "id": rng.integers(0, 40, 300)})
    values = [
        curator(some, person="id").release(MEAN).value.tolist()
        for some in (data, data.sort("a"), data[::-1])
    ]
    assert values[0] == values[1] == values[2]


def test_no_release_tells_how_many_records_there_are():
    few = pl.DataFrame({"a": [0.25] * 10, "id": list(range(10))})
    many = pl.DataFrame({"a": [0.25] * 160, "id": [i for i in range(10) for _ in range(16)]})
    for neighbours in ("replace", "add-remove"):
        one, other = (
            curator(data, person="id", neighbours=neighbours).release(MEAN) for data in (few, many)
        )
        assert one.header() | {"fit": ""} == other.header() | {"fit": ""}
        assert one.value.tolist() == other.value.tolist()
        assert one.scale.tolist() == other.scale.tolist()


@pytest.mark.parametrize("people", [None, "id"])
def test_a_table_without_records_gives_noise_where_their_number_is_protected(people):
    empty = pl.DataFrame({"a": [], "id": []}, schema={"a": pl.Float64, "id": pl.Int64})
    release = curator(empty, person=people, neighbours="add-remove").release(MEAN)
    assert release.n >= 1
    assert np.isfinite(release.value).all()
    with pytest.raises(BadInput, match="no records"):
        curator(empty, person=people)


def test_only_nobodys_records_are_no_people():
    nobody = pl.DataFrame({"a": [0.5, 0.5], "id": [None, None]}, schema_overrides={"id": pl.Int64})
    with pytest.raises(BadInput, match="no people"):
        curator(nobody, person="id").release(MEAN)
    curator(nobody, person="id", neighbours="add-remove").release(MEAN)


def test_a_protected_number_is_drawn_once_whoever_asks():
    data = pl.DataFrame({"a": np.zeros(2000), "id": np.arange(2000)})
    holder = Curator(scan(data), bounds=BOX, event=EVENT, person="id", neighbours="add-remove")
    begin = threading.Barrier(8)
    found = []

    def ask():
        begin.wait()
        found.append(holder.n)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1
    assert [release.statistic["name"] for release in holder.releases] == ["NumberOfUnits"]


def test_a_protected_number_that_was_lost_is_not_drawn_again(monkeypatch):
    data = pl.DataFrame({"a": np.zeros(20), "id": np.arange(20)})
    holder = curator(data, person="id", neighbours="add-remove")
    monkeypatch.setattr(holder, "_give", lambda *given, **options: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        _ = holder.n
    monkeypatch.undo()
    with pytest.raises(ReleaseRefused, match="drawn before"):
        _ = holder.n


@pytest.mark.parametrize("person", [None, "id"])
@pytest.mark.parametrize("kind", ["frame", "csv", "parquet", "beside"])
def test_bad_weights_release_what_weights_within_the_bound_do(person, kind, tmp_path):
    """Negative and missing ones count as zero, those above the bound as the bound."""
    bad = [np.nan, -3.0, -np.inf, 0.0, 25.0, np.inf, 20.0, 4.0]
    held = [0.0, 0.0, 0.0, 0.0, 20.0, 20.0, 20.0, 4.0]
    found = []
    for number, weights in enumerate((bad, held)):
        data = pl.DataFrame({"a": np.linspace(-1, 1, 8), "id": [0, 0, 1, 1, 2, 2, 2, 3]})
        column = pl.Series("w", weights)
        options = {"person": person, "weight": "w", "weight_bound": 20.0}
        if kind == "beside":
            options["weight"] = "weight"
            source = scan(data, weight=column)
        else:
            source = scan(data.with_columns(column))
        if kind == "csv":
            data.with_columns(column).write_csv(tmp_path / f"{number}.csv")
            source = scan(tmp_path / f"{number}.csv")
        if kind == "parquet":
            data.with_columns(column).write_parquet(tmp_path / f"{number}.parquet")
            source = scan(tmp_path / f"{number}.parquet")
        found.append(curator(source, **options).release(MEAN).value.tolist())
    assert found[0] == found[1]


@pytest.mark.parametrize("options", [{"person": "nobody"}, {"weight": "w", "weight_bound": 1.0}])
def test_a_column_that_is_not_there_is_refused_before_the_charge(options, tmp_path):
    ledger = reticent.Ledger(tmp_path / "budget.db")
    unit = PrivacyUnit(person=options.get("person"))
    ledger.open("clinic", epsilon=2, delta=1e-6, person=unit.person)
    account = {"ledger": str(tmp_path / "budget.db"), "dataset": "clinic"}
    data = pl.DataFrame({"a": np.zeros(20), "id": np.arange(20)})
    data.write_csv(tmp_path / "t.csv")
    data.write_parquet(tmp_path / "t.parquet")
    frame = dd.from_pandas(data.to_pandas(), npartitions=2)
    for source in (data, tmp_path / "t.csv", tmp_path / "t.parquet", frame):
        with pytest.raises(BadInput, match=r"There is no column|'a', 'id'"):
            curator(source, **account, **options)
    with pytest.raises(BadInput, match="no column names"):
        curator(np.zeros((20, 1)), **account, **options)
    assert ledger.spent("clinic") == 0


def test_columns_of_weights_must_be_those_of_the_unit():
    data = pl.DataFrame({"a": np.zeros(20), "id": np.arange(20)})
    columns = weight_columns(scan(data), PrivacyUnit())
    with pytest.raises(BadInput, match="another unit"):
        curator(data, person="id", columns_of_weights=columns)


def test_lengths_that_differ_are_refused_without_numbers():
    with pytest.raises(BadInput) as refusal:
        scan(np.zeros((1234, 2)), person=np.zeros(77))
    assert not any(character.isdigit() for character in str(refusal.value))


# ---- records that change between readings


class Changing:
    """A source that gives other identifiers from the second reading on."""

    def __init__(self, first, later):
        self.tables = [first, later]

    def __call__(self, fields):
        table = self.tables[0]
        if len(self.tables) > 1:
            self.tables.pop(0)
        return scan(table).blocks(fields)


@pytest.mark.parametrize(
    "later",
    [
        [1] * 5 + [6],  # person 1 has five records of weight one
        [0, 1, 2, 3, 4, 0],  # nobody becomes person 0
        [0, 1, 2, 3, 9, None],
    ],
)
def test_other_identifiers_at_the_second_reading_are_refused(later, monkeypatch):
    first = [0, 1, 2, 3, 4, None]
    tables = [
        pl.DataFrame({"a": np.ones(6), "id": pl.Series(ids, dtype=pl.Int64)})
        for ids in (first, later)
    ]
    holder = curator(tables[0], person="id")
    monkeypatch.setattr(holder._source, "blocks", Changing(*tables))
    with pytest.raises(ReleaseRefused, match="changed while they were read"):
        holder.release(MEAN)


def test_other_values_or_another_order_are_a_table_like_any_other(monkeypatch):
    first = pl.DataFrame({"a": np.ones(6), "id": [0, 0, 1, 2, 3, 3]})
    later = pl.DataFrame({"a": -np.ones(6), "id": [3, 0, 1, 0, 2, 3]})
    holder = curator(first, person="id")
    monkeypatch.setattr(holder._source, "blocks", Changing(first, later))
    value = holder.release(MEAN).value
    assert value.tolist() == curator(later, person="id").release(MEAN).value.tolist()


# ---- searches


def test_halves_that_are_read_again_are_those_that_are_held():
    rng = np.random.default_rng(6)
    ids = [None if i == 0 else int(i) for i in rng.integers(0, 30, 200)]
    source = scan(pl.DataFrame({"a": rng.uniform(-1, 1, 200), "id": ids}))
    columns = weight_columns(source, PrivacyUnit(person="id"))
    people = source.count_people(columns.person, columns.key)
    chosen = rng.uniform(size=people.people) < 0.4
    rows = rng.uniform(size=200) < 0.4
    fields = (Field("a"), *columns.person)
    for split in (RecordSplit(chosen, people, columns.person), RecordSplit(rows)):
        held = split_records(source, fields, split)
        again = SubsetReadAgain(source, split, False), SubsetReadAgain(source, split, True)
        for one, other in zip(held, again, strict=True):
            first, second = (np.vstack(list(half.blocks(fields))) for half in (one, other))
            assert np.array_equal(first, second, equal_nan=True)
            assert one.count() == other.count() == len(first)
            with pytest.raises(TypeError):
                other.__reduce__()
    training, validation = (set(np.vstack(list(half.blocks(fields)))[:, 2]) for half in held)
    assert training & validation  # records are split by row, and people by person alone
    by_person = split_records(source, fields, RecordSplit(chosen, people, columns.person))
    training, validation = (
        {one for one in np.vstack(list(half.blocks(fields)))[:, 2] if one == one}
        for half in by_person
    )
    assert not training & validation
    for wrong in (rows[:-1], np.append(rows, True)):
        with pytest.raises(ReleaseRefused, match="number of records"):
            list(SubsetReadAgain(source, RecordSplit(wrong), True).blocks(fields))


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_a_search_of_people_refuses_by_public_numbers_alone(neighbours, monkeypatch):
    """However many records there are, and whatever memory there is: the same releases."""
    few = pl.DataFrame({"a": np.linspace(-1, 1, 40), "id": range(40)})
    many = pl.concat([few] * 30)
    monkeypatch.setattr("reticent.privacy.selection.private_selection.MEMORY", 40 * 8 * 8)
    for data in (few, many):
        search = reticent.PrivateSearch(
            reticent.PrivateHistogram(),
            {"bins": [2, 3]},
            bounds=BOX,
            epsilon=20,
            delta=1e-3,
            expected_runs=2,
            person="id",
            neighbours=neighbours,
        ).fit(data)
        names = [release.statistic["name"] for release in search.releases_]
        assert names.count("NumberOfUnits") == 2 * (neighbours == "add-remove")
        if neighbours == "replace":
            assert search.releases_[0].n == 40


@pytest.mark.parametrize("units", [0, 1])
def test_a_search_under_add_remove_refuses_no_small_table(units):
    """Only what a run releases decides; it may fail, as any run may, and says nothing else."""
    data = pl.DataFrame({"a": [0.5] * units, "id": [1] * units}, schema={"a": float, "id": int})
    search = reticent.PrivateSearch(
        reticent.PrivateMean(),
        [{}],
        scoring=lambda model, X, y: np.full(len(X), 0.5),
        bounds=BOX,
        epsilon=1.0,
        delta=1e-3,
        expected_runs=2,
        person="id",
        neighbours="add-remove",
    ).fit(data)
    assert search.releases_[0].statistic["name"] == "Choice"


def test_coins_do_not_depend_on_how_many_are_tossed():
    from reticent.privacy.selection.random_draws import coins

    class Words:
        def words(self, n):
            return np.random.default_rng(1).integers(0, 2**64, n, dtype=np.uint64)

    long = coins(5000, 0.3, Words())
    assert coins(4000, 0.3, Words()).tolist() == long[:4000].tolist()
    assert abs(long.mean() - 0.3) < 0.03
    assert coins(0, 0.3, Words()).shape == (0,)


def test_a_score_does_not_depend_on_who_else_is_judged():
    """A judge whose last bits hang on the place in the block and on its length."""

    def judge(records):
        return records[:, 0] + 1e-9 * np.arange(len(records)) + 1e-7 * len(records)

    rng = np.random.default_rng(7)
    records = rng.uniform(-1, 1, (700, 2))
    records[5] = records[6]

    def own(some):  # anew each time: it remembers
        return in_own_places(judge)(some)

    alone = np.array([own(one[None])[0] for one in records])
    assert own(records).tolist() == alone.tolist()
    order = rng.permutation(700)[:333]
    assert own(records[order]).tolist() == alone[order].tolist()
    assert np.abs(alone - records[:, 0]).max() < 1e-4
    assert own(np.repeat(records[:1], 600, axis=0)).tolist() == [alone[0]] * 600
    assert own(records[:0]).tolist() == []
    once = in_own_places(judge)
    assert [once(some).tolist() for some in (records[:9], records[:9])] == [alone[:9].tolist()] * 2


# ---- two answers to the question whose a record is


def test_a_column_and_identifiers_beside_the_records_are_one_too_many(tmp_path):
    """Else an account of patients could be charged with records that are everybody's own."""
    data = pl.DataFrame({"a": np.zeros(50), "patient": np.zeros(50, int)})
    ledger = reticent.Ledger(tmp_path / "budget.db")
    ledger.open("clinic", epsilon=2, delta=1e-6, person="patient")
    options = {"bounds": BOX, "epsilon": 1.0, "delta": 1e-6}
    account = {"ledger": str(tmp_path / "budget.db"), "dataset": "clinic"}
    model = reticent.PrivateMean(person="patient", **options, **account)
    with pytest.raises(BadInput, match="patient"):
        model.fit(data, person=np.arange(50))
    both = scan(data, person=np.arange(50))
    with pytest.raises(BadInput, match="patient"):
        Curator(both, bounds=BOX, event=EVENT, person="patient")
    named = data.rename({"patient": "person"})
    with pytest.raises(BadInput, match="person"):
        reticent.PrivateMean(**options).fit(named, person=np.arange(50))
    with pytest.raises(BadInput, match="source"):
        reticent.PrivateMean(**options).fit(scan(named), person=np.arange(50))
    with pytest.raises(BadInput, match="source"):
        reticent.PrivateMean(**options, weight_bound=2.0).fit(scan(data), sample_weight=np.ones(50))
    assert ledger.spent("clinic") == 0


@pytest.mark.parametrize("options", [{"weight": "y", "weight_bound": 1.0}, {"person": "y"}])
def test_a_protected_label_is_neither_a_weight_nor_an_identifier(options):
    """Weights and people are public where labels alone are protected: they made the design."""
    data = pl.DataFrame({"a": np.linspace(-1, 1, 9), "y": np.arange(9.0) % 2})
    bounds = reticent.Bounds(x={"a": (-1.0, 1.0)}, y={"y": (0.0, 1.0)})
    label = {"bounds": bounds, "event": EVENT, "targets": True, "relation": "label"}
    with pytest.raises(BadInput, match="protected"):
        Curator(scan(data), **label, **options)
    with pytest.raises(BadInput, match="protected"):
        Curator(scan(data[["a"]], y=data["y"]), **label, **options)
