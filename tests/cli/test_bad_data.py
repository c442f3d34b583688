"""Data as people have them, and what is wrong with them: said before anything is charged."""

import numpy as np
import pytest

import reticent

PROMISE = ("--epsilon", 0.5, "--delta", 1e-5)
ROWS = "".join(f"{i % 90},{'FM'[i % 2]},2020-0{1 + i % 9}-11,{40 + i % 50}\n" for i in range(60))


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "d.csv"
    path.write_text("age,sex,visit,weight\n" + ROWS)
    return path


@pytest.fixture
def fit(run, data, budget, tmp_path):
    def call(*options, word="mean", file=data):
        answer = run(
            *("fit", word, file, *options, *PROMISE),
            *("--ledger", budget, "--dataset", "people", "--out", tmp_path / "m.reticent"),
        )
        answer.charged = len(reticent.Ledger(budget).history("people"))
        return answer

    return call


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--x", "sex=F,M,F"], "The level 'F' is given twice"),
        (["--x", "sex=F,,M"], "A level is empty"),
        (["--x", "sex=F"], "one level tells nothing"),
        (["--x", "sex==1+1,M"], "'=1+1' would run as a formula in a spreadsheet"),
        (["--x", "visit=2024-12-31:2019-01-01"], "Did you mean --x visit=2019-01-01:2024-12-31?"),
        (["--x", "visit=2020-13-01:2020-14-01"], "must be a date such as"),
        (["--x", "sex=" + ",".join(map(str, range(1001)))], "1001 levels are more than 1000"),
        (["--x", "age=0:110", "--missing", "999,"], "--missing 999, has an empty code"),
        (["--x", "sex=F,M", "--missing", "F"], "this is a level of column 'sex'"),
        (["--x", "age=0:110", "--missing", "height=9"], "--missing height=…: no such column"),
        (["--x", "age=0:110", "--keep-missing", "sex"], "--keep-missing sex: no such input"),
        (["--x", "age=0:110", "--separator", "x"], "The separator is a comma"),
        (["--x", "age=0:110", "--decimal", ","], "The decimal sign and the separator"),
        (["--x", "age=0:110", "--encoding", "utf-16"], "The encoding 'utf-16' is not known"),
        (["--x", "age=0:110", "--codebook", "absent.toml"], "There is no file absent.toml"),
        (["--x", "age"], "needs a --codebook"),
    ],
    ids=str,
)
def test_what_is_wrong_is_said_before_the_charge(fit, tmp_path, options, words):
    answer = fit(*options)
    assert answer.code in (2, 4, 5)
    assert words in answer.err
    assert answer.charged == 0
    assert not (tmp_path / "m.reticent").exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[columns.age]\nkind = 'number'\nlow = 0\nhigh = 9\nheight = 3\n", "unknown key 'height'"),
        ("[columns.age]\nkind = 'number'\nlow =\nhigh =\n", "not filled in yet"),
        ("[columns.age]\nkind = ''\n", "has no kind yet"),
        ("[columns.age]\nkind = 'numbr'\nlow = 0\nhigh = 1\n", "no kind of column 'numbr'"),
        ("[columns.age]\nkind = 'number'\nlow = 0\n", "lacks its range or words"),
        ("[colums.age]\nkind = 'number'\n", "'colums', which means nothing"),
        ("[file]\nseperator = ';'\n", "'seperator', which means nothing"),
        ("[columns.sex]\nkind = 'words'\nwords = ['F', 'F']\n", "given twice"),
        ("[columns.age]\nkind = 'number'\nlow = 0\nhigh = 9\nuse = 'z'\n", "use is one of"),
        ("", "has no columns"),
    ],
    ids=repr,
)
def test_a_codebook_that_is_not_one_is_5(fit, tmp_path, text, words):
    (tmp_path / "c.toml").write_text(text)
    answer = fit("--codebook", tmp_path / "c.toml")
    assert answer.code == 5
    assert words in answer.err
    assert answer.charged == 0


def test_an_unfilled_template_is_refused_and_holds_no_value(fit, run, data, tmp_path):
    answer = run("codebook", data, "--out", tmp_path / "c.toml")
    assert answer.code == 0, answer.err
    written = (tmp_path / "c.toml").read_text()
    assert "[columns.visit]" in written
    assert "2020-0" not in written
    assert fit("--codebook", tmp_path / "c.toml").code == 5
    again = run("codebook", data, "--out", tmp_path / "c.toml")
    assert again.code == 5
    assert "exists already" in again.err


def test_a_codebook_chooses_columns_by_use_or_by_name(fit, tmp_path):
    (tmp_path / "c.toml").write_text(
        "\ufeff[columns.age]\nkind = 'number'\nlow = 0\nhigh = 110\nunit = 'years'\n"
        "[columns.sex]\nkind = 'words'\nwords = ['F', 'M']\n"
        "[columns.weight]\nkind = 'number'\nlow = 2\nhigh = 150\nuse = 'y'\n"
        "[columns.ward]\nuse = 'no'\n",
        encoding="utf-8",
    )
    answer = fit("--codebook", tmp_path / "c.toml", "--x", "age")
    assert answer.code == 0, answer.err
    bounds = reticent.load(tmp_path / "m.reticent").releases_[0].bounds
    assert bounds.x_names == ("age",)
    assert bounds.x_kinds[0].unit == "years"
    (tmp_path / "m.reticent").unlink()
    unknown = fit("--codebook", tmp_path / "c.toml", "--x", "height")
    assert unknown.code == 2
    assert "has no such column. Columns: age, sex, weight" in unknown.err
    unused = fit("--codebook", tmp_path / "c.toml", "--x", "ward")
    assert unused.code == 2
    assert 'says use = "no" of it' in " ".join(unused.err.split())


def test_five_hundred_levels_work(fit, tmp_path):
    answer = fit("--x", "age=" + ",".join(map(str, range(500))), word="histogram")
    assert answer.code == 0, answer.err


def test_words_that_are_formulas_stay_text_in_what_is_written(run, tmp_path):
    """As levels they are refused; in a file to be predicted they are copied as text."""
    cells = "\n".join(f"{value},{level}" for value in range(30) for level in ("a", "b"))
    (tmp_path / "f.csv").write_text(f"y,f\n{cells}\n")
    answer = run(
        *("fit", "gp", tmp_path / "f.csv", "--x", "f=a,b", "--y", "y=0:30", "--basis", 2),
        *(*PROMISE, "--out", tmp_path / "m.reticent", "--quiet"),
    )
    assert answer.code == 0, answer.err
    (tmp_path / "new.csv").write_text("f\n=1+1\na\n")
    new = ("predict", tmp_path / "m.reticent", tmp_path / "new.csv", "--out", tmp_path / "p.csv")
    assert run(*new).code == 0
    _, first, second = (tmp_path / "p.csv").read_text().splitlines()
    assert first == "'=1+1,,,"
    assert second.split(",")[1]


def test_a_byte_order_mark_and_mixed_encodings_are_read(fit, run, tmp_path):
    lines = ["stra\u00dfe,n".encode("utf-8-sig")]
    lines += ["S\u00fcd,1".encode(), "S\u00fcd,2".encode("cp1252"), b"Nord,3"] * 20
    (tmp_path / "m.csv").write_bytes(b"\n".join(lines))
    columns = ("--x", "stra\u00dfe=S\u00fcd,Nord", "--x", "n=0:10")
    answer = fit(*columns, file=tmp_path / "m.csv", word="histogram")
    assert answer.code == 0, answer.err
    shown = run("check", tmp_path / "m.csv", *columns)
    said = " ".join(shown.out.split())
    assert "Complete 60 (100%)" in said
    assert "20 cells are not UTF-8, and are read as Windows-1252, and 20 are" in said


ALL_MISSING = {
    "mean": ["--x", "age=0:110", "--x", "empty=0:5"],
    "histogram": ["--x", "age=0:110", "--x", "empty=u,v"],
    "covariance": ["--x", "age=0:110", "--x", "empty=0:5"],
    "table": ["--by", "sex=F,M", "--count", "--mean", "empty=0:5"],
    "mixture": ["--x", "age=0:110", "--x", "empty=u,v"],
    "kmeans": ["--x", "age=0:110", "--x", "empty=u,v"],
    "factors": ["--x", "age=0:110", "--x", "empty=u,v"],
    "gp": ["--x", "age=0:110", "--x", "empty=u,v", "--y", "weight=2:150", "--basis", 4],
    "classifier": ["--x", "age=0:110", "--x", "empty=u,v", "--classes", "sex=F,M", "--basis", 4],
    "gp-binned": ["--x", "age=0:110", "--x", "empty=u,v", "--y", "weight=2:150"],
}


@pytest.mark.parametrize("word", ALL_MISSING)
def test_a_column_without_a_value_is_fitted_and_said(fit, run, tmp_path, word):
    rows = [f"{i % 90},{'FM'[i % 2]},,{40 + i % 50}" for i in range(800)]
    (tmp_path / "e.csv").write_text("\n".join(["age,sex,empty,weight", *rows]))
    answer = fit(*ALL_MISSING[word], word=word, file=tmp_path / "e.csv")
    assert answer.code == 0, answer.err
    assert answer.charged == 1
    assert "Only about" in answer.out
    assert "were read" in answer.out
    page = run("report", tmp_path / "m.reticent", "--out", tmp_path / "r.html")
    assert page.code == 0, page.err
    assert "Only about" in (tmp_path / "r.html").read_text()


def test_bands_are_open_where_no_record_is_complete():
    rng = np.random.default_rng(0)
    x = np.empty((400, 2), dtype=object)
    x[:, 0] = rng.uniform(0, 90, size=400)
    x[:, 1] = None
    y = 40 + x[:, 0].astype(float)
    ranges = [(0, 110), ["u", "v"]]
    promise = {"epsilon": 1.0, "delta": 1e-6, "random_state": 0}
    model = reticent.GPRegressor(bounds=reticent.Bounds(x=ranges, y=(2, 150)), basis=6, **promise)
    with pytest.warns(UserWarning, match="of the records have all values"):
        model.fit(x, y)
    assert model.n_complete_ < 3 * model.n_complete_sd_
    asked = np.array([[10, "u"], [80, "v"]], dtype=object)
    _, sd = model.predict(asked, return_std=True)
    assert (sd > 148 / 8).all()  # 95 % of a curve's band is half of y's range, or more
    labels = np.where(y > 85, "yes", "no")
    bounds = reticent.Bounds(x=ranges, classes=["no", "yes"])
    classifier = reticent.GPClassifier(bounds=bounds, basis=6, **promise)
    with pytest.warns(UserWarning, match="of the records have all values"):
        classifier.fit(x, labels)
    low, high = classifier.predict_proba_band(asked)
    assert (high - low > 0.5).all()


def test_dates_with_a_format_and_codes_are_shown_as_they_were_read(run, tmp_path):
    lines = [f"{1 + i % 28:02}.0{1 + i % 9}.2020,{i % 40},{i % 7}" for i in range(200)]
    (tmp_path / "d.csv").write_text("visit,age,y\n" + "\n".join(lines))
    answer = run(
        *("fit", "gp", tmp_path / "d.csv", "--x", "visit=2020-01-01:2020-12-31:%d.%m.%Y"),
        *("--x", "age=0:40", "--missing", "age=0", "--y", "y=0:6", "--basis", 6),
        *(*PROMISE, "--out", tmp_path / "m.reticent"),
    )
    assert answer.code == 0, answer.err
    assert "nan" not in answer.out.lower()
    assert "2020-12-31" in answer.out
    bounds = reticent.load(tmp_path / "m.reticent").releases_[0].bounds
    assert bounds.x_kinds[1].missing == (0.0,)


def test_whether_anybody_is_there_is_not_told_where_their_number_is_protected(run, tmp_path):
    """Neighbours under add-remove: one person with one record, and nobody."""
    answers = []
    for name, rows in (("one", "7,30\n"), ("none", "")):
        file = tmp_path / f"{name}.csv"
        file.write_text("id,age\n" + rows)
        unit = ("--person", "id", "--neighbours", "add-remove")
        out = tmp_path / f"{name}.reticent"
        answer = run("fit", "mean", file, "--x", "age=0:110", *unit, *PROMISE, "--out", out)
        answers.append((answer.code, answer.err, out.exists()))
    assert answers == [(0, "", True)] * 2
