"""diffprivlib's LinearRegression, in an environment of its own: its last version does not import beside a current scikit-learn.

The environment is made once, in the user's cache folder, with pinned versions, and used as a subprocess that reads and writes
arrays. diffprivlib gives pure ε-DP, so it is given ε alone; its neighbours differ by one record added or removed.
"""

import os
import subprocess
import tempfile
import venv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reticent.privacy.bounds import Bounds

__all__ = ["PINNED", "Unavailable", "environment", "predictions"]

Array = NDArray[np.float64]
PINNED = ("diffprivlib==0.6.6", "scikit-learn==1.7.2", "numpy==2.2.6", "scipy==1.15.3")
_SCRIPT = """
import sys, warnings
import numpy as np
warnings.simplefilter("ignore")
from diffprivlib.models import LinearRegression
given = np.load(sys.argv[1])
low, high = given["x_bounds"]
inside = np.clip(given["X_new"], low, high)
found = []
for epsilon in given["epsilons"]:
    y_bounds, seed = tuple(given["y_bounds"]), int(given["seed"])
    model = LinearRegression(epsilon=epsilon, bounds_X=(low, high), bounds_y=y_bounds, random_state=seed)
    found.append(model.fit(given["X"], given["y"]).predict(inside))
np.savez(sys.argv[2], found=np.array(found))
"""


class Unavailable(Exception):
    """diffprivlib cannot be run here: no network, or a pinned version that does not install."""


def environment() -> Path:
    """Give the interpreter that has diffprivlib; make its environment if it is not there."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    home = cache / "reticent" / "-".join(["peers", *PINNED[:2]])
    python = home / "bin" / "python"
    if (home / "ready").exists():
        return python
    try:
        venv.create(home, with_pip=True, clear=True)
        command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PINNED]
        subprocess.run(command, check=True, capture_output=True, timeout=900)
    except (subprocess.SubprocessError, OSError) as problem:
        raise Unavailable(f"diffprivlib could not be installed ({type(problem).__name__})") from problem
    (home / "ready").touch()
    return python


def predictions(
    X: Array, y: Array, X_new: Array, bounds: Bounds, epsilons: Sequence[float], seed: int
) -> dict[float, Array]:
    """Fit once per ε and predict at ``X_new``."""
    python = environment()
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder, "given.npz"), Path(folder, "found.npz")
        np.savez(
            given,
            X=X,
            y=y,
            X_new=X_new,
            x_bounds=np.array(bounds.x).T,
            y_bounds=bounds.y[0],
            epsilons=epsilons,
            seed=seed,
        )
        done = subprocess.run([str(python), "-c", _SCRIPT, str(given), str(found)], capture_output=True, text=True)
        if done.returncode:
            raise Unavailable(f"diffprivlib failed ({done.stderr.strip().splitlines()[-1:]})")
        return dict(zip(epsilons, np.load(found)["found"], strict=True))
