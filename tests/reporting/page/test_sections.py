"""What the report says, fact by fact.

Titles, promises, settings that fit again, releases, and the answers of searches.
"""

import re
from datetime import date
from types import SimpleNamespace

import numpy as np
import pandas
import pytest
from sklearn.gaussian_process.kernels import RBF

import reticent
from reticent.cli.class_labels import parse_classes
from reticent.cli.commands.fit import read_bins
from reticent.cli.commands.predict import probability_suffixes, result_names
from reticent.cli.commands.search import candidates, parse_tries, parse_value
from reticent.cli.options import example, flag, option, with_options
from reticent.errors import BadInput
from reticent.obfuscation.report import certificate_rows
from reticent.obfuscation.statements import promise_in_words
from reticent.reporting.columns import output_names, public_columns
from reticent.reporting.figures.assessment.calibration import reliability_numbers
from reticent.reporting.page import sections as facts
from reticent.reporting.presenter import SCREEN
from reticent.reporting.presenters.binned import BinnedPresenter
from reticent.reporting.presenters.effects import regression_outputs, select_output
from reticent.reporting.registry import presenter_of, unwrap_search
from reticent.reporting.release_table import ReleaseGroup, release_groups
from reticent.reporting.search_result import (
    search_description,
    search_results,
    search_sentences,
    search_table,
)
from tests.support.fitted_models import kept
from tests.support.prose import says
from tests.support.stand_ins import Classifier, simple


@pytest.mark.parametrize(
    ("word", "options", "title"),
    [
        ("mean", {"columns": ("age",)}, "Mean of age"),
        ("histogram", {"columns": ("age", "height")}, "Histograms of age and height"),
        ("covariance", {"columns": ("age", "height")}, "Means and correlations of age and height"),
        ("gp", {"columns": ("age",)}, "output <i>, predicted from age"),
        ("kmeans", {"columns": ("age", "height"), "n_clusters": 2}, "2 clusters of age and height"),
        (
            "mixture",
            {"columns": ("age", "height"), "n_components": 1},
            "Mixture of 1 normal law for age and height",
        ),
        (
            "factors",
            {"columns": ("age", "height", "ward"), "n_components": 1},
            "1 factor of age, height and ward",
        ),
    ],
)
def test_titles_say_what_was_released(word, options, title):
    model = kept(word, **options)
    assert presenter_of(model).title() == title
    head = facts.headline(presenter_of(model))
    assert (head["n"], head["title"], head["model"]) == (500, title, type(model).__name__)
    assert (
        head["releases"]
        == f"{len(model.releases_)} release{'s' if len(model.releases_) > 1 else ''}"
    )


def test_the_promise_in_plain_words():
    model = kept("mean")
    told = facts.guarantee_words(presenter_of(model))
    assert told["statement"] == model.guarantee_.statement
    assert told["mu"] == pytest.approx(1 / model.releases_[0].event.noise_multiplier)
    assert says(told["plain"][0], "1 release", "500 records")
    assert says(told["plain"][1], "about one record")
    assert says(told["plain"][1], "ε = 1")
    assert told["whom"] == "people"
    seeded = facts.guarantee_words(presenter_of(kept("mean", random_state=1)))
    assert "nothing is promised" in seeded["plain"][1]
    assert "fit again without random_state" in seeded["plain"][2]
    labels = facts.guarantee_words(presenter_of(kept("gp-labels", columns=("age",))))
    assert labels["whom"] == "labels"
    assert says(labels["plain"][1], "the label of one record")


def test_people_with_several_records_are_named_as_such():
    model = kept("mean", records_per_person=3)
    assert says(facts.headline(presenter_of(model))["protected"], "person", "3 records")
    assert says(facts.public(presenter_of(model))["assumed"][0], "person", "3 records")
    assert says(facts.public(presenter_of(kept("mean")))["assumed"][0], "person", "one record")


def test_settings_are_python_that_fits_the_same_again():
    model = kept("histogram", columns=("age",), bins=7, records_per_person=2)
    told = facts.reproduction(presenter_of(model))
    space = {"reticent": reticent, "array": np.array}
    exec(re.sub(r"\nmodel\.fit.*", "", told["fit"]), space)
    again = space["model"]
    assert again.get_params(deep=False).keys() == model.get_params(deep=False).keys()
    for name in ("bins", "epsilon", "delta", "records_per_person"):
        assert getattr(again, name) == getattr(model, name)
    assert again.bounds.to_dict() == model.bounds.to_dict()
    assert told["fit"].endswith('model.fit("DATA")')
    assert "random_state" not in told["fit"]
    assert told["versions"]["reticent"] == reticent.__version__
    assert list(told["versions"])[2:] == ["numpy", "scipy", "scikit-learn", "matplotlib"]


def test_kinds_of_columns_are_python_that_runs():
    bounds = reticent.Bounds(
        x={
            "age": reticent.Number(0, 110, unit="years", label="Number(x)"),
            "visit": (date(2019, 1, 1), date(2024, 12, 31)),
            "sex": ["F", "M"],
            "stage": reticent.Ordered(["I", "II"]),
            "hour": reticent.Cyclic(0, 24),
            "falls": reticent.Whole(0, 9),
            "smoker": bool,
        }
    )
    model = reticent.PrivateMean(bounds=bounds, epsilon=1, delta=1e-6)
    written = facts._qualified(repr(model.bounds))
    assert "reticent.Number(" in written
    assert "'Number(x)'" in written
    assert repr(eval(written, {"reticent": reticent})) == repr(bounds)


def test_a_ledgers_url_is_never_repeated(tmp_path):
    url = str(tmp_path / "secret.db")
    reticent.Ledger(url).open("people", 3, 1e-5)
    bounds = reticent.Bounds(x=[(0, 1)])
    model = reticent.PrivateMean(bounds=bounds, epsilon=1, delta=1e-6, ledger=url, dataset="people")
    model.fit(np.zeros((200, 1)))
    told = facts.reproduction(presenter_of(model))["fit"]
    assert "ledger=\"LEDGER\", dataset='people'" in told
    assert "secret" not in told + str(facts.public(presenter_of(model)))


@pytest.mark.parametrize(
    ("columns", "words"), [(40, None), (41, "Of 41 columns, the 40 that come first are drawn.")]
)
def test_columns_that_are_not_drawn_are_counted(columns, words):
    model = kept("mean", columns=tuple(f"c{j}" for j in range(columns)))
    remarks = list(presenter_of(model).sections()[0].remarks)
    assert remarks == ([] if words is None else [words])


def test_public_ranges_have_outputs_last_and_levels_after_them():
    model = kept("gp", columns=("age",), outputs=("weight", "girth"))
    assert public_columns(model) == [
        ["age", "0 to 10"],
        ["weight (output)", "0 to 10"],
        ["girth (output)", "0 to 10"],
    ]
    assert facts.public(presenter_of(model))["columns"][1] == ["weight (output)", "0 to 10"]
    assert output_names(model) == ["weight", "girth"]
    first, second = regression_outputs(model)
    at = np.array([[1.0], [9.0]])
    mean, sd = model.predict(at, return_std=True)
    assert second.predict(at) == pytest.approx(mean[:, 1])
    assert second.predict_with_std(at)[1] == pytest.approx(sd[:, 1])
    assert first.variance_parts(at)["noise"] == pytest.approx(
        model.variance_parts(at)["noise"][:, 0]
    )
    assert select_output(model, "girth") == select_output(model, 1) == 1


def release(name="Sum", size=3, sd=(1.0, 2.0), law="gaussian", **statistic):
    event = SimpleNamespace(kind=law)
    return SimpleNamespace(
        statistic={"name": name, **statistic}, value=np.zeros(size), sd=np.array(sd), event=event
    )


def test_neighbours_that_are_alike_are_one_line():
    found = release_groups(
        [release(), release(sd=(0.5, 3.0)), release("Other"), release(), release(size=4)]
    )
    assert [(one.name, one.count, one.numbers) for one in found] == [
        ("Sum", 2, "2 × 3"),
        ("Other", 1, "3"),
        ("Sum", 1, "3"),
        ("Sum", 1, "4"),
    ]
    assert (found[0].least_sd, found[0].most_sd) == (0.5, 3.0)
    assert found[0].title == "Sum, 2 times"


@pytest.mark.parametrize(
    ("statistic", "words"),
    [
        (
            {"head": {"energy": [1, 2]}, "weights": [[0]]},
            "products of 2 features and the residual, each stage",
        ),
        (
            {"head": {"energy": [1, 2]}, "weights": [[0], [0]]},
            "products of 2 features and 2 residuals",
        ),
        (
            {"table": [], "design": "cloak, within 1e-9"},
            "labels times public columns, one for each input (cloak)",
        ),
        (
            {"of": "x", "candidates": 4},
            "the number of one of 4 kernels, by the exponential mechanism",
        ),
        ({"grid": [], "kind": "counts"}, "count of the records in each bin, empty ones too"),
        ({"grid": [], "kind": "sums"}, "count and sum of outputs of the records"),
        ({"name": "InputMoments", "inputs": 2}, "sums of each input and of its square"),
        ({"bins": 64, "inputs": 2}, "how many records fall into each of 64 bins of each input"),
    ],
)
def test_what_a_release_is_of(statistic, words):
    (group,) = release_groups([release(**statistic)])
    assert words in group.about
    assert group.title == f"{group.name}: {group.about}"
    assert group.kind == ("exponential" if "of" in statistic else "gaussian")


def test_designs_of_their_own_sizes_are_one_line_with_their_range():
    (group,) = release_groups(
        [release(size=size, table=[], design="x") for size in (1200, 900, 1000)]
    )
    assert group.numbers == "3 × 900 – 1,200"
    assert ReleaseGroup("a", 1, 2, 2, "k", 1, 1, "").numbers == "2"


@pytest.fixture(scope="module")
def search():
    bounds = reticent.Bounds(x={"age": (0, 10)})
    grid = [{"bins": 3}, {"bins": 5}, {}]
    promise = {"bounds": bounds, "epsilon": 2.0, "delta": 1e-5, "expected_runs": 6}
    data = pandas.DataFrame({"age": np.random.default_rng(0).uniform(0, 10, 400)})
    return reticent.PrivateSearch(reticent.PrivateHistogram(bins=4), grid, **promise).fit(data)


def test_a_search_tells_the_score_of_the_best_and_of_no_other(search):
    rows = search_table(search).rows
    assert [row[:2] for row in rows] == [["1", "bins 3"], ["2", "bins 5"], ["3", "as given"]]
    assert [bool(row[2]) for row in rows] == [i == search.best_index_ for i in range(3)]
    first, second, third = search_sentences(search)
    assert first.startswith(f"Candidate {search.best_index_ + 1} of 3 was the best run's.")
    assert says(first, "200 records", "200 others", "log-density")
    assert second.startswith("About 6 runs")
    assert third.startswith("The whole search cost ε = 2;")
    told = search_results(search)
    assert (told["best"], told["score"]) == (search.best_index_, search.best_score_)
    assert told["candidates"] == [{"bins": "3"}, {"bins": "5"}, {}]
    assert f"Candidate {search.best_index_ + 1} of 3 " in search_description(search)


def test_what_a_search_found_is_presented_with_what_it_cost(search):
    presenter = presenter_of(search)
    assert presenter.guarantee is search.guarantee_
    assert presenter.releases == search.releases_
    assert presenter.model is search.best_estimator_
    assert facts.headline(presenter)["model"] == "PrivateSearch"
    assert unwrap_search(search.best_estimator_) is search.best_estimator_


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("20", 20),
        ("-3", -3),
        ("2.5", 2.5),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("true", True),
        ("None", None),
        ("full", "full"),
        ("1_000", "1_000"),
        ("inf", "inf"),
    ],
)
def test_values_to_try(text, value):
    assert parse_value(text) == value
    assert type(parse_value(text)) is type(value)


def test_combinations_to_try_keep_ranges_outputs_and_norm():
    bounds = reticent.Bounds(x={"a": (0, 1), "b": (0, 2), "sd": (1, 2)}, y={"c": (0, 3)}, norm=5)
    made = candidates(parse_tries(["x=a,a+b", "basis=2,3"]), bounds, "sd")
    assert [one["basis"] for one in made] == [2, 3, 2, 3]
    assert made[2]["bounds"].x_names == ("a", "b", "sd")
    assert made[0]["bounds"].x == ((0, 1), (1, 2))
    assert (made[0]["bounds"].y, made[0]["bounds"].norm) == (((0, 3),), 5)
    with pytest.raises(BadInput, match=r"no input 'd' with a range\. Inputs: a, b, sd"):
        candidates({"x": [("d",)]}, bounds)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ill", "takes COLUMN=LABEL"),
        ("=no,yes", "takes COLUMN=LABEL"),
        ("ill=", "takes COLUMN=LABEL"),
        ("ill=no", "names one class"),
        ("ill=no,,yes", "has an empty label: leave it out"),
        ("ill=,yes", "has an empty label"),
        ("ill=no,yes,no", "lists 'no' twice"),
    ],
)
def test_classes_that_are_none(text, words):
    with pytest.raises(BadInput, match=words):
        parse_classes([text])


@pytest.mark.parametrize(
    ("text", "bins"),
    [
        (None, None),
        ("12", 12),
        ("12, 8", [12, 8]),
        ("", ""),
        ("-3", "-3"),
        ("٣", "٣"),
        ("1.5", "1.5"),
    ],
)
def test_bins_are_numbers_or_left_for_the_model_to_refuse(text, bins):
    assert read_bins(text) == bins


def test_results_are_named_apart_from_inputs_and_braces_are_kept():
    assert result_names(["w"], ["w", "w_std"], ("{}", "{}_std", "{}_x")) == [
        "predicted_w",
        "predicted_w_std",
        "w_x",
    ]
    assert [name.format("ill") for name in probability_suffixes(["{0}", "yes"])] == [
        "ill",
        "ill_{0}",
        "ill_yes",
    ]


def test_a_group_of_options_stands_where_its_parameter_was():
    def command(file: str, own=None, json: bool = False):
        seen_.append((file, own, json))

    seen_ = []
    taught = with_options(own={"bins": option(int, "N", "words"), "deep": flag("--deep", "words")})(
        command
    )
    assert list(taught.__signature__.parameters) == ["file", "bins", "deep", "json"]
    assert [one.default for one in taught.__signature__.parameters.values()][1:] == [
        None,
        False,
        False,
    ]
    taught(file="f", bins=3, deep=True, json=True)
    assert seen_ == [("f", {"bins": 3, "deep": True}, True)]
    assert example("a", "b") == "\b\nExample:\n  a\n  b"


def test_chances_that_came_true_are_counted_in_ten_bins():
    model = Classifier(lambda x: np.column_stack([1 - x[:, 0], x[:, 0]]), {"a": (0.0, 1.0)})
    told = np.repeat([[0.25], [0.28], [0.95], [1.0]], 10, axis=0)
    truth = np.array(["yes"] * 3 + ["no"] * 17 + ["yes"] * 19 + ["no"], dtype=object)
    found = reliability_numbers(model, told, truth)
    assert found.counts.tolist() == [20, 20]
    assert found.predicted == pytest.approx([0.265, 0.975])
    assert found.observed == pytest.approx([3 / 20, 19 / 20])
    assert found.error == pytest.approx((abs(3 - 5.3) + abs(19 - 19.5)) / 40)
    assert found.accuracy == pytest.approx((17 + 19) / 40)
    wanted = np.where(truth == "yes", told[:, 0], 1 - told[:, 0])
    assert found.loss == pytest.approx(-np.log(np.maximum(wanted, 1e-12)).mean())
    assert (found.low < found.observed).all()
    assert (found.observed < found.high).all()
    with pytest.raises(BadInput, match="X has 40 records and y has 39"):
        reliability_numbers(model, told, truth[:-1])
    with pytest.raises(BadInput, match="such as 'maybe'"):
        reliability_numbers(model, told[:1], ["maybe"])


def binned(kind="mean", counts=(20.0, 1.0), regions=None, protect="records"):
    model = simple([(0.0, 10.0)], ["age"])
    model.releases_[0].bounds = reticent.Bounds(x={"age": (0, 10)}, y={"w": (0, 100)})
    values = {
        "bins_": np.ones(2),
        "kind": kind,
        "protect": protect,
        "edges_": [np.array([0.0, 4.0, 10.0])],
        "counts_": np.array(counts),
        "counts_sd_": np.full(2, 3.0),
        "sums_": np.array([100.0, 7.0]),
        "sums_sd_": np.full(2, 8.0),
        "_params": {"regions": regions},
    }
    vars(model).update(values)
    return model


def test_bars_are_counts_per_unit_or_means_around_the_middle():
    density = BinnedPresenter(binned("count")).released_bins()
    assert density.height == pytest.approx([20 / 4, 1 / 6])
    assert density.sd == pytest.approx([3 / 4, 3 / 6])
    mean = BinnedPresenter(binned()).released_bins()
    assert mean.height[0] == pytest.approx(50 + 100 / 20)
    assert mean.sd[0] == pytest.approx(np.hypot(8, 5 * 3) / 20)
    assert np.isnan(mean.height[1])  # one record with a noise of three is none
    assert BinnedPresenter(binned(regions=object())).released_bins() is None


def test_what_is_odd_about_counts_is_said():
    plain = BinnedPresenter(binned()).remarks(SCREEN)
    odd = BinnedPresenter(binned("count", counts=(20.5, -1.0), protect="labels")).remarks(SCREEN)
    assert len(odd) == len(plain) + 4
    assert odd[4:] == plain
    assert any("NOT protected" in remark for remark in odd)


def test_the_promise_of_a_curve_in_words():
    model = reticent.Obfuscator(
        RBF(0.2, "fixed"), sensitive=[0.5], variance=0.25, mean=0.0, random_state=0
    )
    model.obfuscate(np.linspace(0, 1, 8), np.zeros(8))
    assert promise_in_words(model).startswith("a variance of 0.25 for ")
    rows = dict(certificate_rows(model))
    one = model.certificate_
    assert rows["attained over promised, smallest"] == f"{one.ratio:.9f}"
    assert rows["directions with noise"] == str(one.rank)
    assert float(rows["trace of the noise covariance"]) == pytest.approx(one.trace, rel=1e-6)
