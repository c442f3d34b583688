"""Cases of the golden set: every model, with every option that changes releases or answers."""

import contextlib
import functools
import inspect
import io
import itertools
import json
import os
import runpy
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)

import reticent
from tools.golden_pages import file_parts, nameless, numbers, page_parts

SEED = 20261117
Outcome = dict[str, Any]
Case = tuple[str, Callable[[], Outcome]]

ATTRIBUTES = (
    "mean_",
    "mean_sd_",
    "counts_",
    "counts_sd_",
    "edges_",
    "bins_",
    "bins_sd_",
    "sums_",
    "sums_sd_",
    "covariance_",
    "covariance_sd_",
    "correlation_",
    "components_",
    "explained_variance_",
    "explained_variance_ratio_",
    "column_std_",
    "noise_variance_",
    "n_components_",
    "means_",
    "covariances_",
    "weights_",
    "pooled_mean_",
    "pooled_covariance_",
    "cluster_centers_",
    "cluster_sizes_",
    "cluster_sizes_sd_",
    "classes_",
    "noise_",
    "prior_std_",
    "best_score_",
    "best_score_sd_",
    "best_index_",
    "n_features_in_",
    "feature_names_in_",
)
METHODS = ("predict", "predict_proba", "predict_proba_band", "transform", "score_samples")

# ---- records


@functools.cache
def table(inputs: int = 2, n: int = 900, kind: str = "smooth") -> tuple[np.ndarray, np.ndarray]:
    """Inputs of shape (n, inputs) and outputs (n,); some are missing, some outside their bounds."""
    rng = np.random.default_rng([SEED, inputs, n])
    X = rng.normal(0.45, 0.3, size=(n, inputs))
    X[:, -1] = 10 * X[:, -1] ** 2
    noise = rng.normal(size=n)
    y = np.sin(4 * X[:, 0]) + 0.2 * X[:, -1] * X[:, 0] + 0.3 * noise
    if kind == "skewed":
        y = np.exp(noise) + X[:, 0]
    if kind == "corner":
        X[:, 0] = 0.1 * np.abs(X[:, 0])
    if kind == "wide":
        y = 40 * y
    X[::97, 0] = np.nan
    y[::89] = np.nan
    return X, y


def box(inputs: int = 2) -> list[tuple[float, float]]:
    """Public ranges of `table`'s inputs."""
    return [(0.0, 1.0)] * (inputs - 1) + [(0.0, 10.0)]


def promise(**other: Any) -> dict[str, Any]:
    """What all models are asked for, unless a case says otherwise."""
    return {"epsilon": 1.0, "delta": 1e-6, "random_state": 7, **other}


def labelled(classes: tuple[Any, ...], n: int = 900) -> tuple[np.ndarray, np.ndarray]:
    """Inputs (n, 2) and class labels (n,)."""
    X, y = table(2, n)
    edges = np.nanquantile(y, np.linspace(0, 1, len(classes) + 1)[1:-1])
    return X, np.array(classes)[np.searchsorted(edges, np.nan_to_num(y))]


# ---- what a fitted model gives


def paid(model: Any) -> Outcome:
    """Everything that was released, and what it cost."""
    guarantee = model.guarantee_
    found: Outcome = {
        "values": [release.value for release in model.releases_],
        "scales": [release.scale for release in model.releases_],
        "records": [release.n for release in model.releases_],
        "events": [release.event.to_dict() for release in model.releases_],
        "units": [(one.relation, one.records_per_person, one.private) for one in model.releases_],
        "guarantee": (guarantee.epsilon, guarantee.delta, guarantee.relation, guarantee.private),
        "guarantee, events": [event.to_dict() for event in guarantee.events],
    }
    return found


def answers(model: Any, X: Any, y: Any = None) -> Outcome:
    """Everything that a model says, by public methods and attributes."""
    found: Outcome = {}
    few = X[:40]
    for name in ATTRIBUTES:
        if hasattr(model, name):
            found[name] = getattr(model, name)
    if hasattr(model, "kernel_"):
        kernels = model.kernel_ if isinstance(model.kernel_, (list, tuple)) else [model.kernel_]
        found["kernel_"] = [(str(kernel), kernel.theta) for kernel in kernels]
    for name in METHODS:
        if hasattr(model, name):
            found[name] = getattr(model, name)(few)
    if hasattr(model, "predict") and "return_std" in inspect.signature(model.predict).parameters:
        found["predict, sd"] = model.predict(few, return_std=True)
    if hasattr(model, "predict") and "return_cov" in inspect.signature(model.predict).parameters:
        found["predict, covariance"] = model.predict(X[:9], return_cov=True)
    if hasattr(model, "variance_parts"):
        found["variance parts"] = model.variance_parts(few)
    if hasattr(model, "sample"):
        found["sample"] = np.asarray(model.sample(20, random_state=3)[0], dtype=float)
    if hasattr(model, "sample_y"):
        found["sample_y"] = model.sample_y(X[:9], 3, random_state=3)
    if hasattr(model, "inverse_transform"):
        found["inverse transform"] = model.inverse_transform(model.transform(few))
    if hasattr(model, "get_covariance"):
        found["covariance of the model"] = model.get_covariance()
    if callable(getattr(model, "quantile", None)):  # of a table it is a parameter
        found["quantiles"] = [model.quantile(q) for q in (0.1, 0.5, 0.9)]
        found["probabilities"] = model.probabilities()
    supervised = hasattr(model, "predict") and not hasattr(model, "score_samples")
    if hasattr(model, "score") and (y is not None or not supervised):
        known = slice(None) if y is None else _known(y)
        found["score"] = model.score(X[known], None if y is None else y[known])
    return found


def _known(y: np.ndarray) -> np.ndarray:
    """Which outputs are not missing."""
    if y.dtype.kind != "f":
        return np.ones(len(y), dtype=bool)
    return np.isfinite(y).reshape(len(y), -1).all(axis=1)


def whole(
    model: Any, X: Any, y: Any = None, *, page: bool = False, rebuilt: bool = True
) -> Outcome:
    """Fit, and give everything; the file always, the model that is loaded from it, the report."""
    model.fit(X, y)
    given = X if isinstance(X, np.ndarray) else table(2)[0]
    found = paid(model) | answers(model, given, y)
    model.save("model.reticent")
    found |= file_parts("model.reticent")
    if rebuilt:
        loaded = reticent.load("model.reticent")
        found["loaded"] = paid(loaded)
        for name in ("predict", "score_samples"):
            if hasattr(loaded, name):
                found[f"loaded, {name}"] = getattr(loaded, name)(given[:40])
    if page:
        model.report("report.html")
        found |= page_parts("report.html")
    return found


def fits(name: str, make: Callable[..., Any], X: Any, y: Any = None, **how: Any) -> Case:
    """A case: fit a model that is made when the case is run."""
    return name, lambda: whole(make(), X, y, **how)


# ---- statistics

_TABLES: dict[str, dict[str, Any]] = {
    "counts": {"by": [(0, [0.0, 0.3, 1.0]), (1, [0.0, 5.0, 10.0])]},
    "all": {"by": [(0, [0.0, 0.3, 1.0])], "mean": [1], "total": [1], "quantile": [1]},
    "smooth": {"by": [(0, [0.0, 0.3, 0.6, 1.0])], "mean": [1], "smooth": True},
}


def statistics() -> Iterator[Case]:
    """Means, histograms, covariances, tables."""
    X, _ = table()
    bounds = reticent.Bounds(x=box())
    ball = reticent.Bounds(x=box(), norm=4.0)
    usual = promise(bounds=bounds)
    for model, name in (
        (reticent.PrivateMean, "mean"),
        (functools.partial(reticent.PrivateHistogram, bins=7), "histogram"),
        (reticent.PrivateCovariance, "covariance"),
    ):
        make = functools.partial(model, **usual)
        yield fits(f"statistics: {name}", make, X, page=True)
        five = functools.partial(make, records_per_person=5)
        yield fits(f"statistics: {name}, five records each", five, X, page=name == "mean")
        unseeded = functools.partial(make, random_state=None)
        yield fits(f"statistics: {name}, private", unseeded, X, page=True)
    for model, name in ((reticent.PrivateMean, "mean"), (reticent.PrivateHistogram, "histogram")):
        pure = functools.partial(model, **{**usual, "delta": 0.0})
        yield fits(f"statistics: {name}, pure", pure, X, page=True)
    for model, name in ((reticent.PrivateMean, "mean"), (reticent.PrivateCovariance, "covariance")):
        within = functools.partial(model, **{**usual, "bounds": ball})
        yield fits(f"statistics: {name}, in a ball", within, X)
    for name, options in _TABLES.items():
        tabled = functools.partial(reticent.PrivateTable, **usual, **options)
        yield fits(f"statistics: table, {name}", tabled, X, page=True)
    yield fits(
        "statistics: mean, of four columns",
        lambda: reticent.PrivateMean(**promise(bounds=reticent.Bounds(x=box(4)))),
        table(4)[0],
    )


# ---- clusters, mixtures, factors


def structures() -> Iterator[Case]:
    """Models of the inputs alone."""
    X, _ = table()
    X4, _ = table(4)
    ball = promise(bounds=reticent.Bounds(x=box(), norm=4.0))
    usual = promise(bounds=reticent.Bounds(x=box()))
    four = promise(bounds=reticent.Bounds(x=box(4)))
    private = {**usual, "random_state": None, "epsilon": 3.0}

    def mixture(k: int, **options: Any) -> Callable[[], Any]:
        return lambda: reticent.GaussianMixture(k, **{**usual, **options})

    yield fits("mixture: two", mixture(2), X, page=True)
    yield fits("mixture: one", mixture(1), X)
    yield fits("mixture: private, ε = 3", mixture(3, **private), X, page=True)
    for kind in ("tied", "diag", "spherical"):
        yield fits(f"mixture: {kind}", mixture(2, covariance_type=kind), X)
    priors = {"weight_concentration_prior": 2.0, "mean_precision_prior": 0.5}
    yield fits("mixture: other priors", mixture(3, degrees_of_freedom_prior=9.0, **priors), X)
    yield fits("mixture: in a ball", mixture(2, **ball), X)
    yield fits(
        "mixture: four columns, two records each", mixture(3, **four, records_per_person=2), X4
    )
    for k in (1, 3, 8):
        yield fits(f"k-means: {k}", lambda k=k: reticent.KMeans(k, **usual), X, page=k == 3)
    yield fits("k-means: private, ε = 3", lambda: reticent.KMeans(4, **private), X, page=True)
    yield fits("k-means: four columns", lambda: reticent.KMeans(4, **four), X4)
    yield fits("k-means: in a ball", lambda: reticent.KMeans(3, **ball), X)
    for model, name in ((reticent.FactorAnalysis, "factors"), (reticent.PCA, "components")):
        yield fits(f"{name}: one of two", functools.partial(model, 1, **usual), X, page=True)
        yield fits(f"{name}: two of four", functools.partial(model, 2, **four), X4, page=True)
        yield fits(f"{name}: in a ball", functools.partial(model, 1, **ball), X)
        yield fits(f"{name}: private, ε = 3", functools.partial(model, 1, **private), X, page=True)


# ---- regression


def regressions() -> Iterator[Case]:
    """Gaussian-process regression of protected inputs and outputs."""
    X, y = table()
    real = promise(bounds=reticent.Bounds(x=box(), y=(-2.0, 6.0)))
    kernel = ConstantKernel(1.0) * RBF([0.3, 3.0])
    quick = {"stages": 4, "basis": 14}

    def model(kernel: Any = None, **options: Any) -> Callable[[], Any]:
        return lambda: reticent.GPRegressor(kernel, **{**real, **options})

    def case(name: str, make: Callable[[], Any], X: Any = X, y: Any = y, **how: Any) -> Case:
        return fits(f"regression: {name}", make, X, y, **how)

    yield case("default", model(), page=True)
    yield case("default, skewed outputs", model(), *table(kind="skewed"))
    yield case(
        "default, outputs far outside their range", model(), *table(kind="wide"), rebuilt=False
    )
    yield case("default, ε = 10", model(epsilon=10.0), rebuilt=False)
    yield case("default, ε = 0.1", model(epsilon=0.1), rebuilt=False)
    yield case("default, 50 records", model(), X[:50], y[:50], rebuilt=False)
    yield case("default, private", model(random_state=None), page=True)
    yield case("default, three records each", model(records_per_person=3, **quick))
    for d in (1, 3, 5):
        bounds = reticent.Bounds(x=box(d), y=(-2.0, 6.0))
        yield case(
            f"default, {d} inputs", model(bounds=bounds), *table(d), page=d == 1, rebuilt=False
        )
    ball = reticent.Bounds(x=box(), y=(-2.0, 6.0), norm=4.0)
    yield case("default, in a ball", model(bounds=ball, **quick))
    yield case("12 stages", model(stages=12, basis=14), rebuilt=False)
    yield case("1 stage", model(stages=1))
    yield case("basis of 30", model(stages=4, basis=30))
    yield case("noise given", model(noise=0.3, **quick))
    yield case("kernel given", model(kernel), page=True, rebuilt=False)
    corner = table(kind="corner")
    yield case("kernel given, records in a corner", model(kernel, basis=20), *corner, rebuilt=False)
    yield case(
        "kernel given, outliers", model(kernel, **quick), *table(kind="skewed"), rebuilt=False
    )
    yield case("kernel given, averaged", model(kernel, learn_kernel="average", **quick), page=True)
    yield case("kernel given, not learned", model(kernel, learn_kernel=False, **quick))
    nothing = {"noise": 0.3, "learn_kernel": False}
    yield case("nothing learned", model(kernel, **nothing, **quick))
    kernels = {
        "Matérn 1/2": Matern([0.3, 3.0], nu=0.5),
        "Matérn 3/2": Matern([0.3, 3.0], nu=1.5),
        "Matérn 5/2": 2.0 * Matern(0.5, nu=2.5),
        "rational quadratic": RationalQuadratic(0.5, 2.0),
        "dot product": DotProduct(1.0) + ConstantKernel(0.5),
        "sum with white noise": RBF([0.3, 3.0]) + 0.5 * RBF(4.0) + WhiteKernel(0.1),
        "product": RBF([0.3, 30.0]) * Matern([3.0, 3.0], nu=1.5),
        "fixed length": ConstantKernel(1.0, "fixed") * RBF([0.3, 3.0], "fixed"),
        "narrow bounds": ConstantKernel(1.0, (0.5, 2.0)) * RBF([0.3, 3.0], (0.2, 5.0)),
    }
    for name, one in kernels.items():
        yield case(f"kernel, {name}", model(one, **quick), rebuilt=name == "product")
    line = reticent.Bounds(x=box(1), y=(-2.0, 6.0))
    periodic = ConstantKernel(1.0) * ExpSineSquared(0.8, 5.0)
    yield case("kernel, periodic", model(periodic, bounds=line, **quick), *table(1))
    pairs = np.column_stack([y, 3 * X[:, 0] - y])
    two = reticent.Bounds(x=box(), y=[(-2.0, 6.0), (-8.0, 6.0)])
    yield case("two outputs", model(bounds=two), X, pairs, page=True, rebuilt=False)
    yield case("two outputs, kernel given", model(kernel, bounds=two, **quick), X, pairs)
    rng = np.random.default_rng(SEED)
    levels = rng.uniform(0.05, 1.2, size=len(y))
    measured = np.column_stack([X, levels])
    noisy = y + levels * rng.normal(size=len(y))
    three = reticent.Bounds(x=[*box(), (0.1, 1.0)], y=(-2.0, 6.0))
    by_place = model(bounds=three, noise_column=2)
    yield case("noise column", by_place, measured, noisy, page=True)
    given = model(kernel, bounds=three, noise_column=2, **quick)
    yield case("noise column, kernel given", given, measured, noisy)
    yield "regression: noise column by name", lambda: _noise_by_name(measured, noisy)


def _noise_by_name(X: np.ndarray, y: np.ndarray) -> Outcome:
    import pandas as pd

    frame = pd.DataFrame({"sd": X[:, 2], "b": X[:, 1], "a": X[:, 0], "out": y})
    ranges = dict(zip(("a", "b", "sd"), [*box(), (0.1, 1.0)], strict=True))
    bounds = reticent.Bounds(x=ranges, y={"out": (-2.0, 6.0)})
    model = reticent.GPRegressor(noise_column="sd", stages=4, basis=14, **promise(bounds=bounds))
    model.fit(frame)
    return paid(model) | {"predict": model.predict(frame[["a", "b"]][:40], return_std=True)}


# ---- classification


def classifications() -> Iterator[Case]:
    """Gaussian-process classification."""

    def case(name: str, classes: tuple[Any, ...], kernel: Any = None, **options: Any) -> Case:
        page = options.pop("page", False)
        bounds = reticent.Bounds(x=box(), classes=list(classes))
        X, labels = labelled(classes)
        make = lambda: reticent.GPClassifier(kernel, **promise(bounds=bounds, **options))  # noqa: E731
        return fits(f"classification: {name}", make, X, labels, page=page, rebuilt=page)

    two, three = ("low", "high"), ("a", "b", "c")
    quick = {"stages": 4, "basis": 14}
    kernel = ConstantKernel(1.0) * RBF([0.3, 3.0])
    yield case("two classes", two, page=True)
    yield case("two classes, ε = 10", two, epsilon=10.0)
    yield case("three classes", three, page=True)
    yield case("three classes, private", three, random_state=None, page=True, **quick)
    yield case("classes that are numbers", (3, 1, 2), **quick)
    yield case("kernel given", three, kernel, **quick)
    yield case("kernel given, not learned", two, kernel, learn_kernel=False, **quick)
    yield case("Matérn", two, Matern([0.3, 3.0], nu=2.5), **quick)
    for method in ("labels", "dirichlet"):
        how = quick if method == "labels" else {"basis": 14}
        yield case(f"method {method}, two classes", two, method=method, **how)
        yield case(f"method {method}, three classes", three, kernel, method=method, **how)
    yield case("two records each", two, records_per_person=2, **quick)


# ---- public inputs


def label_regressions() -> Iterator[Case]:
    """Regression where outputs alone are protected."""
    X, y = (one[:150] for one in table())
    real = promise(bounds=reticent.Bounds(x=box(), y=(-2.0, 6.0)))
    kernel = ConstantKernel(1.0) * RBF([0.3, 3.0])
    at = np.array([[0.1, 1.0], [0.5, 5.0], [0.9, 9.0], [0.2, 2.0]])

    def case(name: str, kernel: Any = None, page: bool = False, **options: Any) -> Case:
        make = lambda: reticent.LabelGPRegressor(kernel, **{**real, **options})  # noqa: E731
        return fits(f"labels: {name}", make, X, y, page=page)

    yield case("cloak", page=True)
    yield case("cloak, private", random_state=None, stages=3, page=True)
    yield case("cloak, kernel given", kernel, stages=3)
    yield case("cloak, not learned", kernel, stages=3, learn_kernel=False, noise=0.3)
    yield case("cloak, points of interest", kernel, stages=3, at=at)
    yield case("cloak, log determinant", kernel, stages=3, at=at, criterion="logdet")
    yield case("functional", mechanism="functional", stages=3, page=True)
    yield case("functional, kernel given", kernel, mechanism="functional", stages=3)
    yield case("inducing", mechanism="inducing", stages=3)
    yield case(
        "inducing, twenty, Titsias",
        kernel,
        mechanism="inducing",
        inducing=20,
        stages=2,
        approximation="titsias",
    )
    yield case("inducing, given points", kernel, mechanism="inducing", inducing=at, stages=2, at=at)
    yield case("one stage", kernel, stages=1)
    yield case("two records each", kernel, stages=2, records_per_person=2)


# ---- bins


def binned() -> Iterator[Case]:
    """Regression on a private histogram."""
    kernel = ConstantKernel(1.0) * RBF([0.3, 3.0])

    def case(name: str, kernel: Any = None, d: int = 2, page: bool = False, **options: Any) -> Case:
        X, y = table(d)
        counts = options.get("kind") == "count"
        bounds = reticent.Bounds(x=box(d)) if counts else reticent.Bounds(x=box(d), y=(-2.0, 6.0))
        make = lambda: reticent.BinnedGPRegressor(kernel, **promise(bounds=bounds, **options))  # noqa: E731
        return f"bins: {name}", lambda: regions(
            whole(model := make(), X, None if counts else y, page=page), model, d
        )

    def regions(found: Outcome, model: Any, d: int) -> Outcome:
        boxes = [[(low + (high - low) * 0.2, high) for low, high in box(d)]]
        return found | {"regions": model.predict_regions(boxes, return_std=True)}

    yield case("means", bins=(4, 4), page=True)
    yield case("means, bins chosen", page=False)
    yield case("means, private", bins=(4, 4), random_state=None, page=True)
    yield case("counts", kind="count", bins=(4, 4), page=True)
    yield case("counts, bins chosen", kind="count")
    yield case("counts, exact curve", kind="count", bins=(4, 4), noise=0.0)
    yield case("counts, kernel given", 1e4 * RBF([0.3, 3.0]), kind="count", bins=(4, 4))
    yield case("counts, Matérn", 1e4 * Matern(0.3, nu=1.5), d=1, kind="count", bins=5)
    yield case("labels", bins=(4, 4), protect="labels")
    yield case("pure", bins=(4, 4), delta=0.0)
    yield case("counts, pure", kind="count", bins=(4, 4), delta=0.0)
    yield case("values at centres", bins=(4, 4), integral=False)
    yield case("counts, values at centres", kind="count", bins=(4, 4), integral=False)
    yield case("one input", d=1, bins=12, page=True)
    yield case("one input, counts", d=1, bins=12, kind="count", page=True)
    yield case("three inputs", d=3, bins=(3, 2, 3))
    yield case("four inputs", d=4, bins=2)
    edges = [[0.0, 0.2, 0.5, 1.0], [0.0, 1.0, 4.0, 10.0]]
    joined = [[0, 0, 1], [2, -1, 1], [2, 3, 3]]
    yield case("edges", bins=edges)
    yield case("regions", bins=edges, regions=np.array(joined))
    yield case("regions, counts", bins=edges, regions=np.array(joined), kind="count")
    yield case("some cells", bins=(3, 3), regions=np.array(joined) > 0)
    yield case("kernel given", kernel, bins=(4, 4))
    yield case("kernel given, not learned", kernel, bins=(4, 4), learn_kernel=False, noise=0.3)
    yield case("kernel chosen by scores", kernel, bins=(4, 4), learn_kernel="exponential")
    yield case(
        "kernel chosen by scores, labels", bins=(4, 4), learn_kernel="exponential", protect="labels"
    )
    rough = Matern(0.5, nu=2.5) + RationalQuadratic(0.5)
    yield case("Matérn and rational quadratic", rough, d=1, bins=4, learn_kernel=False, noise=0.3)
    yield case("two records each", bins=(4, 4), records_per_person=2)


# ---- search


def _nearness(model: Any, X: Any, y: Any) -> np.ndarray:
    """A score of one's own: a number in [0, 1] for each record."""
    return 1 / (1 + np.abs(np.asarray(y, dtype=float) - model.predict(X)))


def searches() -> Iterator[Case]:
    """Choices among parameters."""
    X, y = table()
    plane = reticent.Bounds(x=box(), y=(-2.0, 6.0))
    bare = reticent.Bounds(x=box())
    signature = inspect.signature(reticent.PrivateSearch).parameters
    runs = next(name for name, one in signature.items() if one.default == "geometric")
    histogram = (reticent.PrivateHistogram(), {"bins": [3, 6]})
    small = reticent.GPRegressor(stages=3, basis=8, learn_kernel=False)
    kernels = [{"kernel": RBF([0.3, 3.0], "fixed")}, {"kernel": RBF([30.0, 300.0], "fixed")}]

    def case(
        name: str,
        one: Any,
        candidates: Any,
        X: Any = X,
        y: Any = None,
        bounds: Any = bare,
        **options: Any,
    ) -> Case:
        how = {
            name: options.pop(name, default) for name, default in (("page", False), ("file", True))
        }
        asked = promise(bounds=bounds, expected_runs=4, **{**options})
        return f"search: {name}", lambda: _searched(
            reticent.PrivateSearch(one, candidates, **asked), X, y, **how
        )

    yield case("histogram", *histogram, page=True)
    yield case("histogram, Liu and Talwar", *histogram, scheme="liu-talwar")
    yield case("histogram, logarithmic", *histogram, **{runs: "logarithmic"})
    yield case("histogram, private", *histogram, random_state=None, page=True)
    yield case("histogram, density", *histogram, scoring="density", validation=0.3)
    yield case("histogram, two records each", *histogram, records_per_person=2)
    for mean in ("clipped", "coinpress"):
        yield case(f"histogram, {mean}", *histogram, mean=mean)
    for scoring in ("absolute", "squared", "likelihood"):
        yield case(
            f"regression, {scoring}",
            small,
            kernels,
            X,
            y,
            plane,
            scoring=scoring,
            epsilon=3.0,
            page=scoring == "squared",
        )
    yield case(
        "regression, likelihood, coinpress",
        small,
        kernels,
        X,
        y,
        plane,
        scoring="likelihood",
        mean="coinpress",
    )
    yield case(
        "regression, a score of one's own",
        small,
        kernels,
        X[:300],
        y[:300],
        plane,
        scoring=_nearness,
        file=False,
    )
    yield case(
        "regression, Liu and Talwar", small, kernels, X, y, plane, scheme="liu-talwar", epsilon=3.0
    )
    other = reticent.Bounds(x=[(0.2, 0.8), (0.0, 5.0)], y=(-1.0, 3.0))
    yield case("regression, bounds", small, [{"bounds": plane}, {"bounds": other}], X, y, plane)
    yield case("mixture", reticent.GaussianMixture(), {"n_components": [1, 2]})
    yield case("k-means", reticent.KMeans(), {"n_clusters": [2, 4]})
    yield case("bins", reticent.BinnedGPRegressor(), {"bins": [(2, 2), (4, 4)]}, X, y, plane)
    Xc, labels = labelled(("a", "b"))
    classes = reticent.Bounds(x=box(), classes=["a", "b"])
    classifier = reticent.GPClassifier(stages=3, basis=8, learn_kernel=False)
    for scoring in ("accuracy", "log"):
        yield case(
            f"classification, {scoring}",
            classifier,
            {"basis": [4, 8]},
            Xc,
            labels,
            classes,
            scoring=scoring,
        )


def _searched(search: Any, X: Any, y: Any, *, page: bool, file: bool) -> Outcome:
    search.fit(X, y)
    found = paid(search) | answers(search, X, y)
    found |= {"best": str(search.best_candidate_), "candidates": len(search.candidates_)}
    found["best, values"] = [release.value for release in search.best_estimator_.releases_]
    if file:
        search.save("search.reticent")
        found |= file_parts("search.reticent")
        found["loaded"] = paid(reticent.load("search.reticent"))
    if page:
        search.report("report.html")
        found |= page_parts("report.html")
    return found


# ---- bandits


def bandits() -> Iterator[Case]:
    """Bandits: joint, and local."""
    kernel = ConstantKernel(0.1) * RBF([0.3, 0.3])
    yield "bandit: batches", _joint
    yield "bandit: batches, private", lambda: _joint(random_state=None)
    yield "bandit: batches, kernel given", lambda: _joint(kernel)
    yield "bandit: batches, no horizon", lambda: _joint(horizon=None)
    yield "bandit: batches, ε = 10", lambda: _joint(epsilon=10.0)
    yield "bandit: batches, two records each", lambda: _joint(records_per_person=2)
    yield "bandit: batches, public contexts", lambda: _joint(contexts="public")
    yield (
        "bandit: batches, growth and basis",
        lambda: _joint(growth=1.5, basis=10, exploration_weight=1.5),
    )
    for mechanism in ("sqrt", "blt", "tree"):
        yield (
            f"bandit: every round, {mechanism}",
            lambda one=mechanism: _joint(release="every", mechanism=one, rounds=60),
        )
    yield "bandit: every round, kernel given", lambda: _joint(kernel, release="every", rounds=60)
    yield "bandit: several at once", _several
    yield "bandit: local", _local


def _rounds(count: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(SEED)
    for _ in range(count):
        candidates = rng.uniform(size=(5, 2))
        yield candidates, (rng.uniform(size=5) < candidates[:, 0]).astype(float)


def _bandit(kernel: Any = None, rounds: int = 150, **options: Any) -> Any:
    usual = promise(bounds=reticent.Bounds(x=[(0, 1), (0, 1)], y=(0, 1)), horizon=rounds)
    return reticent.JointBandit(kernel, **{**usual, **options})


def _played(bandit: Any, chosen: Any) -> Outcome:
    grid = np.random.default_rng(1).uniform(size=(30, 2))
    found = paid(bandit) | {"chosen": chosen, "posterior": bandit.posterior_.moments(grid)}
    bandit.save("bandit.reticent")
    found |= file_parts("bandit.reticent")
    loaded = reticent.load("bandit.reticent")
    return found | {
        "loaded": loaded.posterior_.moments(grid),
        "rounds": (bandit.rounds_, bandit.until_release_),
    }


def _joint(kernel: Any = None, rounds: int = 150, **options: Any) -> Outcome:
    bandit = _bandit(kernel, rounds, **options)
    chosen = []
    for number, (candidates, rewards) in enumerate(_rounds(rounds)):
        if number == rounds // 2 and options.get("random_state", 7) is not None:
            bandit = type(bandit).resume(bandit.trusted_state())
        chosen.append(bandit.ask(candidates))
        bandit.tell(candidates[chosen[-1]], rewards[chosen[-1]])
    return _played(bandit, chosen)


def _several() -> Outcome:
    bandit = _bandit()
    chosen = []
    played = list(_rounds(150))
    for first in range(0, 150, 30):
        sets = np.stack([candidates for candidates, _ in played[first : first + 30]])
        found = bandit.ask(sets)
        rewards = [played[first + i][1][k] for i, k in enumerate(found)]
        bandit.tell(sets[np.arange(30), found], rewards)
        chosen += list(found)
    return _played(bandit, chosen)


def _local() -> Outcome:
    asked = {"epsilon": 6.0, "delta": 1e-5}
    bounds = reticent.Bounds(x=[(0, 1), (0, 1)], y=(0, 1))
    server = reticent.LocalBanditServer(bounds=bounds, horizon=120, basis=8, **asked)
    chosen = []
    for number, (candidates, rewards) in enumerate(_rounds(120)):
        client = reticent.LocalBanditClient(server.message(), **asked)
        one = client.ask(candidates)
        server.receive(client.tell(candidates[one], rewards[one]))
        chosen.append(one)
        if number == 60:
            server = type(server).resume(server.state())
    seeded = reticent.LocalBanditClient(server.message(), random_state=3, **asked)
    candidates, rewards = next(_rounds(1))
    one = seeded.ask(candidates)
    report = json.loads(seeded.tell(candidates[one], rewards[one]))
    message = json.loads(server.message())
    found = {"message": nameless(message, words=False), "report": nameless(report, words=False)}
    return found | _played(server, chosen)


# ---- curves


def curves() -> Iterator[Case]:
    """Obfuscated curves."""
    t = np.linspace(0, 1, 41)
    y = np.sin(6 * t)
    usual = {"sensitive": [(0.4, 0.5)], "variance": 0.5, "mean": 0.0}
    points = np.array([0.25, 0.5, 0.52])

    def case(
        name: str, kernel: Any, X: Any = t, y: Any = y, page: bool = False, **options: Any
    ) -> Case:
        return f"curve: {name}", lambda: _obfuscated(
            kernel, X, y, page, **{"random_state": 7, **options}
        )

    yield case("weak", RBF(0.2), page=True, **usual)
    yield case("weak, private", RBF(0.2), page=True, random_state=None, **usual)
    yield case("weak, points", RBF(0.2), sensitive=points, variance=[0.5, 0.3, 0.6], mean=0.0)
    yield case("weak, share", RBF(0.2), sensitive=[(0.1, 0.2), (0.7, 0.8)], share=0.6)
    yield case("weak, mean concluded", RBF(0.2), sensitive=points, variance=0.5)
    yield case("weak, three releases", RBF(0.2), releases=3, **usual)
    yield case("weak, noise", 1.5 * RBF(0.2), noise=0.1, **usual)
    yield case("weak, noise of each", RBF(0.2), noise=0.05 + 0.1 * t, **usual)
    covariance = 0.01 * np.exp(-np.abs(t[:, None] - t) / 0.1)
    yield case("weak, noise covariance", RBF(0.2), noise_covariance=covariance, **usual)
    yield case(
        "strong", RBF(0.2), solution="strong", sensitive=points, variance=0.01, mean=0.0, page=True
    )
    matrix = 0.001 * np.eye(3) + 0.0005
    yield case(
        "strong, matrix", RBF(0.2), solution="strong", sensitive=points, variance=matrix, mean=0.0
    )
    yield case("kernel", RBF(0.2), solution="kernel", sensitive=points, share=0.5, mean=0.0)
    yield case(
        "kernel, another",
        RBF(0.2),
        solution="kernel",
        sensitive=points,
        variance=0.2 * RBF(0.2),
        mean=0.0,
    )
    yield case(
        "uniform",
        RBF(0.2),
        solution="uniform",
        sensitive="everywhere",
        share=0.5,
        mean=0.0,
        page=True,
    )
    yield case(
        "uniform, kernel",
        RBF(0.2),
        solution="uniform",
        sensitive="everywhere",
        variance=0.3 * RBF(0.2),
        mean=0.0,
    )
    yield case("diagonal", RBF(0.2), solution="diagonal", **usual)
    kernels = {
        "Matérn 1/2": Matern(0.3, nu=0.5),
        "Matérn 5/2": Matern(0.3, nu=2.5),
        "rational quadratic": RationalQuadratic(0.3, 1.0),
        "periodic": ExpSineSquared(1.0, 0.9),
        "sum with white noise": RBF(0.2) + 0.2 * Matern(0.4, nu=1.5) + WhiteKernel(0.01),
        "product": 2.0 * RBF(0.4) * Matern(0.4, nu=1.5),
    }
    for name, kernel in kernels.items():
        yield case(f"weak, {name}", kernel, **usual)
    rng = np.random.default_rng(SEED)
    plane = rng.uniform(size=(40, 2))
    region = np.array([[[0.4, 0.6], [0.4, 0.6]]])
    yield case(
        "weak, two inputs",
        RBF([0.4, 0.5]),
        plane,
        plane[:, 0] ** 2,
        sensitive=region,
        variance=0.3,
        mean=0.0,
    )
    another = (t, np.cos(5 * t))
    yield case("trained on another curve", RBF(0.2), sensitive=points, share=0.5, train_on=another)
    unprotected = {"train_on": "curve-unprotected"}
    yield case(
        "trained on the curve", RBF(0.2), sensitive=points, share=0.5, **unprotected, page=True
    )


def _obfuscated(kernel: Any, X: Any, y: Any, page: bool, **options: Any) -> Outcome:
    curve = reticent.Obfuscator(kernel, **options)
    found: Outcome = {"released": curve.obfuscate(X, y)}
    for number in range(2, options.get("releases", 1) + 1):
        found[f"released, {number}"] = curve.obfuscate(X, y, number=number)
    grid = X[::3]
    certificate = curve.certificate_
    found |= {
        "covariance": curve.covariance_,
        "noise": (curve.noise_, curve.noise_covariance_),
        "kernel": (str(curve.kernel_), curve.kernel_.theta),
        "mean": curve.mean_,
        "flags": (curve.private_, curve.conditional_),
        "predict": curve.predict(grid, return_std=True),
        "certificate": [
            certificate.promised,
            certificate.attained,
            certificate.ratio,
            certificate.eigenvalue,
        ],
        "release": nameless(curve.release(), words=False),
    }
    curve.save("curve.reticent")
    loaded = reticent.load("curve.reticent")
    found |= {"loaded": loaded.predict(grid, return_std=True)} | file_parts("curve.reticent")
    if page:
        curve.report("report.html")
        found |= page_parts("report.html")
    return found


# ---- curator


class _Rows(reticent.Sum):
    columns = 2
    norm2 = 2
    norm1 = 2

    def rows(self, records: np.ndarray) -> np.ndarray:
        return records[:, :2]


class _Sizes(reticent.Sum):
    columns = 1
    norm2 = 1
    nonnegative = True

    def rows(self, records: np.ndarray) -> np.ndarray:
        if (np.abs(records - 0.5) < 0.01).any():
            raise ValueError("a map that fails for some records")
        return np.abs(records[:, :1])


class _Products(reticent.Gram):
    columns = 3
    norm2 = 2

    def rows(self, records: np.ndarray) -> np.ndarray:
        return np.column_stack(
            [np.ones(len(records)), records[:, 0], records[:, 0] * records[:, 1]]
        )


class _Cells(reticent.Counts):
    groups = (4, 3)

    def cells(self, records: np.ndarray) -> np.ndarray:
        return np.column_stack([2 + 2 * records[:, 0], 1.5 + 1.5 * records[:, 1]])


def _assigned(second: str, together: bool) -> Any:
    """Moments of rows that are shared out among three parts."""
    parent = getattr(reticent, "AssignmentMoments", None) or reticent.Shared
    (method,) = parent.__abstractmethods__

    def assign(self: Any, records: np.ndarray) -> Any:
        scores = np.exp(-4 * (records[:, :1] - np.array([-0.5, 0.0, 0.5])) ** 2)
        shares = scores / scores.sum(axis=1, keepdims=True)
        shares[shares < 0.2] = 0.0
        rows = np.concatenate([(records - centre) / 3 for centre in (-0.5, 0.0, 0.5)])
        return shares, lambda pairs: rows if pairs is None else rows[pairs]

    made = type("Assigned", (parent,), {method: assign, "__module__": __name__})
    return made(3, 2, second, together, (1, 2, 0 if second == "none" else 3))


def curators() -> Iterator[Case]:
    """Statistics of one's own."""
    statistics = {"sum": _Rows, "sum of sizes": _Sizes, "Gram matrix": _Products, "counts": _Cells}
    gaussian = functools.partial(reticent.Gaussian, noise_multiplier=3.0)
    laplace = functools.partial(reticent.Laplace, noise_multiplier=3.0)
    for name, statistic in statistics.items():
        yield f"curator: {name}", lambda one=statistic: _released([one(), one()], gaussian(count=2))
        yield (
            f"curator: {name}, three records each",
            lambda one=statistic: _released([one()], gaussian(), records_per_person=3),
        )
    for name in ("sum", "counts"):
        yield (
            f"curator: {name}, Laplace",
            lambda one=statistics[name]: _released([one()], laplace()),
        )
    for second in ("none", "trace", "diagonal", "full"):
        for together in (False, True):
            name = f"curator: assigned moments, {second}{', together' * together}"
            yield name, lambda how=(second, together): _released([_assigned(*how)], gaussian())
    yield (
        "curator: private",
        lambda: _released([_Products(), _Cells()], gaussian(count=2), seed=None),
    )
    every = [_Rows(), _Cells(), _Products()]
    yield "curator: labels", lambda: _released(every, gaussian(count=3), relation="label")


def _released(statistics: list[Any], event: Any, **options: Any) -> Outcome:
    X, _ = table()
    asked = {"bounds": reticent.Bounds(x=box()), "event": event, "seed": b"7", **options}
    curator = reticent.Curator(reticent.scan(X), **asked)
    found = [curator.release(statistic) for statistic in statistics]
    curator.close()
    values = [(one.value, one.scale, one.sd) for one in found]
    limits = [(one.sensitivity2, one.sensitivity1, one.size, one.step) for one in statistics]
    replay = reticent.Replay(found, paid=event)
    again = [replay.release(statistic).value for statistic in statistics]
    return {"values": values, "limits": str(limits), "replayed": again, "n": found[0].n}


# ---- sources


def sources() -> Iterator[Case]:
    """The same records from everywhere: releases are the same."""
    names = ("array", "lists", "pandas", "polars", "pyarrow", "dask", "csv", "tsv", "parquet")
    for name in (*names, "folder of csv", "folder of parquet", "a scan", "a path"):
        yield f"source: {name}", lambda one=name: _read(one)
    yield "source: odd cells in a file", _odd


def _data(name: str) -> tuple[Any, Any]:
    """Inputs and outputs, or all in one."""
    import dask.dataframe as dd
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    X, y = table()
    frame = pd.DataFrame({"out": y, "b": X[:, 1], "text": "x", "a": X[:, 0]})
    frame["label"] = np.where(y > 1, "high", "low")
    halves = [frame[:500], frame[500:]]
    if name == "array":
        return X, y
    if name == "lists":
        return X.tolist(), y.tolist()
    if name in ("polars", "pyarrow"):
        return {"polars": pl.from_pandas, "pyarrow": pa.Table.from_pandas}[name](frame), None
    if name == "dask":
        return dd.from_pandas(frame, npartitions=3), None
    if name in ("csv", "a scan", "a path", "tsv"):
        suffix = "tsv" if name == "tsv" else "csv"
        frame.to_csv(f"people.{suffix}", index=False, sep="\t" if name == "tsv" else ",")
        path = Path(f"people.{suffix}")
        return (
            str(path) if name == "csv" else path if name == "a path" else reticent.scan(path)
        ), None
    if name == "parquet":
        frame.to_parquet("people.parquet")
        return "people.parquet", None
    if name.startswith("folder"):
        os.mkdir("people")
        for number, half in enumerate(halves):
            if name.endswith("csv"):
                half.to_csv(f"people/{number}.csv", index=False)
            else:
                half.to_parquet(f"people/{number}.parquet")
        return "people", None
    return frame, None


def _read(name: str) -> Outcome:
    data, y = _data(name)
    named = y is None
    ranges = dict(zip(("a", "b"), box(), strict=True)) if named else box()
    bounds = reticent.Bounds(x=ranges, y={"out": (-2.0, 6.0)} if named else (-2.0, 6.0))
    model = reticent.GPRegressor(stages=3, basis=8, **promise(bounds=bounds)).fit(data, y)
    found = paid(model)
    mean = reticent.PrivateMean(**promise(bounds=reticent.Bounds(x=ranges))).fit(data)
    found["mean"] = mean.mean_
    if named:
        classes = reticent.Bounds(x=ranges, classes={"label": ["low", "high"]})
        classifier = reticent.GPClassifier(stages=3, basis=8, **promise(bounds=classes)).fit(data)
        found["classes"] = [release.value for release in classifier.releases_]
    return found


ODD = (
    "1",
    " 2 ",
    "",
    "NaN",
    "inf",
    "-3",
    "1e1",
    "x",
    "4 kg",
    "5,5",
    '"6"',
    "+7",
    "0x8",
    "1_0",
    "٣",
    "null",
    "True",
)


def _odd() -> Outcome:
    lines = [f"{i},{cell}" if "," not in cell else f'{i},"{cell}"' for i, cell in enumerate(ODD)]
    Path("odd.csv").write_text("\n".join(["i,value", *lines, "17", "18,1,2", ""]))
    bounds = reticent.Bounds(x={"value": (0.0, 10.0)})
    asked = promise(bounds=bounds, epsilon=1000.0)
    model = reticent.PrivateHistogram(bins=20, **asked).fit("odd.csv")
    return paid(model) | {"counts": model.counts_}


# ---- ledger, accounting, plans


def books() -> Iterator[Case]:
    """Budgets, and what they are computed with."""
    yield "ledger: charges", _charges
    yield "accounting: epsilon and calibrate", _accounting
    yield "plan: two sizes", _planned


def _charges() -> Outcome:
    X, y = table()
    ledger = reticent.Ledger("budget.db")
    ledger.open("people", epsilon=20.0, delta=1e-5)
    ledger.open("staff", epsilon=20.0, delta=1e-5, relation="label")
    ledger.open("visits", epsilon=20.0, delta=1e-5, records_per_person=3)
    bare = promise(bounds=reticent.Bounds(x=box()), ledger="budget.db", dataset="people")
    real = {**bare, "bounds": reticent.Bounds(x=box(), y=(-2.0, 6.0))}
    quick = {"stages": 3, "basis": 8}
    histogram = reticent.PrivateHistogram()
    mean = reticent.PrivateMean(**bare)
    for model in (
        reticent.PrivateSearch(histogram, {"bins": [2, 4]}, **bare),
        mean,
        reticent.PrivateMean(**{**bare, "delta": 0.0}),
        reticent.PrivateMean(records_per_person=3, **{**bare, "dataset": "visits"}),
    ):
        model.fit(X)
    regression = reticent.GPRegressor(**quick, **real).fit(X, y)
    reticent.BinnedGPRegressor(bins=(3, 3), protect="labels", **{**real, "dataset": "staff"}).fit(
        X, y
    )
    ledger.charge("people", reticent.Pure(epsilon=0.2), what="another tool")
    refused = ""
    try:
        reticent.PrivateMean(**{**bare, "epsilon": 50.0}).fit(X)
    except reticent.BudgetExceeded:
        refused = "refused"
    names = ("people", "staff", "visits")
    found: Outcome = {"refused": refused, "verified": bool(ledger.verify())}
    found["spent"] = [(ledger.spent(name), ledger.remaining(name)) for name in names]
    found["history"] = [
        (entry.number, entry.event.to_dict(), entry.relation, entry.records_per_person)
        for name in names
        for entry in ledger.history(name)
    ]
    found["accounts"] = [
        (one.dataset, one.relation, one.records_per_person, one.epsilon, one.delta)
        for one in ledger.datasets()
    ]
    found["entries"] = [
        release.entry == ledger.history("people")[-2].hash for release in regression.releases_
    ]
    regression.report("report.html")
    found |= page_parts("report.html")
    curve = reticent.Obfuscator(
        RBF(0.2),
        sensitive=[(0.4, 0.5)],
        variance=0.5,
        mean=0.0,
        ledger="budget.db",
        dataset="orbit",
    )
    t = np.linspace(0, 1, 21)
    found["curve"] = (curve.obfuscate(t, np.sin(t)), curve.obfuscate(t, np.sin(t)))
    return found | _chained("budget.db")


def _chained(path: str) -> Outcome:
    """The rows of a ledger without user and time, and whether each seals the one before."""
    with contextlib.closing(sqlite3.connect(path)) as database:
        names = [
            name
            for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        found: Outcome = {"tables": sorted(names)}
        for name in sorted(names):
            columns = [row[1] for row in database.execute(f"PRAGMA table_info({name})")]
            found[f"columns of {name}"] = columns
            if {"kind", "body", "hash"} <= set(columns):
                rows = list(database.execute(f"SELECT * FROM {name} ORDER BY number"))
                found["rows"] = [row[:4] for row in rows]
                found["sealed"] = [
                    after[-1] == sha256(json.dumps([before[-1], *after[:-1]]).encode()).hexdigest()
                    for before, after in itertools.pairwise(rows)
                ]
    return found


def _accounting() -> Outcome:
    found: Outcome = {}
    events = {
        "gaussian": reticent.Gaussian(noise_multiplier=2.5, count=7),
        "laplace": reticent.Laplace(noise_multiplier=4.0, count=3),
        "pure": reticent.Pure(epsilon=0.3),
        "selection": reticent.Selection(noise_multiplier=6.0, stop=0.125),
        "selection, logarithmic": reticent.Selection(noise_multiplier=6.0, stop=0.125, shape=0),
    }
    for delta in (1e-3, 1e-6, 1e-10):
        for name, event in events.items():
            found[f"{name}, δ = {delta}"] = reticent.epsilon(event, delta)
        together = [events[name] for name in ("gaussian", "laplace", "pure")]
        found[f"together, δ = {delta}"] = reticent.epsilon(together, delta)
        for eps in (0.01, 1.0, 30.0):
            found[f"noise, {eps}, {delta}"] = [
                reticent.calibrate(eps, delta, releases=k) for k in (1, 24)
            ]
    found["laplace alone"] = reticent.epsilon(events["laplace"], 0.0)
    found["noise, pure"] = reticent.calibrate(1.0, 0.0, releases=2)
    return found


def _planned() -> Outcome:
    bounds = reticent.Bounds(x={"a": (0.0, 1.0), "b": (0.0, 10.0)}, y={"out": (-2.0, 6.0)})
    model = reticent.GPRegressor(RBF([0.3, 3.0]), bounds=bounds, delta=1e-6, stages=4, basis=10)
    plan = reticent.plan(model, [200, 800], [0.3, 3.0], draws=2, seed=5)
    found = {"rows": nameless(plan.for_machines(), words=False), "printed": numbers(str(plan))}
    return found | {"epsilon for": str(plan.epsilon_for(0.8, n=800).value)}


# ---- command line


def commands() -> Iterator[Case]:
    """The command line, as `python -m reticent` gives it."""
    yield "command: gp", _gp_commands
    yield "command: other models", _model_commands
    yield "command: plan", _plan_command
    yield "command: obfuscate", _obfuscate_command


def command(*arguments: str) -> tuple[int, str]:
    """Run a command here: its exit code, and what it prints."""
    written = io.BytesIO()
    printed = io.TextIOWrapper(written, encoding="utf-8", write_through=True)
    code = 0
    with (
        mock.patch.object(sys, "argv", ["reticent", *arguments]),
        contextlib.redirect_stdout(printed),
    ):
        try:
            runpy.run_module("reticent", run_name="__main__")
        except SystemExit as end:
            code = int(end.code or 0)
    return code, written.getvalue().decode()


def machine(*arguments: str) -> Outcome:
    """A command with --json: its numbers, whatever their keys, and its keys by themselves."""
    code, printed = command(*arguments, "--json")
    told = json.loads(printed) if printed.strip() else {}
    name = " ".join(arguments[:2])
    keys = sorted(told) if isinstance(told, Mapping) else len(told)
    return {
        f"{name}: code": code,
        f"{name}: numbers": nameless(told, words=False),
        f"{name}: keys": keys,
    }


def human(*arguments: str) -> Outcome:
    """A command as people see it: the numbers."""
    code, printed = command(*arguments)
    return {f"{' '.join(arguments[:2])}, printed": [str(code), *numbers(printed)]}


def _people() -> None:
    """A file of records, and one of inputs."""
    frame = _data("pandas")[0]
    frame.to_csv("people.csv", index=False)
    frame[["a", "b"]][:30].to_csv("new.csv", index=False)


INPUTS = ("--x", "a=0:1", "--x", "b=0:10")
PROMISE = ("--epsilon", "1", "--delta", "1e-6")


def _gp_commands() -> Outcome:
    _people()
    found = machine("ledger", "open", "budget.db", "people", "--epsilon", "9", "--delta", "1e-5")
    account = ("--ledger", "budget.db", "--dataset", "people")
    asked = (*INPUTS, "--y", "out=-2:6", *PROMISE, *account, "--basis", "12")
    found |= human("fit", "gp", "people.csv", *asked, "--out", "m.reticent")
    found |= file_parts("m.reticent")
    found |= machine("inspect", "m.reticent") | human("inspect", "m.reticent")
    found |= machine("predict", "m.reticent", "new.csv", "--out", "p.csv")
    found["predictions"] = Path("p.csv").read_text()
    found |= machine("report", "m.reticent", "--out", "r.html", "--ledger", "budget.db")
    found |= page_parts("r.html")
    for name in ("show", "history"):
        found |= human("ledger", name, "budget.db")
    found |= {"verified": command("ledger", "verify", "budget.db")[0]}
    over = ("fit", "mean", "people.csv", *INPUTS, "--epsilon", "50", "--delta", "1e-6", *account)
    found["over budget"] = command(*over, "--out", "no.reticent")[0]
    found["no bounds"] = command("fit", "mean", "people.csv", *PROMISE, "--out", "no.reticent")[0]
    found["no file"] = command("inspect", "none.reticent")[0]
    return found | {
        "no such model": command("fit", "none", "people.csv", "--out", "no.reticent")[0]
    }


def _model_commands() -> Outcome:
    _people()
    models: dict[str, tuple[str, ...]] = {
        "mean": (),
        "histogram": ("--bins", "5"),
        "covariance": (),
        "gp-binned": ("--y", "out=-2:6", "--bins", "4,3"),
        "classifier": ("--classes", "label=low,high", "--basis", "10"),
        "kmeans": ("--n-clusters", "3"),
        "mixture": ("--n-components", "2", "--covariance", "diag"),
        "factors": ("--n-components", "1"),
        "components": ("--n-components", "1"),
    }
    found: Outcome = {}
    for model, options in models.items():
        file = f"{model}.reticent"
        found |= machine("fit", model, "people.csv", *INPUTS, *options, *PROMISE, "--out", file)
        found |= {f"{model}: {part}": value for part, value in file_parts(file).items()}
        found |= human("inspect", file)
        if model in ("gp-binned", "classifier", "kmeans", "factors"):
            command("predict", file, "new.csv", "--out", f"{model}.csv")
            found[f"{model}: predictions"] = Path(f"{model}.csv").read_text()
        if model in ("mixture", "factors"):
            command("sample", file, "-n", "30", "--seed", "4", "--out", f"{model}-s.csv")
            found[f"{model}: sample"] = Path(f"{model}-s.csv").read_text()
    return found


def _plan_command() -> Outcome:
    asked = (
        "--x",
        "a=0:1",
        "--y",
        "out=-2:6",
        "--n",
        "300",
        "--epsilon",
        "0.5,3",
        "--basis",
        "8",
        "--draws",
        "2",
    )
    return machine("plan", *asked) | human("plan", *asked)


def _obfuscate_command() -> Outcome:
    import pandas as pd

    t = np.linspace(0, 1, 31)
    pd.DataFrame({"time": t, "radius": np.sin(6 * t)}).to_csv("orbit.csv", index=False)
    asked = (
        "--x",
        "time",
        "--y",
        "radius",
        "--sensitive",
        "0.4:0.5",
        "--variance",
        "0.3",
        "--length",
        "0.2",
    )
    files = ("--out", "W.csv", "--model", "w.reticent", "--report", "w.html")
    found = machine("obfuscate", "orbit.csv", *asked, "--spread", "1", "--mean", "0", *files)
    found["W"] = Path("W.csv").read_text()
    return (
        found | file_parts("w.reticent") | page_parts("w.html") | machine("inspect", "w.reticent")
    )


def cases() -> Iterator[Case]:
    """All cases, by name."""
    groups = (
        statistics,
        structures,
        regressions,
        classifications,
        label_regressions,
        binned,
        searches,
        bandits,
        curves,
        curators,
        sources,
        books,
        commands,
    )
    for group in groups:
        yield from group()
