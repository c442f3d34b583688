"""The DP-EM study.

Its stand-ins, the paper's scheme, and that a quick run gives what it promises.
"""

import math

import numpy as np
import pytest
from sklearn.cluster import KMeans as Plain

from reticent.studies import STUDIES
from reticent.studies.common.cluster_data import places
from reticent.studies.park2017 import factor_analysis as dpem_factors
from reticent.studies.park2017.as_printed import COMPOSITIONS, literal_mixture, multiplier
from reticent.studies.park2017.data import LIFE, STROKE


@pytest.mark.parametrize("kind", [LIFE, STROKE], ids=lambda kind: kind.name)
def test_stand_ins_lie_in_the_ball_and_have_the_level_that_is_said(kind):
    X, law = kind.draw(3, 2000)
    assert X.shape == (2000, kind.d)
    assert np.linalg.norm(X, axis=1).max() <= 1 + 1e-9
    assert law.score(X).mean() >= kind.level - 0.2
    again, _ = kind.draw(3, 2000)
    assert np.array_equal(X, again)


def test_multipliers_are_those_of_the_paper():
    uses = 70
    each = 1e-8
    linear = multiplier("linear", 1.0, 1e-4, uses, each)
    assert linear == pytest.approx(uses * math.sqrt(2 * math.log(1.25 / each)))
    zcdp = multiplier("zCDP", 1.0, 1e-4, uses, each)
    rho = uses / (2 * zcdp**2)
    assert rho + 2 * math.sqrt(rho * math.log(1e4)) == pytest.approx(1.0)
    moments = multiplier("moments accountant", 1.0, 1e-4, uses, each)
    assert moments == pytest.approx(zcdp, rel=0.02)
    assert moments > zcdp  # whole orders only
    advanced = multiplier("advanced", 1.0, 1e-4, uses, each)
    assert zcdp < advanced < linear
    assert [
        multiplier(name, 4.0, 1e-4, uses, each) < multiplier(name, 1.0, 1e-4, uses, each)
        for name in COMPOSITIONS
    ]


def test_the_papers_scheme_without_noise_is_plain_em():
    X, law = LIFE.draw(4, 3000)
    found = literal_mixture(X, 3, 40, 0.0, np.random.default_rng(0))
    assert found.score(X).mean() > law.score(X).mean() - 0.6
    noisy = literal_mixture(X, 3, 10, 1000.0, np.random.default_rng(0))
    assert np.isfinite(noisy.score(X)).all()
    assert noisy.score(X).mean() < found.score(X).mean()


def test_a_quick_study(tmp_path):
    found = STUDIES["dpem-mixture"].run(
        tmp_path, repeats=1, quick=True, seed=0, progress=lambda *_: None
    )
    scores = {record["method"]: record["score"] for record in found.records}
    assert scores["ours"] > scores["zCDP"]
    assert scores["ours"] > scores["ours, one normal law"]
    assert "Life-like" in (tmp_path / "table.md").read_text(encoding="utf-8")


def test_factors_of_digits_lie_between_the_papers_and_those_without_privacy(tmp_path):
    found = STUDIES["dpem-factors"].run(
        tmp_path, repeats=1, quick=True, seed=7, progress=lambda *told: None
    )
    likelihood = {record["method"]: record["log_likelihood"] for record in found.records}
    assert likelihood["paper"] + 20 < likelihood["reticent"] < likelihood["without privacy"]
    assert (tmp_path / "factors.png").read_bytes()[:4] == b"\x89PNG"
    kept = [
        claim.kept
        for claim in dpem_factors.judge({("reticent", 1.0): [110.0], ("paper", 1.0): [72.0]})
    ]
    lost = [
        claim.kept
        for claim in dpem_factors.judge({("reticent", 1.0): [70.0], ("paper", 1.0): [72.0]})
    ]
    assert (kept, lost) == ([True, True], [False, False])


def test_cities_of_a_map_are_many_or_crowded():
    """On the map that stands for the paper's check-ins no city has a tenth of them.

    On the crowded one it may.
    """
    for crowded, fewest, most in ((False, 0.0, 0.1), (True, 0.2, 1.0)):
        X = places(20_000, 9176, crowded=crowded)
        assert np.array_equal(X, places(20_000, 9176, crowded=crowded))
        assert np.abs(X).max() <= 1
        cells = np.floor((X + 1) * 25).astype(int) @ [51, 1]
        assert fewest < np.bincount(cells).max() / len(X) < most


def test_places_are_as_far_from_five_centres_as_the_papers():
    found = []
    for seed in range(4):
        X = places(20_000, seed)
        found.append(Plain(5, n_init=3, random_state=0).fit(X).inertia_ / len(X))
    assert np.mean(found) == pytest.approx(0.0076, rel=0.1)


def test_a_quick_study_of_clusters(tmp_path):
    found = STUDIES["dpem-kmeans"].run(
        tmp_path, repeats=1, quick=True, seed=0, progress=lambda *_: None
    )
    excess = {(one["data"], one["method"]): one["excess"] for one in found.records}
    for data in ("places", "crowded places"):
        assert excess[data, "reticent"] < excess[data, "DPLloyd"]
    assert (tmp_path / "clusters.png").read_bytes()[:4] == b"\x89PNG"
