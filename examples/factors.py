"""What goes together in a questionnaire.

Private factors, and made-up answers that may be shared.
"""

import numpy as np

import reticent

# Made-up answers of 5,000 pupils: two abilities behind six marks.
rng = np.random.default_rng(0)
names = ["reading", "writing", "spelling", "running", "jumping", "throwing"]
language, sports = rng.normal(size=(2, 5_000, 1))
marks = (
    50
    + 12 * np.hstack([language * [1, 0.9, 0.7], sports * [1, 0.8, 0.6]])
    + 6 * rng.normal(size=(5_000, 6))
)

bounds = reticent.Bounds(x=[(0, 100)] * 6)
model = reticent.FactorAnalysis(2, bounds=bounds, epsilon=1, delta=1e-6).fit(marks)
for name, mean, loads in zip(names, model.mean_, model.components_.T, strict=True):
    print(f"{name:<9} mean {mean:5.1f}   " + "  ".join(f"{value:6.1f}" for value in loads))

synthetic = model.sample(
    5_000, random_state=1
)  # drawn from the releases alone: nothing more is charged
true, made_up = (np.corrcoef(table.T)[0, 1] for table in (marks, synthetic))
print(f"correlation of reading and writing: {true:.2f}, and among made-up pupils {made_up:.2f}")
