"""The curator: what was paid is what may be read, and a release is what it says."""

import contextlib
import copy
import pickle
import sys
import threading
import warnings
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from reticent import (
    BadInput,
    Bounds,
    Curator,
    Gaussian,
    Laplace,
    Pure,
    ReleaseRefused,
    scan,
)
from reticent.models.replay import Replay
from reticent.privacy.row_maps.column_moments import ColumnCounts, MeanSum, MomentGram
from reticent.privacy.statistics.base import Statistic
from reticent.privacy.statistics.enforced import enforce
from reticent.privacy.statistics.feature_cache import FeatureCache

BOX = Bounds(x=(-1, 1))
DATA = np.random.default_rng(0).uniform(-1, 1, size=(200, 2))


def curator(event=None, **kwargs):
    kwargs.setdefault("bounds", BOX)
    return Curator(scan(DATA), event=event or Gaussian(noise_multiplier=2.0, count=3), **kwargs)


def test_no_more_releases_than_were_paid_for():
    one = curator()
    for _ in range(3):
        one.release(MeanSum(2, 2))
    with pytest.raises(ReleaseRefused, match="3 releases"):
        one.release(MeanSum(2, 2))
    assert len(one.releases) == 3


def test_one_release_may_take_several_that_were_paid_for():
    """Gaussian releases add up exactly.

    One that takes three has a third of the variance, and nothing is left.
    """
    one = curator()
    release = one.release(MeanSum(2, 2), shares_spent=3)
    assert release.shares_spent == 3
    assert release.scale == pytest.approx(
        curator().release(MeanSum(2, 2)).scale / np.sqrt(3), rel=1e-9
    )
    with pytest.raises(ReleaseRefused, match="3 releases"):
        one.release(MeanSum(2, 2))
    two = curator()
    two.release(MeanSum(2, 2), shares_spent=2)
    with pytest.raises(ReleaseRefused, match="3 releases"):
        two.release(MeanSum(2, 2), shares_spent=2)
    assert two.release(MeanSum(2, 2)).shares_spent == 1
    replay = Replay([release])
    with pytest.raises(ReleaseRefused, match="parameters it had"):
        replay.release(MeanSum(2, 2))
    assert replay.release(MeanSum(2, 2), shares_spent=3) is release


def test_the_scale_of_a_release_that_takes_several_is_rounded_up():
    release = curator(Gaussian(noise_multiplier=2.0, count=7)).release(
        MeanSum(2, 2), shares_spent=7
    )
    steps = [Fraction(scale) * 2 ** MeanSum(2, 2).bits for scale in release.scale.tolist()]
    assert all(
        7 * one**2 >= 4 * MeanSum(2, 2).sensitivity2 * (1 - Fraction(1, 2**51)) for one in steps
    )


@pytest.mark.parametrize("times", [0, -1, True, 1.0, "2"])
def test_a_release_takes_a_whole_number_of_releases(times):
    one = curator()
    with pytest.raises(BadInput, match="shares_spent"):
        one.release(MeanSum(2, 2), shares_spent=times)
    one.release(MeanSum(2, 2), shares_spent=3)  # and nothing was lost


def test_laplace_releases_are_not_taken_together():
    """One with half the scale is worse than two.

    Their losses would have to be equal and of the same sign.
    """
    one = curator(Laplace(noise_multiplier=2.0, count=3))
    with pytest.raises(ReleaseRefused, match="Gaussian"):
        one.release(MeanSum(2, 2), shares_spent=2)


@pytest.mark.parametrize("times", [0, 4, "3"])
def test_releases_that_claim_to_have_taken_more_than_was_paid_are_refused(times):
    release = curator().release(MeanSum(2, 2), shares_spent=3)
    with pytest.raises(BadInput):
        Replay([replace(release, shares_spent=times)])


def test_a_failed_release_stays_counted(monkeypatch):
    one = curator(Gaussian(noise_multiplier=2.0))
    monkeypatch.setattr(
        one._source, "total", lambda *given, **how: Path("no such file").read_text()
    )
    with pytest.raises(
        ReleaseRefused, match=r"Reading the records failed \(FileNotFoundError\)"
    ) as refusal:
        one.release(MeanSum(2, 2))
    assert refusal.value.__context__ is None
    with pytest.raises(ReleaseRefused, match="paid for"):
        one.release(MeanSum(2, 2))


def test_a_map_that_fails_for_public_records_is_refused_before_it_is_counted():
    class Broken(MeanSum):
        def rows(self, records):
            raise ValueError(str(records))

    one = curator(Gaussian(noise_multiplier=2.0))
    with pytest.raises(BadInput, match=r"Broken\.rows failed \(ValueError\)"):
        one.release(Broken(2, 2))
    one.release(MeanSum(2, 2))


@pytest.mark.parametrize(
    "statistic", [MeanSum(2, 2), ColumnCounts(3, Bounds(x=[(-1, 1)] * 2)), MomentGram(2, 2)]
)
@pytest.mark.parametrize("multiplier", [1e-3, 0.7, 3.7306316348159, 1e6])
@pytest.mark.parametrize("people", [1, 7])
def test_the_scale_is_at_least_what_was_paid_and_hardly_more(statistic, multiplier, people):
    one = curator(Gaussian(noise_multiplier=multiplier), records_per_person=people)
    shares = statistic.coordinate_multiplicity()
    cost = Fraction(0)  # worst Σ s ΔS²/σ²: all of the sensitivity on the cheapest coordinate
    for share, scale in one._scales(enforce(statistic)).items():
        worst = Fraction(statistic.sensitivity2 * people**2, share) / scale.exact**2
        cost = max(cost, worst)
    promised = 1 / Fraction(multiplier) ** 2
    assert cost <= promised
    assert cost > promised * (1 - Fraction(1, 2**38))
    release = one.release(statistic)
    smallest = np.sqrt(statistic.sensitivity2 / shares) * statistic.step * multiplier * people
    assert release.sd == pytest.approx(smallest, rel=1e-9)


def test_laplace_scale():
    one = curator(Laplace(noise_multiplier=0.5))
    (scale,) = one._scales(enforce(MeanSum(2, 2))).values()
    assert scale.exact >= Fraction(1, 2) * MeanSum(2, 2).sensitivity1
    release = one.release(MeanSum(2, 2))
    assert release.sd == pytest.approx(np.sqrt(2) * 0.5 * 4, rel=1e-9)
    with pytest.raises(ReleaseRefused, match="delta > 0"):
        curator(Laplace(noise_multiplier=0.5)).release(MomentGram(2, 2))


def test_released_values_have_the_stated_law():
    """Centre and spread of many releases: the exact sum, and the stated standard deviations."""
    statistic = MomentGram(2, 2)
    repeats = 2000
    one = curator(Gaussian(noise_multiplier=2.0, count=repeats))
    values = np.array([one.release(statistic).value for _ in range(repeats)])
    rows = np.column_stack([np.ones(len(DATA)), DATA])
    exact = (rows.T @ rows)[np.triu_indices(3)]
    sd = one.releases[0].sd
    assert np.abs(values.mean(axis=0) - exact).max() < 5 * sd.max() / np.sqrt(repeats)
    assert values.std(axis=0) == pytest.approx(sd, rel=0.1)
    assert sd[0] == pytest.approx(
        np.sqrt(2) * sd[1]
    )  # diagonal and off-diagonal: isotropic in the Frobenius norm
    correlation = np.corrcoef(values.T) - np.eye(6)
    assert np.abs(correlation).max() < 5 / np.sqrt(repeats)


def test_matrix_is_symmetric_and_in_order():
    release = curator().release(MomentGram(2, 2))
    matrix = release.matrix()
    assert (matrix == matrix.T).all()
    assert (matrix[np.triu_indices(3)] == release.value).all()
    assert (release.matrix_sd()[np.triu_indices(3)] == release.sd).all()


def test_a_curator_is_never_copied():
    for copier in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="holds records"):
            copier(curator())
    assert repr(curator()) == "<Curator: 3 releases left>"


@pytest.mark.parametrize("multiplier", [1e-9, 1e12, 1e29])
def test_extreme_noise_is_still_noise(multiplier):
    release = curator(Gaussian(noise_multiplier=multiplier)).release(MomentGram(2, 2))
    assert np.isfinite(release.value).all()
    assert release.sd[0] == pytest.approx(np.sqrt(2) * 3 * multiplier)


def test_wrong_use():
    with pytest.raises(BadInput, match="Gaussian or Laplace"):
        curator(Pure(epsilon=1.0))
    for ledger, dataset in (("a.db", None), (None, "people")):
        with pytest.raises(BadInput, match="both"):
            curator(ledger=ledger, dataset=dataset)
    for people in (0, -1, True, 1.0, 10**7):
        with pytest.raises(BadInput, match="records_per_person"):
            curator(records_per_person=people)


def test_records_that_come_and_go_are_refused():

    source = scan(DATA)
    source.known_n = 150
    with pytest.raises(ReleaseRefused, match="number of records changed"):
        Curator(source, bounds=BOX, event=Gaussian(noise_multiplier=1.0)).release(MeanSum(2, 2))


def test_an_empty_file_found_only_by_reading(tmp_path):
    source = scan(DATA)
    source.known_n = None
    source.count = lambda: 0
    with pytest.raises(BadInput, match="charge stays"):
        Curator(source, bounds=BOX, event=Gaussian(noise_multiplier=1.0)).release(MeanSum(2, 2))


def test_replay_insists_on_the_same_questions():
    one = curator()
    first = one.release(MeanSum(2, 2))
    replay = Replay([first])
    assert (replay.n, replay.bounds) == (one.n, one.bounds)
    with pytest.raises(ReleaseRefused, match="parameters it had"):
        replay.release(MomentGram(2, 2))
    assert replay.release(MeanSum(2, 2)) is first
    with pytest.raises(ReleaseRefused, match="more releases"):
        replay.release(MeanSum(2, 2))
    with pytest.raises(BadInput):
        Replay([])


@pytest.mark.parametrize(
    "statistic", [MeanSum(2, 2), MomentGram(2, 2), ColumnCounts(3, Bounds(x=[(-1, 1)] * 2))]
)
def test_two_releases_never_share_noise(statistic):
    one = curator(Gaussian(noise_multiplier=100.0, count=20))
    values = [tuple(one.release(statistic).value) for _ in range(20)]
    assert len(set(values)) == 20


def test_threads_cannot_race_for_more_than_was_paid():
    """Sixteen threads ask at once for the one release.

    Whoever reads the counter and then lowers it gives several.
    """
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(20):
            one = curator(Gaussian(noise_multiplier=2.0, count=2))
            start = threading.Barrier(16)

            def ask(one=one, start=start):
                start.wait()
                with contextlib.suppress(ReleaseRefused):
                    one.release(MeanSum(2, 2))

            threads = [threading.Thread(target=ask) for _ in range(16)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(one.releases) == 2
    finally:
        sys.setswitchinterval(interval)


def test_a_fork_cannot_use_what_its_parent_paid(elsewhere):
    code = """
import os, numpy as np, reticent
from reticent.models.descriptive.mean import MeanSum
from reticent.privacy.statistics.base import Statistic
source = reticent.scan(np.zeros((10, 2)))
event = reticent.Gaussian(noise_multiplier=1.0)
one = reticent.Curator(source, bounds=reticent.Bounds(x=(-1, 1)), event=event)
if os.fork() == 0:
    try:
        one.release(MeanSum(2, 2))
    except reticent.ReleaseRefused as refusal:
        os._exit(7 if "another process" in str(refusal) else 8)
    os._exit(9)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 7
one.release(MeanSum(2, 2))
"""
    assert elsewhere(code) == (0, "")


def test_a_statistic_cannot_ask_for_another_release_while_it_is_asked():
    one = curator(Gaussian(noise_multiplier=2.0))

    class Greedy(MeanSum):
        @property
        def norm2(self):
            one.release(MeanSum(2, 2))
            return 2

    with pytest.raises(ReleaseRefused, match="paid for"):
        one.release(Greedy(2, 2))
    assert len(one.releases) == 1, "the one that was asked for meanwhile, and no other"


def test_only_the_three_kinds_can_be_released():
    class Own(Statistic):
        kind = "own"
        size = sensitivity2 = sensitivity1 = block_rows = 1
        step = 1.0

        def block_sum(self, records):
            return records[:, 0]

    with pytest.raises(ReleaseRefused, match="Only a Sum"):
        curator().release(Own())


def test_a_statistics_own_words_do_not_leave():
    class Chatty(MeanSum):
        def rows(self, records):
            raise BadInput(f"the value {records[0, 0]} is implausible")

    with pytest.raises(BadInput, match=r"^Chatty.rows failed \(an error of its own\)") as refusal:
        curator().release(Chatty(2, 2))
    assert refusal.value.__context__ is None


def test_warnings_do_not_leave_parallel_fits():
    class Noisy(MeanSum):
        def rows(self, records):
            warnings.warn("record", stacklevel=1)
            return records

    before = list(warnings.filters)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ones = [curator(Gaussian(noise_multiplier=1.0, count=50)) for _ in range(4)]

        def work(one):
            for _ in range(50):
                one.release(Noisy(2, 2))

        threads = [threading.Thread(target=work, args=(one,)) for one in ones]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert caught == []
    assert list(warnings.filters) == before


@pytest.mark.parametrize("times", [0, -1, 1.0, True, "1"])
def test_a_release_counts_a_whole_number_of_times(times):
    one = curator()
    with pytest.raises(BadInput, match="shares_spent must be a whole number"):
        one.release(MeanSum(2, 2), shares_spent=times)
    assert one.releases == []
    assert repr(one) == "<Curator: 3 releases left>"


def test_what_was_paid_for_something_else_is_refused():
    with pytest.raises(ReleaseRefused, match="inputs of the records are protected"):
        curator().release_given_inputs(lambda inputs: MeanSum(2, 2))
    with pytest.raises(ReleaseRefused, match="not paid for a search"):
        curator().choose(lambda *half: None)


@pytest.mark.parametrize(
    ("altered", "says"),
    [
        ({"value": np.zeros(3)}, "as many numbers"),
        ({"scale": np.ones(1)}, "as many numbers"),
        ({"value": np.zeros(3), "scale": np.ones(3)}, "as many numbers as its statistic"),
        ({"value": np.array([0.0, np.nan])}, "must be finite"),
        ({"scale": np.zeros(2)}, "no curator gives"),
        ({"n": 0}, "no curator gives"),
        ({"shares_spent": 0}, "shares_spent must be a whole number of at least 1"),
        ({"shares_spent": 4}, "more releases than were paid for"),
    ],
    ids=str,
)
def test_releases_that_were_altered_are_not_replayed(altered, says):
    with pytest.raises(BadInput, match=says):
        Replay([replace(curator().release(MeanSum(2, 2)), checksum=None, **altered)])


def test_a_replay_gives_what_was_asked_and_no_more():
    one = curator()
    releases = [one.release(MeanSum(2, 2), shares_spent=2), one.release(MeanSum(2, 2))]
    replay = Replay(releases)
    with pytest.raises(ReleaseRefused, match="counts otherwise"):
        replay.release_given_inputs(lambda inputs: None)
    assert replay.release_given_inputs(lambda inputs: None, shares_spent=2) is releases[0]
    with pytest.raises(BadInput, match="uses 1 of 2 releases"):
        replay.check_used()
    with pytest.raises(ReleaseRefused, match="not of a search"):
        replay.choose(lambda *half: None)


def test_the_noise_multiplier_counts_all_records_of_a_person():
    """Times the sensitivity to one record it is the noise of a release."""
    alone = curator()
    three = curator(records_per_person=3)
    assert alone.noise_multiplier == 2.0
    assert three.noise_multiplier == 6.0
    scales = [one.release(MeanSum(2, 2)).scale for one in (alone, three)]
    assert scales[1] == pytest.approx(scales[0] * three.noise_multiplier / alone.noise_multiplier)


def test_a_curator_that_is_closed_closes_its_cache():
    """The cache holds records; a curator may also have none."""
    closed = []

    class Cache(FeatureCache):
        def close(self):
            closed.append(self)
            super().close()

    cache = Cache()
    one = curator()
    one.use_cache(cache)
    one.close()
    assert closed == [cache]
    two = curator()
    two.use_cache(None)
    two.close()
    with pytest.raises(ReleaseRefused):
        two.release(MeanSum(2, 2))
