"""Classification.

Is a tumour benign? A private classifier, its report, and whether its chances are right.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

import reticent

folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
data = load_breast_cancer(as_frame=True)
X = data.data[["mean radius", "mean texture", "mean smoothness", "mean concavity"]]
y = np.where(data.target == 1, "benign", "malignant")
X_known, X_new, y_known, y_new = train_test_split(X, y, test_size=0.4, random_state=0, stratify=y)

# What is public about one record. Nuclei of cells are a few to some tens of
# micrometres wide; the other three are indices whose usual size is known from how
# they are defined. None of it is taken from the data.
bounds = reticent.Bounds(
    x={
        "mean radius": (5, 30),
        "mean texture": (5, 45),
        "mean smoothness": (0, 0.2),
        "mean concavity": (0, 0.5),
    },
    classes=[
        "benign",
        "malignant",
    ],  # all labels that can occur; any other would count as the first
)
model = reticent.GPClassifier(bounds=bounds, epsilon=2, delta=1e-5).fit(X_known, y_known)
model.save(folder / "tumours.reticent", overwrite=True)
model.report(
    folder / "tumours.html", overwrite=True
)  # made from the releases only: may be handed over

low, high = model.predict_proba_band(X_new[:3])
for chance, below, above in zip(
    model.predict_proba(X_new[:3])[:, 1], low[:, 1], high[:, 1], strict=True
):
    print(
        f"malignant with a chance of {100 * chance:4.1f} % (95 % band {100 * below:.1f} to "
        f"{100 * above:.1f} %)"
    )
print(
    f"{100 * model.score(X_new, y_new):.1f} % of {len(X_new)} new tumours are told right"
)  # reads them: not protected
print(model.guarantee_.statement)

# Are the chances right? This reads the labelled records that it is given, so it is
# for those who hold them.
reticent.plot.reliability(model, X_new, y_new).savefig(folder / "reliability.png", dpi=150)
reticent.plot.release(model).savefig(folder / "effects.png", dpi=150)
print(f"Look at {folder / 'tumours.html'} and {folder / 'reliability.png'}.")
