"""How commands end.

An exit code for each kind of end, words that say what to do next, and nothing half written.
"""

import json

import pytest
import typer

import reticent
from reticent import errors
from reticent.cli import terminal
from reticent.cli.terminal import advise, aside, fail, guarded, indented, line, table
from reticent.errors import BadFile
from reticent.files.output import check_new, new_binary, new_text
from tests.support.fitted_models import kept
from tests.support.stand_ins import printed

X = ("--x", "age=0:110")
PROMISE = ("--epsilon", 0.5, "--delta", 1e-5)


@pytest.fixture(autouse=True)
def eighty_letters(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("RETICENT_DEBUG", raising=False)


@pytest.mark.parametrize(
    ("error", "code", "label"),
    [
        (errors.ReticentError("so"), 2, "Error"),
        (errors.BadInput("so"), 2, "Error"),
        (errors.BoundsMissing("so"), 4, "Refused"),
        (errors.BudgetExceeded("so"), 3, "Refused"),
        (errors.ReleaseRefused("so"), 4, "Refused"),
        (errors.LedgerError("so"), 5, "Error"),
        (errors.CorruptModel("so"), 5, "Error"),
        (BadFile("so"), 5, "Error"),
        (FileNotFoundError(2, "No such file", "so"), 5, "Error"),
        (PermissionError(13, "Permission denied", "so"), 5, "Error"),
        (OSError(5, "no name"), 1, "Error"),
        (ValueError("a record"), 1, "Error"),
        (MemoryError("a record"), 1, "Error"),
        (KeyboardInterrupt("so"), 130, "Interrupted"),
        (KeyboardInterrupt(), 130, "Interrupted"),
    ],
)
@pytest.mark.parametrize("machine", [False, True])
def test_each_end_has_its_code(capsys, error, code, label, machine):
    @guarded
    def command(json=False):
        raise error

    with pytest.raises(typer.Exit) as end:
        command(json=machine)
    assert end.value.exit_code == code
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    assert "a record" not in err
    if machine:
        told = json.loads(err)["error"]
        assert told["exit_code"] == code
        assert set(told) == {"kind", "message", "exit_code"}
    else:
        assert err.startswith(f"{label}: ")


def test_a_command_that_ends_by_itself_is_left_alone():
    for end in (typer.Exit(7), BrokenPipeError()):

        @guarded
        def command(end=end):
            raise end

        with pytest.raises(type(end)):
            command()


def test_a_label_is_said_once(capsys):
    with pytest.raises(typer.Exit):
        fail("BoundsMissing", "Refused: no", 4, json=False)
    assert capsys.readouterr().err == "Refused: no\n"


def test_a_long_refusal_is_wrapped_where_people_read_and_keeps_its_lines(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    with pytest.raises(typer.Exit):
        fail("BadInput", "word " * 60 + "\n     --x a=0:1\nmore", 2, json=False)
    lines = capsys.readouterr().err.split("\n")
    assert max(map(len, lines)) <= 100
    assert lines[-3:] == ["     --x a=0:1", "  more", ""]


def test_no_colour_on_a_pipe_whatever_the_environment_is_not(capsys):
    line("Promise", "ε=1")
    aside("quietly", 4)
    advise("reticent inspect m", "and so on")
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert [one.rstrip() for one in out.split("\n")] == [
        "  Promise   ε=1",
        "    quietly",
        "",
        "  Next:  reticent inspect m",
        "         and so on",
        "",
    ]


def test_words_stand_left_and_numbers_right(capsys):
    shown = printed(
        capsys,
        table("name", "what", "n", left=2, rows=[("a", "long words", "1"), ("bcd", "x", "1,000")]),
    )
    assert [one.rstrip() for one in shown.splitlines()] == [
        "name  what            n",
        "a     long words      1",
        "bcd   x           1,000",
    ]


def test_markup_and_emoji_of_names_are_shown_as_they_are(capsys):
    shown = printed(capsys, indented(table("[bold]x[/bold]", rows=[(":smile:",), ("[red]",)]), 4))
    assert [one.strip() for one in shown.splitlines()] == ["[bold]x[/bold]", ":smile:", "[red]"]
    assert shown.startswith("    [")


def test_a_path_that_is_longer_than_the_terminal_can_still_be_copied(capsys):
    line("Written", "/long" * 40)
    assert "/long" * 40 in capsys.readouterr().out


def test_progress_that_is_silent_still_counts(capsys):
    for options in ({"quiet": True}, {"quiet": False}, {"timed": False}):
        with terminal.progress("Working", 3, **options) as advance:
            assert advance(1) is None
    assert capsys.readouterr() == ("", "")


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    out = tmp_path / "o.csv"
    with new_text(out) as file:
        file.write("a\r\nb")
        assert not out.exists()
    assert out.read_bytes() == b"a\r\nb"
    for error in (ValueError, KeyboardInterrupt):
        for opened in (new_binary, new_text):
            with pytest.raises(error), opened(tmp_path / "p") as file:  # noqa: PT012
                file.write("half" if opened is new_text else b"half")
                raise error
    assert sorted(path.name for path in tmp_path.iterdir()) == ["o.csv"]


def test_a_file_that_appears_while_another_is_written_is_not_replaced(tmp_path):
    out = tmp_path / "o.csv"
    with pytest.raises(BadFile, match="appeared meanwhile"), new_text(out) as file:  # noqa: PT012
        file.write("mine")
        out.write_text("theirs")
    assert out.read_text() == "theirs"
    with new_text(out, overwrite=True) as file:
        file.write("mine")
    assert out.read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["o.csv"]


@pytest.mark.parametrize(
    ("name", "words"),
    [("there", "exists already. Why: choose another name"), ("no/m", "there is no folder")],
)
def test_where_nothing_can_be_written_is_said_before_any_work(tmp_path, name, words):
    (tmp_path / "there").write_text("mine")
    with pytest.raises(BadFile, match=words):
        check_new(tmp_path / name, "Why")


def test_a_folder_that_is_read_only_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with pytest.raises(BadFile, match=r"read-only for you\. Choose another"):
        check_new(tmp_path / "m", "Why")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A model of each kind that the commands below are given."""
    folder = tmp_path_factory.mktemp("models")
    for word in ("mean", "gp", "mixture"):
        kept(word, columns=("age", "height")).save(folder / word)
    (folder / "no").write_text("no model")
    (folder / "new.csv").write_text("age,height\n1,2\n3,4\n")
    return folder


@pytest.mark.parametrize(
    ("words", "code", "next_"),
    [
        ("inspect no", 5, "reticent"),
        ("inspect absent", 5, "absent"),
        ("report no --out r.html", 5, "reticent"),
        ("report mean --out mean", 5, "choose another name"),
        ("report mean --out none/r.html", 5, "Make it first"),
        ("report mean --out r.html --ledger none.db", 2, "give --dataset"),
        ("report mean --out r.html --ledger none.db --dataset a", 5, "reticent ledger open"),
        ("predict mean new.csv --out p.csv", 2, "Models that predict: gp"),
        ("predict gp none.csv --out p.csv", 5, "none.csv"),
        ("predict gp new.csv --out new.csv", 5, "choose another name"),
        ("predict no new.csv --out p.csv", 5, "reticent"),
        ("sample gp --out s.csv", 2, "Models that do: reticent fit mixture"),
        ("sample mixture --out s.xls", 2, "must end in .csv or .parquet"),
        ("sample mixture --out s.csv -n -1", 2, "at least 1"),
        ("ledger show none.db", 5, "reticent ledger open"),
        ("ledger history none.db", 5, "reticent ledger open"),
        ("ledger verify none.db", 5, "reticent ledger open"),
        ("ledger show new.csv", 5, "new.csv"),
        ("ledger open l.db a --epsilon -1 --delta 1e-5", 2, "--epsilon must be"),
        ("ledger open l.db a --epsilon 1 --delta 1", 2, "--delta must be"),
        ("fit mean new.csv --out m", 4, "--x age=0:110"),
        ("fit mean none.csv --x age=0:1 --out m", 5, "none.csv"),
        (
            "fit mean new.csv --x age=0:9 --epsilon 1 --delta 1e-5 --dataset a --out m",
            2,
            "both --ledger and --dataset",
        ),
        ("fit gp new.csv --x age=0:9 --out m", 4, "--y height=LOW:HIGH"),
        ("fit classifier new.csv --x age=0:9 --out m", 4, "--classes height=LABEL,LABEL"),
        ("search gp new.csv --x age=0:9 --y height=0:9 --out m", 2, "--try basis=20,50"),
        (
            "search gp new.csv --x age=0:9 --y height=0:9 --try basis= --out m",
            2,
            "for example --try",
        ),
        (
            "search gp new.csv --x age=0:9 --y height=0:9 --try epsilon=1,2 --out m",
            2,
            "an option of its own",
        ),
        (
            "search gp new.csv --x age=0:9 --y height=0:9 --try basis=2 --try basis=3 --out m",
            2,
            "all its values at once",
        ),
        ("audit nothing", 2, "mean"),
        ("audit mean --epsilon 0", 2, "epsilon"),
        ("reproduce dpgp-inferense", 2, "Did you mean dpgp-inference?"),
        ("reproduce smith-numbers --repeats 0", 2, "at least 1"),
        ("reproduce smith-numbers --seed -1", 2, "zero or more"),
        ("bandit simulate nowhere", 2, "choose one of gp-sum"),
        ("bandit simulate --rounds 0", 2, "at least 1"),
        ("bandit token l.db --days 0", 2, "between 0 and 3650"),
        ("bandit serve l.db --rate 0", 2, "more than 0"),
    ],
)
@pytest.mark.parametrize("machine", [False, True])
def test_every_refusal_has_its_code_and_says_what_to_do(
    run, files, monkeypatch, words, code, next_, machine
):
    monkeypatch.chdir(files)
    before = sorted(path.name for path in files.iterdir())
    answer = run(*words.split(), *(["--json"] if machine else []))
    assert answer.code == code, answer.err
    assert answer.out == ""
    assert "Traceback" not in answer.err
    if machine:
        told = json.loads(answer.err)["error"]
        assert told["exit_code"] == code
        assert next_ in " ".join(told["message"].split())
    else:
        assert answer.err.startswith(("Error: ", "Refused: "))
        assert next_ in answer.err
    assert sorted(path.name for path in files.iterdir()) == before


KEYS = {
    "inspect mean": (
        "file sha256 signed_by model reticent private guarantee about releases results notes"
    ),
    "report mean --out {}/r.html": "out model_sha256",
    "predict gp new.csv --out {}/p.csv": (
        "model private outputs records missing not_predicted lacking outside notes inputs columns "
        "out"
    ),
    "sample mixture -n 3 --out {}/s.csv": "model private records columns out notes",
    "fit mean new.csv --x age=0:9 --epsilon 1 --delta 1e-5 --out {}/m": (
        "file sha256 signed_by model reticent private guarantee about releases results notes read"
    ),
    "ledger open {}/l.db a --epsilon 1 --delta 1e-5": (
        "dataset relation records_per_person person neighbours within epsilon delta spent left "
        "charges"
    ),
    "bandit simulate --rounds 20": "environment rounds releases last_quarter private not_private",
}


@pytest.mark.parametrize("words", KEYS)
def test_what_machines_are_told_has_the_same_keys_for_good(
    run, files, monkeypatch, tmp_path, words
):
    monkeypatch.chdir(files)
    answer = run(*(word.format(tmp_path) for word in words.split()), "--json")
    assert answer.code == 0, answer.err
    assert answer.err == ""
    assert [key.replace(" ", "_") for key in json.loads(answer.out)] == KEYS[words].split()


@pytest.mark.parametrize(
    "words", [words for words in KEYS if words.split()[0] in ("report", "predict", "sample", "fit")]
)
def test_quiet_is_quiet_and_writes_the_same(run, files, monkeypatch, tmp_path, words):
    monkeypatch.chdir(files)
    answer = run(*(word.format(tmp_path) for word in words.split()), "--quiet")
    assert (answer.code, answer.out, answer.err) == (0, "", "")
    assert len(list(tmp_path.iterdir())) == 1


def test_a_charge_beyond_the_cap_is_3_and_leaves_the_account_as_it_was(
    run, people_csv, budget, tmp_path
):
    charged = ("--ledger", budget, "--dataset", "people", "--out")
    assert run("fit", "mean", people_csv, *X, *PROMISE, *charged, tmp_path / "a").code == 0
    before = run("ledger", "show", budget, "--json").out
    answer = run(
        "fit", "mean", people_csv, *X, "--epsilon", 0.9, "--delta", 1e-5, *charged, tmp_path / "b"
    )
    assert answer.code == 3
    assert answer.err.startswith("Refused: ")
    assert "at most --epsilon 0." in answer.err  # how much there is left to ask for
    assert run("ledger", "show", budget, "--json").out == before
    assert not (tmp_path / "b").exists()
    left = json.loads(before)[0]["left"]
    fits = ("--epsilon", f"{left * 0.99:.6f}", "--delta", 1e-5)
    assert run("fit", "mean", people_csv, *X, *fits, *charged, tmp_path / "c").code == 0
    assert reticent.Ledger(budget).spent("people") <= 1
