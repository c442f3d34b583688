"""What privacy costs in the end: the default GPRegressor against models without privacy.

With a budget that is as good as none, an answer should be that of the same kind of model without
privacy. Compared are ε = 10 and ε = 10⁴ with gradient boosting and with an exact Gaussian process,
on all tables of the peers' comparison that have two inputs or more and 1,000 to 60,000 records.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reticent.models.gp.regressor import GPRegressor
from reticent.studies.common.results import (
    Claim,
    Findings,
    Progress,
    ResultTable,
    Value,
    plus_minus,
)
from reticent.studies.peers.regression_tasks import TASKS, NumberTask

__all__ = ["run"]

Array = NDArray[np.float64]
_TABLES = ("concrete", "weather", "diamonds", "houses", "loans", "food")
_QUICK = ("diabetes",)  # it comes with scikit-learn
_FACTORS = {10.0: 1.25, 1e4: 1.1}  # ε: how much larger the error may be
_TRAINING = 20_000  # records, at most
_TEST = 5_000
_FITTED = 500  # records that the exact Gaussian process' hyperparameters are fitted to
_EXACT = 2_000  # records that it is conditioned on
_DELTA = 1e-6


def run(out: Path, *, repeats: int, quick: bool, seed: int, progress: Progress) -> Findings:
    """Compare on random splits of each table."""
    names = _QUICK if quick else _TABLES
    records: list[dict[str, Value]] = []
    for done, name in enumerate(names):
        for repeat in range(repeats):
            progress(done * repeats + repeat, len(names) * repeats, name)
            records += _split(TASKS[name], seed + repeat)
    ratios = {
        (name, epsilon): [
            _ratio(records, name, split, epsilon) for split in range(seed, seed + repeats)
        ]
        for name in names
        for epsilon in _FACTORS
    }
    findings = Findings(
        "GPRegressor with a large budget, and models without privacy",
        records,
        [_errors(records, names), _ratios(ratios, names)],
        [_claim(ratios, names, epsilon, factor) for epsilon, factor in _FACTORS.items()],
    )
    return findings.write(out)


def _split(task: NumberTask, seed: int) -> list[dict[str, Value]]:
    """Errors of all methods on one split of a table."""
    X, y = task.load()
    order = np.random.default_rng(seed).permutation(len(y))
    test = order[: min(len(y) // 3, _TEST)]
    training = order[len(test) :][:_TRAINING]
    predictions = {
        "boosting": _boosting(X[training], y[training], X[test], seed),
        "exact GP": _exact_gp(X[training], y[training], X[test]),
    }
    for epsilon in _FACTORS:
        model = GPRegressor(bounds=task.bounds, epsilon=epsilon, delta=_DELTA, random_state=seed)
        predictions[_ours(epsilon)] = model.fit(X[training], y[training]).predict(X[test])
    return [
        {
            "table": task.name,
            "records": len(training),
            "split": seed,
            "method": method,
            "rmse": float(np.sqrt(np.mean((predicted - y[test]) ** 2))),
        }
        for method, predicted in predictions.items()
    ]


def _ours(epsilon: float) -> str:
    return f"GPRegressor, ε = {epsilon:g}"


def _boosting(X: Array, y: Array, X_new: Array, seed: int) -> Array:
    from sklearn.ensemble import HistGradientBoostingRegressor

    model = HistGradientBoostingRegressor(
        learning_rate=0.05, early_stopping=True, random_state=seed
    )
    return np.asarray(model.fit(X, y).predict(X_new))


def _exact_gp(X: Array, y: Array, X_new: Array) -> Array:
    """A squared-exponential kernel with a length for each input, and noise."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    middle = X.mean(axis=0)
    scale = np.maximum(X.std(axis=0), 1e-12)
    inputs = (X - middle) / scale
    lengths = RBF(np.ones(X.shape[1]), (0.05, 100.0))
    kernel = ConstantKernel(1.0, (0.01, 1e4)) * lengths + WhiteKernel(0.1, (1e-5, 10.0))
    fitted = GaussianProcessRegressor(kernel, normalize_y=True).fit(inputs[:_FITTED], y[:_FITTED])
    exact = GaussianProcessRegressor(fitted.kernel_, normalize_y=True, optimizer=None)
    exact.fit(inputs[:_EXACT], y[:_EXACT])
    return np.asarray(exact.predict((X_new - middle) / scale))


def _rmse(records: list[dict[str, Value]], name: str, split: int, method: str) -> float:
    (found,) = (
        float(row["rmse"])
        for row in records
        if (row["table"], row["split"], row["method"]) == (name, split, method)
    )
    return found


def _ratio(records: list[dict[str, Value]], name: str, split: int, epsilon: float) -> float:
    """Our error by that of the better of both models without privacy, on one split."""
    best = min(_rmse(records, name, split, method) for method in ("boosting", "exact GP"))
    return _rmse(records, name, split, _ours(epsilon)) / best


def _errors(records: list[dict[str, Value]], names: tuple[str, ...]) -> ResultTable:
    methods = ("boosting", "exact GP", *(_ours(epsilon) for epsilon in _FACTORS))
    rows = []
    for name in names:
        found = [row for row in records if row["table"] == name]
        errors = [
            [float(row["rmse"]) for row in found if row["method"] == method] for method in methods
        ]
        rows.append((name, str(found[0]["records"]), *(f"{np.mean(e):.4g}" for e in errors)))
    return ResultTable("RMSE on held-out records", ("table", "n", *methods), rows)


def _ratios(ratios: dict[tuple[str, float], list[float]], names: tuple[str, ...]) -> ResultTable:
    rows = [(name, *(plus_minus(ratios[name, epsilon]) for epsilon in _FACTORS)) for name in names]
    return ResultTable(
        "RMSE by that of the better model without privacy, mean over splits ± standard error",
        ("table", *(f"ε = {epsilon:g}" for epsilon in _FACTORS)),
        rows,
    )


def _claim(
    ratios: dict[tuple[str, float], list[float]],
    names: tuple[str, ...],
    epsilon: float,
    factor: float,
) -> Claim:
    kept = [name for name in names if np.mean(ratios[name, epsilon]) <= factor]
    return Claim(
        f"ε = {epsilon:g}: an error of at most {factor} times that without privacy on every table",
        f"kept on {len(kept)} of {len(names)}: {', '.join(kept) or 'none'}",
        len(kept) == len(names),
    )
