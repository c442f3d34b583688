"""A synthetic table.

A private mixture of made-up people, and as many records from it as one likes.
"""

import tempfile
from pathlib import Path

import numpy as np

import reticent
from reticent.cli.demo_data import people, write_csv

temporary = tempfile.TemporaryDirectory()
folder = Path(temporary.name)
write_csv(
    people(20_000, seed=1), folder / "people.csv"
)  # made-up people; yours would be a file of your own

# What is public about one record: from the codebook or common knowledge, never from the data.
bounds = reticent.Bounds(x={"age": (0, 110), "height": (40, 220), "weight": (2, 150)})
model = reticent.GaussianMixture(4, bounds=bounds, epsilon=1, delta=1e-6).fit(
    reticent.scan(folder / "people.csv")
)

print(
    f"{model.n_components_} normal laws, weights {np.sort(model.weights_)[::-1].round(2).tolist()}"
)
synthetic = model.sample(5_000, random_state=0)  # post-processing: draw as often as you like
real = np.column_stack([people(20_000, seed=1)[name] for name in bounds.x_names])
for name, a, b in zip(bounds.x_names, synthetic.T, real.T, strict=True):
    print(
        f"{name:<8} synthetic {a.mean():6.1f} ± {a.std():5.1f}    people "
        f"{b.mean():6.1f} ± {b.std():5.1f}"
    )
print(
    f"correlation of height and weight: {np.corrcoef(synthetic.T)[1, 2]:.2f}, people "
    f"{np.corrcoef(real.T)[1, 2]:.2f}"
)
print(model.guarantee_.statement)
temporary.cleanup()
