"""Drawings of classifiers, and the reliability diagram."""

import numpy as np
import pytest

import reticent
from reticent.reporting.figures.assessment.calibration import reliability_numbers
from reticent.reporting.figures.classification import rank_classes
from reticent.reporting.figures.palette import COLOURS, DEPTHS, HUES, hue
from reticent.reporting.presenters.class_probabilities import (
    probability_grid,
    probability_lines,
)
from tests.reporting.figures.test_regression import contrast


def fitted(inputs, classes, **options):
    x = np.random.default_rng(0).uniform(0, 1, (1500, inputs))
    y = np.minimum((x[:, 0] * classes).astype(int), classes - 1)
    bounds = reticent.Bounds(x=[(0, 1)] * inputs, classes=list(range(classes)))
    options = {"epsilon": 5, "delta": 1e-6, "basis": 10, "stages": 12, "random_state": 3, **options}
    return reticent.GPClassifier(bounds=bounds, **options).fit(x, y)


@pytest.fixture(scope="module")
def models():
    return {(d, c): fitted(d, c) for d in (1, 2, 3) for c in (2, 4)}


def test_release_draws_chances(models):
    for (inputs, classes), model in models.items():
        figure = reticent.plot.release(model)
        assert "Not private" in figure.get_supxlabel()
        lines = figure.axes[2:4] if inputs == 2 else figure.axes
        for axes, line in zip(lines, probability_lines(model), strict=True):
            curves = [one for one in axes.lines if len(one.get_xdata()) == 101]
            values = line.probabilities.T if classes > 2 else line.probabilities.T[1:]
            assert [one.get_ydata() for one in curves] == [pytest.approx(value) for value in values]
        texts = [text.get_text() for axes in figure.axes for text in axes.texts]
        assert texts == (
            [str(c) for c in range(classes)] if inputs == 2 else []
        )  # regions are named
        assert reticent.plot.release(model, width=3.6).get_figwidth() == 3.6


def test_the_boundary_lies_within_its_band(models):
    found = probability_grid(models[2, 2])
    low, high = found.bands["privacy"]
    assert (low <= found.probabilities).all()
    assert (found.probabilities <= high).all()
    own = found.bands["model"]
    assert (own[1] - own[0]).mean() < (high - low).mean()
    axes = reticent.plot.map(models[2, 2]).axes[0]
    assert (
        len([one for one in axes.collections if "QuadContourSet" in type(one).__name__]) == 4 + 3
    )  # areas and lines


def test_each_drawing_wants_its_number_of_inputs(models):
    assert len(reticent.plot.effects(models[2, 2]).axes) == 2
    for draw, has in (("curve", 2), ("map", 1)):
        with pytest.raises(
            reticent.BadInput, match=f"plot.{draw} draws regressions and classifiers with"
        ):
            getattr(reticent.plot, draw)(models[has, 2])


def test_of_many_classes_those_that_matter_have_a_colour():
    model = fitted(1, 12, basis=14)
    rank = rank_classes(probability_lines(model))
    assert len(rank) == HUES
    assert sorted(rank.values()) == list(range(HUES))
    labels = [text.get_text() for text in reticent.plot.curve(model).legends[0].texts]
    assert labels[-1] == "5 others"
    assert hue(None) == COLOURS["rule"][0]


@pytest.mark.parametrize("paper", [0, 1])
def test_classes_are_seen_on_light_and_on_dark_paper(paper):
    for c in range(HUES):
        line = COLOURS[f"class{c}-{DEPTHS - 1}"][paper]
        assert contrast(line, COLOURS["paper"][paper]) >= 3
        assert (
            contrast(COLOURS["ink"][paper], COLOURS["paper"][paper]) >= 4.5
        )  # names stand on paper


class Told:
    """Two or three classes with chances that are given as the records."""

    def __init__(self, classes):
        self.classes_ = np.array(classes)

    def predict_proba(self, X):
        return np.asarray(X)


def test_reliability_counts_what_came_true():
    X = np.array([[0.75, 0.25]] * 4 + [[0.15, 0.85]] * 6)
    y = ["no", "no", "no", "yes"] + ["yes"] * 5 + ["no"]
    found = reliability_numbers(Told(["no", "yes"]), X, y)
    assert found.counts.tolist() == [4, 6]
    assert found.predicted == pytest.approx([0.25, 0.85])
    assert found.observed == pytest.approx([0.25, 5 / 6])
    assert found.error == pytest.approx(0.6 * abs(0.85 - 5 / 6))
    assert found.loss == pytest.approx(
        -(3 * np.log(0.75) + np.log(0.25) + 5 * np.log(0.85) + np.log(0.15)) / 10
    )
    assert found.accuracy == pytest.approx(0.8)
    assert ((found.low < found.observed) & (found.observed < found.high)).all()
    three = reliability_numbers(Told([0, 1, 2]), [[0.5, 0.3, 0.2], [0.1, 0.0, 0.9]], [0, 1])
    assert three.predicted.tolist() == [0.5, 0.9]
    assert three.observed.tolist() == [1, 0]
    assert np.isfinite(three.loss)


def test_the_reliability_diagram_says_that_it_protects_nobody(models):
    x = np.random.default_rng(1).uniform(0, 1, (300, 2))
    figure = reticent.plot.reliability(models[2, 2], x, (x[:, 0] > 0.5).astype(int))
    axes = figure.axes[0]
    assert axes.get_title(loc="left").startswith("300 labelled records, not protected")
    assert "calibration error 0.0" in axes.get_title(loc="left")
    with pytest.raises(
        reticent.BadInput, match="labels that the model does not know, such as 'a': it knows"
    ):
        reticent.plot.reliability(models[2, 2], x[:2], ["a", "b"])
    with pytest.raises(reticent.BadInput, match="X has 300 records and y has 2"):
        reticent.plot.reliability(models[2, 2], x, [0, 1])
    mean = reticent.PrivateMean(bounds=reticent.Bounds(x=(0, 1)), epsilon=1, delta=1e-6).fit(x)
    with pytest.raises(reticent.BadInput, match="draws classifiers, not a PrivateMean"):
        reticent.plot.reliability(mean, x, x[:, 0])
