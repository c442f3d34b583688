"""``reticent search``, and what shows a search: the terminal, the report, predictions."""

import json

import numpy as np
import pytest

import reticent
from reticent import BadInput, Bounds, Ledger, PrivateHistogram, PrivateSearch
from reticent.cli.commands.search import candidates, parse_tries
from reticent.privacy.accounting.guarantee import Guarantee
from reticent.reporting.attack_curve import recognised
from reticent.reporting.search_result import search_table
from tests.support.prose import says

PROMISE = ("--epsilon", 2, "--delta", 1e-5)
BINS = ("--x", "age=0:110", "--try", "bins=3,12")


@pytest.fixture
def found(run, people_csv, tmp_path):
    path = tmp_path / "h.reticent"
    answer = run("search", "histogram", people_csv, *BINS, *PROMISE, "--out", path)
    assert answer.code == 0, answer.err
    return path, answer


def test_what_a_person_is_told(found):
    path, answer = found
    model = reticent.load(path)
    chosen = f"bins {model.best_candidate_['bins']}"
    line = next(line for line in answer.out.splitlines() if chosen in line)
    assert "±" in line
    other = next(line for line in answer.out.splitlines() if "bins " in line and chosen not in line)
    assert "±" not in other, "the other candidate's score is not known"
    words = " ".join(answer.out.split())
    for said in (
        "fitted on 250 records and judged on 250 others",
        "About 16 runs",
        "is not known",
        "ε = 2",
        "mean log-density",
    ):
        assert said in words


def test_what_a_machine_is_told(run, found, tmp_path, people_csv):
    path, _ = found
    about = json.loads(run("inspect", path, "--json").out)
    assert about["model"] == "PrivateSearch"
    search = about["results"]["search"]
    assert search["candidates"] == [{"bins": "3"}, {"bins": "12"}]
    assert search["best"] == reticent.load(path).best_index_
    assert search["training"] + search["validation"] == 500
    assert search["expected_runs"] == pytest.approx(16)
    assert about["results"]["histogram"]
    told = json.loads(
        run(
            "search", "histogram", people_csv, *BINS, *PROMISE, "--out", tmp_path / "j", "--json"
        ).out
    )
    assert told["results"].keys() == about["results"].keys()
    assert (
        run(
            "search", "histogram", people_csv, *BINS, *PROMISE, "--out", tmp_path / "q", "--quiet"
        ).out
        == ""
    )


def test_report_of_a_search(run, found, tmp_path):
    path, _ = found
    page = tmp_path / "report.html"
    assert run("report", path, "--out", page).code == 0
    text = " ".join(page.read_text().split())
    for said in (
        "PrivateSearch",
        "500",
        "bins 3",
        "bins 12",
        "score ± privacy noise",
        "The whole search cost",
        "Choice",
        '<section id="search">',
        "Candidate",
        "not released",
    ):
        assert said in text
    best = reticent.load(path)
    assert "candidates=({'bins': 3}, {'bins': 12})" in text.replace("&#39;", "'")
    best.report(tmp_path / "again.html")
    assert (tmp_path / "again.html").read_text() == page.read_text()


def test_columns_are_tried_and_predictions_come_from_the_best(run, people_csv, tmp_path):
    ledger = tmp_path / "budget.db"
    Ledger(ledger).open("people", 2.0, 1e-5)
    model = tmp_path / "gp"
    out = tmp_path / "p.csv"
    columns = ("--x", "age=0:110", "--x", "height=40:220", "--y", "weight=2:150")
    tries = ("--try", "x=age,age+height", "--try", "stages=2", "--try", "basis=6", "--runs", 2)
    charged = ("--ledger", ledger, "--dataset", "people")
    answer = run("search", "gp", people_csv, *columns, *tries, *PROMISE, *charged, "--out", model)
    assert answer.code == 0, answer.err
    assert "age + height" in answer.out
    assert Ledger(ledger).spent("people") == pytest.approx(2.0)
    page = tmp_path / "gp.html"
    assert run("report", model, "--out", page, "--ledger", ledger).code == 0
    assert "this release" in page.read_text()
    told = run("predict", model, people_csv, "--out", out)
    assert told.code == 0, told.err
    assert len(out.read_text().splitlines()) == 501


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "something to try"),
        (("--try", "bins"), "NAME=VALUE"),
        (("--try", "bins=,3"), "NAME=VALUE"),
        (("--try", "bins=3", "--try", "bins=4"), "given twice"),
        (("--try", "epsilon=1,2"), "option of its own"),
        (("--try", "bin=3,4"), "cannot set 'bin'"),
        (("--try", "bins=3,0.5"), "bins must be"),
        (("--try", "x=weight"), "no input 'weight'"),
        (("--try", "bins=3,4", "--scheme", "best"), "scheme must be"),
        (("--try", "bins=3,4", "--scoring", "accuracy"), "scoring must be"),
        (("--try", "bins=3,4", "--runs", "0"), "--runs must be"),
    ],
    ids=str,
)
def test_wrong_use(run, people_csv, tmp_path, options, words):
    answer = run(
        "search",
        "histogram",
        people_csv,
        "--x",
        "age=0:110",
        *options,
        *PROMISE,
        "--out",
        tmp_path / "m",
    )
    assert answer.code == 2
    assert words in answer.err
    assert not (tmp_path / "m").exists()


def test_values_and_combinations():
    tries = parse_tries(["a=1,2.5,true,none,fast", "x=u,u+v"])
    assert tries["a"] == [1, 2.5, True, None, "fast"]
    assert [type(value) for value in tries["a"][:2]] == [int, float]
    bounds = Bounds(x={"u": (0, 1), "v": (0, 2)}, y={"y": (0, 3)})
    made = candidates(tries, bounds)
    assert len(made) == 10
    assert made[1] == {"a": 1, "bounds": Bounds(x={"u": (0, 1), "v": (0, 2)}, y={"y": (0, 3)})}
    with pytest.raises(BadInput):
        candidates({"x": [("w",)]}, bounds)


def test_a_search_after_other_releases_is_refused_with_advice(run, people_csv, budget, tmp_path):
    own = ("--epsilon", 0.3, "--delta", 1e-5, "--ledger", budget, "--dataset", "people")
    assert (
        run("fit", "mean", people_csv, "--x", "age=0:110", *own, "--out", tmp_path / "m").code == 0
    )
    answer = run("search", "histogram", people_csv, *BINS, *own, "--out", tmp_path / "h")
    assert answer.code == 3
    assert "before anything else" in answer.err


def test_the_attackers_curve_of_a_search_is_below_that_of_its_epsilon():
    data = np.random.default_rng(0).uniform(0, 110, size=(500, 1))
    search = PrivateSearch(
        PrivateHistogram(), {"bins": [3, 5]}, bounds=Bounds(x=(0, 110)), epsilon=1, delta=1e-5
    ).fit(data)
    rates = np.array([0.01, 0.05, 0.5, 0.9])
    curve = recognised(search.guarantee_, rates)
    line = recognised(Guarantee(1e-5, "record", (reticent.Pure(epsilon=1.0),), private=True), rates)
    assert (curve >= rates).all()
    assert (curve <= line + 1e-5).all()
    assert curve[0] < 0.9 * line[0]
    assert [row[1] for row in search_table(search).rows] == ["bins 3", "bins 5"]


def test_classifiers_are_searched(run, tmp_path):
    random = np.random.default_rng(0)
    x = random.uniform(0, 1, (400, 2))
    path = tmp_path / "d.csv"
    model = tmp_path / "m"
    lines = [f"{a:.3f},{b:.3f},{'yes' if a > 0.5 else 'no'}" for a, b in x]
    path.write_text("\n".join(["a,b,ill", *lines]))
    columns = ("--x", "a=0:1", "--x", "b=0:1", "--classes", "ill=no,yes")
    tries = (
        "--try",
        "x=a,a+b",
        "--try",
        "method=softmax,labels",
        "--try",
        "stages=3",
        "--try",
        "basis=5",
        "--runs",
        2,
    )
    answer = run(
        "search", "classifier", path, *columns, *tries, *PROMISE, "--scoring", "log", "--out", model
    )
    assert answer.code == 0, answer.err
    assert "inputs a + b" in answer.out
    assert "the mean log-probability of the right label" in " ".join(answer.out.split())
    assert reticent.load(model).best_estimator_.classes_.tolist() == ["no", "yes"]
    assert run("predict", model, path, "--out", tmp_path / "p.csv").code == 0
    assert run("report", model, "--out", tmp_path / "r.html").code == 0
    assert says((tmp_path / "r.html").read_text(), "classes of ill", "no", "yes")


def test_the_drawing_shows_what_was_released_and_nothing_else():
    data = np.random.default_rng(0).uniform(0, 110, size=(500, 1))
    tried = {"bins": list(range(2, 42))}
    search = PrivateSearch(
        PrivateHistogram(), tried, bounds=Bounds(x=(0, 110)), epsilon=1, delta=1e-5, expected_runs=3
    )
    search.fit(data)
    (axes,) = reticent.plot.search(search).axes
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert len(labels) == 24
    assert f"{search.best_index_ + 1}  bins {search.best_candidate_['bins']}" in labels
    texts = [text.get_text() for text in axes.texts]
    assert texts.count("not released") == 23
    (dot,) = [line for line in axes.lines if line.get_marker() == "o"]
    assert dot.get_xdata()[0] == search.best_score_
    with pytest.raises(BadInput, match="draws a fitted PrivateSearch, not a PrivateHistogram"):
        reticent.plot.search(search.best_estimator_)
    bars, found = (
        reticent.plot.release(one).axes[0].patches for one in (search, search.best_estimator_)
    )
    assert [bar.get_height() for bar in bars] == [bar.get_height() for bar in found] != []


def test_the_ledger_of_the_estimator_inside_stays_out_of_the_report(tmp_path):
    inside = PrivateHistogram(
        ledger="postgresql://me:s3cret@host/db", dataset="whispered", random_state=7
    )
    search = PrivateSearch(
        inside, {"bins": [3, 5]}, bounds=Bounds(x=(0, 110)), epsilon=1, delta=1e-5
    )
    search.fit(np.linspace(0, 110, 200)[:, None]).report(tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text("utf-8")
    assert "PrivateHistogram()" in page
    assert not any(word in page for word in ("s3cret", "whispered", "random_state"))
    search.save(tmp_path / "model")
    reticent.load(tmp_path / "model").report(tmp_path / "again.html")
    assert "PrivateHistogram()" in (tmp_path / "again.html").read_text("utf-8")
