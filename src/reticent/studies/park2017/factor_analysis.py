"""DP-EM, Fig 5's idea on scikit-learn's digits.

Factors of 64 pixels, by the test log-likelihood, and a picture of them. Pixels are from 0 to 16,
public. Densities are on the scale of the unit ball, (x − 8)/64, as the paper's records have norm
one at most; a fifth of the records is for testing. The paper's way: noise in the second moment once
(norm one, independent entries, σ = √(2 log(1.25/δ))/(n·ε)), then EM; negative eigenvalues are cut,
or EM would not be defined.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.decomposition import FactorAnalysis as Plain

from reticent.inference.mixtures.factor_model import factor_analysis, factor_log_density
from reticent.models.mixtures.factor_analysis import FactorAnalysis
from reticent.privacy.bounds import Bounds
from reticent.studies.common.results import (
    Claim,
    Findings,
    Progress,
    ResultTable,
    Value,
    mean_error,
    plus_minus,
    times,
)

__all__ = ["run"]

Array = NDArray[np.float64]
_EPSILONS = (0.1, 0.3, 1.0, 4.0)
_DELTA = 1e-5
_FACTORS = 10
_LEAST = 1e-5
_BALL = 64 * float(np.log(64))  # from pixels to the unit ball


def run(out: Path, *, repeats: int, quick: bool, seed: int, progress: Progress) -> Findings:
    """Fit on four fifths, judge by the rest."""
    X = load_digits().data
    scores: dict[tuple[str, float], list[float]] = {}
    drawn: dict[str, Array] = {}
    epsilons = _EPSILONS[2:3] if quick else _EPSILONS
    for repeat in range(repeats):
        progress(repeat, repeats, "fitting")
        order = np.random.default_rng(seed + repeat).permutation(len(X))
        train = X[order[: len(X) * 4 // 5]]
        test = X[order[len(X) * 4 // 5 :]]
        plain = Plain(_FACTORS).fit(train)
        psi = np.maximum(plain.noise_variance_, _LEAST * 64**2)
        value = (
            float(factor_log_density(test - train.mean(axis=0), plain.components_.T, psi).mean())
            + _BALL
        )
        scores.setdefault(("without privacy", np.inf), []).append(value)
        drawn["without privacy"] = plain.components_
        for epsilon in epsilons:
            model = FactorAnalysis(
                _FACTORS,
                bounds=Bounds(x=(0, 16)),
                epsilon=epsilon,
                delta=_DELTA,
                random_state=seed + 1000 * repeat,
            ).fit(train)
            scores.setdefault(("reticent", epsilon), []).append(model.score(test) + _BALL)
            drawn[f"reticent, ε = {epsilon:g}"] = model.components_
            literal = _literal((train - 8) / 64, (test - 8) / 64, epsilon, seed + 1000 * repeat)
            scores.setdefault(("paper", epsilon), []).append(literal)
    progress(repeats, repeats, "done")
    records: list[dict[str, Value]] = []
    for (name, epsilon), values in scores.items():
        mean, error = mean_error(values)
        records.append({"method": name, "epsilon": epsilon, "log_likelihood": mean, "error": error})
    rows = [
        (name, f"{epsilon:g}".replace("inf", "–"), plus_minus(values, 1))
        for (name, epsilon), values in scores.items()
    ]
    table = ResultTable(
        "Test log-likelihood of a record (nats)", ("method", "ε", "mean"), rows, left=1
    )
    notes = [
        f"{times(repeats)}, δ = {_DELTA:g}, {_FACTORS} factors; no variance "
        f"below {_LEAST:g} without privacy."
    ]
    return Findings(
        "Factors of digits",
        records,
        [table],
        [] if quick else judge(scores),
        notes,
        [_picture(out, drawn)],
    )


def judge(scores: dict[tuple[str, float], list[float]]) -> list[Claim]:
    """Claims, each kept or not by these results."""
    mean, error = mean_error(scores["reticent", 1.0])
    paper = mean_error(scores["paper", 1.0])[0]
    return [
        Claim("ε=1: at least 104", f"{mean:.1f} ± {error:.1f}", mean >= 104),
        Claim("ε=1: more than the paper's way", f"{mean:.1f} against {paper:.1f}", mean > paper),
    ]


def _literal(train: Array, test: Array, epsilon: float, seed: int) -> float:
    """The paper's way, not centred, as printed but for W_new."""
    d = train.shape[1]
    sigma = np.sqrt(2 * np.log(1.25 / _DELTA)) / (len(train) * epsilon)
    noise = np.triu(np.random.default_rng(seed).normal(size=(d, d)) * sigma)
    values, vectors = np.linalg.eigh(train.T @ train / len(train) + noise + np.triu(noise, 1).T)
    W, psi = factor_analysis((vectors * np.maximum(values, 0.0)) @ vectors.T, _FACTORS, _LEAST)
    return float(factor_log_density(test, W, psi).mean())


def _picture(out: Path, drawn: dict[str, Array]) -> Path:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 1.0 * len(drawn)), layout="constrained")
    panels = figure.subplots(len(drawn), _FACTORS, squeeze=False)
    for row, (name, components) in zip(panels, drawn.items(), strict=True):
        strongest = np.argsort(-np.sum(components**2, axis=1))
        for axes, k in zip(row, strongest, strict=True):
            most = float(np.abs(components[k]).max())
            axes.imshow(components[k].reshape(8, 8), cmap="RdBu", vmin=-most, vmax=most)
            axes.set(xticks=[], yticks=[])
        row[0].set_title(name, loc="left", size=8)
    out.mkdir(parents=True, exist_ok=True)
    figure.savefig(out / "factors.png", dpi=130)
    return out / "factors.png"
