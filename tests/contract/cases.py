"""One example of every statistic and every estimator; the contract tests run over all of them.

A new one that is not listed here fails `test_everything_is_listed`.
"""

import importlib
import inspect
import pkgutil

import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.utils import get_tags

import reticent
from reticent.inference.kernels.anova import AnovaPriors
from reticent.inference.kernels.axes import Axis
from reticent.inference.kernels.eigenbasis import eigenbasis, tensor_basis
from reticent.privacy.row_maps.binned_sums import (
    BinCounts,
    BinSums,
    BinTotals,
    Grid,
    GroupSums,
    LabelSums,
)
from reticent.privacy.row_maps.class_gram import GramByClass, class_stage
from reticent.privacy.row_maps.column_moments import (
    ColumnCounts,
    ColumnMeans,
    ColumnMoments,
    MeanSum,
    MomentGram,
    ScaledGram,
)
from reticent.privacy.row_maps.features.basis_features import FeatureMap
from reticent.privacy.row_maps.grid_counts import GridCounts, LeafSums
from reticent.privacy.row_maps.input_marginals import InputCounts, InputMoments
from reticent.privacy.row_maps.label_sum import label_sum
from reticent.privacy.row_maps.mixture_moments import (
    CellCounts,
    CentredGram,
    LengthCounts,
    LevelCounts,
    LogRatio,
    NearestCounts,
    WordTable,
    level_moments,
    metric,
    residual_moments,
)
from reticent.privacy.row_maps.residual_gram import ResidualSizeGram, stage
from reticent.privacy.row_maps.reward_sum import reward_sum
from reticent.privacy.row_maps.score_sum import ScoreCounts, ScoreSum
from reticent.privacy.statistics.base import Statistic

BOX = reticent.Bounds(x=[(-2.0, 3.0), (0.0, 110.0), (-1e-3, 1e3)])
PLANE = reticent.Bounds(x=[(-2.0, 3.0), (0.0, 110.0)], y=(-1e-3, 1e3))
LEVELS = reticent.Bounds(x=[(-2.0, 3.0), (0.1, 110.0)], y=(-1e-3, 1e3)).with_noise_column(1)
PAIR = reticent.Bounds(x=[(-2.0, 3.0)], y=[(0.0, 110.0), (-1e-3, 1e3)])
CLASSED = reticent.Bounds(x=[(-2.0, 3.0), (0.0, 110.0)], classes=[0, 1, 2])
MIXED = reticent.Bounds(
    x=[reticent.Cyclic(-2.0, 3.0), reticent.Words([f"w{i}" for i in range(7)])], y=(-1e-3, 1e3)
)
MIXED_CLASSED = reticent.Bounds(x=MIXED.x_kinds, classes=[0, 1, 2])
TURNING = reticent.Bounds(
    x=[reticent.Cyclic(-2.0, 3.0), reticent.Number(0.0, 110.0, keep_missing=True)], y=(-1e-3, 1e3)
)
BALL = reticent.Bounds(x=[(-1.0, 1.0)] * 3, norm=0.9)

WORDED = reticent.Bounds(x=[(-2.0, 3.0), ["0", "55", "110"]], y=(-1e-3, 1e3))
KINDS = reticent.Bounds(x=[["F", "M"], reticent.Whole(0, 3), bool])
YESNO = (-0.5, 0.5, 1.5)  # edges of its bins

# statistic, bounds, whether the sensitivity is attained by some pair of records
STATISTICS = {
    "mean in a box": (MeanSum(3, 3), BOX, True),
    "mean in a ball": (MeanSum(3, 1), BALL, True),
    "mean in a ball, counted": (MeanSum(3, 1, counted=True), BALL, True),
    "means of columns": (ColumnMeans((1.0, 2.0, 1.0), False), BOX, True),
    "means of columns, pure": (ColumnMeans((1.0, 2.0, 1.0), True), BOX, True),
    "counts": (ColumnCounts(7, BOX), BOX, True),
    "counts of kinds": (ColumnCounts(7, KINDS), KINDS, True),
    "groups, counted": (
        GroupSums(BOX, (0,), ((-2.0, 0.0, 3.0),), (), (), (), 1.0, False),
        BOX,
        True,
    ),
    "groups": (
        GroupSums(BOX, (0,), ((-2.0, 0.0, 3.0),), (1, 2), (), (), 0.0, True),
        BOX,
        True,
    ),
    "groups, pure": (
        GroupSums(BOX, (0,), ((-2.0, 0.0, 3.0),), (1,), (2,), ((-1e-3, 5.0, 1e3),), 0.0, False),
        BOX,
        True,
    ),
    "groups of kinds": (
        GroupSums(
            KINDS, (0, 1), ((-0.5, 0.5, 1.5), (-0.5, 1.5, 3.5)), (2,), (2,), (YESNO,), 0.75, True
        ),
        KINDS,
        True,
    ),
    "moments in a box": (MomentGram(3, 3), BOX, True),
    "moments in a ball": (MomentGram(3, 1), BALL, True),
}


def _stage(
    w: float,
    r: float,
    outputs: int = 1,
    warp: tuple[tuple[float, ...], ...] = (),
    weighted: bool = False,
):
    """A stage of a Gaussian-process fit; features and residuals of full length exist.

    Outputs or levels leave fewer inputs.
    """
    inputs = 3 - outputs - weighted
    values, mix = eigenbasis(lambda a, b: np.exp(-((a[:, None] - b) ** 2)), 4 if inputs == 2 else 6)
    basis, _ = tensor_basis([values] * inputs, [mix] * inputs, 6)
    head = FeatureMap(basis, (0.5,) * 6, 0.25, warp, weighted)
    return stage(
        head, np.outer(np.linspace(1, 0.5, outputs), np.linspace(-w, w, 6)), [r, r / 3][:outputs]
    )


def _fair_stage(w: float, r: float, warp: tuple[tuple[float, ...], ...] = ()):
    """A stage with outputs that are weighed with their features, and a straight line beside the
    functions of warped inputs.
    """
    basis, _, _ = AnovaPriors(2, 0).choose(6)
    head = FeatureMap(basis, (0.5,) * 7, 0.25, warp, constant=0, lines=((1, 0.3, 2.0),))
    return stage(head, np.linspace(-w, w, 7)[None], [r])


def _with_sizes(plain, *s: float):
    """The same stage with the sizes of its residuals."""
    return ResidualSizeGram(plain.feature_map, plain.weights, plain.shift, plain.clip_thresholds, s)


def _class_stage(w: float, r: float, link: str):
    """A stage of a classification into three classes."""
    return class_stage(
        _stage(0.0, 0.5).feature_map, np.outer(np.linspace(-w, w, 6), [1.0, -0.4, -0.6]), r, link
    )


def _mixed_map(constant: int = 0, second: Axis | None = None):
    """Features of a cycle and of words, or of another second input; they are no longer than R."""
    axes = [Axis("circle"), second or Axis("words", 7)]
    basis, _, _ = AnovaPriors(2, 0, axes=axes).choose(12)
    return FeatureMap(basis, (0.5,) * 12, 0.25, ((-1.0, 1.0),) * 2, constant=constant)


BENT = (-1.0, -0.2, 0.1, 0.3, 1.0)
STATISTICS |= {
    "moments of inputs": (InputMoments(2), PLANE, True),
    "counts of inputs": (InputCounts(2, 9), PLANE, True),
    "first stage": (_stage(0.0, 0.5), PLANE, True),
    "rewards alone": (reward_sum(_stage(0.0, 0.5)), PLANE, True),
    "later stage": (_stage(1.3, 0.1), PLANE, False),
    "first stage, warped": (_stage(0.0, 0.5, warp=(BENT, (-1.0, 0.9, 1.0))), PLANE, True),
    "later stage, warped": (_stage(1.3, 0.1, warp=(BENT, (-1.0, 0.9, 1.0))), PLANE, False),
    "weighed by length": (_fair_stage(0.0, 0.5), PLANE, True),
    "weighed by length, warped": (
        _fair_stage(1.3, 0.1, warp=(BENT, (-1.0, 0.9, 1.0))),
        PLANE,
        False,
    ),
    "two outputs": (_stage(0.0, 0.5, outputs=2), PAIR, True),
    "weighted": (_stage(0.0, 0.5, weighted=True), LEVELS, True),
    "weighted, later stage, warped": (_stage(1.3, 0.1, warp=(BENT,), weighted=True), LEVELS, False),
    "two outputs, later stage, warped": (_stage(1.3, 0.1, outputs=2, warp=(BENT,)), PAIR, False),
}
STATISTICS |= {
    "sizes": (_with_sizes(_stage(0.0, 0.5), 0.3), PLANE, True),
    "sizes, later stage, warped": (
        _with_sizes(_stage(1.3, 0.1, warp=(BENT, (-1.0, 0.9, 1.0))), 0.4),
        PLANE,
        False,
    ),
    # the size of a record that counts less is not of full length, nor are features orthogonal
    "sizes, weighed by length": (_with_sizes(_fair_stage(0.0, 0.5), 0.8), PLANE, False),
    "sizes, two outputs": (_with_sizes(_stage(0.0, 0.5, outputs=2), 0.3, 0.1), PAIR, True),
    "sizes, weighted": (_with_sizes(_stage(0.0, 0.5, weighted=True), 0.5), LEVELS, False),
}
STATISTICS |= {
    "moments of mixed inputs": (InputMoments(2), MIXED, True),
    "counts of mixed inputs": (InputCounts(2, (16, 7)), MIXED, True),
    "mixed inputs": (stage(_mixed_map(), np.zeros((1, 12)), [0.5]), MIXED, True),
    "mixed inputs, later stage": (
        stage(_mixed_map(), np.linspace(-1.3, 1.3, 12)[None], [0.1]),
        MIXED,
        False,
    ),
    "ordered levels": (
        stage(_mixed_map(-1, Axis("ordered", 5)), np.zeros((1, 12)), [0.5]),
        PLANE,
        True,
    ),
    "many words": (
        stage(_mixed_map(-1, Axis("words", 500)), np.zeros((1, 12)), [0.5]),
        PLANE,
        True,
    ),
    "classes of mixed inputs": (
        class_stage(
            _mixed_map(-1), np.outer(np.linspace(-3, 3, 12), [1.0, -0.4, -0.6]), 0.3, "softmax"
        ),
        MIXED_CLASSED,
        False,
    ),
}
STATISTICS |= {
    "first stage of classes": (_class_stage(0.0, 0.6, "softmax"), CLASSED, True),
    "later stage of classes": (_class_stage(3.0, 0.3, "softmax"), CLASSED, True),
    "linear stage of classes": (_class_stage(1.0, 0.7, "linear"), CLASSED, True),
    "by class": (GramByClass(_stage(0.0, 0.5).feature_map, 3, 0.5), CLASSED, True),
}
CELLS = Grid(((-2.0, 0.0, 0.5, 3.0), (0.0, 50.0, 110.0)), ())
BY_WORD = Grid(((-2.0, 0.0, 3.0), (-0.5, 0.5, 1.5, 2.5)), ())
SOME = Grid(CELLS.edges, (0, 0, -1, 1, 1, 2))
STATISTICS |= {
    "counts in regions": (BinCounts(SOME, PLANE), PLANE, True),
    "sums in bins": (BinSums(CELLS, PLANE, False), PLANE, True),
    "sums in regions": (BinSums(SOME, PLANE, True), PLANE, True),
    "labels in regions": (LabelSums(SOME, PLANE, True, (0,) * 3), PLANE, True),
    "outputs in regions": (BinTotals(SOME, PLANE), PLANE, True),
    "counts in bins": (BinCounts(CELLS, PLANE), PLANE, True),
    "sums by word": (BinSums(BY_WORD, WORDED, True), WORDED, True),
    "labels by word": (LabelSums(BY_WORD, WORDED, False, (5,) * 6), WORDED, True),
}


def _short(records: np.ndarray) -> np.ndarray:
    """A score as a search has them.

    A function of a fitted model, here a constant, and of one record.
    """
    return 0.25 - np.abs(records[:, 0] - 0.5)


STATISTICS |= {
    "scores": (ScoreSum("absolute", -1.0, 0.25, _short), BOX, True),
    "scores, counted": (ScoreCounts("absolute", -1.0, 0.25, _short), BOX, True),
}

_MAPS = np.array([[[4.0, 0.6, 0.2], [0.0, 2.0, -0.8], [0.0, 0.0, 6.0]], 7 * np.eye(3)])
_CENTRES = np.array([[0.9, -0.4, 0.2], [-3.0, 1.0, 2.0]])


def _moments(maps, second, weights, together=False, hard=False):
    """A stage of a mixture of two, with radii that many records exceed."""
    given = {"second": second, "together": together, "weights": weights, "hard": hard}
    return residual_moments(metric(maps, _CENTRES), radius=(0.5, 0.2), levels=(-1.0, 0.0), **given)


STATISTICS |= {
    "lengths": (LengthCounts(metric(_MAPS, _CENTRES), (0.5, 2.0, 5.0), (-1.0, 0.0)), BOX, True),
    "sizes of clusters": (NearestCounts(metric(_MAPS[0], _CENTRES)), BOX, True),
    "log-ratios": (LogRatio(metric(_MAPS, _CENTRES), (-1.0, 0.0), 1, (2.0, 4.0)), BOX, True),
    "cells": (CellCounts(metric(_MAPS[0], _CENTRES[:1]), 2.0, 5), BOX, True),
    "centred moments": (CentredGram(metric(_MAPS[0], _CENTRES[:1]), 0.5, 0.7), BOX, True),
    "mixture": (_moments(_MAPS, "full", (1, 4, 4)), BOX, True),
    "mixture, tied": (_moments(_MAPS[0], "full", (1, 4, 4), together=True), BOX, True),
    "nearest centre": (_moments(_MAPS[0], "none", (1, 1, 0), hard=True), BOX, True),
}

# a number, seven words, and a cycle
TABLE = reticent.Bounds(
    x=[(-2.0, 3.0), reticent.Words([f"w{i}" for i in range(7)]), reticent.Cyclic(-1e-3, 1e3)]
)
_WORDS = (
    WordTable(1, tuple(tuple(np.log(np.roll(np.arange(1, 8) / 28, k)).tolist()) for k in (0, 3))),
    WordTable(2, ((-0.1, -3.0), (-2.0, -0.2))),
)
_FIRST = metric(np.array([[3.0], [0.0], [0.0]]), [[1.0], [-1.0]])
_ENCODED = (0, 7, -1)  # ten numbers
STATISTICS |= {
    "levels": (LevelCounts(((1, 7), (2, 2))), TABLE, True),
    "levels by component": (
        level_moments(_FIRST, levels=(-0.5, 0.0), words=_WORDS),
        TABLE,
        False,
    ),
    "mixture of numbers and words": (
        residual_moments(
            _FIRST,
            radius=(0.5, 0.2),
            levels=(-0.5, 0.0),
            second="full",
            weights=(1, 4, 4),
            words=_WORDS,
        ),
        TABLE,
        False,
    ),
    "lengths of numbers and words": (
        LengthCounts(_FIRST, (0.5, 2.0), (-0.5, 0.0), _WORDS),
        TABLE,
        False,
    ),
    "log-ratios of numbers and words": (
        LogRatio(_FIRST, (-0.5, 0.0), 1, (2.0, 9.0), _WORDS),
        TABLE,
        False,
    ),
    "centred moments of mixed columns": (
        CentredGram(metric(np.eye(9), np.zeros((1, 9)), (0, -7, -1)), 0.5, 0.7),
        TABLE,
        False,
    ),
    "mixed columns": (
        ColumnMoments((0.0,) * 10, (1.0,) * 10, (1.0,) * 10, 10.0, _ENCODED),
        TABLE,
        False,
    ),
    "mixed columns, standardised": (
        ScaledGram((0.1,) * 10, (2.0,) * 10, 2.5, _ENCODED),
        TABLE,
        False,
    ),
}

STATISTICS |= {
    "grid": (GridCounts(3, 4), BOX, True),
    "leaves": (LeafSums(3, 2, (1, 2, 4, 1, 1, 2, 1, 8)), BOX, False),
    "leaves and blocks": (
        LeafSums(3, 2, (1, 2, 4, 1, 1, 1, 1, 8), (1, -1, -1, 0, 1, 0, -1, -1)),
        BOX,
        False,
    ),
    "columns": (ColumnMoments((0.0,) * 3, (1.0,) * 3, (1.0,) * 3, 3.0), BOX, True),
    "columns, closer": (
        ColumnMoments((0.5, -0.2, -1.0), (0.3, 0.1, 0.001), (0.2, 0.1, 0.5), 1.8),
        BOX,
        False,
    ),
    "standardised": (ScaledGram((0.5, -0.2, 0.0), (3.0, 2.0, 5.0), 2.5), BOX, True),
}

COMMON = {"bounds": BOX, "epsilon": 1.0, "delta": 1e-6}
GIVEN = {"learn_kernel": False, "noise": 0.5}  # nothing to learn, which takes time
ESTIMATORS = {
    "GPRegressor": reticent.GPRegressor(stages=2, basis=9, **{**COMMON, "bounds": PLANE}),
    "BinnedGPRegressor": reticent.BinnedGPRegressor(bins=1, **GIVEN, **{**COMMON, "bounds": PLANE}),
    "BinnedGPRegressor of regions": reticent.BinnedGPRegressor(
        bins=(3, 2), regions=[[0, 0], [-1, 1], [1, 2]], **GIVEN, **{**COMMON, "bounds": PLANE}
    ),
    "BinnedGPRegressor of labels": reticent.BinnedGPRegressor(
        bins=(3, 2),
        regions=[[0, 0], [-1, 1], [1, 2]],
        protect="labels",
        **GIVEN,
        **{**COMMON, "bounds": PLANE},
    ),
    "BinnedGPRegressor of counts": reticent.BinnedGPRegressor(
        kind="count", bins=(3, 2, 2), **GIVEN, **COMMON
    ),
    "BinnedGPRegressor, kernel by scores": reticent.BinnedGPRegressor(
        bins=(3, 2),
        regions=[[0, 0], [-1, 1], [1, 2]],
        noise=0.5,
        learn_kernel="exponential",
        **{**COMMON, "bounds": PLANE},
    ),
    "BinnedGPRegressor of words": reticent.BinnedGPRegressor(
        bins=(3, 3), **GIVEN, **{**COMMON, "bounds": WORDED}
    ),
    "BinnedGPRegressor of words and labels": reticent.BinnedGPRegressor(
        bins=(3, 3), protect="labels", **GIVEN, **{**COMMON, "bounds": WORDED}
    ),
    "GPClassifier": reticent.GPClassifier(stages=2, basis=9, **{**COMMON, "bounds": CLASSED}),
    "GPClassifier by class": reticent.GPClassifier(
        method="dirichlet", basis=9, **{**COMMON, "bounds": CLASSED}
    ),
    "GPRegressor with noise levels": reticent.GPRegressor(
        stages=2,
        basis=9,
        noise_column=1,
        **{**COMMON, "bounds": reticent.Bounds(x=[(-2.0, 3.0), (0.1, 110.0)], y=(-1e-3, 1e3))},
    ),
    "GPRegressor of mixed columns": reticent.GPRegressor(
        stages=2, basis=9, **{**COMMON, "bounds": TURNING}
    ),
    "FactorAnalysis": reticent.FactorAnalysis(2, **COMMON),
    "FactorAnalysis of mixed columns": reticent.FactorAnalysis(
        2, rotation="varimax", **{**COMMON, "bounds": TABLE}
    ),
    "PCA": reticent.PCA(2, **COMMON),
    "KMeans": reticent.KMeans(3, **COMMON),
    "KMeans of mixed columns": reticent.KMeans(3, **{**COMMON, "bounds": TABLE}),
    "LabelGPRegressor": reticent.LabelGPRegressor(
        ConstantKernel(1e5) * RBF(100.0),
        stages=2,
        learn_kernel=False,
        **{**COMMON, "bounds": PLANE},
    ),
    "LabelGPRegressor of words": reticent.LabelGPRegressor(
        stages=2, learn_kernel=False, **{**COMMON, "bounds": WORDED}
    ),
    "GaussianMixture": reticent.GaussianMixture(2, **COMMON),
    "GaussianMixture of mixed columns": reticent.GaussianMixture(2, **{**COMMON, "bounds": TABLE}),
    "PrivateMean": reticent.PrivateMean(**COMMON),
    "PrivateHistogram": reticent.PrivateHistogram(bins=5, **COMMON),
    "PrivateCovariance": reticent.PrivateCovariance(**COMMON),
    "PrivateTable": reticent.PrivateTable(quantile=[0], mean=[0], **COMMON),
    "PrivateTable by groups": reticent.PrivateTable(
        by=[(0, [-2, 0, 3]), (1, [0, 40, 110])], mean=[2], smooth=True, **COMMON
    ),
    # with one candidate, since which one is chosen is chance
    "PrivateSearch": reticent.PrivateSearch(
        reticent.PrivateMean(), [{}], expected_runs=2, **COMMON
    ),
    "PrivateSearch of outputs": reticent.PrivateSearch(
        # GPRegressor alone shows what is learned
        reticent.GPRegressor(RBF(100.0, "fixed"), stages=2, basis=9, **GIVEN),
        [{}],
        expected_runs=2,
        **{**COMMON, "bounds": PLANE},
    ),
}
# estimators that take delta = 0
PURE = (
    "PrivateMean",
    "PrivateHistogram",
    "PrivateTable",
    "PrivateTable by groups",
    *(
        name
        for name, model in ESTIMATORS.items()
        if getattr(model, "learn_kernel", "") is False and "Binned" in name
    ),
)

NASTY = np.array(
    [
        [np.nan, np.inf, -np.inf],
        [-np.inf, np.nan, np.nan],
        [5e-324, -5e-324, 1e-310],
        [1.7e308, -1.7e308, 1.7e308],
        [-2.0, 0.0, -1e-3],
        [3.0, 110.0, 1e3],
        [3.0000000000000004, 110.00000000000001, 1000.0000000000001],
        [np.nextafter(-2.0, -3), np.nextafter(0.0, -1), 0.0],
        [-0.0, 0.0, -0.0],
        [1 / 3, 2**0.5, np.pi],
    ]
)


def uses_outputs(model) -> bool:
    """Whether a model learns from y, as it tells scikit-learn; counts in bins have none."""
    return getattr(model, "kind", "") != "count" and get_tags(model).target_tags.required


def relation(model) -> str:
    """Whom a model protects: one record, or one record's label."""
    labels = isinstance(model, reticent.LabelGPRegressor)
    return "label" if labels or getattr(model, "protect", "") == "labels" else "record"


def split(model, data):
    """The records as a model takes them: X, or X and y."""
    if uses_outputs(model) and isinstance(data, np.ndarray):
        return data[:, :-1], data[:, -1]
    return (data,)


def records(n: int, seed: int = 0) -> np.ndarray:
    """Ordinary records, some outside their bounds, and all the nasty ones."""
    rng = np.random.default_rng(seed)
    ordinary = rng.normal([0.5, 55, 400], [2, 30, 400], size=(n, 3))
    return np.vstack([ordinary, NASTY])[rng.permutation(n + len(NASTY))]


def _labels(reach: float, squares: float):
    """Columns for the inputs that the contract's records have, all of full length."""
    corners = np.array([(a, b) for a in (-1.0, 0.0, 1.0) for b in (-1.0, 0.0, 1.0)])
    ordinary = PLANE.inputs_alone().scale(records(400)[:, :2])
    inputs = np.unique(np.vstack([corners, ordinary]) + 0.0, axis=0)
    inputs = inputs[~np.isnan(inputs).any(axis=1)]
    columns = np.cos(np.outer(inputs @ [1.0, 2.0], np.arange(1, 5)))
    columns /= np.sqrt(np.square(columns).sum(axis=1))[:, None]
    centre = np.zeros(len(inputs)) if reach == 1 else 0.3 * np.sin(inputs[:, 0])
    counts = np.ones(len(inputs))
    return label_sum(
        inputs,
        counts,
        columns,
        design="a test",
        centre=centre,
        clip_threshold=reach,
        squares=squares,
    )


STATISTICS |= {
    "labels": (_labels(1.0, 0.0), PLANE, True),
    "labels, later stage": (_labels(0.2, 0.0), PLANE, True),
    "labels, with squares": (_labels(0.2, 0.1), PLANE, False),  # 2t² − 1 is the same at both ends
}


def all_of(base: type) -> set[type]:
    """Concrete subclasses of ``base`` anywhere in the package."""
    found = set()
    for module in pkgutil.walk_packages(reticent.__path__, "reticent."):
        if module.name == "reticent.__main__" or module.name.startswith("reticent.studies"):
            continue
        for _, thing in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if issubclass(thing, base) and not inspect.isabstract(thing):
                found.add(thing)
    return found


__all__ = [
    "BALL",
    "BOX",
    "CLASSED",
    "COMMON",
    "ESTIMATORS",
    "NASTY",
    "PURE",
    "STATISTICS",
    "Statistic",
    "all_of",
    "records",
    "relation",
    "split",
    "uses_outputs",
]
