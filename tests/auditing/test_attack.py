"""``reticent audit``.

It sees all that public methods release, finds noise that is too small, and knows what it cannot
find.
"""

import json
import math
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

import reticent
from reticent.auditing import attack as audit
from reticent.auditing.attack import FULL, PAIRS, QUICK, Effort, FitAttack
from reticent.auditing.attacker import Run, Seen, exact_sum
from reticent.auditing.evidence import Evidence, Finding, lower_bound
from reticent.models import base
from reticent.privacy import noise
from reticent.privacy.curator import Curator
from reticent.privacy.people.weights import ONE, RecordWeights
from reticent.privacy.row_maps.column_moments import ColumnMeans
from reticent.privacy.statistics.sum import EnforcedColumnSum
from tests.support.prose import says

PROMISE = {"epsilon": 2.0, "delta": 0.1}
LIMIT = 1 / reticent.calibrate(**PROMISE)
SHORT = Effort(seconds=0.0, patience=20.0, factor=0.5, most=200)  # until half the noise is found
ENDED = ("holds", "too few runs")
DRAW = noise._attempts


def drawn(factor):
    """The noise of every release is so many times as large as the release states."""

    def attempts(*args):
        return np.array([int(v * factor) for v in DRAW(*args)], dtype=object)

    return mock.patch.object(noise, "_attempts", attempts)


def found(name, effort=SHORT, **promise):
    with np.errstate(all="ignore"):
        [one] = audit.audit([name], **{**PROMISE, **promise}, effort=effort)
    return one


# --- what is attacked


def least_shift(name):
    """How much of the promise two tables use at least.

    A record that is left out moves a sum of squares by 1/√2 of what two orthogonal ones do; later
    stages, which depend on noise, may move a little less.
    """
    if name == "gp-labels-missing":
        return 0.5  # wide clips: a missing label is as far from any as zero is from the bound
    if name in ("mixture-missing", "kmeans-missing", "gp-missing"):
        return 0.6
    return 0.75


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.filterwarnings("ignore:delta = ")
def test_all_releases_of_a_fit_are_attacked(name):
    """Every stage and every statistic.

    The two tables use most of what is promised, and never more.
    """
    run = FitAttack(PAIRS[name], **PROMISE, limit=LIMIT).run(with_a=True)
    assert run.attacked == run.released == len(run.noise)
    assert run.faults == ()
    assert least_shift(name) * LIMIT < run.shift <= LIMIT * (1 + 1e-9)
    if name in ("gp", "mixture", "kmeans", "factors", "gp-labels", "classifier-inputs"):
        assert run.attacked > 1


def test_the_tables_are_neighbours():
    for pair in PAIRS.values():
        a, b = (pair.tables().whole(with_a=with_a) for with_a in (True, False))
        for column, kind in enumerate(pair.kinds):
            if kind.levels is not None and pair.a[column] == len(kind.levels) - 1:
                assert (a[:, column] == pair.a[column]).sum() == 1  # the only one of its level
        of_a, of_b = pair.records
        assert (a[of_a:] == b[of_b:]).all()
        assert a.shape == (pair.others + of_a, pair.inputs + pair.outputs)
        if not pair.of_people:
            assert np.flatnonzero((a != b).any(axis=1)).tolist() == [0]
            continue
        people = [pair.tables().people(with_a=with_a) for with_a in (True, False)]
        assert people[0][of_a:] == people[1][of_b:]
        assert [len(set(some)) for some in people] == [
            pair.tables().units(with_a=with_a) for with_a in (True, False)
        ]
        assert (len(set(people[0])) == len(set(people[1]))) == (pair.neighbours == "replace")


def test_records_are_given_as_people_have_them():
    pair = PAIRS["table-missing"]
    x, y = pair.as_given(pair.tables().whole(with_a=False))
    assert x.dtype == object
    assert x[0].tolist() == ["w", None]
    assert set(x[1:, 0].tolist()) <= {"u", "v"}
    assert y is None


@pytest.mark.parametrize("name", ["kmeans-words", "gp-missing", "table-words"])
@pytest.mark.filterwarnings("ignore:delta = ")
def test_exact_sums_of_words_and_missing_values_are_the_curators(name):
    attack = FitAttack(PAIRS[name], epsilon=1e9, delta=0.1, limit=math.inf)
    for with_a in (True, False):
        run = attack.run(with_a=with_a)
        noise = list(run.noise)
        if name == "kmeans-words":
            noise.pop()  # whole records, told to half of one, which is far more than this noise
        assert np.concatenate(noise) == pytest.approx(0, abs=8)
        assert (run.log_ratio > 1e6) == with_a


def test_too_little_noise_of_words_and_missing_values_is_found():
    with drawn(0.5):
        assert found("table-words").verdict == "violated"
        assert found("gp-missing").verdict == "violated"


@pytest.mark.parametrize("name", ["people", "people-added", "people-counted"])
@pytest.mark.filterwarnings("ignore:delta = ")
def test_unweighted_sums_are_found_at_the_level_of_a_person(name):
    """Fifty records of one person, each counted as one, as any sum of records does."""

    weighted = RecordWeights.integers_and_checksum

    def unweighted(self, raw):
        return np.full(len(raw), ONE), weighted(self, raw)[1]

    with mock.patch.object(RecordWeights, "integers_and_checksum", unweighted):
        one = found(name, effort=Effort(seconds=0.0, patience=20.0, factor=0.5, most=60))
    assert one.verdict == "violated"
    assert found(name).verdict == "holds"


@pytest.mark.parametrize("name", ["mean", "gp", "factors"])
@pytest.mark.filterwarnings("ignore:delta = ")
def test_exact_sums_are_the_curators(name):
    """With hardly any noise, what is released is what the attacker computes for the table that it
    was.
    """
    pair = PAIRS[name]
    tables = pair.tables()
    attack = FitAttack(pair, epsilon=1e9, delta=0.1, limit=math.inf)
    run = attack.run(with_a=False)
    assert np.concatenate(run.noise) == pytest.approx(0, abs=8)
    assert run.log_ratio < -1e6  # A is out of the question
    assert tables.others.shape[0] == pair.others


def test_the_ratio_is_that_of_the_densities():
    model = audit.PAIRS["mean"].estimator(**PROMISE)
    tables = PAIRS["mean"].tables()
    release = model.fit(tables.whole(with_a=True)).releases_[0]
    a, b = (
        exact_sum(ColumnMeans((1.0, 1.0), False), release.bounds, tables.whole(with_a=with_a))
        for with_a in (True, False)
    )
    seen = Seen(release.value - a, release.value - b, release.scale, 2.0**-24)
    expected = (((release.value - b) ** 2 - (release.value - a) ** 2) / release.scale**2).sum() / 2
    assert seen.log_ratio == pytest.approx(expected)
    assert seen.shift == pytest.approx(LIMIT)
    run = Run.of([seen], with_a=True, released=1, limit=LIMIT)
    direction = (a - b) / release.scale
    assert run.along == pytest.approx(float(run.noise[0] @ direction / np.linalg.norm(direction)))


def test_every_model_is_audited():
    fitted = {
        name
        for name in reticent.__all__
        if isinstance(one := getattr(reticent, name), type)
        and issubclass(one, reticent.PrivateEstimator)
    }
    several = {
        "JointBandit",
        "LocalBanditClient",
    }  # a local server has what clients send, and no more
    attacked = {audit.estimator_of(name) for name in audit.named_attacks("all", 0.05)}
    assert attacked == (fitted | several) - {"PrivateEstimator"}


def test_the_help_names_every_attack(run):
    told = "".join(run("audit", "--help").out.split())  # lines may break at a hyphen
    assert all(
        f"{name}," in told or f"{name}orall" in told for name in audit.named_attacks("all", 0.05)
    )


def test_all_are_attacked():
    assert audit.named_attacks("all", 0.1) == [*PAIRS, *audit.STEPWISE]
    pure = [name for name, pair in PAIRS.items() if pair.pure]
    assert pure
    assert audit.named_attacks("all", 0.0) == pure


# --- what is found


@pytest.mark.parametrize("name", ["mean", "histogram", "gp", "factors", "bandit-local"])
def test_what_is_right_holds(name):
    one = found(name)
    assert one.verdict == "holds", one.faults
    assert one.power[0.5] >= 0.95
    assert 0.7 < one.noise < 1.3


@pytest.mark.parametrize(
    "name", ["mean", "gp", "kmeans", "mixture", "gp-labels", "bandit", "bandit-local", "search"]
)
def test_half_the_noise_is_found(name):
    with drawn(0.5):
        one = found(name)
        if one.verdict != "violated":  # its power is 95 %: once in four hundred it misses twice
            one = found(name)
    assert one.verdict == "violated"
    assert any("of what is stated" in fault for fault in one.faults)


@pytest.mark.parametrize("name", ["mean", "gp"])
def test_noise_of_seven_tenths_is_found_in_full(name):
    """The full mode goes on until it would find that."""
    effort = replace(FULL, seconds=0.0, most=600)
    with drawn(0.7):
        one = found(name, effort)
    assert one.verdict == "violated"


@pytest.mark.parametrize("number", [2, 4])
def test_half_the_noise_in_one_release_is_found(number, monkeypatch):
    """In one of the stages of a fit, the others being right; the finding says in which."""
    whole = Curator.release

    def release(self, statistic, **options):
        with drawn(0.5 if len(self.releases) == number - 1 else 1):
            return whole(self, statistic, **options)

    monkeypatch.setattr(Curator, "release", release)
    one = found("gp")
    assert one.verdict == "violated"
    assert [fault for fault in one.faults if fault.startswith("release")] == [
        fault for fault in one.faults if fault.startswith(f"release {number}:")
    ]
    assert any(fault.startswith(f"release {number}:") for fault in one.faults)


def test_a_stated_noise_that_is_too_small_is_found_for_certain(monkeypatch):
    """A fault in calibration.

    Releases say what their noise is, and that is less than was promised.
    """
    multiplier = base.calibrate
    monkeypatch.setattr(
        base, "calibrate", lambda *args, **options: multiplier(*args, **options) / 1.01
    )
    one = found("mean", Effort(0.0, 0.0, 0.5, most=2, least=2))
    assert one.verdict == "violated"
    assert any(says(fault, "all releases", "less", "promised") for fault in one.faults)
    assert any("guarantee of the fit" in fault for fault in one.faults)


def test_a_sensitivity_that_is_too_small_is_found_for_certain(monkeypatch):
    """The two tables move a mean by all that is allowed: any less would be too little."""
    sensitivity = EnforcedColumnSum.sensitivity2
    monkeypatch.setattr(
        EnforcedColumnSum, "sensitivity2", property(lambda self: sensitivity.fget(self) // 2)
    )
    one = found("mean", Effort(0.0, 0.0, 0.5, most=2, least=2))
    assert one.verdict == "violated"
    assert any("more than its stated sensitivity" in fault for fault in one.faults)


def test_noise_that_begins_anew_with_each_run_is_found(monkeypatch):
    monkeypatch.setattr("reticent.privacy.random_bits.os.urandom", bytes)
    one = found("mean", Effort(0.0, 0.0, 0.5, most=10))
    assert "the noise is the same in all runs" in one.faults


def test_the_same_noise_in_two_releases_is_found():
    noise = np.random.default_rng(0).normal(size=20)
    twice = [Seen(noise, noise + 0.01, np.ones(20), 2.0**-20) for _ in range(2)]
    assert Run.of(twice, with_a=True, released=2, limit=9.0).faults == (
        "release 2: the same noise as in an earlier release",
    )
    counts = [Seen(np.round(noise[:2]), noise[:2], np.ones(2), 1.0) for _ in range(2)]
    assert (
        Run.of(counts, with_a=True, released=2, limit=9.0).faults == ()
    )  # two small counts may be the same


def test_sums_that_are_not_what_they_should_be_are_found():
    """One record that is read otherwise than the attacker reads it."""
    exact = exact_sum
    with mock.patch("reticent.auditing.attacker.exact_sum", lambda *args: exact(*args) + 9):
        assert any("farther from the exact sums" in fault for fault in found("mean").faults)


# --- what could have been found


def synthetic(size, runs, factor, random, releases=3):
    """Runs of a fit that makes some releases of so many numbers each, with so much of the noise
    that it states.
    """
    evidence = Evidence("made up", "None", **PROMISE)
    for i in range(runs):
        noise = tuple(factor * random.normal(size=size) for _ in range(releases))
        ratio = (1 if i % 2 == 0 else -1) * LIMIT**2 / 2 + LIMIT * factor * random.normal()
        evidence.add(Run(i % 2 == 0, ratio, noise, LIMIT, attacked=releases, released=releases))
    return evidence


@pytest.mark.parametrize(
    ("size", "runs", "factor"), [(1, 60, 0.5), (2, 40, 0.5), (8, 50, 0.7), (4, 20, 0.5)]
)
def test_the_power_is_what_it_says(size, runs, factor):
    """Of the release that is tested least, so a little more is found."""
    random = np.random.default_rng(0)
    trials = 200
    hits = sum(
        synthetic(size, runs, factor, random, releases=1).finding().verdict == "violated"
        for _ in range(trials)
    )
    power = synthetic(size, runs, 1.0, random, releases=1).power(factor)
    assert 0.05 < power < 1
    assert hits / trials > power - 4 * math.sqrt(power * (1 - power) / trials) - 0.01


def test_there_are_no_false_alarms():
    random = np.random.default_rng(1)
    for _ in range(200):
        assert synthetic(3, 60, 1.0, random).finding().verdict in ENDED


def test_verdicts():
    right = Finding(
        "mean",
        "PrivateMean",
        1,
        0.05,
        100,
        1,
        1,
        1.0,
        1.0,
        0.9,
        0.2,
        {0.5: 0.95, 0.7: 0.1, 0.9: 0.0},
    )
    assert right.verdict == "holds"
    assert replace(right, power={0.5: 0.949, 0.7: 0.1, 0.9: 0.0}).verdict == "too few runs"
    assert replace(right, shift=0.5).verdict == "too few runs"
    assert replace(right, faults=("release 1: …",)).verdict == "violated"


def test_too_few_runs_are_never_called_right():
    one = found("mean", Effort(0.0, 0.0, 0.5, most=10))
    assert one.power[0.5] < 0.95
    assert one.verdict == "too few runs"


def test_runs_go_on_until_half_the_noise_would_be_found():
    assert QUICK.factor == 0.5
    assert FULL.factor == 0.7
    random = np.random.default_rng(0)
    few, many = (synthetic(1, runs, 1.0, random) for runs in (20, 80))
    assert not QUICK.enough(few, elapsed=QUICK.seconds + 1)
    assert QUICK.enough(few, elapsed=QUICK.patience + 1)
    assert not QUICK.enough(many, elapsed=QUICK.seconds / 2)
    assert QUICK.enough(many, elapsed=QUICK.seconds + 1)


def test_laplace_noise():
    one = found("histogram", delta=0.0)
    assert one.verdict == "holds"
    assert one.shift == pytest.approx(1)
    assert one.shown_normal is None
    with drawn(0.5):
        assert found("mean", delta=0.0).verdict == "violated"


def test_a_bound_that_holds_for_any_mechanism():
    """Ratios of A and B that are far apart, with noise numbers that look right."""
    random = np.random.default_rng(0)
    evidence = Evidence("made up", "None", **PROMISE)
    for i in range(800):
        ratio = random.normal() + (5 if i % 2 == 0 else -5)
        evidence.add(Run(i % 2 == 0, ratio, (random.normal(size=9),), LIMIT, 1, 1, normal=False))
    one = evidence.finding()
    assert one.shown > 2
    assert any("whatever the noise is" in fault for fault in one.faults)


def test_the_threshold_is_chosen_on_other_runs_than_it_is_judged_by():
    """What the attacker learns from is a perfect separation that does not last."""
    random = np.random.default_rng(1)
    evidence = Evidence("made up", "None", **PROMISE)
    for i in range(800):
        ratio = float(i % 2 == 0) if i < 400 else random.random()
        evidence.add(Run(i % 2 == 0, ratio, (random.normal(size=9),), LIMIT, 1, 1, normal=False))
    assert evidence.finding().shown < 0.2


def test_clopper_and_pearson():
    # 0 of 100: the upper limit is 1 − 0.025^(1/100); 100 of 100: the lower limit is 0.025^(1/100)
    root = 0.025**0.01
    assert lower_bound(100, 0, 100, 0.0, 0.95) == pytest.approx(math.log(root / (1 - root)))
    assert lower_bound(100, 0, 100, 0.1, 0.95) == pytest.approx(math.log((root - 0.1) / (1 - root)))
    assert lower_bound(0, 0, 100, 0.0, 0.95) == -math.inf
    assert lower_bound(5, 100, 100, 0.5, 0.95) == -math.inf
    assert lower_bound(50, 10, 100, 0.0, 0.95) < math.log(5)


def test_the_bound_covers_as_often_as_it_says():
    """Randomised response with ε = 1, whose rates are known.

    At most 5 % of the bounds may lie above 1.
    """
    random = np.random.default_rng(0)
    hit = math.e / (1 + math.e)
    alarm = 1 / (1 + math.e)
    bounds = [
        lower_bound(random.binomial(400, hit), random.binomial(400, alarm), 400, 0.0, 0.95)
        for _ in range(2000)
    ]
    assert np.mean(np.array(bounds) > 1) < 0.05
    assert np.median(bounds) > 0.6


# --- the command


def test_command(run):
    answer = run("audit", "mean", "--quick")
    assert answer.code == 0, answer.err
    heading, row = answer.out.split("\n")[:2]
    assert heading.split() == [
        "model",
        "seen",
        "runs",
        "shift",
        "ε",
        "≥",
        "½",
        "0.7",
        "0.9",
        "verdict",
    ]
    assert row.split()[:2] == ["mean", "1/1"]
    assert row.split()[-1] == "holds"
    said = " ".join(answer.out.split())
    assert "would have been found" in said
    assert says(said, "not attacked", "ledger")
    assert "Next:" in said


def test_command_for_machines(run):
    (one,) = json.loads(
        run("audit", "histogram", "--quick", "--epsilon", 2, "--delta", 0, "--json").out
    )
    assert (one["model"], one["estimator"], one["epsilon"], one["delta"]) == (
        "histogram",
        "PrivateHistogram",
        2.0,
        0.0,
    )
    assert one["verdict"] == "holds"
    assert one["power"]["0.5"] >= 0.95
    assert (one["attacked"], one["released"], one["faults"]) == (1, 1, [])


FOUND = Finding(
    "mean", "PrivateMean", 1, 0.05, 20, 1, 1, 1.0, 0.5, 0.9, 0.2, {0.5: 0.5, 0.7: 0.1, 0.9: 0.0}
)


def test_a_violated_promise_is_4(run, monkeypatch):
    fault = "release 1: the noise is 0.50 of what is stated"
    monkeypatch.setattr(audit, "audit", lambda *args, **options: [replace(FOUND, faults=(fault,))])
    answer = run("audit", "mean", "--quick")
    assert answer.code == 4
    assert "violated" in answer.out
    assert f"mean: {fault}." in answer.out
    assert "a promise is violated" in answer.err


def test_too_few_runs_say_how_to_make_more(run, monkeypatch):
    monkeypatch.setattr(audit, "audit", lambda *args, **options: [FOUND])
    answer = run("audit", "mean", "--quick")
    assert answer.code == 0
    assert "too few runs" in answer.out
    assert "without --quick" in answer.out


def test_wrong_use(run):
    answer = run("audit", "no-such-model")
    assert answer.code == 2
    assert ", ".join(PAIRS) in " ".join(answer.err.split())
    answer = run("audit", "mean", "--quick", "--epsilon", 0)
    assert answer.code == 2
    assert "--epsilon must be a positive number, not 0" in answer.err
    assert run("audit", "mean", "--quick", "--delta", 1).code == 2
    for name in ("covariance", "gp", "bandit", "search"):
        answer = run("audit", name, "--quick", "--delta", 0)
        assert answer.code == 2
        assert "--delta above 0" in answer.err
