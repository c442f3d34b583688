"""Which columns predict blood pressure? A private search.

Only the best run leaves, and the search is paid for as a whole.

python examples/hyperparameter_search.py [PICTURE]
"""

import sys
from pathlib import Path

import pandas as pd

import reticent
from reticent.cli.demo_data import people

picture = Path(sys.argv[1] if len(sys.argv) > 1 else "hyperparameter_search.png")
table = pd.DataFrame(people(8_000, seed=9))  # made-up people; yours would be a file of your own

ranges = {"age": (0, 110), "sex": (0, 1), "height": (40, 220), "weight": (2, 150)}
pressure = {"systolic": (60, 220)}
bounds = reticent.Bounds(x=ranges, y=pressure)

# What changes the statistic is chosen by a search. (Kernel and noise level are
# learned for free, and need none.)
choices = [["sex"], ["height"], ["age"], ["age", "weight"]]
candidates = [
    {"bounds": reticent.Bounds(x={name: ranges[name] for name in some}, y=pressure)}
    for some in choices
]
search = reticent.PrivateSearch(
    reticent.GPRegressor(stages=8, basis=12),
    candidates,
    expected_runs=12,
    bounds=bounds,
    epsilon=2,
    delta=1e-6,
).fit(table)

print(
    f"Best: {' and '.join(choices[search.best_index_])}; score {search.best_score_:.1f} ± "
    f"{search.best_score_sd_:.1f}"
)
print(search.guarantee_.statement)
reticent.plot.release(search).savefig(
    picture, dpi=130
)  # reticent.plot.search(search) shows the candidates
print(f"Open {picture}.")
