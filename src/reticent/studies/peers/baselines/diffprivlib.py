"""Baselines of diffprivlib: linear and logistic regression and naive Bayes.

diffprivlib's last version does not import beside a current scikit-learn, so it has an environment
of its own (`python_environments`). It gives pure ε-DP, and is given ε alone; its neighbours differ
by one record added or removed.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.studies.common.python_environments import answered, environment
from reticent.studies.peers.comparison import Cell

__all__ = ["PINNED", "centres", "interpreter", "predictions"]

Array = NDArray[np.float64]
PINNED = ("diffprivlib==0.6.6", "scikit-learn==1.7.2", "numpy==2.2.6", "scipy==1.15.3")
_SCRIPT = """
import sys, warnings
import numpy as np
warnings.simplefilter("ignore")
from diffprivlib import models
task = np.load(sys.argv[2])
low, high = task["x_bounds"]
X, inside = (np.clip(task[name], low, high) for name in ("X", "X_new"))
found = []
for epsilon in task["epsilons"]:
    promise = {"epsilon": float(epsilon), "random_state": int(task["seed"])}
    if sys.argv[1] == "LinearRegression":
        ranges = {"bounds_X": (low, high), "bounds_y": tuple(task["outputs"])}
        model = models.LinearRegression(**ranges, **promise)
        found.append(model.fit(X, task["y"]).predict(inside))
        continue
    if sys.argv[1] == "GaussianNB":
        model = models.GaussianNB(bounds=(low, high), **promise)
        at = inside
        model.fit(X, task["y"])
    else:
        # in units of half the box, over the root of the number of inputs: rows of length <= 1
        unit = lambda x: (x - (low + high) / 2) / ((high - low) / 2) / np.sqrt(len(low))
        model = models.LogisticRegression(data_norm=1.0, max_iter=1000, **promise)
        at = unit(inside)
        model.fit(unit(X), task["y"])
    probabilities = np.zeros((len(inside), len(task["outputs"])))
    probabilities[:, model.classes_.astype(int)] = model.predict_proba(at)
    found.append(probabilities)
np.savez(sys.argv[3], found=np.array(found))
"""

_KMEANS = """
import sys, warnings
import numpy as np
warnings.simplefilter("ignore")
from diffprivlib.models import KMeans
given = np.load(sys.argv[2])
k, epsilon, seed = int(given["k"]), float(given["epsilon"]), int(given["seed"])
model = KMeans(n_clusters=k, epsilon=epsilon, bounds=(-1, 1), random_state=seed)
np.savez(sys.argv[3], found=model.fit(given["X"]).cluster_centers_)
"""


def interpreter() -> Path:
    """Give the interpreter that has diffprivlib; make its environment if it is not there."""
    return environment(PINNED)


def predictions(model: str, cell: Cell, epsilons: Sequence[float]) -> dict[float, Array]:
    """Fit the named model once per ε and predict at the cell's new inputs.

    Outputs, or chances of the classes.
    """
    bounds = cell.bounds
    outputs = bounds.y[0] if bounds.classes is None else np.arange(len(bounds.classes))
    given = {"X": cell.X, "y": cell.y, "X_new": cell.X_new, "epsilons": epsilons, "seed": cell.seed}
    found = _answered(
        _SCRIPT, model, given | {"x_bounds": np.array(bounds.x).T, "outputs": outputs}
    )
    return dict(zip(epsilons, found, strict=True))


def centres(X: Array, k: int, epsilon: float, seed: int) -> Array:
    """The centres that diffprivlib's KMeans finds for records in [−1, 1]ᵈ."""
    return _answered(_KMEANS, "KMeans", {"X": X, "k": k, "epsilon": epsilon, "seed": seed})


def _answered(script: str, model: str, given: Mapping[str, Any]) -> Array:
    """What a script finds in diffprivlib's environment for these arrays."""
    return answered(interpreter(), "diffprivlib", script, model, given)
