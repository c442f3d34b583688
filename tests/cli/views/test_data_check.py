"""``reticent check``: for the eyes of whoever holds the records."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest


@pytest.fixture
def messy(tmp_path):
    lines = ["id;age;sex;visit;dose;cost"]
    for i in range(200):
        age = "999" if i % 10 == 0 else "" if i % 10 == 1 else str(20 + i % 60)
        sex = ("F", "M", "f", "x")[i % 4]
        cost = 10**6 if i == 0 else 5 + i % 7
        lines.append(f"{i // 4};{age};{sex};{1 + i % 28:02}.03.2020;{i % 9} mg;{cost}")
    lines += ['5;"a', 'b";3']
    path = tmp_path / "messy.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


COLUMNS = (
    *("--x", "age=0:110", "--x", "sex=F,M", "--x", "visit=2020-01-01:2020-12-31"),
    *("--x", "dose=0:10", "--y", "cost=0:1000000"),
)


def said(answer):
    return " ".join(answer.out.split())


def test_it_says_what_is_the_matter_and_that_it_is_not_for_release(run, messy):
    answer = run("check", messy, *COLUMNS, "--person", "id")
    assert answer.code == 0, answer.err
    text = said(answer)
    assert text.startswith("NOT FOR RELEASE")
    assert text.endswith("NOT FOR RELEASE Nothing was charged, nothing was written.")
    assert "202 records" in text
    assert "999 occurs 20 times: a missing code? --missing age=999" in text
    assert "not listed: 'f' 50 times, 'x' 50 times" in text
    assert "'f' is not listed, 'F' is: spelled otherwise?" in text
    assert "looks like dates, day.month.year: give the format, …:…:%d.%m.%Y" in text
    assert "looks like numbers with a unit" in text
    assert "of the values lie in one tenth of the range" in text
    assert "2 lines have a quote that does not close" in text
    assert "save the file as Parquet" in text
    assert "50 in id; records of a person: median 4, largest 4; 50 have more than one" in text
    assert "--person id" in text
    assert "private counts" in answer.err  # it is not a screen here


def test_what_was_said_helps(run, messy):
    text = said(
        run(
            *("check", messy, "--x", "age=0:110", "--missing", "age=999"),
            *("--x", "visit=2020-01-01:2020-12-31:%d.%m.%Y", "--x", "sex=F,M,f,x"),
        )
    )
    assert "Complete 160" in text
    assert "missing code" not in text
    assert "looks like" not in text


def test_nothing_is_written_anywhere(run, messy, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    assert run("check", messy, *COLUMNS).code == 0
    assert sorted(tmp_path.rglob("*")) == before
    for option in ("--out", "--json", "--ledger"):
        assert run("check", messy, *COLUMNS, option, "x").code == 2


def test_a_parquet_file_is_looked_at_alike(run, tmp_path):
    table = {"age": [1.0, None, 999.0, 30.0], "sex": ["F", "M", "q", None]}
    pq.write_table(pa.table(table), tmp_path / "t.parquet")
    text = said(run("check", tmp_path / "t.parquet", "--x", "age=0:110", "--x", "sex=F,M"))
    assert "4 records" in text
    assert "Complete 1 (25%)" in text
    assert "not listed: 'q' 1 times" in text


def test_a_column_that_is_all_missing_is_named(run, tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n,1\nNA,2\n")
    text = said(run("check", tmp_path / "a.csv", "--x", "a=0:1", "--x", "b=0:5"))
    assert "all of it is missing" in text


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        ([], 2, "Say what the columns are"),
        (["--x", "height=0:1"], 2, "there is no column 'height'"),
        (["--x", "age=0:110", "--person", "who"], 2, "--person who: there is no column"),
    ],
)
def test_refusals(run, messy, options, code, words):
    answer = run("check", messy, *options)
    assert answer.code == code
    assert words in answer.err


def test_other_words_and_another_encoding_are_told(run, tmp_path):
    lines = ["died,ward", *["ja,Chirurgie", "nein,Innere", "nein,H\xfcfte"] * 5]
    (tmp_path / "d.csv").write_bytes("\n".join(lines).encode("latin-1"))
    columns = ("--x", "died=yes/no", "--x", "ward=surgery,medicine")
    text = said(run("check", tmp_path / "d.csv", *columns, "--encoding", "utf-8"))
    assert "no first: died=nein/ja, or no = 'nein' and yes = 'ja' in the codebook" in text
    assert "most cells are words that are not listed" in text
    assert "'Chirurgie' 5 times" in text
    assert "5 cells are not UTF-8" in text
    assert "leave out --encoding" in text
    answer = run("check", tmp_path / "d.csv", *columns, "--separator", ";")
    assert answer.code == 5
    assert "one column only" in " ".join(answer.err.split())


def test_words_are_not_cut_in_two_on_a_narrow_screen(run, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "w.csv").write_text("langue,n\nanglais,1\n")
    languages = "langue=anglais,fran\u00e7ais,allemand,portugais"
    answer = run("check", tmp_path / "w.csv", "--x", languages, "--x", "n=0:9")
    assert answer.code == 0, answer.err
    words = answer.out.replace(",", " ").split()
    for word in ("anglais", "fran\u00e7ais", "allemand", "portugais"):
        assert word in words


@pytest.fixture
def odd(tmp_path):
    """A file that is written in one way, but for a few cells."""
    lines = ["id,group,ward,visit,dose"]
    for i in range(300):
        ward = '"ear, nose"' if i % 3 == 0 else "eyes"
        visit = "05.03.2020" if i % 30 == 0 else f"2020-03-{1 + i % 28:02}"
        dose = '"1,5"' if i % 30 == 1 else "1.5"
        lines.append(f"p{i},{'AB'[i % 2]},{ward},{visit},{dose}")
    path = tmp_path / "odd.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_advice_on_a_few_cells_does_not_spoil_the_others(run, odd):
    columns = ("--x", "visit=2020-01-01:2020-12-31", "--x", "dose=0:10")
    text = said(run("check", odd, *columns))
    assert "10 cells are written in another way than the others, which are read" in text
    assert "give the format" not in text
    assert "looks like decimal commas: write these numbers with a point before a fit" in text
    assert "--decimal" not in text


def test_commas_in_a_file_of_commas_are_no_decimal_sign(run, tmp_path):
    (tmp_path / "c.csv").write_text('a,b\n"1,5",2\n"2,5",3\n')
    text = said(run("check", tmp_path / "c.csv", "--x", "a=0:5"))
    assert "looks like decimal commas: write these numbers with a point" in text
    (tmp_path / "s.csv").write_text("a|b\n1,5|2\n2,5|3\n")
    text = said(run("check", tmp_path / "s.csv", "--x", "a=0:5"))
    assert "looks like decimal commas: --decimal ," in text


def test_a_word_with_a_comma_stands_in_quotes(run, odd):
    text = said(run("check", odd, "--x", "ward=ear, nose,eyes"))
    assert "'ear, nose' is one word here, and was listed as 2: write it in double quotes" in text
    assert "never occurs: 'ear', 'nose'" in text
    text = said(run("check", odd, "--x", 'ward="ear, nose",eyes'))
    assert 'words "ear, nose", eyes' in text
    assert "was listed as" not in text


def test_a_column_of_groups_is_not_taken_for_people_without_a_word(run, odd):
    text = said(run("check", odd, "--x", "dose=0:10", "--person", "group"))
    assert "Only 2 people, with 150 records each on average: is it the right column?" in text
