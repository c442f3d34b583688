"""People as the unit of privacy, weights, and what is said about a release, from the terminal."""

import json

import numpy as np
import pytest

import reticent

PROMISE = ("--epsilon", 1, "--delta", 1e-6)
AGE = ("--x", "age=0:110")
PERSON = ("--person", "patient_id")


@pytest.fixture(scope="module")
def visits(tmp_path_factory):
    """300 people; person i has 1 + i % 4 visits, and one record is nobody's."""
    random = np.random.default_rng(0)
    lines = ["patient_id,age,weight,w"]
    for person in range(300):
        age = random.uniform(20, 80)
        lines += [
            f"p{person:03},{age:.1f},{50 + 0.3 * age + random.normal():.2f},5"
            for _ in range(1 + person % 4)
        ]
    lines.append(",44,60,5")
    path = tmp_path_factory.mktemp("visits") / "visits.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def fit(run, visits, tmp_path):
    def call(*options, word="mean", columns=AGE, out="m.reticent"):
        return run("fit", word, visits, *columns, *PROMISE, *options, "--out", tmp_path / out)

    return call


def words(text):
    return " ".join(text.split())


def test_people_are_named_and_counted_wherever_the_promise_is_shown(fit, run, tmp_path):
    answer = fit(*PERSON)
    assert answer.code == 0, answer.err
    who = "any one of the 300 people in 'patient_id', with all of their records"
    assert "PrivateMean, 300 people" in answer.out
    assert who in words(answer.out)
    assert "counts once" in words(answer.out)
    model = reticent.load(tmp_path / "m.reticent")
    assert (model.person, model.releases_[0].n) == ("patient_id", 300)
    shown = run("inspect", tmp_path / "m.reticent")
    assert who in words(shown.out)
    about = json.loads(run("inspect", tmp_path / "m.reticent", "--json").out)["guarantee"]
    assert (about["protects"], about["person"], about["units"]) == (who, "patient_id", 300)
    assert "two, only twice the ε" in about["assumed"][0]
    assert about["mechanisms"][0]["kind"] == "gaussian"
    assert about["mu"] == pytest.approx(1 / about["mechanisms"][0]["noise_multiplier"])
    assert who in about["statement"]


def test_options_of_the_unit_reach_the_model(fit, tmp_path):
    options = ("--contribution", 3, "--weight", "w=0:20", "--neighbours", "add-remove")
    answer = fit(*PERSON, *options)
    assert answer.code == 0, answer.err
    unit = reticent.load(tmp_path / "m.reticent").releases_[0].unit
    assert (unit.contribution, unit.neighbours) == (3, "add-remove")
    assert (unit.weight, unit.weight_bound) == ("w", 20)
    said = words(answer.out)
    assert "up to 3 records" in said
    assert "a weight of 20 or more counts as one" in said


def test_a_protected_number_is_said_to_be_about_so_many(fit, run, tmp_path):
    answer = fit(*PERSON, "--neighbours", "add-remove")
    model = reticent.load(tmp_path / "m.reticent")
    said = words(answer.out)
    assert "their number is protected too: about" in said
    assert f"{model.releases_[0].value[0]:g}" not in said  # not to more digits than it has
    shown = run("inspect", tmp_path / "m.reticent").out
    assert "number of people" in shown
    assert "NumberOfUnits" not in shown
    assert (
        json.loads(run("inspect", tmp_path / "m.reticent", "--json").out)["guarantee"]["units"]
        is None
    )


def test_believed_numbers_of_records_are_called_believed(fit, run, tmp_path):
    assert "believed" in words(fit("--records-per-person", 3).out)
    fit("--records-per-person", 3, "--confirmed-by", "A. Keeper", out="n.reticent")
    assert "Confirmed by A. Keeper." in words(run("inspect", tmp_path / "n.reticent").out)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--person", "patient"), "Did you mean patient_id?"),
        (("--person", "age"), "it can be one of them"),
        (("--person", "patient_id=1:2"), "takes the name of a column"),
        ((*PERSON, "--contribution", 0), "--contribution must be a whole number"),
        ((*PERSON, "--records-per-person", 2), "Give one of them"),
        (("--weight", "w=a,b"), "a weight is a number"),
        (("--weight", "w=20"), "a public bound: --weight w=0:20."),
        (("--weight", "weight=1:20"), "did you mean --weight weight=0:20?"),
        (("--weight", "wt=0:20"), "there is no column 'wt'"),
        (("--weight", "w=0:20", "--person", "w"), "it can be one of them"),
        (("--note", "x" * 2001), "--note must be a text"),
    ],
)
def test_what_is_wrong_is_said_before_the_charge(fit, tmp_path, budget, options, said):
    answer = fit(*options, "--ledger", budget, "--dataset", "people")
    assert answer.code in (2, 4)
    assert said in words(answer.err)
    assert not reticent.Ledger(budget).history("people")
    assert not (tmp_path / "m.reticent").exists()


def test_an_account_names_its_unit_and_refuses_others(fit, run, tmp_path):
    ledger = tmp_path / "budget.db"
    unit = (*PERSON, "--neighbours", "add-remove")
    opened = run("ledger", "open", ledger, "visits", "--epsilon", 3, "--delta", 1e-5, *unit)
    assert "--dataset visits --person patient_id --neighbours add-remove" in words(opened.out)
    shown = words(run("ledger", "show", ledger).out)
    assert all(part in shown for part in ("a person", "(patient_id), added or removed"))
    history = words(run("ledger", "history", ledger).out)
    assert "protects a person" in history
    assert "(patient_id), added or removed" in history
    account = ("--ledger", ledger, "--dataset", "visits")
    refused = fit(*PERSON, *account)
    assert refused.code == 5
    assert "--neighbours add-remove" in words(refused.err)
    assert fit(*unit, *account).code == 0
    (state,) = json.loads(run("ledger", "show", ledger, "--json").out)
    assert (state["person"], state["neighbours"], state["charges"]) == (
        "patient_id",
        "add-remove",
        1,
    )


def test_a_codebook_says_person_weight_and_release(run, visits, tmp_path):
    codebook = tmp_path / "codebook.toml"
    codebook.write_text(
        '[columns.age]\nkind = "number"\nlow = 0\nhigh = 110\n'
        '[columns.patient_id]\nuse = "person"\nkind = ""\n'
        '[columns.w]\nuse = "weight"\nlow = 0\nhigh = 20\n'
        '[release]\ntitle = "Ages"\ncontroller = "City hospital"\n'
    )
    out = tmp_path / "m.reticent"
    answer = run(
        *("fit", "mean", visits, "--codebook", codebook, *PROMISE, "--out", out),
        *("--controller", "Another hospital"),
    )
    assert answer.code == 0, answer.err
    model = reticent.load(out)
    assert (model.person, model.weight, model.weight_bound) == ("patient_id", "w", 20)
    assert dict(model.about) == {"title": "Ages", "controller": "Another hospital"}
    assert list(model.feature_names_in_) == ["age"]
    page = tmp_path / "page.html"
    assert run("report", out, "--out", page).code == 0
    text = page.read_text()
    assert "<h1>Ages</h1>" in text
    assert "Another hospital" in text


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ('[columns.id]\nuse = "person"\nmissing = [9]', "has no missing"),
        ('[columns.id]\nuse = "person"\n[columns.i]\nuse = "person"', "two columns of use"),
        ('[columns.w]\nuse = "weight"', "a public high above 0"),
        ('[columns.w]\nuse = "weight"\nlow = 1\nhigh = 2', "low = 0"),
        ('[columns.w]\nuse = "weight"\nhigh = "2"', "low = 0"),
        ('[release]\ntitel = "x"', "Did you mean 'title'?"),
        ("[release]\ntitle = 3", "must be a text"),
    ],
)
def test_a_wrong_codebook_is_told_what_to_write(run, visits, tmp_path, lines, said):
    codebook = tmp_path / "codebook.toml"
    codebook.write_text(f'[columns.age]\nkind = "number"\nlow = 0\nhigh = 110\n{lines}\n')
    answer = run("check", visits, "--codebook", codebook)
    assert answer.code == 5
    assert said in words(answer.err)


def test_a_template_mentions_people_weights_and_the_release(run, visits, tmp_path):
    out = tmp_path / "codebook.toml"
    assert run("codebook", visits, "--out", out).code == 0
    text = out.read_text()
    assert 'use = "person"' in text
    assert 'use = "weight"' in text
    assert "# controller =" in text


def test_a_check_counts_records_of_people_and_looks_at_weights(run, tmp_path):
    data = tmp_path / "odd.csv"
    rows = ["a1,2", "A1,-1", "007,30", "7,x", "7,1", " 7,1", ",", *["NA,2"] * 5]
    data.write_text("id,w\n" + "\n".join(rows) + "\n")
    said = words(run("check", data, "--person", "id", "--weight", "w=0:20").out)
    assert "5 in id; records of a person: median 1, largest 5; 2 have more than one" in said
    assert "1 records name nobody" in said
    assert "'a1' and 'A1', '007' and '7'" in said
    assert "'NA' has 5 records" in said
    assert "1 above the bound 20" in said
    assert "2 are missing or no number, 1 are negative" in said


def test_codes_of_missing_values_are_given_for_people_and_weights_by_name(run, tmp_path):
    """999 is somebody's number beside a weight that is not known."""
    data = tmp_path / "visits.csv"
    rows = ["NA,1,2", "NA,1,2", "999,1,2", "7,1,999", "8,1,2"]
    data.write_text("id,age,w\n" + "\n".join(rows) + "\n")
    codes = ("--missing", "id=NA", "--missing", "w=999")
    unit = ("--person", "id", "--weight", "w=0:20")
    answer = run("fit", "mean", data, *AGE, *PROMISE, *unit, *codes, "--out", tmp_path / "m")
    assert answer.code == 0, answer.err
    assert reticent.load(tmp_path / "m").releases_[0].n == 4  # NA is counted, and weighs nothing
    said = words(run("check", data, *unit, *codes).out)
    assert "3 in id" in said
    assert "2 records name nobody" in said
    assert "1 are missing or no number" in said
    assert "0 above the bound" in said
    answer = run("fit", "mean", data, *AGE, *PROMISE, *codes, "--out", tmp_path / "m")
    assert answer.code == 2
    assert "no such column is used" in answer.err


def test_a_plan_compares_contributions(run):
    plan = ("plan", *AGE, "--y", "weight=2:150", "--n", 500, "--epsilon", 1, "--draws", 1)
    unit = (*PERSON, "--contribution", 2, "--neighbours", "add-remove")
    guess = ("--records-per-person-guess", "1,2,9")
    answer = run(*plan, *unit, *guess, "--basis", 3, "--quiet")
    assert answer.code == 0, answer.err
    assert "500 people" in answer.out
    assert "contribution 1, always" in words(answer.out)
    assert run(*plan, *unit).code == 2
    found = json.loads(run(*plan, *PERSON, *guess, "--basis", 3, "--json").out)["contributions"]
    assert [one["contribution"] for one in found] == [1, 2, 5, 10]
    assert [one["kept"] for one in found] == pytest.approx([0.25, 5 / 12, 8 / 12, 1.0])
    noise = [one["noise"] for one in found]
    assert noise[1] / noise[0] == pytest.approx(1 / ((0.5 + 1 + 1) / 3))


def test_texts_about_a_release_are_stored_with_it(fit, run, tmp_path):
    answer = fit("--title", "Ages", "--note", "Line one.\n<b>two</b>", "--contact", "a@b.example")
    assert answer.code == 0, answer.err
    out = tmp_path / "m.reticent"
    assert "a@b.example" in run("inspect", out).out
    assert json.loads(run("inspect", out, "--json").out)["about"]["title"] == "Ages"
    page = tmp_path / "page.html"
    assert run("report", out, "--out", page).code == 0
    assert "Line one.<br>&lt;b&gt;two&lt;/b&gt;" in page.read_text()


# ---- columns of people and weights that are no good

ROWS = 600


def _lines(ids, ages=None, weights=None):
    ages = 50 * np.ones(len(ids)) if ages is None else ages
    weights = [""] * len(ids) if weights is None else weights
    rows = zip(ids, ages, weights, strict=True)
    return "id,age,w\n" + "".join(f"{one},{age:g},{weight}\n" for one, age, weight in rows)


@pytest.mark.parametrize(
    ("ids", "people"),
    [
        ([7] * ROWS, 1),  # constant
        (range(ROWS), ROWS),  # all different
        (np.repeat(np.arange(300) / 7, 2), 300),  # floats
        ([*range(300), *[""] * 300], 300),  # half of the records are nobody's
        (["nan", "NA", "", "-", "'", "0", "00", "=1+1"] * 75, 7),  # all but the empty one
    ],
    ids=["constant", "different", "floats", "half missing", "odd"],
)
def test_unusual_identifiers_count_as_they_stand(ids, people, run, tmp_path):
    data = tmp_path / "d.csv"
    data.write_text(_lines(ids))
    strong = ("--epsilon", 1000, "--delta", 1e-6)
    out = tmp_path / "m.reticent"
    answer = run("fit", "mean", data, *AGE, *strong, "--person", "id", "--out", out)
    assert answer.code == 0, answer.err
    model = reticent.load(out)
    assert model.releases_[0].n == people
    assert abs(model.mean_[0] - 50) < 6 * model.mean_sd_[0] + 1
    assert "Traceback" not in answer.err
    checked = words(run("check", data, "--person", "id").out)
    assert f"{people:,} in id" in checked


def test_records_that_are_all_nobodys_are_refused_after_the_charge(run, budget, tmp_path):
    data = tmp_path / "d.csv"
    data.write_text(_lines([""] * 20))
    run("ledger", "open", budget, "visits", "--epsilon", 1, "--delta", 1e-5, "--person", "id")
    out = tmp_path / "m.reticent"
    account = ("--ledger", budget, "--dataset", "visits", "--out", out)
    answer = run("fit", "mean", data, *AGE, *PROMISE, "--person", "id", *account)
    assert answer.code == 2
    assert "There are no people in the data" in words(answer.err)
    assert len(reticent.Ledger(budget).history("visits")) == 1
    assert not out.exists()


def test_a_million_records_of_one_person_count_as_one(run, tmp_path):
    """Beside 400 people with one record each, at the other end of the range."""
    data = tmp_path / "d.csv"
    others = "".join(f"p{i},0\n" for i in range(400))
    data.write_text("id,age\n" + others + "q,110\n" * 10**6)
    out = tmp_path / "m.reticent"
    strong = ("--epsilon", 1000, "--delta", 1e-6)
    answer = run("fit", "mean", data, *AGE, *strong, "--person", "id", "--out", out)
    assert answer.code == 0, answer.err
    model = reticent.load(out)
    assert model.releases_[0].n == 401
    assert model.mean_[0] == pytest.approx(110 / 401, abs=0.05 + 6 * model.mean_sd_[0])


@pytest.mark.parametrize("person", [(), ("--person", "id")])
def test_weights_that_are_none_count_as_zero_or_as_the_bound(person, run, tmp_path):
    """Negative, missing, no numbers: zero. Above the bound: the bound."""
    bad = ["", "nan", "-1", "-inf", "x", "1e9", "inf", "5"]
    held = [0, 0, 0, 0, 0, 5, 5, 5]
    ages = np.tile([110, 110, 110, 110, 110, 20, 30, 40], 100)
    found = []
    for weights in (bad, held):
        data = tmp_path / "d.csv"
        data.write_text(_lines(range(len(ages)), ages, weights * 100))
        out = tmp_path / f"{len(found)}.reticent"
        strong = ("--epsilon", 1000, "--delta", 1e-6)
        answer = run("fit", "mean", data, *AGE, *strong, *person, "--weight", "w=0:5", "--out", out)
        assert answer.code == 0, answer.err
        found.append(reticent.load(out).mean_[0])
    assert found == pytest.approx([30, 30], abs=0.5)
