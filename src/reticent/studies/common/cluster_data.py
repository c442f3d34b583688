"""Made-up data for clusters: places on a map, and normal clusters in many columns."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["clouds", "places"]

Array = NDArray[np.float64]
CONTINENTS = np.array([[-0.53, 0.42], [0.05, 0.55], [0.6, 0.3], [0.75, -0.3], [-0.35, -0.2]])
VISITS = np.array([0.50, 0.33, 0.11, 0.02, 0.04])
# of a continent's cities, east and north
_SPREAD = (0.073, 0.0445)
_CROWDED = (0.09, 0.055)


def places(n: int, seed: int, *, crowded: bool = False) -> Array:
    """Check-ins of a social network on a map of [−1, 1]².

    Cities on five continents, and a few people in between. Places in a city have heavy tails. There
    are 400 cities, of sizes that fall with their rank; the largest has about three in a hundred of
    all check-ins. How far cities lie apart was set so that five centres have the mean squared
    distance that the paper reports, .0076 (on seeds 0 to 11); nothing else was looked at.
    ``crowded``: a harder case, sixty cities with sizes from a heavy-tailed law. One of them may
    have nearly all check-ins, and whole continents nearly none.
    """
    if crowded:
        cities = 60
    else:
        cities = 400
    random = np.random.default_rng([seed, cities])
    where = random.choice(5, cities, p=[0.4, 0.3, 0.15, 0.05, 0.1])
    middle = CONTINENTS[where] + random.normal(size=(cities, 2)) * (
        _CROWDED if crowded else _SPREAD
    )
    if crowded:
        weight = VISITS[where] * random.pareto(1.2, cities)
    else:
        weight = 1 / (10 + random.permutation(cities))
        weight *= (VISITS / np.maximum(np.bincount(where, weight, 5), 1e-9))[where]
    size = 0.002 + 0.012 * random.random(cities)
    city = random.choice(cities, n, p=weight / weight.sum())
    found = middle[city] + random.standard_t(3, size=(n, 2)) * size[city, None]
    between = random.random(n) < 0.005
    continents = random.choice(5, int(between.sum()), p=VISITS)
    found[between] = CONTINENTS[continents] + random.normal(size=(len(continents), 2)) * 0.12
    return np.clip(found, -1.0, 1.0)


def clouds(n: int, columns: int, clusters: int, seed: int) -> Array:
    """Records around ``clusters`` centres in [−1, 1]ᵈ, normal, of unequal sizes and widths."""
    random = np.random.default_rng([seed, columns])
    centres = random.uniform(-0.6, 0.6, size=(clusters, columns))
    weight = random.dirichlet(np.full(clusters, 5.0))
    width = 0.1 * random.uniform(0.6, 1.4, size=clusters)
    which = random.choice(clusters, n, p=weight)
    return np.clip(
        centres[which] + width[which, None] * random.normal(size=(n, columns)), -1.0, 1.0
    )
