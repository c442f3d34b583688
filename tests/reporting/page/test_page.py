"""The release report.

Complete, the same every time, closed to the outside, and made from releases only.
"""

import base64
import hashlib
import json
import re

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import reticent
from reticent.cli.model_words import MODEL_WORDS
from reticent.privacy.accounting.rounding import rounded_up
from reticent.reporting.attack_curve import percent, recognised
from reticent.reporting.formatting import format_with_error
from reticent.reporting.page.page import typeset, unbroken
from reticent.reporting.registry import PRESENTERS, presenter_of
from reticent.reporting.release_table import release_groups
from tests.support.fitted_models import Page, made
from tests.support.prose import says

EVIL = "\"><script>alert(1)</script> $x$ & 'quoted'"
PARTS = ["words", "budget", "model", "quality", "public", "reproduce"]  # and the headline


def page(model, folder, **options):
    model.report(folder / "report.html", overwrite=True, **options)
    return Page(folder / "report.html")


CASES = {
    "mean": lambda: made("mean", columns=("age", EVIL), epsilon=np.float64(1.5)),
    "mean, pure": lambda: made("mean", columns=("age", EVIL), delta=0.0),
    "mean, seeded": lambda: made("mean", columns=("age", EVIL), random_state=1),
    "histogram": lambda: made("histogram", columns=("age", EVIL), bins=4),
    "covariance": lambda: made("covariance", columns=("age", EVIL)),
    "table": lambda: made("table", columns=("age", EVIL), by=(("age", (0, 5, 10)),), mean=(EVIL,)),
    "gp of one": lambda: made("gp", columns=(EVIL,)),
    "gp of two": lambda: made("gp", columns=("age", EVIL)),
    "gp of one, two outputs": lambda: made("gp", columns=(EVIL,), outputs=("output <i>", "</svg>")),
    "classifier of one": lambda: made("classifier", columns=(EVIL,)),
    "classifier of two": lambda: made("classifier", columns=("age", EVIL), random_state=1),
    "classifier of three, nine classes": lambda: made(
        "classifier", columns=("age", EVIL, "ward"), classes=[*"abcdefgh<"]
    ),
    "binned": lambda: made("gp-binned", columns=("age", EVIL)),
    "labels": lambda: made("gp-labels", columns=("age", EVIL)),
    "mixture": lambda: made("mixture", columns=("age", EVIL), n_components=2),
    "kmeans": lambda: made("kmeans", columns=("age", EVIL), n_clusters=2),
    "factors": lambda: made("factors", columns=("age", EVIL, "ward"), n_components=1),
    "components": lambda: made("components", columns=("age", EVIL, "ward"), n_components=1),
    "gp of four": lambda: made(
        "gp", columns=("age", EVIL, "weight", "</script><script>alert(2)</script>")
    ),
}


@pytest.fixture(scope="module", params=CASES)
def case(request, tmp_path_factory):
    """A model of each kind, and its page."""
    model = CASES[request.param]()
    return model, page(model, tmp_path_factory.mktemp("page"))


def test_every_model_is_here(monkeypatch):
    monkeypatch.setitem(globals(), "made", lambda word, **options: word)
    assert {MODEL_WORDS[case()].estimator for case in CASES.values()} == PRESENTERS.keys()


def test_no_line_ends_between_a_number_and_its_per_cent(tmp_path):
    assert unbroken("67 % pairs, 1 % triples, a % b") == "67\xa0% pairs, 1\xa0% triples, a % b"
    source = page(made("gp", columns=("age", "height"), kernel=None), tmp_path).source
    assert re.search(r"about \d+\xa0% of its spread", source)
    assert says(source, "bands", "95 %")


def test_every_part_is_there(case):
    model, found = case
    promise = model.guarantee_
    assert [attrs["id"] for attrs in found.all("section")] == PARTS
    assert len(found.all("h1")) == 1
    assert "500 records" in found.text
    assert ("Differentially private" in found.text) == promise.private
    assert ("Not private: seeded" in found.text) != promise.private
    assert str(typeset(promise.statement)) in found.source
    assert "This page contains nothing beyond the releases listed below." in found.text
    assert says(found.text, "no ledger")
    for one in release_groups(model.releases_):
        assert f"{one.title} {one.kind} {one.numbers}" in found.text
    best = percent(float(recognised(promise, 0.05)))
    whom = "labels" if promise.relation == "label" else "people"
    said = (
        f"An attacker who accepts 5 % false alarms recognises at most {best} "
        f"of the {whom} in the data."
    )
    assert (said in found.text) == promise.private


def test_it_reaches_out_to_nothing(case):
    _, found = case
    assert "http:" not in found.source
    assert "https:" not in found.source
    assert all(value.startswith("#") for value in found.attribute("href"))
    assert found.attribute("src") == []
    assert set(re.findall(r"url\((.)", found.source)) <= {"#"}
    assert "@import" not in found.source
    (policy,) = [attrs["content"] for attrs in found.all("meta") if "http-equiv" in attrs]
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-")
    assert {one.split()[0] for one in policy.split(";")} == {
        "default-src",
        "style-src",
        "script-src",
        "base-uri",
        "form-action",
    }


def test_names_are_text_and_never_markup(case):
    _, found = case
    assert EVIL in found.text
    page_tags = (
        "html head meta title style body header main section h1 h2 h3 h4 p b i "
        "sup div span ul li pre code details"
    )
    table_tags = (
        "summary table thead tbody tr th td figure figcaption script svg desc "
        "defs g path use text clippath rect"
    )
    assert {tag for tag, _ in found.tags} <= {*page_tags.split(), *table_tags.split()}
    assert len(found.all("i")) in (0, 10)  # of the formula; one output is called "output <i>"
    assert not [
        name
        for _, attrs in found.tags
        for name in attrs
        if name.startswith("on") or "script" in name
    ]


def test_only_its_own_script_may_run(case):
    model, found = case
    scripts = re.findall(r"<script([^>]*)>(.*?)</script>", found.source, re.DOTALL)
    if not hasattr(model, "variance_parts") and not hasattr(model, "predict_proba_band"):
        assert scripts == []
        return
    assert [kind for kind, _ in scripts] == [' type="application/json" id="numbers"', ""]
    seal = base64.b64encode(hashlib.sha256(scripts[1][1].encode()).digest()).decode()
    assert f"script-src 'sha256-{seal}'" in found.source
    assert EVIL in [
        name
        for part in json.loads(scripts[0][1])
        for panel in part["panels"]
        for name in panel["names"]
    ]


def test_the_same_model_gives_the_same_bytes(case, tmp_path):
    model, found = case
    model.save(tmp_path / "m.reticent")
    assert page(reticent.load(tmp_path / "m.reticent"), tmp_path).source == found.source
    digest = (tmp_path / "m.reticent").read_bytes().split(b"\n")[0].split()[-1].decode()
    assert digest in found.text


def test_it_knows_nothing_but_the_releases(tmp_path):
    """Attributes beside the releases, and parameters that were set after the fit,
    leave no trace.
    """
    model = made("mean")
    before = page(model, tmp_path).source
    assert (
        page(
            type(model).from_releases(model.releases_, **model.get_params(deep=False)), tmp_path
        ).source
        == before
    )
    model.secret_ = "a record"
    model.X_ = np.arange(10)
    model.set_params(epsilon=77.0)
    assert page(model, tmp_path).source == before


def test_drawings_have_words_and_the_pages_colours(case):
    model, found = case
    drawings = [attrs for attrs in found.all("svg") if "role" in attrs]
    assert len(drawings) == 1 + 2 * len(
        presenter_of(model).sections()
    )  # the attacker; each output, wide and narrow
    ids = found.attribute("id")
    assert len(set(ids)) == len(ids)
    for attrs in drawings:
        assert attrs["role"] == "img"
        assert set(attrs["aria-labelledby"].split()) <= set(ids)
    body = found.source.split("<body>")[1]
    assert not re.search(r"(fill|stroke|color): #", body)
    for name in set(re.findall(r"var\(--([\w-]+)\)", found.source)):
        assert len(re.findall(rf"--{name}: #", found.source)) == 2, (
            f"{name} on light and on dark paper"
        )
    assert "DejaVu Sans'" not in body
    assert "metadata" not in body


def test_several_outputs_have_a_part_each(tmp_path):
    model = made("gp", columns=("age",), outputs=("weight", "girth"))
    found = page(model, tmp_path)
    assert says(found.text, "weight and girth", "age")
    assert [attrs.get("class") for attrs in found.all("h3")].count("output") == 2
    first, second = json.loads(re.search(r'id="numbers">(.*?)</script>', found.source)[1])
    assert (first["output"], second["output"]) == ("weight", "girth")
    at = np.array(second["panels"][0]["at"][0])
    mean, sd = model.predict(at[:, None], return_std=True)
    assert second["panels"][0]["mean"] == pytest.approx(mean[:, 1], rel=1e-3, abs=1e-3)
    assert second["panels"][0]["known"] == pytest.approx(1.96 * sd[:, 1], rel=1e-3)
    plots = [attrs for attrs in found.all("div") if "data-part" in attrs]
    assert [(one["data-part"], one["data-width"]) for one in plots] == [
        (part, width) for part in "01" for width in ("wide", "narrow")
    ]
    for name in ("weight", "girth"):
        assert f"all: error of one {name}" in found.text
        assert f"{name} (output) 0 to 10" in found.text
        assert f"{name} spreads by about" in found.text


def test_the_values_to_read_are_the_models(tmp_path):
    model = made("gp", columns=("age", "height"))
    found = page(model, tmp_path)
    (numbers,) = json.loads(re.search(r'id="numbers">(.*?)</script>', found.source)[1])
    assert numbers["output"] == "output <i>"
    assert [len(one["names"]) for one in numbers["panels"]] == [2, 2, 1, 1]
    for boxes in numbers["boxes"].values():
        assert len(boxes) == 4
        assert all(
            0 <= left < right <= 1 and 0 <= top < bottom <= 1 for left, top, right, bottom in boxes
        )
    first = numbers["panels"][0]
    i = 7
    j = 30
    width = len(first["at"][0])
    point = [[first["at"][0][i], first["at"][1][j]]]
    mean, sd = model.predict(point, return_std=True)
    assert first["mean"][j * width + i] == pytest.approx(mean[0], rel=1e-3)
    assert first["known"][j * width + i] == pytest.approx(1.96 * sd[0], rel=1e-3)
    spread = 1.96 * np.sqrt(sum(model.variance_parts(point).values()))[0]
    assert first["spread"][j * width + i] == pytest.approx(spread, rel=1e-3)


def test_what_is_read_of_a_classifier_is_the_models(tmp_path):
    model = made("classifier", columns=("age", "height"), classes=["low", "middle", "high", "top"])
    found = page(model, tmp_path)
    (numbers,) = json.loads(re.search(r'id="numbers">(.*?)</script>', found.source)[1])
    assert numbers["classes"] == ["low", "middle", "high", "top"]
    assert [len(one["names"]) for one in numbers["panels"]] == [2, 2, 1, 1]
    first = numbers["panels"][0]
    i = 7
    j = 30
    width = len(first["at"][0])
    at = [[first["at"][0][i], first["at"][1][j]]]
    chances = model.predict_proba(at)[0]
    low, high = model.predict_proba_band(at)
    order = np.argsort(-chances)  # every class is told
    assert [one[j * width + i] for one in first["likeliest"]] == order.tolist()
    assert [one[j * width + i] for one in first["chances"]] == pytest.approx(
        chances[order], abs=1e-3
    )
    assert first["low"][j * width + i] == pytest.approx(low[0, order[0]], abs=1e-3)
    assert first["high"][j * width + i] == pytest.approx(high[0, order[0]], abs=1e-3)
    for said in (
        "So were the classes of output <i>: low, middle, high, top. A record with a label that is "
        "missing, or another, was left out.",
        "the log-odds of each class followed a Gaussian process",
        "chance of the likeliest class",
        "part of the box where",
        "The map shows the likeliest class",
    ):
        assert said in found.text
    assert "dashed lines" not in found.text  # which two classes have


def test_numbers_of_simple_models_are_in_the_tables(tmp_path):
    model = made("covariance")
    found = page(model, tmp_path)
    assert f"age {format_with_error(model.mean_[0], model.mean_sd_[0])}" in found.text
    assert "age and height" in found.text
    model = made("histogram", bins=4)
    found = page(model, tmp_path)
    for count in model.counts_[0]:
        assert f"{np.floor(count):,.0f}" in found.text


def test_how_good_it_is_comes_from_the_model_and_from_the_plan(tmp_path):
    model = made("gp", columns=("age",))
    words = "Before any record was read, the plan expected"
    name = "output <i>"
    assert words not in page(model, tmp_path).text
    expected = {
        "rmse": 8.3,
        "rmse_se": 0.4,
        "output_error": 11.5,
        "coverage": 0.949,
        "non_private_rmse": 7.9,
    }
    found = page(model, tmp_path, expected=expected).text
    assert says(found, words, f"mean of {name} of 8.3 ± 0.4", "7.9 without", f"one {name} of 11.5")
    assert says(found, "95 % bands", "hold 95 %")
    x = np.linspace(0, 10, 4001)[:, None]
    privacy = np.sqrt(model.variance_parts(x)["privacy"].mean())
    assert f"privacy noise {privacy:.2g}"[:-1] in re.sub(r"\s+", " ", found)


def test_the_budget(tmp_path, run, people_csv):
    ledger = tmp_path / "budget.db"
    run("ledger", "open", ledger, "people", "--epsilon", 2, "--delta", 1e-5)
    charged = ("--ledger", ledger, "--dataset", "people", "--delta", 1e-5)
    for word, epsilon in (("mean", 0.4), ("covariance", 0.7), ("histogram", 0.3)):
        run(
            "fit",
            word,
            people_csv,
            "--x",
            "age=0:110",
            "--epsilon",
            epsilon,
            *charged,
            "--out",
            tmp_path / word,
        )
    answer = run(
        "report", tmp_path / "covariance", "--out", tmp_path / "r.html", "--ledger", ledger
    )
    assert answer.code == 0, answer.err
    found = Page(tmp_path / "r.html")
    account = reticent.Ledger(ledger)
    history = account.history("people")
    first, second = (reticent.epsilon([one.event for one in history[:i]], 1e-5) for i in (1, 2))
    since = account.spent("people") - second
    for words, part in (
        ("spent before", first),
        ("this release", second - first),
        ("spent since", since),
    ):
        assert f"{words} {rounded_up(round(part, 12), 3):.3g}" in found.text
    assert f"not spent {2 - account.spent('people'):.3g}" in found.text
    assert f"may spend up to {account.remaining('people'):.3g}" in found.text
    assert account.verify() in found.text
    assert says(found.text, "PrivateCovariance", "1 release", "age", "this release")
    assert f"charged on {history[1].when[:10]}" in found.text
    assert not any(one.who in found.source for one in history)
    assert "by itself counts" not in found.text  # both have the same δ
    widths = [float(width) for width in re.findall(r'style="width: ([\d.]+)%', found.source)]
    assert sum(widths) == pytest.approx(100, abs=0.05)


def test_a_release_with_another_delta_than_the_caps_is_told_at_both(tmp_path, budget):
    model = made("mean", ledger=str(budget), dataset="people", epsilon=0.3, delta=1e-7)
    alone = reticent.epsilon(
        model.guarantee_.events, reticent.Ledger(budget).account("people").delta
    )
    said = page(model, tmp_path).text.replace("\xa0", " ")
    assert f"This release by itself counts ε = {rounded_up(alone, 3):.3g} here" in said
    assert says(said, "same noise", "ε = 0.3", "δ = 10⁻⁷")


def test_a_sentence_is_set_as_in_print():
    said = "(1e-09, 2.5e-07)-privacy; e^1e-09 = 1 or e^0.5 = 1.65 <but> 64.5 e."
    assert str(typeset(said)) == (
        "(10⁻⁹, 2.5·10⁻⁷)-privacy; e<sup>10⁻⁹</sup> = 1 or e<sup>0.5</sup> = "
        "1.65 &lt;but&gt; 64.5 e."
    )


def test_a_ledger_that_does_not_know_the_release_is_said(tmp_path, run, people_csv, budget):
    model = made("mean")
    model.save(tmp_path / "m.reticent")
    answer = run(
        "report", tmp_path / "m.reticent", "--out", tmp_path / "r.html", "--ledger", budget
    )
    assert answer.code == 2
    assert "give --dataset" in answer.err
    options = ("--out", tmp_path / "r.html", "--ledger", budget, "--dataset", "people")
    assert run("report", tmp_path / "m.reticent", *options).code == 0
    assert says(Page(tmp_path / "r.html").text, "ledger", "no charge")


def test_the_charge_that_paid_is_found_among_those_that_look_alike(tmp_path, budget):
    """The release carries its hash."""
    options = {"ledger": str(budget), "dataset": "people", "epsilon": 0.3}
    model = made("mean", **options)
    made("mean", columns=("age", "dose"), **options)
    found = page(model, tmp_path).text
    # not the last, which is of other columns
    assert says(found, "1 release", "age", "height", "weight", "1 more")
    assert "charged on" in found
    other = made("mean", **options)
    rows = [
        found.splitlines() for found in (page(model, tmp_path).text, page(other, tmp_path).text)
    ]
    assert rows[0] != rows[1]
    entries = reticent.Ledger(budget).history("people")
    assert [one.releases_[0].entry for one in (model, other)] == [entries[0].hash, entries[2].hash]
    model.save(tmp_path / "m")
    assert says(page(reticent.load(tmp_path / "m"), tmp_path).text, "“people”", "not given")


def test_whole_people_are_protected_if_so_asked(tmp_path):
    found = page(made("mean", records_per_person=3), tmp_path)
    assert "protects one person with up to 3 records" in found.text
    assert says(found.text, "no person", "more than 3 records")


def test_how_to_fit_it_again(tmp_path):
    found = page(made("gp", noise=2.0), tmp_path)
    for line in (
        "kernel=RBF(length_scale=4)",
        "noise=2.0",
        "stages=2",
        "epsilon=1.0",
        "bounds=reticent.Bounds(x={'age'",
    ):
        assert line in found.text
    assert "random_state" not in found.text
    assert "random_state=1" in page(made("mean", random_state=1), tmp_path).text


def test_the_command(tmp_path, run):
    model = made("mean")
    model.save(tmp_path / "m.reticent")
    out = tmp_path / "r.html"
    told = json.loads(run("report", tmp_path / "m.reticent", "--out", out, "--json").out)
    assert told["model_sha256"] in out.read_text()
    assert out.read_text() == page(model, tmp_path).source
    again = run("report", tmp_path / "m.reticent", "--out", out)
    assert again.code == 5
    assert "exists already" in again.err
    answer = run("report", tmp_path / "m.reticent", "--out", tmp_path / "other.html")
    assert "in a browser" in answer.out
    (tmp_path / "bad").write_text("not a model")
    assert run("report", tmp_path / "bad", "--out", tmp_path / "x.html").code == 5
    assert not (tmp_path / "x.html").exists()


def test_a_model_that_was_not_fitted_has_no_report(tmp_path):
    with pytest.raises(NotFittedError):
        reticent.PrivateMean().report(tmp_path / "r.html")
