"""The methods that are compared, each as a function of the same training records, test inputs, bounds, ε and δ."""

import hashlib
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

import reticent
from reticent.experiments.peers import diffpriv, dpsgd
from reticent.models.gp import GPRegressor
from reticent.models.mean import PrivateMean
from reticent.privacy.bounds import Bounds

__all__ = ["EASIER", "METHODS", "OURS", "PEER", "Cell", "Method", "Prediction"]

Array = NDArray[np.float64]
OURS = "GPRegressor"
PEER = "DP-SGD, one record replaced"
EASIER = "DP-SGD, one added or removed"


@dataclass(frozen=True)
class Cell:
    """What a method is given: one split of one task, and δ."""

    X: Array
    y: Array
    X_new: Array
    bounds: Bounds
    delta: float
    seed: int


@dataclass(frozen=True)
class Prediction:
    """The predicted outputs, and half the width of their 95 % bands if the method has them."""

    mean: Array
    band: Array | None = None


@dataclass(frozen=True)
class Method:
    """A name, what it predicts for some values of ε, and a digest of the code that a stored result depends on."""

    name: str
    predictions: Callable[[Cell, Sequence[float]], dict[float, Prediction]]
    digest: str
    private: bool = True
    counts: bool = True  # in the verdict: not if it is shown with an easier relation than a like-for-like peer


def _one_by_one(
    predict: Callable[[Cell, float], Prediction],
) -> Callable[[Cell, Sequence[float]], dict[float, Prediction]]:
    return lambda cell, epsilons: {epsilon: predict(cell, epsilon) for epsilon in epsilons}


def _gp(cell: Cell, epsilon: float) -> Prediction:
    model = GPRegressor(bounds=cell.bounds, epsilon=epsilon, delta=cell.delta, random_state=cell.seed)
    model.fit(cell.X, cell.y)
    parts = model.variance_parts(cell.X_new)
    return Prediction(model.predict(cell.X_new), 1.96 * np.sqrt(sum(parts.values())))


def _dpsgd(cell: Cell, epsilon: float, replaced: bool) -> Prediction:
    found = dpsgd.predict(cell.X, cell.y, cell.X_new, cell.bounds, epsilon, cell.delta, cell.seed, replaced)
    return _inside(cell, found)


def _diffprivlib(cell: Cell, epsilons: Sequence[float]) -> dict[float, Prediction]:
    found = diffpriv.predictions(cell.X, cell.y, cell.X_new, cell.bounds, epsilons, cell.seed)
    return {epsilon: _inside(cell, mean) for epsilon, mean in found.items()}


def _inside(cell: Cell, mean: Array) -> Prediction:
    """The bounds of the output are public, so that a peer's user would hardly publish a prediction beyond them."""
    return Prediction(np.clip(mean, *cell.bounds.y[0]))


def _mean(cell: Cell, epsilon: float) -> Prediction:
    bounds = Bounds(x=[cell.bounds.y[0]])
    model = PrivateMean(bounds=bounds, epsilon=epsilon, delta=cell.delta, random_state=cell.seed).fit(cell.y[:, None])
    return Prediction(np.full(len(cell.X_new), model.mean_[0]))


def _linear(cell: Cell, _: float) -> Prediction:
    from sklearn.linear_model import LinearRegression

    return Prediction(LinearRegression().fit(cell.X, cell.y).predict(cell.X_new))


def _boosting(cell: Cell, _: float) -> Prediction:
    from sklearn.ensemble import HistGradientBoostingRegressor

    model = HistGradientBoostingRegressor(learning_rate=0.05, early_stopping=True, random_state=cell.seed)
    return Prediction(model.fit(cell.X, cell.y).predict(cell.X_new))


def _digest(*parts: ModuleType | Callable[..., object] | Path) -> str:
    """Results are kept as long as the code they came from stays the same."""
    text = hashlib.sha256()
    for part in parts:
        if isinstance(part, Path):
            for path in sorted(part.rglob("*.py")):
                text.update(path.read_bytes())
        else:
            text.update(inspect.getsource(part).encode())
    return text.hexdigest()[:16]


_HOME = Path(reticent.__file__).parent
METHODS = {
    method.name: method
    for method in (
        Method(OURS, _one_by_one(_gp), _digest(_gp, _HOME / "models", _HOME / "maths", _HOME / "privacy")),
        Method(PEER, _one_by_one(partial(_dpsgd, replaced=True)), _digest(_dpsgd, _inside, dpsgd)),
        Method(EASIER, _one_by_one(partial(_dpsgd, replaced=False)), _digest(_dpsgd, _inside, dpsgd), counts=False),
        Method("diffprivlib", _diffprivlib, _digest(_inside, diffpriv)),
        Method("mean", _one_by_one(_mean), _digest(_mean)),
        Method("linear, not private", _one_by_one(_linear), _digest(_linear), private=False),
        Method("boosting, not private", _one_by_one(_boosting), _digest(_boosting), private=False),
    )
}
