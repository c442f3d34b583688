"""What every model gives, hashed: `python -m tools.golden record|compare FILE`.

Before code is moved or renamed, `record` fits every model with a seed, in many options, and writes
a hash of what came of it: released values and noise scales, predictions, samples, the file that
`save` writes (but for its version and its words). Afterwards `compare` does the same again and lists
what is not the same, bit for bit. Only public names are used, so that the inside may change.
"""

import argparse
import json
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

import reticent

RECORDS = 1500
SEED = 20261117
METHODS = ("predict", "predict_proba", "transform", "score_samples")
ATTRIBUTES = (
    "mean_",
    "mean_sd_",
    "counts_",
    "edges_",
    "covariance_",
    "components_",
    "means_",
    "covariances_",
    "weights_",
    "cluster_centers_",
    "sums_",
    "sums_sd_",
    "noise_",
    "best_score_",
)


def tables() -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Inputs of shape (n, 2), outputs (n,) and class labels (n,), all with values outside their bounds."""
    rng = np.random.default_rng(SEED)
    X = rng.normal([0.4, 50.0], [0.3, 25.0], size=(RECORDS, 2))
    noise = rng.normal(size=RECORDS)
    y = np.sin(4 * X[:, 0]) + 0.02 * X[:, 1] + 0.3 * noise
    labels = np.where(y > 1.2, "high", "low")
    skewed = np.exp(noise) + X[:, 0]
    return {"smooth": (X, y, labels), "skewed": (X, skewed, labels)}


def models() -> Iterator[tuple[str, str, Any]]:
    """Name, what it learns from ("X", "y" or "labels"), and the estimator."""
    inputs = [(0.0, 1.0), (0.0, 100.0)]
    promise = {"epsilon": 1.0, "delta": 1e-6, "random_state": 7}
    bare = {"bounds": reticent.Bounds(x=inputs), **promise}
    real = {"bounds": reticent.Bounds(x=inputs, y=(-2.0, 6.0)), **promise}
    classes = {"bounds": reticent.Bounds(x=inputs, classes=["low", "high"]), **promise}
    kernel = ConstantKernel(1.0) * RBF([0.3, 30.0])
    yield "mean", "X", reticent.PrivateMean(**bare)
    yield "mean, pure", "X", reticent.PrivateMean(**{**bare, "delta": 0.0})
    yield "mean, five records each", "X", reticent.PrivateMean(records_per_person=5, **bare)
    yield "histogram", "X", reticent.PrivateHistogram(bins=7, **bare)
    yield "covariance", "X", reticent.PrivateCovariance(**bare)
    yield "PCA", "X", reticent.PCA(1, **bare)
    yield "factors", "X", reticent.FactorAnalysis(1, **bare)
    yield "k-means", "X", reticent.KMeans(3, **bare)
    yield "mixture", "X", reticent.GaussianMixture(2, **bare)
    yield "regression", "y", reticent.GPRegressor(**real)
    yield "regression, kernel given", "y", reticent.GPRegressor(kernel, **real)
    yield "regression, nothing learned", "y", reticent.GPRegressor(kernel, noise=0.3, learn_kernel=False, **real)
    yield "regression, Matérn", "y", reticent.GPRegressor(Matern([0.3, 30.0], nu=1.5), **real)
    yield "regression, ε = 10", "y", reticent.GPRegressor(**{**real, "epsilon": 10.0})
    yield "classification", "labels", reticent.GPClassifier(**classes)
    yield "labels", "y", reticent.LabelGPRegressor(kernel, **real)
    yield "bins", "y", reticent.BinnedGPRegressor(bins=(4, 4), **real)
    yield "bins, counts", "X", reticent.BinnedGPRegressor(kind="count", bins=(4, 4), **bare)
    yield "bins, labels", "y", reticent.BinnedGPRegressor(bins=(4, 4), protect="labels", **real)
    yield "search", "X", reticent.PrivateSearch(reticent.PrivateHistogram(), {"bins": [3, 6]}, expected_runs=4, **bare)


def digest(value: object) -> str:
    """A hash of arrays and plain values, bit for bit."""
    array = np.asarray(value)
    content = array.astype("<f8").tobytes() if array.dtype.kind in "biuf" else repr(value).encode()
    return sha256(str(array.shape).encode() + content).hexdigest()[:16]


def outcome(model: Any, X: np.ndarray) -> dict[str, str]:
    """Hashes of everything that a fitted model gives away."""
    found = {}
    for number, release in enumerate(model.releases_):
        found[f"release {number}"] = digest(release.value)
        found[f"scale {number}"] = digest(release.scale)
    for name in ATTRIBUTES:
        if hasattr(model, name):
            found[name] = digest(getattr(model, name))
    for name in METHODS:
        if hasattr(model, name):
            found[name] = digest(getattr(model, name)(X[:50]))
    if hasattr(model, "sample"):
        found["sample"] = digest(np.asarray(model.sample(20, random_state=3)[0], dtype=float))
    if hasattr(model, "variance_parts"):
        for name, part in model.variance_parts(X[:50]).items():
            found[f"variance {name}"] = digest(part)
    found["epsilon"] = digest(model.guarantee_.epsilon)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.reticent"
        model.save(path)
        loaded = reticent.load(path)
    found["loaded"] = digest([digest(release.value) for release in loaded.releases_])
    return found


def bandit_outcome() -> dict[str, str]:
    """Hashes of what a bandit chose and released."""
    bounds = reticent.Bounds(x=[(0, 1)], y=(0, 1))
    rng = np.random.default_rng(SEED)
    bandit = reticent.JointBandit(bounds=bounds, horizon=200, epsilon=1, delta=1e-6, random_state=7)
    for _ in range(200):
        candidates = rng.uniform(size=(5, 1))
        chosen = bandit.ask(candidates)
        bandit.tell(candidates[chosen], rng.uniform() < candidates[chosen, 0])
    found = {f"release {i}": digest(one.value) for i, one in enumerate(bandit.releases_)}
    mean, sd = bandit.posterior_.moments(np.linspace(0, 1, 20)[:, None])
    return {**found, "mean": digest(mean), "sd": digest(sd)}


def curve_outcome() -> dict[str, str]:
    """Hashes of an obfuscated curve's covariance and certificate."""
    X = np.linspace(0, 1, 41)
    curve = reticent.Obfuscator(RBF(0.2), sensitive=[(0.4, 0.5)], variance=0.5, mean=0.0, random_state=7)
    released = curve.obfuscate(X, np.sin(6 * X))
    return {"released": digest(released), "covariance": digest(curve.covariance_)}


def everything() -> dict[str, dict[str, str]]:
    """All outcomes, by name."""
    found: dict[str, dict[str, str]] = {}
    for table, (X, y, labels) in tables().items():
        outputs = {"X": None, "y": y, "labels": labels}
        for name, needs, model in models():
            print(f"{table}: {name}", file=sys.stderr, flush=True)
            found[f"{table}: {name}"] = outcome(model.fit(X, outputs[needs]), X)
    others: dict[str, Callable[[], dict[str, str]]] = {"bandit": bandit_outcome, "curve": curve_outcome}
    for name, function in others.items():
        found[name] = function()
    return found


def main() -> None:
    """Record, or compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=("record", "compare"))
    parser.add_argument("file", type=Path)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    now = everything()
    if arguments.action == "record":
        arguments.file.write_text(json.dumps(now, indent=1, ensure_ascii=False) + "\n")
        return
    before = json.loads(arguments.file.read_text())
    wrong = 0
    for name in before.keys() | now.keys():
        old, new = before.get(name, {}), now.get(name, {})
        changed = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
        if changed:
            wrong += 1
            print(f"{name}: not the same: {', '.join(changed)}")
    print(f"{len(before) - wrong} passed, {wrong} failed")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
