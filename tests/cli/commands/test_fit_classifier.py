"""``reticent fit classifier``: its options, what it shows, what it predicts, what it refuses."""

import csv
import json

import numpy as np
import pandas as pd
import pytest

import reticent
from reticent.cli.class_labels import as_the_column_has_them, parse_classes
from reticent.cli.demo_data import people
from reticent.reporting.presenters.class_probabilities import (
    average_probabilities,
    format_band,
    format_probability,
    probability_grid,
    probability_lines,
)
from reticent.reporting.presenters.classification import ClassificationPresenter
from reticent.reporting.presenters.input_distribution import input_ranges
from tests.support.prose import says

X = ("--x", "age=0:110", "--x", "weight=2:150")
SMALL = ("--basis", 6)
PROMISE = ("--epsilon", 3, "--delta", 1e-5)
NO_YES = ("--classes", "ill=no,yes")


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """People who are ill in old age, mostly, in a file with labels, labels with a comma, and
    numbers that are labels.
    """
    table = people(800, seed=4)
    random = np.random.default_rng(1)
    ill = random.random(800) < 1 / (1 + np.exp(-(table["age"] - 50) / 8))
    path = tmp_path_factory.mktemp("data") / "ill.csv"
    with path.open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["age", "weight", "ill", "why", "code", "height"])
        names = (
            np.where(ill, "yes", "no"),
            np.where(ill, "yes, always", "no, {never}"),
            np.where(ill, "1.0", "0"),
        )
        lines.writerows(zip(table["age"], table["weight"], *names, table["height"], strict=True))
    return path


@pytest.fixture
def fit(run, records, tmp_path):
    def call(*options, data=records):
        return run("fit", "classifier", data, *options, "--out", tmp_path / "m.reticent")

    return call


@pytest.fixture(scope="module")
def model(records):
    bounds = reticent.Bounds(
        x={"age": (0, 110), "weight": (2, 150)}, classes={"ill": ["no", "yes"]}
    )
    return reticent.GPClassifier(bounds=bounds, epsilon=3, delta=1e-5, basis=8).fit(
        reticent.scan(records)
    )


def test_a_fit_is_shown_and_predicts(fit, run, records, tmp_path):
    answer = fit(*X, *NO_YES, *PROMISE, *SMALL)
    assert answer.code == 0, answer.err
    words = " ".join(answer.out.split())
    for said in (
        "GPClassifier, 800 records PRIVATE",
        "chance of yes",
        "95 % band",
        "A record whose label is missing, or not among the classes, is left out.",
        "bands hold the model's own uncertainty and the privacy noise",
        "reticent predict",
    ):
        assert said in words
    path = tmp_path / "m.reticent"
    out = tmp_path / "p.csv"
    model = reticent.load(path)
    assert model.releases_[0].bounds.classes == ("no", "yes")
    told = run("predict", path, records, "--out", out)
    assert told.code == 0, told.err
    assert says(" ".join(told.out.split()), "ill:", "ill_no", "ill_yes", "probability")
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert list(rows[0]) == ["age", "weight", "ill", "ill_no", "ill_yes"]
    inputs = np.array([[float(row["age"]), float(row["weight"])] for row in rows])
    chances = model.predict_proba(inputs)
    assert [float(row["ill_yes"]) for row in rows] == pytest.approx(chances[:, 1], rel=1e-3)
    assert [row["ill"] for row in rows] == model.predict(inputs).tolist()
    assert (np.array([row["ill"] == "yes" for row in rows]) == (inputs[:, 0] > 50)).mean() > 0.8


def test_inspect_shows_classes_and_machines_are_told_all(fit, run, tmp_path):
    told = json.loads(fit(*X, *NO_YES, *PROMISE, *SMALL, "--method", "labels", "--json").out)
    assert told["results"]["classes"] == ["no", "yes"]
    assert told["results"]["method"] == "labels"
    effect = told["results"]["effects"]["age"]
    assert effect["likeliest"][0] == "no"
    assert effect["likeliest"][-1] == "yes"
    for label in ("no", "yes"):
        low, mid, high = (np.array(effect[name][label]) for name in ("low", "chances", "high"))
        assert (low <= mid).all()
        assert (mid <= high).all()
    shown = run("inspect", tmp_path / "m.reticent").out
    assert "ill (classes)  no, yes" in shown
    assert says(" ".join(shown.split()), "ClassGram", "22 times", "6 features", "2 residuals")


def test_it_is_charged_to_the_ledger(fit, run, tmp_path):
    ledger = tmp_path / "b.db"
    run("ledger", "open", ledger, "people", "--epsilon", 3, "--delta", 1e-5)
    answer = fit(
        *X,
        *NO_YES,
        "--epsilon",
        1,
        "--delta",
        1e-5,
        *SMALL,
        "--ledger",
        ledger,
        "--dataset",
        "people",
    )
    assert answer.code == 0, answer.err
    assert 'people": spent ε=1' in answer.out
    again = run("fit", "classifier", "x.csv", *X, *NO_YES, *PROMISE, "--out", tmp_path / "other")
    assert again.code == 5


def test_labels_may_be_numbers_and_hold_commas(fit, run, records, tmp_path):
    assert fit(*X, "--classes", "code=0,1", *PROMISE, *SMALL).code == 0
    model = reticent.load(tmp_path / "m.reticent")
    assert model.classes_.tolist() == [0, 1]
    assert model.predict([[5.0, 60.0], [100.0, 60.0]]).tolist() == [0, 1]  # the file says 1.0
    other = tmp_path / "other"
    out = tmp_path / "p.csv"
    labels = 'why="no, {never}", "yes, always"'
    assert (
        run(
            "fit", "classifier", records, *X, "--classes", labels, *PROMISE, *SMALL, "--out", other
        ).code
        == 0
    )
    assert reticent.load(other).predict([[100.0, 60.0]]).tolist() == ["yes, always"]
    assert run("predict", other, records, "--out", out).code == 0
    assert next(csv.reader(out.read_text().splitlines()))[2:] == [
        "why",
        "why_no, {never}",
        "why_yes, always",
    ]


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        ([*X], 4, "the classes are not given, and reticent never takes them from the data"),
        (
            [*X],
            4,
            "--classes ill=no,yes A record whose label is missing or not listed is left out.",
        ),
        ([*NO_YES], 4, "the inputs have no bounds"),
        ([*X, "--classes", "ill"], 2, "--classes takes COLUMN=LABEL,LABEL"),
        ([*X, "--classes", "=no,yes"], 2, "--classes takes COLUMN=LABEL,LABEL"),
        (
            [*X, "--classes", "ill=yes"],
            2,
            "names one class, so there is nothing to tell apart: name all labels",
        ),
        ([*X, "--classes", "ill=no,yes,no"], 2, "lists 'no' twice: name each class once"),
        (
            [*X, "--classes", "ill=no,,yes"],
            2,
            "leave it out. A record without a label, or with one that is not listed, is left out",
        ),
        (
            [*X, "--classes", "ill=,yes"],
            2,
            "has an empty label: leave it out",
        ),
        (
            [*X, *NO_YES, "--classes", "why=a,b"],
            2,
            "given 2 times, but a classifier predicts one column",
        ),
        ([*X, "--classes", "age=1,2"], 2, "'age' is given both with --x and with --classes"),
        ([*X, "--classes", "sick=no,yes"], 2, "there is no column 'sick'"),
        (
            [*X, *NO_YES, "--y", "height=40:220"],
            2,
            "classifier predicts labels, which have no range: in place of --y height=40:220",
        ),
        ([*X, *NO_YES, "--noise", "2"], 2, "classifier has no option --noise"),
        (
            [*X, *NO_YES, "--method", "best"],
            2,
            "--method must be one of softmax, labels, dirichlet",
        ),
        ([*X, *NO_YES, "--basis", "0"], 2, "--basis must be a whole number"),
    ],
    ids=str,
)
def test_refusals_say_what_to_do(fit, tmp_path, options, code, words):
    answer = fit(*options, *PROMISE)
    assert answer.code == code
    assert words in answer.err
    assert not (tmp_path / "m.reticent").exists()


def test_other_models_have_no_classes(run, records, tmp_path):
    for word in ("gp", "mean"):
        answer = run("fit", word, records, *X, *NO_YES, *PROMISE, "--out", tmp_path / "m")
        assert answer.code == 2
        assert "leave --classes out. Models that do: reticent fit classifier" in answer.err
    answer = run(
        "fit",
        "classifier",
        records,
        *X,
        *NO_YES,
        "--epsilon",
        1,
        "--delta",
        0,
        "--out",
        tmp_path / "m",
    )
    assert answer.code == 2
    assert "--delta must be above 0" in answer.err


class Column:
    """A source of one column of some kind."""

    def __init__(self, kind):
        self._kind = kind

    def position(self, key):
        return 0

    def kind(self, position):
        return self._kind, "dtype"


@pytest.mark.parametrize(
    ("labels", "kind", "given"),
    [
        (["0", "1"], "any", [0, 1]),
        (["0", "1"], "text", ["0", "1"]),
        (["0", "1"], "number", [0, 1]),
        (["-1", "0.5"], "any", [-1, 0.5]),
        (["1", "01"], "any", ["1", "01"]),
        (["1", "one"], "any", ["1", "one"]),
        (["nan", "1"], "any", ["nan", "1"]),
        (["inf", "1"], "any", ["inf", "1"]),
        (["9007199254740993", "1"], "any", ["9007199254740993", "1"]),
        (["true", "False"], "number", [True, False]),
        (["true", "false"], "any", ["true", "false"]),
    ],
    ids=str,
)
def test_labels_are_what_the_column_holds(labels, kind, given):
    found = as_the_column_has_them(labels, Column(kind), "ill")
    assert found == given
    assert [type(one) for one in found] == [type(one) for one in given]


def test_texts_for_a_column_of_numbers_are_refused(run, tmp_path):
    pandas = pytest.importorskip("pandas")
    path = tmp_path / "d.parquet"
    pandas.DataFrame({"a": [0.0, 1.0] * 50, "ill": [0, 1] * 50}).to_parquet(path)
    common = (path, "--x", "a=0:1", *PROMISE, *SMALL, "--out", tmp_path / "m")
    answer = run("fit", "classifier", *common, "--classes", "ill=no,yes")
    assert answer.code == 2
    assert "holds numbers (int64), and 'no' is none" in answer.err
    assert "--classes ill=0,1" in answer.err
    assert run("fit", "classifier", *common, "--classes", "ill=0,1").code == 0


def test_the_name_ends_at_the_first_sign():
    assert parse_classes(["income=<=50K,>50K"]) == {"income": ["<=50K", ">50K"]}
    assert parse_classes([]) == {}


def test_lines_and_grid_are_the_models(model):
    first, second = probability_lines(model, 5)
    assert first.names == ("age",)
    anchor = input_ranges(model)[1]
    points = np.column_stack([first.at[0], np.full(5, anchor[1])])
    assert first.probabilities == pytest.approx(model.predict_proba(points))
    assert (second.at[0][0], second.at[0][-1]) == (2, 150)
    grid = probability_grid(model)
    x, y = grid.at
    at = np.array([[x[7], y[30]]])
    assert grid.probabilities[30, 7] == pytest.approx(model.predict_proba(at)[0])
    low, high = model.predict_proba_band(at)
    assert grid.bands["privacy"][0][30, 7] == pytest.approx(low[0])
    assert grid.width[30, 7] == pytest.approx((high - low)[0, grid.likeliest[30, 7]])
    found = average_probabilities(model)
    assert sum(found.fractions) == pytest.approx(1)
    assert 0.5 <= found.likeliest <= 1
    assert found.widths["model"] < found.widths["privacy"]


def test_a_fit_that_says_nothing_is_noted(model):
    assert ClassificationPresenter(model).notes() == []
    x = np.random.default_rng(0).uniform(size=(30, 1))
    bounds = reticent.Bounds(x=[(0, 1)], classes=[0, 1])
    little = reticent.GPClassifier(bounds=bounds, epsilon=0.05, delta=1e-6, basis=4, random_state=0)
    little.fit(x, x[:, 0] > 0.5)
    assert "hardly known" in ClassificationPresenter(little).notes()[0]


def test_chances_as_people_read_them():
    assert [format_probability(value) for value in (0.5, 0.019, 0.985, 0, 1)] == [
        "50 %",
        "1.9 %",
        "98.5 %",
        "< 0.1 %",
        "> 99.9 %",
    ]
    assert format_band(0.1, 0.25) == "10 to 25 %"
    assert format_band(0, 0.25) == "< 0.1 % to 25 %"


def test_misspelt_classes_are_suspected_from_what_came_out(fit):
    answer = fit(*X, "--classes", "ill=No,Yes", "--epsilon", 10, "--delta", 1e-5, *SMALL)
    assert answer.code == 0, answer.err
    said = " ".join((answer.out + answer.err).split())
    assert "Only about" in said
    assert "worthless" in said
    assert "spelling and capitals of the classes" in said


def test_yes_and_no_of_a_codebook_are_read_in_all_their_spellings(run, records, tmp_path):
    """As an input is: TRUE and 1 mean yes, in CSV and Parquet; codes that mean missing do not."""
    (tmp_path / "codebook.toml").write_text(
        '[columns.age]\nkind = "number"\nlow = 0\nhigh = 110\nuse = "x"\n'
        '[columns.ill]\nkind = "yesno"\nno = "healthy"\nyes = "ill"\nuse = "class"\n'
    )
    table = pd.read_csv(records)
    ill = table["ill"].to_numpy() == "yes"
    spelled = np.where(ill, np.resize(["TRUE", "1", "ill"], 800), np.resize(["no", "0"], 800))
    pd.DataFrame({"age": table["age"], "ill": spelled}).to_csv(tmp_path / "a.csv", index=False)
    pd.DataFrame({"age": table["age"], "ill": ill}).to_parquet(tmp_path / "b.parquet")
    asked = ("--codebook", tmp_path / "codebook.toml", *SMALL, *PROMISE, "--out")
    for name in ("a.csv", "b.parquet"):
        answer = run("fit", "classifier", tmp_path / name, *asked, tmp_path / f"{name}.m")
        assert answer.code == 0, answer.err
        model = reticent.load(tmp_path / f"{name}.m")
        assert model.classes_.tolist() == ["healthy", "ill"]
        assert model.predict([[10.0], [95.0]]).tolist() == ["healthy", "ill"], name
        assert model.score([[10.0], [95.0]], [0, True]) == 1
    assert model.releases_[0].bounds == reticent.Bounds.from_codebook(tmp_path / "codebook.toml")
    answer = run(
        "fit", "classifier", tmp_path / "a.csv", *asked, tmp_path / "n", "--missing", "healthy"
    )
    assert says(answer.err, "--missing healthy", "level")
