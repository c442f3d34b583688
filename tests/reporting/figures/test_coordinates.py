"""What is drawn is what was predicted.

Coordinates are read back from the SVG, and no letter is cut off at its edge.
"""

import re
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

import reticent
from reticent.privacy.accounting.guarantee import Guarantee
from reticent.reporting.figures.classification import rank_classes
from reticent.reporting.figures.mixture import draw_mixture
from reticent.reporting.figures.palette import DEPTHS, HUES, LIGHT, STEPS, hue, shades
from reticent.reporting.figures.style import WIDE, raw_svg, sheet
from reticent.reporting.page.svg import inline
from reticent.reporting.presenters.effects import BAND, RegressionOutput, effect_lines, readings
from reticent.reporting.presenters.mixture import MixturePresenter
from tests.support.fitted_models import kept
from tests.support.stand_ins import PROMISE, Bare, simple

SVG = "{http://www.w3.org/2000/svg}"
LINK = "{http://www.w3.org/1999/xlink}"
LITTLE = 0.03  # inches: a thin letter
LONG = "a name of a column that is far too long for any axis to bear"
PAIR = ("age", LONG)
DRAWN = {
    "mean": ("mean", PAIR),
    "histogram": ("histogram", PAIR),
    "covariance": ("covariance", PAIR),
    "gp of one": ("gp", (LONG,)),
    "gp of two": ("gp", PAIR),
    "gp of four": ("gp", ("age", LONG, "height", "ward")),
    "binned": ("gp-binned", ("age",)),
    "classifier of one": ("classifier", (LONG,)),
    "classifier of two": ("classifier", PAIR),
    "mixture": ("mixture", PAIR),
    "kmeans": ("kmeans", PAIR),
    "factors": ("factors", ("age", LONG, "ward")),
}


def points(data):
    """The corners of a path."""
    return np.array(re.findall(r"[ML] ([-\d.]+) ([-\d.]+)", data), dtype=float)


def paths(document, colour):
    """Paths in this colour, as corners in points from the lower left.

    Bands are defined first and used then.
    """
    root = ElementTree.fromstring(document)
    height = float(root.attrib["viewBox"].split()[3])
    known = {
        one.attrib["id"]: points(one.attrib["d"])
        for one in root.iter(f"{SVG}path")
        if "id" in one.attrib
    }
    found = [
        points(one.attrib["d"])
        for one in root.iter(f"{SVG}path")
        if f": {colour}" in one.attrib.get("style", "")
    ]
    for one in root.iter(f"{SVG}use"):
        if f": {colour}" in one.attrib.get("style", ""):
            at = np.array([one.attrib["x"], one.attrib["y"]], dtype=float)
            found.append(known[one.attrib[f"{LINK}href"].removeprefix("#")] + at)
    return [np.column_stack([one[:, 0], height - one[:, 1]]) for one in found if len(one)]


def in_data(figure, axes, corners):
    """Places on paper as values on the axes."""
    return axes.transData.inverted().transform(corners * figure.dpi / 72)


def drawn(figure):
    """The figure's SVG; it is laid out for good."""
    document = raw_svg(figure)
    figure.set_layout_engine("none")
    return document


def test_the_line_on_paper_is_the_prediction():
    model = kept("gp", columns=("age",))
    figure = reticent.plot.curve(model)
    document = drawn(figure)
    (axes,) = figure.axes
    (line,) = [one for one in paths(document, LIGHT["accent"]) if len(one) > 20]
    at, mean = in_data(figure, axes, line).T
    precise = np.ptp(axes.get_ylim()) / 500
    assert (at[0], at[-1]) == pytest.approx((0, 10), abs=0.05)
    assert mean == pytest.approx(model.predict(at[:, None]), abs=precise)


@pytest.mark.parametrize(("shade", "parts"), [("noise", 3), ("privacy", 2), ("model", 1)])
def test_each_band_on_paper_reaches_as_far_as_its_causes(shade, parts):
    model = kept("gp", columns=("age",))
    figure = reticent.plot.curve(model)
    document = drawn(figure)
    (axes,) = figure.axes
    band = max((one for one in paths(document, LIGHT[shade])), key=len)
    at, values = in_data(figure, axes, band).T
    inside = (at > 0) & (at < 10)
    found = model.variance_parts(at[inside, None])
    reach = BAND * np.sqrt(sum(list(found.values())[:parts]))
    off = np.abs(values[inside] - model.predict(at[inside, None]))
    assert off == pytest.approx(reach, abs=np.ptp(axes.get_ylim()) / 300)


def test_bars_on_paper_are_the_released_counts():
    model = kept("histogram", columns=("age",), bins=6)
    figure = reticent.plot.release(model)
    document = drawn(figure)
    (axes,) = figure.axes
    bars = [in_data(figure, axes, one) for one in paths(document, LIGHT["model"])]
    tops = [
        one[:, 1].max() if count > 0 else one[:, 1].min()
        for one, count in zip(bars, model.counts_[0], strict=True)
    ]
    assert tops == pytest.approx(model.counts_[0], abs=np.ptp(axes.get_ylim()) / 300)
    middles = [one[:, 0].mean() for one in bars]
    assert np.diff(middles) == pytest.approx(np.full(5, 10 / 6), abs=0.05)
    whiskers = [in_data(figure, axes, one)[:, 1] for one in paths(document, LIGHT["accent"])]
    assert [np.ptp(one) for one in whiskers] == pytest.approx(
        [2 * BAND * model.counts_sd_] * 6, rel=0.05
    )


def test_the_attackers_curve_on_paper_is_the_normal_one():
    from scipy.stats import norm

    promise = Guarantee(1e-5, "record", (reticent.Gaussian(noise_multiplier=2.0),), private=True)
    figure = reticent.plot.attacker(promise)
    document = drawn(figure)
    (axes,) = figure.axes
    curve = max(paths(document, LIGHT["accent"]), key=len)
    rate, best = in_data(figure, axes, curve).T
    inner = (rate > 0.01) & (rate < 0.99)
    assert best[inner] == pytest.approx(norm.cdf(norm.ppf(rate[inner]) + 0.5), abs=4e-3)


@pytest.mark.parametrize("name", DRAWN)
def test_no_text_is_cut_off_at_the_edge_of_a_narrow_paper(name):
    word, columns = DRAWN[name]
    figure = reticent.plot.release(kept(word, columns=columns), width=3.6)
    figure.draw_without_rendering()
    needed = figure.get_tightbbox()
    room = figure.get_size_inches()
    assert (needed.min > -LITTLE).all()
    assert (needed.max < room + LITTLE).all()
    assert figure.get_figwidth() <= 3.6
    labels = [axes.get_xlabel() for axes in figure.axes] + [
        axes.get_ylabel() for axes in figure.axes
    ]
    assert not any(LONG in label for label in labels)


@pytest.mark.parametrize("name", ["gp of one", "gp of four", "classifier of two"])
def test_axes_say_what_they_are(name):
    word, columns = DRAWN[name]
    figure = reticent.plot.release(kept(word, columns=columns))
    named = {axes.get_xlabel() for axes in figure.axes} - {""}
    assert {label.removesuffix("…") for label in named} == {column[:27] for column in columns}
    output = "output <i>"
    assert any(output in axes.get_ylabel() for axes in figure.axes)


def document(body, style="<style/>"):
    spaces = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    return f'<svg {spaces} viewBox="0 0 144 72">{style}{body}</svg>'


def test_a_drawing_in_a_page_has_words_its_own_ids_and_no_namespace():
    body = (
        '<g id="a"><defs><clipPath id="c"/></defs><use xlink:href="#a"/><path clip-path="url(#c)" '
        'd="M 1.23456 -2.5"/></g>'
    )
    found = inline(document(body), "wide-0", 'A <title> & "so"', "what\nit shows")
    root = ElementTree.fromstring(found)
    assert "xmlns" not in found
    assert root.attrib == {
        "viewBox": "0 0 144 72",
        "style": "max-width: 200px",
        "role": "img",
        "aria-labelledby": "wide-0-title wide-0-desc",
    }
    assert [(one.tag, one.attrib["id"], one.text) for one in root[:2]] == [
        ("title", "wide-0-title", 'A <title> & "so"'),
        ("desc", "wide-0-desc", "what\nit shows"),
    ]
    (use,) = root.iter("use")
    (path,) = root.iter("path")
    assert use.attrib == {"href": "#wide-0-a"}
    assert path.attrib == {"clip-path": "url(#wide-0-c)", "d": "M 1.23 -2.5"}
    assert len(list(root.iter("style"))) == 0


def test_a_drawing_in_a_page_has_the_pages_colours_and_font():
    ink = LIGHT["ink"]
    accent = LIGHT["accent"]
    style = (
        f"font: 8.5px 'DejaVu Sans', sans-serif; fill: {ink}; stroke: {accent}; font-family: "
        "'DejaVu Sans'; opacity: 0.25"
    )
    found = inline(document(f'<text style="{style}">x</text>'), "a", "t", "d")
    (text,) = ElementTree.fromstring(found).iter("text")
    assert (
        text.attrib["style"]
        == "font-size: 8.5px; fill: var(--ink); stroke: var(--accent); opacity: 0.25"
    )


def test_scales_go_from_little_to_much():
    assert shades(2) == [LIGHT["more-0"], LIGHT[f"more-{STEPS - 1}"]]
    assert shades(1) == [LIGHT["more-0"]]
    assert len(set(shades(STEPS))) == STEPS
    assert hue(None) == LIGHT["rule"]
    assert hue(HUES + 1, 0) == LIGHT["class1-0"]
    assert hue(0) == LIGHT[f"class0-{DEPTHS - 1}"]


@pytest.mark.parametrize(
    ("count", "across", "width", "rows", "columns"),
    [(4, 2, 7.2, 2, 2), (4, 2, 3.6, 4, 1), (5, 3, 7.2, 2, 3), (1, 3, 1.0, 1, 1)],
)
def test_panels_stand_below_each_other_where_it_is_narrow(count, across, width, rows, columns):
    figure, panels = sheet(count, across, width, 2.0, PROMISE)
    assert len(panels) == len(figure.axes) == count
    found = panels[0].get_gridspec()
    assert (found.nrows, found.ncols) == (rows, columns)
    assert figure.get_figheight() == pytest.approx(2.0 * rows + (0.4 if count > 1 else 0))


def test_only_classes_that_matter_have_a_colour_in_the_order_of_their_names():
    chances = np.full((5, 9), 0.01)
    chances[:, 3] = 0.001
    chances[:, 8] = 0.0005
    ranked = rank_classes([Bare(probabilities=chances)])
    assert ranked == {c: place for place, c in enumerate([0, 1, 2, 4, 5, 6, 7])}


def test_an_ellipse_holds_two_standard_deviations_around_the_mean():
    covariance = np.array([[4.0, 1.0], [1.0, 9.0]])
    mixture = {
        "weights_": np.array([1.0]),
        "means_": np.array([[50.0, 20.0]]),
        "covariances_": covariance[None],
    }
    (axes,) = draw_mixture(
        MixturePresenter(simple([(0, 100), (0, 40)], ["a", "b"], **mixture)), WIDE
    ).axes
    around = np.column_stack(axes.lines[0].get_data()) - [50, 20]
    assert np.einsum("ni,ij,nj->n", around, np.linalg.inv(covariance), around) == pytest.approx(
        np.full(100, 4.0)
    )
    assert (axes.get_xlim(), axes.get_ylim()) == ((0, 100), (0, 40))


def test_the_density_of_one_column_is_the_mixtures():
    from scipy.stats import norm

    law = {
        "weights_": np.array([0.3, 0.7]),
        "means_": np.array([[2.0], [6.0]]),
        "covariances_": np.array([[[1.0]], [[0.25]]]),
    }
    (axes,) = draw_mixture(MixturePresenter(simple([(0, 10)], ["a"], **law)), WIDE).axes
    at, density = axes.lines[0].get_data()
    assert density == pytest.approx(0.3 * norm.pdf(at, 2, 1) + 0.7 * norm.pdf(at, 6, 0.5))


def test_what_a_pointer_reads_is_the_line_to_the_digits_of_its_doubt():
    output = RegressionOutput(kept("gp", columns=("age",)))
    line = effect_lines(output)[0]
    read = readings(line, output)
    keys = ["names", "ends", "inset", "at", "said", "scale", "mean", "known", "spread"]
    assert list(read) == keys
    assert len(read["said"][0]) == len(line.at)
    assert (read["ends"], read["inset"]) == ([line.populated], 0.0)
    digits = read["scale"]["digits"]
    assert 10.0**-digits < np.median(line.std["privacy"])  # finer than what is known
    exact = 10.0 ** -(digits + 1)
    assert read["mean"] == pytest.approx(line.mean, abs=exact)
    assert read["known"] == pytest.approx(BAND * line.std["privacy"], abs=exact)
    assert read["spread"] == pytest.approx(BAND * line.std["noise"], abs=exact)


@pytest.mark.parametrize("most", [20_000, 100_000, 3_000_000])
def test_long_numbers_below_a_table_do_not_touch(most):
    rng = np.random.default_rng(0)
    records = {"sex": rng.choice(["F", "M"], 500), "cost": rng.uniform(0, most, 500)}
    bounds = reticent.Bounds(x={"sex": ["F", "M"], "cost": (0, most)})
    model = reticent.PrivateTable(
        by=["sex"], mean=["cost"], rate=[], bounds=bounds, epsilon=0.05, delta=1e-6
    ).fit(pd.DataFrame(records))
    figure = reticent.plot.release(model)
    figure.draw_without_rendering()
    (axes,) = [axes for axes in figure.axes if "cost" in axes.get_xlabel()]
    boxes = [
        label.get_window_extent()
        for label, place in zip(axes.get_xticklabels(), axes.get_xticks(), strict=True)
        if axes.get_xlim()[0] <= place <= axes.get_xlim()[1]
    ]
    assert len(boxes) >= 2
    assert all(left.x1 + 2 < right.x0 for left, right in pairwise(boxes))
    assert "," in axes.get_xticklabels()[-1].get_text()
