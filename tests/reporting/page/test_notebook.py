"""A model in a notebook: its results in one fragment, closed to the outside, in both themes."""

import re

import numpy as np
import pytest
from sklearn import config_context
from sklearn.exceptions import NotFittedError

import reticent
from reticent.reporting.page.page import typeset
from reticent.reporting.registry import presenter_of
from tests.support.fitted_models import Page, kept

EVIL = "\"><script>alert(1)</script> $x$ & 'quoted'"
CASES = {
    "mean": lambda: kept("mean", columns=("age", EVIL)),
    "mean, seeded": lambda: kept("mean", columns=("age", EVIL), random_state=1),
    "histogram": lambda: kept("histogram", columns=("age", EVIL), bins=4),
    "covariance": lambda: kept("covariance", columns=("age", EVIL)),
    "gp of two": lambda: kept("gp", columns=("age", EVIL)),
    "gp, two outputs": lambda: kept("gp", columns=("age",), outputs=("output <i>", "</svg>")),
    "classifier": lambda: kept("classifier", columns=("age", EVIL)),
    "binned": lambda: kept("gp-binned", columns=("age", EVIL)),
    "labels": lambda: kept("gp-labels", columns=("age", EVIL)),
    "mixture": lambda: kept("mixture", columns=("age", EVIL), n_components=2),
    "kmeans": lambda: kept("kmeans", columns=("age", EVIL), n_clusters=2),
    "factors": lambda: kept("factors", columns=("age", EVIL, "ward"), n_components=1),
    "components": lambda: kept("components", columns=("age", EVIL, "ward"), n_components=1),
}


def fragment(model, folder):
    """What IPython asks a model for, taken apart."""
    (folder / "fragment.html").write_text(model._repr_mimebundle_()["text/html"], "utf-8")
    return Page(folder / "fragment.html")


@pytest.fixture(scope="module", params=CASES)
def case(request, tmp_path_factory):
    model = CASES[request.param]()
    return model, fragment(model, tmp_path_factory.mktemp("notebook"))


def test_it_says_what_the_presenter_says(case):
    model, found = case
    presenter = presenter_of(model)
    title = re.sub(r"\s+", " ", presenter.title())
    assert title in found.text
    assert str(typeset(presenter.statement)) in found.source
    assert ("Differentially private" in found.text) == model.guarantee_.private
    assert ("Not private: seeded" in found.text) != model.guarantee_.private
    cells = [
        re.sub(r"\s+", " ", cell)
        for block in presenter.summary()
        for table in block.tables
        for row in [table.head, *table.rows]
        for cell in row
    ]
    assert cells
    for cell in cells:
        assert cell.strip() in found.text


def test_every_section_is_drawn_and_described(case):
    model, found = case
    drawings = [attributes for attributes in found.all("svg") if "role" in attributes]
    assert len(drawings) == len(presenter_of(model).sections())
    for attributes in drawings:
        for name in attributes["aria-labelledby"].split():
            assert found.attribute("id").count(name) == 1


def test_it_is_closed_to_the_outside(case):
    _, found = case
    assert not found.all("script")
    assert not found.all("link")
    assert not found.all("i")  # part of a name
    assert found.attribute("src") == []
    assert all(target.startswith("#reticent-") for target in found.attribute("href"))
    assert "http" not in found.source
    assert "url(" not in re.sub(r"url\(#reticent-", "", found.source)
    assert [tag for tag, _ in found.tags].count("div") == found.source.count("</div>")


def test_styles_are_about_the_fragment_only(case):
    _, found = case
    (style,) = re.findall(r"<style>(.*?)</style>", found.source, re.DOTALL)
    rules = re.sub(r"@supports[^{]*\{", "", style)
    selectors = [
        one.strip() for group in re.findall(r"([^{}]+)\{", rules) for one in group.split(",")
    ]
    assert len(selectors) > 20
    assert all(".reticent-model" in selector for selector in selectors)
    used = set(re.findall(r"var\(--([\w-]+)\)", found.source))
    assert used == set(re.findall(r"--([\w-]+): light-dark\(", style))


def test_the_same_model_gives_the_same_fragment_and_others_other_ids():
    mean = kept("mean", columns=("age", EVIL))
    assert mean._repr_html_() == mean._repr_html_()
    assert mean._repr_html_() == mean._repr_mimebundle_()["text/html"]
    other = kept("histogram", columns=("age", EVIL), bins=4)
    ids = [set(re.findall(r' id="([^"]+)"', model._repr_html_())) for model in (mean, other)]
    assert ids[0]
    assert not ids[0] & ids[1]


def test_parameters_are_named_as_in_python(tmp_path):
    little = kept("mean", columns=("age",), epsilon=1e-3)
    assert "the budget (epsilon) is too small" in fragment(little, tmp_path).text


def test_a_search_shows_its_candidates(tmp_path):
    bounds = reticent.Bounds(x=[(0, 10)], y=(0, 10))
    search = reticent.PrivateSearch(
        reticent.GPRegressor(basis=4, stages=2),
        {"basis": [4, 6]},
        bounds=bounds,
        epsilon=3.0,
        delta=1e-6,
    )
    inputs = np.random.default_rng(0).uniform(0, 10, (400, 1))
    found = fragment(search.fit(inputs, inputs[:, 0]), tmp_path)
    assert "PrivateSearch" in found.text
    assert "basis 4" in found.text
    assert "basis 6" in found.text


def test_an_unfitted_model_is_scikit_learns_diagram():
    model = reticent.PrivateMean(epsilon=1.0)
    assert "sk-top-container" in model._repr_html_()
    assert model._repr_html_() != ""
    with pytest.raises(NotFittedError):
        model.report("report.html")


def test_scikit_learns_setting_turns_it_off():
    with config_context(display="text"):
        mean = kept("mean", columns=("age", EVIL))
        assert not hasattr(mean, "_repr_html_")
        assert set(mean._repr_mimebundle_()) == {"text/plain"}


def test_a_class_that_nothing_presents_is_scikit_learns_diagram():
    class Own(reticent.PrivateEstimator):
        def learn(self, curator):
            self.count_ = curator.release(_Ones()).value

    bounds = reticent.Bounds(x=[(0, 1)])
    own = Own(bounds=bounds, epsilon=1.0, delta=1e-6).fit(np.zeros((10, 1)))
    assert "sk-top-container" in own._repr_html_()


class _Ones(reticent.Sum):
    columns = 1
    norm2 = 1

    def rows(self, records):
        return np.ones((len(records), 1))
