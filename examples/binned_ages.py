"""Ages of a town from a private histogram: a curve with its band, any age group, and a picture."""

import sys
from pathlib import Path

import pyarrow

import reticent
from reticent.cli.demo_data import people

table = pyarrow.table(
    people(4_000, seed=3)
)  # made-up people; yours would be a frame or a file of your own
bounds = reticent.Bounds(x={"age": (0, 110)})

# Eleven counts are released, empty ones too; all else on this page is computed from them.
model = reticent.BinnedGPRegressor(kind="count", bins=11, bounds=bounds, epsilon=1, delta=1e-6)
model.fit(table)
for low, count, noise in zip(model.edges_[0], model.counts_, model.counts_sd_, strict=False):
    print(
        f"{low:4.0f} to {low + 10:3.0f}  {count:7.1f} ± {noise:.1f}"
    )  # a count can come out below zero

# Groups need not be bins: children of school age, and people outside working age.
groups = {"6 to 16": [[(6, 16)]], "not 18 to 65": [[(0, 18)], [(65, 110)]]}
number, uncertainty = model.predict_regions(list(groups.values()), return_std=True)
for name, estimate, sd in zip(groups, number, uncertainty, strict=True):
    print(f"{name:<13} {estimate:5.0f} ± {sd:.0f} people")

# Mean weight by age, from one release of counts and sums together.
bounds = reticent.Bounds(x={"age": (0, 110)}, y={"weight": (2, 150)})
weight = reticent.BinnedGPRegressor(bins=22, bounds=bounds, epsilon=1, delta=1e-6).fit(table)
mean, sd = weight.predict([[1], [10], [40], [80]], return_std=True)
print(
    "weight at 1, 10, 40, 80:",
    ", ".join(f"{m:.0f} ± {s:.0f}" for m, s in zip(mean, sd, strict=True)),
    "kg",
)

picture = Path(sys.argv[1] if len(sys.argv) > 1 else "binned_ages.png")
reticent.plot.curve(model).savefig(picture, dpi=130)
print(f"Open {picture}.")
