"""Curator.choose.

Paid first, chance before reading, two halves by row number, and nothing leaves but the best run.
"""

import gc
import logging
import warnings
from dataclasses import replace

import numpy as np
import pytest

from reticent import (
    BadInput,
    Bounds,
    Curator,
    Gaussian,
    Ledger,
    ReleaseRefused,
    Selection,
    scan,
)
from reticent.models.replay import Replay
from reticent.privacy.accounting.selection import stop_for
from reticent.privacy.row_maps.column_moments import MeanSum
from reticent.privacy.selection import private_selection as choosing
from reticent.privacy.selection.private_selection import Candidate
from reticent.privacy.selection.random_split import RecordSplit, RecordSubset, split_records
from reticent.privacy.sources.base import Field, Source
from reticent.privacy.statistics.feature_cache import FeatureCache
from reticent.privacy.statistics.sum import EnforcedSum

BOUNDS = Bounds(x=[(-1.0, 1.0)])
EVENT = Selection(noise_multiplier=0.5, stop=stop_for(12))
NOISE = Gaussian(noise_multiplier=0.5)
RECORDS = np.linspace(-1, 1, 41)[:, None]


def curator(data=RECORDS, *, event=EVENT, candidates=2, noise=NOISE, **options):
    chosen = [Candidate(BOUNDS, BOUNDS, noise, noise)] * candidates
    source = data if isinstance(data, Source) else scan(data)
    return Curator(source, bounds=BOUNDS, event=event, candidates=chosen, **options)


def sum_score(index, training, validation):
    """Prefer large noisy sums, and the second candidate to the first."""
    released = training.release(MeanSum(1, 1))
    validation.release(MeanSum(1, 1))
    return float(released.value[0]) + 100 * index


class Logged(Source):
    """A source that writes down what happens to it."""

    names = None
    width = 1
    targets = 0
    known_n = None

    def __init__(self, log):
        self.log = log

    def kind(self, position):
        return "number", "float64"

    def count(self):
        self.log.append("counted")
        return len(RECORDS)

    def blocks(self, fields):
        self.log.append("read")
        yield RECORDS[:, [0] * len(fields)]


def test_charge_then_chance_then_reading(tmp_path, monkeypatch):
    log = []
    ledger = tmp_path / "budget.db"
    Ledger(ledger).open("people", 1e9, 1e-6)
    for module, name in ((choosing, "number_of_runs"), (choosing, "uniform"), (choosing, "split")):
        honest = getattr(module, name)
        monkeypatch.setattr(
            module,
            name,
            lambda *args, honest=honest, name=name: (log.append(name), honest(*args))[1],
        )
    charge = Ledger.charge
    monkeypatch.setattr(
        Ledger,
        "charge",
        lambda *args, **kwargs: (log.append("charged"), charge(*args, **kwargs))[1],
    )
    curator(Logged(log), ledger=ledger, dataset="people").choose(sum_score)
    first = [name for i, name in enumerate(log) if name not in log[:i]]
    assert first == ["charged", "number_of_runs", "uniform", "counted", "split", "read"]
    assert log.count("number_of_runs") == log.count("read") == log.count("charged") == 1
    last_chance = max(
        i for i, name in enumerate(log) if name in ("number_of_runs", "uniform", "split")
    )
    assert last_chance < log.index("read"), (
        "nothing is drawn for the search after the first record was read"
    )
    assert "uniform" not in log[log.index("counted") :]


def test_only_the_best_run_leaves_and_says_what_the_whole_has_cost():
    one = curator()
    choice = one.choose(sum_score)
    assert choice.index == 1 or choice.score < 100
    assert [release.statistic["name"] for release in one.releases] == [
        "Choice",
        "MeanSum",
        "MeanSum",
    ]
    assert all(release.event == EVENT for release in one.releases)
    assert len({release.fit for release in one.releases}) == 1
    assert choice.training[0].n + choice.validation[0].n == len(RECORDS) == one.releases[0].n
    assert choice.score == pytest.approx(choice.training[0].value[0] + 100 * choice.index)
    again = Replay(one.releases).choose(sum_score)
    assert (again.index, again.score) == (choice.index, choice.score)


def test_nothing_but_the_best_run_depends_on_the_others(monkeypatch):
    """Change every run but the best: all that leaves stays the same, bit for bit."""
    seen = []
    for others in (0.0, -1e6, np.nan, "fails"):
        runs = []

        def attempt(index, training, validation, runs=runs, others=others):
            training.release(MeanSum(1, 1)), validation.release(MeanSum(1, 1))
            runs.append(index)
            if len(runs) == 3:
                return 7.0
            if others == "fails":
                warnings.warn("a run failed on record 4711", stacklevel=1)
                raise ValueError("record 4711")
            return others

        monkeypatch.setattr("secrets.token_hex", lambda size: "0" * 2 * size)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            one = curator(seed=b"3")
            choice = one.choose(attempt)
        assert len(runs) > 3
        told = [
            (r.statistic, r.value.tobytes(), r.scale.tobytes(), r.event, r.n, r.fit)
            for r in one.releases
        ]
        seen.append((choice.index, choice.score, told, repr(one), [str(w) for w in caught]))
    assert all(one == seen[0] for one in seen)


def test_how_many_ran_is_nowhere(caplog, capfd):
    """Walk everything that can be reached after the search, with one run and with many."""
    shapes = []
    for stop in (1.0, 2.0**-8):
        with caplog.at_level(logging.DEBUG):
            one = curator(event=replace(EVENT, stop=stop))
            choice = one.choose(sum_score)
            one.close()
        stack = [choice, one]
        known = set()
        kinds = set()
        while stack:
            thing = stack.pop()
            if id(thing) in known or isinstance(thing, type) or callable(thing):
                continue
            known.add(id(thing))
            kinds.add(type(thing).__name__)
            assert (
                not isinstance(thing, (RecordSubset, FeatureCache))
                or not vars(thing).get("_rows", np.empty(0)).size
            )
            stack.extend(gc.get_referents(thing))
        shapes.append((len(one.releases), kinds, repr(one)))
    assert shapes[0] == shapes[1]
    assert caplog.text == ""
    assert capfd.readouterr() == ("", "")


def test_a_run_that_fails_is_the_worst_and_the_search_goes_on(tmp_path):
    ledger = tmp_path / "budget.db"
    Ledger(ledger).open("people", 1e9, 1e-6)

    def second_only(index, training, validation):
        if index == 0:
            training.release(MeanSum(1, 1))
            raise RuntimeError("record 17 is 4711")
        return sum_score(index, training, validation)

    found = curator(event=replace(EVENT, stop=2.0**-7), ledger=ledger, dataset="people").choose(
        second_only
    )
    assert found.index == 1
    assert len(Ledger(ledger).history("people")) == 1

    def never(index, training, validation):
        raise RuntimeError("record 17 is 4711")

    hopeless = curator(ledger=ledger, dataset="people")
    with pytest.raises(ReleaseRefused, match="charge stays") as error:
        hopeless.choose(never)
    assert hopeless.releases == []
    chain = error.value
    while chain is not None:
        assert "4711" not in str(chain)
        chain = chain.__cause__ or chain.__context__
    assert len(Ledger(ledger).history("people")) == 2


@pytest.mark.parametrize("score", [np.nan, np.inf, -np.inf, "7", None])
def test_a_score_that_is_no_number_is_a_failure(score):
    with pytest.raises(ReleaseRefused):
        curator().choose(lambda index, training, validation: score)
    with pytest.raises(ReleaseRefused):
        curator().choose(lambda index, training, validation: 1.0)  # released nothing


class OtherNoise(Gaussian):
    """Claims what it likes of its noise."""


class OtherBounds(Bounds):
    """Scales as it likes."""


def test_candidates_are_of_the_known_noise_and_bounds_themselves():
    other = OtherBounds(x=[(-1.0, 1.0)])
    noise = OtherNoise(noise_multiplier=0.5)
    for terms in (
        (other, BOUNDS, NOISE, NOISE),
        (BOUNDS, other, NOISE, NOISE),
        (BOUNDS, BOUNDS, noise, NOISE),
        (BOUNDS, BOUNDS, NOISE, noise),
    ):
        with pytest.raises(BadInput, match="subclasses"):
            Candidate(*terms)


def test_a_crash_in_the_middle_stays_charged(tmp_path, elsewhere):
    code = f"""
import os, numpy as np, reticent
from reticent.privacy.selection.private_selection import Candidate
bounds = reticent.Bounds(x=[(-1.0, 1.0)])
noise = reticent.Gaussian(noise_multiplier=5.0)
event = reticent.Selection(noise_multiplier=5.0, stop=0.25)
one = reticent.Curator(reticent.scan(np.zeros((10, 1))), bounds=bounds, event=event,
    candidates=[Candidate(bounds, bounds, noise, noise)],
    ledger={str(tmp_path / "budget.db")!r}, dataset="people")
one.choose(lambda *run: os._exit(9))
"""
    book = Ledger(tmp_path / "budget.db")
    book.open("people", 3.0, 1e-6)
    assert elsewhere(code) == (9, "")
    (entry,) = book.history("people")
    assert entry.event == Selection(noise_multiplier=5.0, stop=0.25)


@pytest.mark.parametrize("n", [2, 3, 7])
@pytest.mark.parametrize("validation", [1e-9, 0.5, 0.999])
def test_few_records(n, validation):
    choice = curator(RECORDS[:n], validation=validation).choose(sum_score)
    assert choice.training[0].n >= 1
    assert choice.validation[0].n >= 1
    assert choice.training[0].n + choice.validation[0].n == n


def test_every_record_is_in_one_half_and_stays_there_whatever_it_is():
    """With next to no noise the two sums tell who is where.

    The same for a record that is changed, and for all others.
    """
    bits = 2.0 ** -np.arange(1, 21)[:, None]

    def places(records):
        one = curator(
            records,
            seed=b"1",
            noise=Gaussian(noise_multiplier=1e-8),
            event=replace(EVENT, noise_multiplier=1e-8),
        )
        choice = one.choose(sum_score)
        training = choice.training[0].value[0]
        validation = choice.validation[0].value[0]
        return np.round(np.array([training, validation]) * 2**20)

    whole = places(bits)
    assert whole.sum() == 2**20 - 1  # each once
    assert int(whole[0]) & int(whole[1]) == 0
    changed = bits.copy()
    changed[5] = 0
    after = places(changed)
    assert sorted(whole - after) == [0, 2 ** (20 - 6)]


def test_rows_of_a_csv_file_keep_their_numbers(tmp_path):
    """A line that is malformed, quoted or long does not move the lines behind it."""
    lines = [f"{i},1" for i in range(200)]
    apart = np.arange(200) % 3 == 0
    fields = (Field("a"),)
    for broken in ('"7",1', "7,1,1", "7", '7," x"y', "7" * 5000 + ",1", "\r7,1", "  "):
        changed = list(lines)
        changed[7] = broken
        path = tmp_path / "people.csv"
        path.write_text("a,b\n" + "\n".join(changed) + "\n")
        n = 199 if broken == "  " else 200  # a blank line is no record
        if n < 200:
            continue
        training, validation = split_records(scan(path), fields, RecordSplit(apart))
        assert [row[0] for block in validation.blocks(fields) for row in block] == list(
            range(0, 200, 3)
        )
        seen = [row[0] for block in training.blocks(fields) for row in block]
        assert seen[:4] == [1, 2, 4, 5]
        assert seen[5:] == [i for i in range(8, 200) if i % 3]


def test_parts_are_of_one_reading_and_give_the_same_blocks():
    long = np.arange(20_000.0)[:, None]
    apart = np.zeros(20_000, dtype=bool)
    apart[::2] = True
    a, b = split_records(scan(long), (Field(0),), RecordSplit(apart))
    assert [len(block) for block in a.blocks((Field(0),))] == [4096, 4096, 1808]
    assert np.vstack(list(b.blocks((Field(0),))))[:, 0].tolist() == list(range(0, 20_000, 2))
    for wrong in (apart[:-1], np.append(apart, True)):
        with pytest.raises(ReleaseRefused, match="changed"):
            split_records(scan(long), (Field(0),), RecordSplit(wrong))
    with pytest.raises(TypeError):
        a.__reduce__()


def test_refused_before_the_charge(tmp_path):
    ledger = tmp_path / "budget.db"
    Ledger(ledger).open("people", 1e9, 1e-6)
    own = {"ledger": ledger, "dataset": "people"}
    for options, words in (
        ({"candidates": 0}, "needs candidates"),
        ({"noise": Gaussian(noise_multiplier=0.4999)}, "less noise than"),
        ({"noise": Gaussian(2, 0.5 * 1.414)}, "less noise than"),
        ({"data": RECORDS[:1]}, "1 sample"),
        ({"event": Selection(2, 0.5)}, "one search"),
    ):
        with pytest.raises(BadInput, match=words):
            curator(**{"data": RECORDS, **options}, **own)
    cluster = Logged([])
    cluster.local = False
    with pytest.raises(BadInput, match="cluster"):
        curator(cluster, **own)
    large = Logged([])
    large.known_n = 2**27 + 1  # eight bytes each
    with pytest.raises(BadInput, match="memory"):
        curator(large, **own)
    assert Ledger(ledger).history("people") == []


def test_one_choice_is_paid_for_and_no_release():
    one = curator()
    with pytest.raises(ReleaseRefused):
        one.release(MeanSum(1, 1))
    one.choose(sum_score)
    with pytest.raises(ReleaseRefused, match="have been made"):
        one.choose(sum_score)
    with pytest.raises(ReleaseRefused, match="not paid for a search"):
        Curator(scan(RECORDS), bounds=BOUNDS, event=NOISE).choose(sum_score)


def test_exact_sums_of_a_candidate_are_made_once_and_noise_every_time(monkeypatch):
    made = []
    values = []
    honest = EnforcedSum.block_sum
    monkeypatch.setattr(
        EnforcedSum,
        "block_sum",
        lambda self, records: (made.append(len(records)), honest(self, records))[1],
    )

    def attempt(index, training, validation):
        values.append(training.release(MeanSum(1, 1)).value[0])
        validation.release(MeanSum(1, 1))
        return values[-1]

    curator(candidates=1, event=replace(EVENT, stop=2.0**-5), seed=b"2").choose(attempt)
    assert len(values) > 5
    assert made.count(21) == 1  # the training half has 41 − 20 records
    assert len(set(values)) == len(values)


def forged(release, **changes):
    return replace(release, checksum=None, **changes)


def test_altered_records_of_a_search_are_refused():
    one = curator()
    one.choose(sum_score)
    first, *rest = one.releases
    wrong = [
        [first],
        [first, rest[0]],
        [*rest[:1], first],
        [forged(first, value=np.array([2.0, 1.0])), *rest],
        [forged(first, value=np.array([0.5, 1.0])), *rest],
        [forged(first, event=NOISE), *rest],
        [forged(first, n=7), *rest],
        [forged(first, statistic={**first.statistic, "releases": "1"}), *rest],
        [first, forged(rest[0], fit="other"), rest[1]],
    ]
    for releases in wrong:
        with pytest.raises((BadInput, ReleaseRefused)):
            Replay(releases).choose(sum_score)
    with pytest.raises(ReleaseRefused, match="not of a search"):
        Replay(rest[:1]).choose(sum_score)
