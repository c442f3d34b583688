"""Columns as the command line gives them."""

import pytest

from reticent.cli.columns import (
    DataOptions,
    parse_column,
    parse_columns,
    parse_missing,
    with_kept_missing,
)
from reticent.cli.table_columns import table_columns
from reticent.codebook import read_codebook
from reticent.errors import BadFile, BadInput, ReticentError
from reticent.privacy.columns.dates import Date
from reticent.privacy.columns.numbers import Cyclic, Number, Whole
from reticent.privacy.columns.words import Ordered, Words, YesNo


@pytest.mark.parametrize(
    ("text", "name", "kind"),
    [
        ("age=0:110", "age", Number(0, 110)),
        ("t=-4e1: 50", "t", Number(-40, 50)),
        ("children=0:12:whole", "children", Whole(0, 12)),
        ("hour=0:24:cyclic", "hour", Cyclic(0, 24)),
        ("sex=F,M", "sex", Words(["F", "M"])),
        ("stage=I<II<III", "stage", Ordered(["I", "II", "III"])),
        ("smoker=yes/no", "smoker", YesNo()),
        ("smoker=no/yes", "smoker", YesNo()),
        ("died=alive/dead", "died", YesNo(no="alive", yes="dead")),
        ("flag=1/0", "flag", YesNo(no="0", yes="1")),
        ("visit=2019-01-01:2024-12-31", "visit", Date("2019-01-01", "2024-12-31")),
        (
            "visit=2019-01-01:2024-12-31:%d.%m.%Y",
            "visit",
            Date("2019-01-01", "2024-12-31", format="%d.%m.%Y"),
        ),
        (
            "at=2019-01-01T08:00:2019-01-02 12:30",
            "at",
            Date("2019-01-01T08:00", "2019-01-02T12:30"),
        ),
        ("income=<=50K,>50K", "income", Words(["<=50K", ">50K"])),
        ('why="no, never",yes', "why", Words(["no, never", "yes"])),
        ("unit=mg/l,g/l", "unit", Words(["mg/l", "g/l"])),
        ('"a=b"=0:3', "a=b", Number(0, 3)),
        ("a=b=0:3", "a=b", Number(0, 3)),
        ('"weight (kg)"=2:150', "weight (kg)", Number(2, 150)),
        ("weight (kg)=2:150", "weight (kg)", Number(2, 150)),
        ("größe=40:220", "größe", Number(40, 220)),
    ],
)
def test_what_a_column_is(text, name, kind):
    assert parse_column(text) == (name, kind)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sex=F,M,F", "given twice"),
        ("sex=F,,M", "level is empty"),
        ("f==1+1,x", "'=1+1' would run as a formula"),
        ("sex=F", "one level"),
        ("stage=<I<II", "level is empty"),
        ("visit=2024-12-31:2019-01-01", "did you mean --noise-column visit=2019-01-01:2024-12-31"),
        (
            "visit=2024-12-31:2019-01-01:%d.%m.%Y",
            "did you mean --noise-column visit=2019-01-01:2024-12-31:%d.%m.%Y",
        ),
        ("hour=24:0:cyclic", "did you mean --noise-column hour=0:24:cyclic"),
        ("visit=2019-02-30:2024-12-31", "must be a date"),
        ("visit=01.01.2019:31.12.2024", "%d.%m.%Y"),
        ("age=110:0", "did you mean --noise-column age=0:110"),
        ("age=5:5", "no width"),
        ("age=0:1:even", ":whole or :cyclic"),
        ("age=0.5:3:whole", "must be whole"),
        ("dose=0,5:2,5", "decimal point"),
        ("age=", "says nothing"),
        ("=0:1", "COLUMN=LOW:HIGH"),
        ("age", "--codebook"),
        ("a=1/2/3", "3 words"),
        ('a="x,b', "quote does not close"),
        ("w=" + ",".join(map(str, range(1001))), "more than 1000"),
    ],
)
def test_what_is_refused_names_the_option(text, words):
    with pytest.raises(ReticentError) as refused:
        parse_column(text, "--noise-column")
    assert str(refused.value).startswith("--noise-column")
    assert words.lower() in str(refused.value).lower()


def test_a_column_is_given_once():
    with pytest.raises(BadInput, match="--x was given twice for column 'age'"):
        parse_columns("--x", ["age=0:1", "age=0:2"])


def test_missing_codes_for_all_columns_or_for_one():
    assert parse_missing(["999, NA", "age=-1", 'age="n,a"']) == (
        ("999", "NA"),
        {"age": ("-1", "n,a")},
    )
    for empty in ("", "999,", "age=", "=999"):
        with pytest.raises(BadInput, match="--missing"):
            parse_missing([empty])


def test_missing_values_are_kept_for_inputs_only():
    kept = with_kept_missing({"age": Number(0, 1), "sex": Words(["F", "M"])}, ["age"])
    assert kept["age"].keep_missing
    assert not kept["sex"].keep_missing
    with pytest.raises(BadInput, match="no such input"):
        with_kept_missing(kept, ["weight"])


CODEBOOK = """
[columns.age]
kind = "whole"
low = 0
high = 110
missing = [999]
unit = "years"
label = "Age at admission"

[columns.visit]
kind = "date"
low = 2019-01-01
high = 2024-12-31
format = "%d.%m.%Y"
missing = ["01.01.1900"]

[columns.sex]
kind = "words"
words = ["F", "M"]
missing = ["x", "9"]
keep_missing = true

[columns.level]
kind = "number"
low = 1
high = 5
missing = [99]
keep_missing = true
"""


@pytest.fixture
def codebook(tmp_path):
    path = tmp_path / "codebook.toml"
    path.write_text(CODEBOOK, encoding="utf-8")
    return read_codebook(path)


def test_what_an_option_does_not_say_the_codebook_says(codebook):
    _, age = parse_column("age=0:100", "--x", codebook)
    told = {"missing": [999], "unit": "years", "label": "Age at admission"}
    assert age == Number(0, 100, **told)
    _, visit = parse_column("visit=2020-01-01:2020-12-31", "--x", codebook)
    assert visit == Date("2020-01-01", "2020-12-31", format="%d.%m.%Y", missing=["01.01.1900"])
    _, visit = parse_column("visit=2020-01-01:2020-12-31:%Y/%m/%d", "--x", codebook)
    assert visit.format == "%Y/%m/%d"
    _, sex = parse_column("sex=F,M,x", "--x", codebook)  # x is a level now
    assert sex == Words(["F", "M", "x"], missing=["9"], keep_missing=True)


@pytest.mark.parametrize("option", ["by", "mean", "total", "quantile"])
def test_columns_of_a_table_keep_the_missing_codes_of_the_codebook(codebook, option):
    given = {"by": "age=0:18:65:110"}.get(option, "age=0:110")
    x, own = table_columns((), {option: [given]}, codebook)
    columns = DataOptions.read(x=x, codebook=codebook.path).columns(outputs=False, labels=False)
    assert columns.x["age"].missing == (999,)
    assert columns.x["age"].code_text(b"999") != columns.x["age"].code_text(b"110")
    if option == "by":
        assert own["by"] == [("age", [0, 18, 65, 110])]


def test_edges_of_dates_may_have_a_format():
    x, own = table_columns((), {"by": ["visit=2019-01-01:2020-01-01:2021-01-01:%d.%m.%Y"]}, None)
    assert x == ["visit=2019-01-01:2021-01-01:%d.%m.%Y"]
    assert own["by"] == [("visit", ["2019-01-01", "2020-01-01", "2021-01-01"])]


def test_a_noise_column_has_missing_codes(codebook):
    said = DataOptions.read(x=["age"], y=["b=0:1"], codebook=codebook.path, missing=["level=98"])
    for text in ("level", "level=2:5"):
        columns = said.columns(outputs=True, labels=False, noise_column=text)
        assert columns.x["level"].missing == (99, 98)
        assert not columns.x["level"].keep_missing
    said = DataOptions.read(x=["age"], codebook=codebook.path, missing=["aeg=98"])
    with pytest.raises(BadInput, match="Did you mean 'age'"):
        said.columns(outputs=False, labels=False)


def test_a_model_without_outputs_has_all_columns(tmp_path):
    path = tmp_path / "codebook.toml"
    path.write_text(
        CODEBOOK.replace('kind = "words"', 'kind = "words"\nuse = "class"').replace(
            'kind = "whole"', 'kind = "whole"\nuse = "y"'
        ),
        encoding="utf-8",
    )
    said = DataOptions.read(codebook=path)
    assert list(said.columns(outputs=False, labels=False, alike=True).x) == [
        *("age", "visit", "sex", "level"),
    ]
    assert list(said.columns(outputs=False, labels=False).x) == ["visit", "level"]  # a count


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("missing = [999]", "mising = [999]", ("unknown key 'mising'", "Did you mean 'missing'")),
        ("words = [", "levels = [", ("unknown key 'levels'", "Did you mean 'words'", "use.")),
        ("[columns.age]", "[columns.age (y)]", ('[columns."CRP (mg/l)"]',)),
        ("high = 110", "high = 110,5", ("decimal point",)),
        ("[columns.age]", "[file]\nseperator = ';'\n[columns.age]", ("'separator'",)),
    ],
)
def test_errors_of_a_codebook_say_what_to_write(tmp_path, old, new, words):
    path = tmp_path / "codebook.toml"
    path.write_text(CODEBOOK.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(BadFile) as refused:
        read_codebook(path)
    for word in words:
        assert word in str(refused.value)


def test_what_a_file_and_its_codebook_do_not_share_is_named(run, codebook, tmp_path):
    (tmp_path / "d.csv").write_text("ages,visit,sex,level\n1,2,F,3\n", encoding="utf-8")
    answer = run("check", tmp_path / "d.csv", "--codebook", codebook.path)
    assert answer.code == 5
    said = " ".join(answer.err.split())
    assert "codebook.toml has a column 'age'" in said
    assert "Did you mean 'ages'?" in said
    wrong = tmp_path / "wrong.toml"
    wrong.write_text("[file]\ndecimal = 'komma'\n" + CODEBOOK, encoding="utf-8")
    answer = run("check", tmp_path / "d.csv", "--codebook", wrong)
    assert answer.code == 5
    assert "wrong.toml, [file]:" in " ".join(answer.err.split())


def test_a_number_with_a_decimal_comma_is_told_how_to_be_written(run, tmp_path):
    answer = run("fit", "mean", "d.csv", "--epsilon", "0,5", "--out", tmp_path / "m.reticent")
    assert answer.code == 2
    assert "write 0.5" in " ".join(answer.err.split())


def test_with_a_codebook_the_output_is_named_alone(run, codebook, tmp_path):
    (tmp_path / "d.csv").write_text("sex,visit,age,level\nF,2,1,3\n", encoding="utf-8")
    options = ("--codebook", codebook.path, "--out", tmp_path / "m.reticent")
    answer = run("fit", "gp", tmp_path / "d.csv", *options)
    assert answer.code == 4
    said = " ".join(answer.err.split())
    assert 'use = "y"' in said
    assert "for example --y age. Columns that can be: age, level." in said
    answer = run("fit", "classifier", tmp_path / "d.csv", *options)
    assert "--classes sex" in answer.err
    answer = run("fit", "table", tmp_path / "d.csv", "--rate", "age", *options)
    assert answer.code == 2
    said = " ".join(answer.err.split())
    assert "ask for its mean, --mean age" in said
    assert "bool" not in said
