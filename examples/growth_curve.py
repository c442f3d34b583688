"""A growth curve.

Height by age of children, released with bands that know the privacy noise, and a page to hand over.

python examples/growth_curve.py [PICTURE]
"""

import sys
import tempfile
from pathlib import Path

import pandas as pd

import reticent
from reticent.cli.demo_data import people

picture = Path(sys.argv[1] if len(sys.argv) > 1 else "growth_curve.png")
table = pd.DataFrame(people(30_000, seed=5))  # made-up people; yours would be a file of your own
children = table[table["age"] < 20]

bounds = reticent.Bounds(
    x={"age": (0, 20)}, y={"height": (40, 220)}
)  # public: from the codebook, never from the data
model = reticent.GPRegressor(bounds=bounds, epsilon=1, delta=1e-6).fit(children)

for age in (1, 5, 10, 15):
    mean, sd = model.predict([[age]], return_std=True)
    near = children["height"][
        (children["age"] - age).abs() < 0.5
    ].mean()  # only because nobody here has ever lived
    print(f"at {age:2d}: {mean[0]:5.1f} ± {sd[0]:.1f} cm on average (in the data {near:5.1f})")
print(model.guarantee_.statement)
with tempfile.TemporaryDirectory() as folder:
    model.report(Path(folder) / "growth.html")  # for the data-protection officer
reticent.plot.curve(model).savefig(picture, dpi=130)
print(f"Open {picture}.")
