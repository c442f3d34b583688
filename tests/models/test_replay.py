"""A replay gives what was released, in order, and refuses what no curator gave."""

from dataclasses import replace

import numpy as np
import pytest

from reticent import BadInput, Gaussian, Replay, Selection
from reticent.models.replay import alike
from reticent.privacy.release import symmetric
from reticent.privacy.row_maps.column_moments import MeanSum
from reticent.privacy.selection.private_selection import Candidate
from tests.privacy.test_curator_counts import BOX, SCORES, Sides, curator


def test_triangles_of_every_size_become_matrices():
    for m in range(1, 40):
        full = np.arange(m * m, dtype=float).reshape(m, m)
        found = symmetric(full[np.triu_indices(m)])
        assert (found == np.triu(full) + np.triu(full, 1).T).all()


def test_releases_are_given_one_after_the_other_and_all_of_them_are_used():
    one = curator()
    releases = [one.release(MeanSum(2, 2)) for _ in range(3)]
    replay = Replay(releases)
    given = [
        replay.release_given_inputs(lambda inputs: None),
        replay.release(MeanSum(2, 2)),
        replay.release_given_inputs(lambda inputs: None),
    ]
    assert all(a is b for a, b in zip(given, releases, strict=True))
    replay.check_used()


@pytest.mark.parametrize("told", [[np.inf, 5.0], [1.0, np.inf], [np.nan, 2.0], [1.0, -np.inf]])
def test_a_number_that_is_infinite_is_like_no_other(told):
    """Nor does it make others alike, which are compared with the largest."""
    assert alike({"energy": [1.0, 2.0]}, {"energy": [1.0, 2.0 + 1e-9]})
    assert not alike({"energy": told}, {"energy": [1.0, 2.0]})
    assert not alike({"lines": [[9, *told]]}, {"lines": [[0, 1.0, 2.0]]})
    assert not alike({"radius2": told[0] + told[1]}, {"radius2": 1.0})


def test_a_choice_that_is_no_candidate_is_refused():
    release = curator().select(Sides(), SCORES)
    assert Replay([release]).select(Sides(), SCORES) is release
    for number in (2.0, -1.0, 0.5):
        with pytest.raises(BadInput, match="altered"):
            Replay([replace(release, checksum=None, value=np.array([number]))]).select(
                Sides(), SCORES
            )


def test_what_looks_like_a_search_and_is_none_is_refused():
    noise = Gaussian(noise_multiplier=0.5)
    one = curator(Selection(noise_multiplier=0.5), candidates=[Candidate(BOX, BOX, noise, noise)])

    def attempt(index, *sides):
        return [side.release(MeanSum(2, 2)) for side in sides] and 1.0

    one.choose(attempt)
    first, *rest = one.releases
    Replay(one.releases)
    with pytest.raises(BadInput, match="not all releases of a search"):
        Replay([replace(first, checksum=None, value=np.zeros(3), scale=np.zeros(3)), *rest])
    with pytest.raises(BadInput, match="not all releases of a search"):
        Replay([replace(release, checksum=None, event=noise) for release in one.releases])
    for own in (0, 2, 3, -1, None):
        with pytest.raises(BadInput):
            Replay(
                [
                    replace(first, checksum=None, statistic={**first.statistic, "releases": own}),
                    *rest,
                ]
            )
