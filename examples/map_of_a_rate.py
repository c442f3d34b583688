"""A map of a rate.

How common an illness is across a town, from a private histogram, with what is known how well.

python examples/map_of_a_rate.py [PICTURE]
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

import reticent

picture = Path(sys.argv[1] if len(sys.argv) > 1 else "map_of_a_rate.png")

# Made-up people of a town of 12 by 8 km: the illness is commoner near a road that
# runs from west to north-east.
rng = np.random.default_rng(7)
home = np.clip(rng.normal([6, 4], [2.6, 1.7], size=(20_000, 2)), 0, [12, 8])


def true_rate(place: np.ndarray) -> np.ndarray:
    from_road = np.abs(place[:, 1] - 0.5 * place[:, 0] - 1)
    return 0.06 + 0.22 * np.exp(-((from_road / 1.2) ** 2))


people = pd.DataFrame(home, columns=["km east", "km north"])
people["ill"] = (rng.random(len(home)) < true_rate(home)).astype(float)

# One release: how many people, and how many of them ill, in each of 12 by 8 squares.
# The map is computed from that.
bounds = reticent.Bounds(x={"km east": (0, 12), "km north": (0, 8)}, y={"ill": (0, 1)})
model = reticent.BinnedGPRegressor(bins=(12, 8), bounds=bounds, epsilon=1, delta=1e-6).fit(people)

places = np.array([[4.0, 3.0], [8.0, 2.0], [3.0, 6.0]])
for place, mean, sd, true in zip(
    places, *model.predict(places, return_std=True), true_rate(places), strict=True
):
    print(
        f"{place[0]:.0f} km east, {place[1]:.0f} km north: {mean:6.1%} ± "
        f"{sd:.1%} are ill (in truth {true:.1%})"
    )
print(model.guarantee_.statement)
reticent.plot.map(model).savefig(picture, dpi=130)
print(f"Open {picture}.")
