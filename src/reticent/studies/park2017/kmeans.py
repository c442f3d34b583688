"""DP-EM, Fig 4: k-means of 1.25 million places at ε = 0.01, and of clouds in up to 20 columns.

The clouds have 5, 10 and 20 columns, at ε = 0.3 and 1.

The places are clustered at the paper's δ = 1e-4, which is more than 1/n, and at δ = 1e-7, with
twice the noise. There are two maps: one as spread out as the paper's check-ins, and a harder one,
on which a few cities have most of them. Excess: how much larger the mean squared distance to the
nearest centre is than without privacy (the best of several starts of Lloyd's algorithm on the
records). DPLloyd and diffprivlib protect against a record added or removed, and are given ε alone.
"""

import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans as Plain

from reticent.inference.mixtures.weighted_kmeans import nearest_centres
from reticent.models.mixtures.kmeans import KMeans
from reticent.privacy.bounds import Bounds
from reticent.studies.common.cluster_data import clouds, places
from reticent.studies.common.figures import Line, Panel, draw
from reticent.studies.common.python_environments import Unavailable
from reticent.studies.common.results import (
    Claim,
    Findings,
    Progress,
    ResultTable,
    Value,
    mean_error,
    plus_minus,
    times,
)
from reticent.studies.peers.baselines.diffprivlib import centres

__all__ = ["dp_lloyd", "run"]

Array = NDArray[np.float64]
_PLACES = 1_256_384
_CLUSTERS = 5
_EPSILON = 0.01
COLUMNS = (5, 10, 20)
_RECORDS = 20_000
_EPSILONS = (0.3, 1.0)
_DELTA = 1e-7
_PAPERS_DELTA = 1e-4
OURS = "reticent"
STRICT = "reticent, δ = 1e-07"
MAPS = {"places": False, "crowded places": True}


def run(out: Path, *, repeats: int, quick: bool, seed: int, progress: Progress) -> Findings:
    """Compare centres by the distances of records from them."""
    excess: dict[tuple[str, float, str], list[float]] = {}
    notes = [
        f"{times(repeats)}; other records and other noise in each; δ = "
        f"{_DELTA:g}, and the paper's {_PAPERS_DELTA:g} for places where "
        "nothing is said. Neighbours of the others: added or removed."
    ]
    done = 0
    all_ = repeats * (len(MAPS) + len(COLUMNS))
    if quick:
        n = _PLACES // 20
    else:
        n = _PLACES
    shown = dict[str, tuple[Array, Array]]()
    for repeat in range(repeats):
        chance = seed + 1000 * repeat
        epsilon = _EPSILON * _PLACES / n
        for data, crowded in MAPS.items():
            progress(done, all_, data)
            X = places(n, seed + repeat, crowded=crowded)
            found = {OURS: _fitted(_CLUSTERS, X, epsilon, chance, _PAPERS_DELTA)}
            found[STRICT] = _fitted(_CLUSTERS, X, epsilon, chance)
            found["DPLloyd"] = dp_lloyd(X, _CLUSTERS, epsilon, chance)
            if not quick:
                try:
                    found["diffprivlib"] = centres(X, _CLUSTERS, epsilon, chance)
                except Unavailable as problem:
                    notes.append(f"Without diffprivlib: {problem}.")
            best = min(
                [_plain(X, _CLUSTERS, chance), *(_refined(X, one) for one in found.values())]
            )
            for name, one in found.items():
                excess.setdefault((data, epsilon, name), []).append(_within(X, one) / best - 1)
            shown[data] = X[:4000], found[OURS]
            done += 1
        for columns in COLUMNS:
            progress(done, all_, f"{columns} columns")
            train, test = np.split(clouds(2 * _RECORDS, columns, _CLUSTERS, seed + repeat), 2)
            best = min(
                _within(
                    test, Plain(_CLUSTERS, n_init=5, random_state=i).fit(train).cluster_centers_
                )
                for i in range(2)
            )
            for epsilon_ in _EPSILONS:
                one = _fitted(_CLUSTERS, train, epsilon_, chance)
                excess.setdefault((f"{columns} columns", epsilon_, "reticent"), []).append(
                    _within(test, one) / best - 1
                )
            done += 1
    progress(done, all_, "done")
    records: list[dict[str, Value]] = []
    for (data, eps, name), values in excess.items():
        mean, error = mean_error(values)
        records.append(
            {
                "data": data,
                "epsilon": eps,
                "method": name,
                "excess": mean,
                "error": error,
                "worst": max(values),
            }
        )
    rows = []
    for (data, eps, name), values in excess.items():
        mean_words = f"{plus_minus([100 * value for value in values], 2)} %"
        rows.append((data, f"{eps:g}", name, mean_words, f"{100 * max(values):.2f} %"))
    table = ResultTable(
        "Excess over k-means without privacy",
        ("data", "ε", "method", "mean", "worst"),
        rows,
        left=3,
    )
    picture = draw(
        out / "clusters.png",
        [[_panel(f"{data}, ε = {_EPSILON:g}", *one) for data, one in shown.items()]],
    )
    return Findings("k-means", records, [table], [] if quick else judge(excess), notes, [picture])


def _panel(title: str, points: Array, found: Array) -> Panel:
    near = Line(
        "records",
        points[:, 1].tolist(),
        x=points[:, 0].tolist(),
        colour="naive",
        style="",
        marker=".",
    )
    ours = Line(
        "private centres",
        found[:, 1].tolist(),
        x=found[:, 0].tolist(),
        colour="reticent",
        style="",
        marker="o",
    )
    return Panel(title, [near, ours])


def judge(excess: dict[tuple[str, float, str], list[float]]) -> list[Claim]:
    """Claims, each kept or not by these results."""
    limits = {(data, _EPSILON): 0.01 for data in MAPS} | {
        (f"{c} columns", 1.0): 0.02 for c in COLUMNS
    }
    limits |= {(f"{c} columns", 0.3): 0.03 for c in COLUMNS}
    claims = []
    for (data, epsilon), most in limits.items():
        if data in MAPS:
            delta = _PAPERS_DELTA
        else:
            delta = _DELTA
        claims.append(_claim(data, epsilon, delta, most, excess[data, epsilon, OURS]))
    return claims + [
        _claim(data, _EPSILON, _DELTA, 0.01, excess[data, _EPSILON, STRICT]) for data in MAPS
    ]


def _claim(data: str, epsilon: float, delta: float, most: float, values: list[float]) -> Claim:
    mean, error = mean_error(values)
    claim = f"{data}, ε={epsilon:g}, δ={delta:g}: within {most:.0%} of k-means without privacy"
    return Claim(claim, f"{mean:.2%} ± {error:.2%}, median {np.median(values):.2%}", mean <= most)


def _fitted(k: int, X: Array, epsilon: float, seed: int, delta: float = _DELTA) -> Array:
    model = KMeans(k, bounds=Bounds(x=(-1.0, 1.0)), epsilon=epsilon, delta=delta, random_state=seed)
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message="delta = .* is not below 1/n"
        )  # the paper's choice
        return np.asarray(model.fit(X).cluster_centers_)


def _blocks(X: Array) -> list[Array]:
    return np.array_split(X, max(len(X) // 50_000, 1))


def _within(X: Array, found: Array) -> float:
    return sum(float(nearest_centres(block, found)[1].sum()) for block in _blocks(X)) / len(X)


def _plain(X: Array, k: int, seed: int) -> float:
    """The best of several starts on a part of the records, refined on all."""
    part = X[:: max(len(X) // 50_000, 1)]
    return min(
        _refined(X, Plain(k, n_init=6, random_state=seed + i).fit(part).cluster_centers_)
        for i in range(2)
    )


def _refined(X: Array, found: Array, steps: int = 8) -> float:
    """What some of Lloyd's steps on all records reach from there."""
    for _ in range(steps):
        which = np.concatenate([nearest_centres(block, found)[0] for block in _blocks(X)])
        counts = np.bincount(which, minlength=len(found))
        sums = np.stack([np.bincount(which, column, len(found)) for column in X.T], axis=1)
        found = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], found)
    return _within(X, found)


def dp_lloyd(X: Array, k: int, epsilon: float, seed: int, steps: int = 5) -> Array:
    """K-means with noise in every step, from random points, as DP-EM compares with it.

    After Blum, Dwork, McSherry and Nissim.

    Each step releases the number of records of each cluster and the sums of their coordinates, with
    Laplace noise: adding or removing a record in [−1, 1]ᵈ moves them by at most 1 + d, and each of
    T steps may spend ε/T.
    """
    random = np.random.default_rng(seed)
    d = X.shape[1]
    centres = random.uniform(-1, 1, size=(k, X.shape[1]))
    scale = (1 + d) * steps / epsilon
    for _ in range(steps):
        which = np.concatenate(
            [
                nearest_centres(block, centres)[0]
                for block in np.array_split(X, max(len(X) // 50_000, 1))
            ]
        )
        counts = np.bincount(which, minlength=k) + random.laplace(size=k) * scale
        sums = (
            np.stack([np.bincount(which, column, k) for column in X.T], axis=1)
            + random.laplace(size=(k, d)) * scale
        )
        centres = np.where(
            counts[:, None] > 1, np.clip(sums / np.maximum(counts, 1)[:, None], -1, 1), centres
        )
    return centres
