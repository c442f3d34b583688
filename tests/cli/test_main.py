"""The command line as a whole.

Help, version, start-up, and how it ends when something goes wrong.
"""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time

import pandas as pd
import pytest

import reticent
from reticent.cli import terminal
from reticent.cli.terminal import in_options, wrapped
from reticent.reporting.formatting import format_short
from tests.support.prose import says
from tests.support.serving import Started

COMMANDS = [
    [],
    ["tour"],
    ["fit"],
    ["inspect"],
    ["predict"],
    ["audit"],
    ["ledger"],
    ["ledger", "open"],
    ["ledger", "show"],
    ["ledger", "history"],
    ["ledger", "verify"],
]
HEAVY = {
    "numpy",
    "scipy",
    "sklearn",
    "pyarrow",
    "narwhals",
    "cryptography",
    "dask",
    "pyspark",
    "psycopg",
    "sqlite3",
    "rich",
}


def python(code, **options):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, **options)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_ends_with_an_example_of_the_command(run, command):
    answer = run(*command, "--help")
    assert answer.code == 0
    example = [line.strip() for line in answer.out.rpartition("Example:\n")[2].split("\n")]
    assert any(line.startswith("reticent " + " ".join(command)) for line in example)
    assert all(len(line) <= 90 for line in answer.out.split("\n"))


def test_version(run):
    assert run("--version").out == f"reticent {reticent.__version__}\n"


def test_python_dash_m_is_the_same_program():
    answer = subprocess.run(
        [sys.executable, "-m", "reticent", "--help"], capture_output=True, text=True, check=True
    )
    assert answer.stdout.startswith("Usage: reticent ")


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["fit", "--help"]], ids=" ".join)
def test_short_answers_import_nothing_heavy(arguments):
    code = f"""
import sys
from reticent.cli.main import main
sys.argv = ["reticent", *{arguments!r}]
try:
    main()
except SystemExit as end:
    print("loaded:", end.code, *sorted({{name.split(".")[0] for name in sys.modules}}))
"""
    last = python(code, check=True).stdout.strip().split("\n")[-1].split()
    assert last[:2] == ["loaded:", "0"]
    assert "typer" in last
    assert not HEAVY & set(last)


@pytest.mark.parametrize(
    "arguments",
    [["nonsense"], ["fit"], ["fit", "mean", "x.csv"], ["ledger", "open", "a"], ["audit", "--quik"]],
)
def test_wrong_use_is_2_and_says_where_help_is(run, arguments):
    answer = run(*arguments)
    assert answer.code == 2
    assert "Try 'reticent" in answer.err


@pytest.mark.parametrize("machine", [(), ("--json",)])
def test_a_name_with_spaces_that_has_no_quotes_is_told_of_them(run, machine):
    answer = run(
        "fit",
        "gp",
        "a.csv",
        "--x",
        "age=0:110",
        "--y",
        "Systolic",
        "BP=70:220",
        "--out",
        "m",
        *machine,
    )
    assert answer.code == 2
    assert "(BP=70:220). Names with spaces go in quotes." in " ".join(answer.err.split())


def test_an_unexpected_fault_shows_no_value(run, monkeypatch):
    def broken(path):
        raise ValueError("weight 93.7 of patient Smith")

    monkeypatch.setattr("reticent.cli.main.check_model_file", lambda path: None)
    monkeypatch.setattr("reticent.cli.commands.inspect.describe", broken)
    answer = run("inspect", "m.reticent")
    assert answer.code == 1
    assert says(answer.err, "inside reticent", "ValueError")
    assert "RETICENT_DEBUG=1" in answer.err
    assert "Smith" not in answer.err + answer.out
    monkeypatch.setenv("RETICENT_DEBUG", "1")
    answer = run("inspect", "m.reticent")
    assert answer.code == 1
    assert "Traceback" in answer.err
    assert "Smith" in answer.err


def test_an_error_of_the_operating_system_is_5(run, monkeypatch):
    def full(path):
        raise OSError(28, "No space left on device", "m.reticent")

    monkeypatch.setattr("reticent.cli.main.check_model_file", lambda path: None)
    monkeypatch.setattr("reticent.cli.commands.inspect.describe", full)
    answer = run("inspect", "m.reticent")
    assert (answer.code, answer.err) == (
        5,
        "Error: m.reticent cannot be used: No space left on device. ",
    )


def test_ctrl_c_is_130():
    child = subprocess.Popen(
        [sys.executable, "-m", "reticent", "audit", "mean"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while "scipy/stats" not in _mapped(child.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    used = _used(child.pid)
    while (
        _used(child.pid) < used + 0.7 and time.monotonic() < deadline
    ):  # of its own time: a machine may be busy
        time.sleep(0.05)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert (out, err) == ("", "Interrupted: Nothing was charged.\n")
    # Python ends by the signal itself if it came while a module was imported; a
    # shell shows 130 for both
    assert child.returncode in (130, -signal.SIGINT)


def _mapped(pid):
    with open(f"/proc/{pid}/maps") as maps:
        return maps.read()


def _used(pid):
    """Seconds of CPU time."""
    with open(f"/proc/{pid}/stat") as file:
        words = file.read().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def test_a_closed_pipe_is_not_a_fault(tmp_path, starter):
    columns = {f"c{i}": (0, 1) for i in range(100)}
    bounds = reticent.Bounds(x=columns)
    model = reticent.PrivateHistogram(bins=20, bounds=bounds, epsilon=1, delta=1e-6)
    model.fit(pd.DataFrame({name: [0.5] for name in columns})).save(tmp_path / "m.reticent")
    pipe = tmp_path / "pipe"
    err = tmp_path / "err"
    os.mkfifo(pipe)
    for option in ([], ["--json"]):
        process = Started(["inspect", tmp_path / "m.reticent", *option], pipe, err, starter)
        with open(pipe, "rb", buffering=0) as end:  # as head -c 1 does
            assert len(end.read(1)) == 1
        process.wait()
        assert err.read_text() == ""


IN_TURN = """
import json, sys
from reticent.cli import main as cli
from reticent.cli.commands import tour
tour._PEOPLE, tour._OTHERS, tour._DRAWS = 300, 100, 1
for words in json.loads(sys.argv[1]):
    sys.argv[1:] = words
    try:
        cli.main()
    except SystemExit as end:
        print(end.code or 0, "END")
        print("END", file=sys.stderr)
"""


def ascii_only(*commands):
    """What each command writes where there are few letters.

    All in one process, for importing takes longest.
    """
    lines = json.dumps([[str(word) for word in command] for command in commands])
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "COLUMNS": "80"}
    done = subprocess.run(
        [sys.executable, "-c", IN_TURN, lines], capture_output=True, text=True, env=environment
    )
    outs, errs = (text.split("END\n")[:-1] for text in (done.stdout, done.stderr))
    assert len(outs) == len(errs) == len(commands), done.stderr
    return [(int(out[-2]), out[:-2], err) for out, err in zip(outs, errs, strict=True)]


@pytest.fixture(scope="module")
def few_letters(tmp_path_factory):
    folder = tmp_path_factory.mktemp("letters")
    people = folder / "t" / "people.csv"
    promise = ("--x", "age=0:110", "--epsilon", 1, "--delta", 1e-5)
    (folder / "a.csv").write_text("größe,grüße\n1,2\n", encoding="utf-8")
    named = (
        "--x",
        "größe=0:3",
        "--epsilon",
        "1",
        "--delta",
        "1e-6",
        "--out",
        folder / "n",
        "--json",
    )
    return ascii_only(
        ("tour", "--out", folder / "t"),
        ("ledger", "show", folder / "t" / "budget.db"),
        ("fit", "histogram", people, *promise, "--out", folder / "h"),
        ("fit", "covariance", people, *promise, "--out", folder / "c"),
        ("fit", "mean", people, "--out", folder / "m", "--epsilon", 9),
        ("fit", "mean", folder / "a.csv", "--out", folder / "n"),
        ("fit", "mean", folder / "a.csv", *named),
    )


def test_a_terminal_that_lacks_letters_gets_words(few_letters):
    told, shown, histogram, covariance, refused, *_ = few_letters
    assert [code for code, _, _ in few_letters] == [0, 0, 0, 0, 4, 4, 0]
    words = " ".join(told[1].split())
    assert "cap epsilon=3 delta=1e-5" in words
    assert "age 0-110" in words
    heading, row = shown[1].split("\n")[2:4]
    assert "cap epsilon" in heading
    assert heading.index("cap epsilon") + len("cap epsilon") == row.index("3") + 1
    for _, fitted, _ in (histogram, covariance):
        assert "+/- " in fitted
        assert "?" not in fitted
    assert "##" in histogram[1]
    assert "##" not in covariance[1]
    assert "?" not in told[1] + refused[2]


def test_names_stay_different_on_a_terminal_that_lacks_letters(few_letters):
    *_, refused, fitted = few_letters
    assert "gr\\xf6\\xdfe, gr\\xfc\\xdfe" in refused[2]
    assert list(json.loads(fitted[1])["results"]["mean"]) == ["größe"]


@pytest.mark.parametrize(
    ("arguments", "code", "kind", "words"),
    [
        (["inspect", "absent.reticent", "--json"], 5, "CorruptModel", "Check the path"),
        (["audit", "median", "--json"], 2, "BadInput", "no model 'median'"),
        (["fit", "mean", "--json"], 2, "BadInput", "DATA"),
        (["nonsense", "--json"], 2, "BadInput", "No such command 'nonsense'"),
        (["ledger", "open", "--json", "a"], 2, "BadInput", "DATASET"),
    ],
)
def test_errors_for_machines(run, arguments, code, kind, words):
    answer = run(*arguments)
    error = json.loads(answer.err)["error"]
    assert (answer.code, answer.out) == (code, "")
    assert (error["exit_code"], error["kind"]) == (code, kind)
    assert words in error["message"]


def test_faults_for_machines(run, monkeypatch):
    def broken(path):
        raise ValueError("weight 93.7 of patient Smith")

    monkeypatch.setattr("reticent.cli.main.check_model_file", lambda path: None)
    monkeypatch.setattr("reticent.cli.commands.inspect.describe", broken)
    error = json.loads(run("inspect", "m.reticent", "--json").err)["error"]
    assert (error["exit_code"], error["kind"]) == (1, "ValueError")
    assert "Smith" not in error["message"]


def test_messages_name_options():
    """The parameter that an error carries, and those given a value, are named as options."""
    tagged = reticent.BadInput(
        "records_per_person must be at least 1: see records_per_person",
        parameter="records_per_person",
    )
    assert in_options(tagged) == "--records-per-person must be at least 1: see records_per_person"
    options = {"covariance_type": "--covariance", "epsilon": "--epsilon", "noise": "--noise"}
    named = reticent.BadInput("covariance_type must be one of full", parameter="covariance_type")
    assert in_options(named, options) == "--covariance must be one of full"
    left = reticent.BudgetExceeded("ε = 1. Ask for at most epsilon = 0.25 with delta = 1e-05.")
    assert in_options(left, options) == (
        "ε = 1. Ask for at most --epsilon 0.25 with delta = 1e-05."
    )
    shown = reticent.BadInput("noise=-1.5: give noise=… or noise='known', not my.noise=3.")
    assert (
        in_options(shown, options) == "--noise -1.5: give --noise or --noise known, not my.noise=3."
    )
    untagged = reticent.BadInput("records_per_person must be at least 1")
    assert in_options(untagged) == "records_per_person must be at least 1"


def test_progress_is_silent_on_a_pipe(capsys):
    with terminal.progress("Working", 10) as advance:
        advance(5)
    assert capsys.readouterr() == ("", "")


def test_progress_shows_on_a_terminal(tmp_path, starter):
    ours, theirs = pty.openpty()
    command = ["audit", "mean", "--quick"]
    out = tmp_path / "out"
    process = Started(command, out, os.ttyname(theirs), starter, TERM="xterm")
    seen = b""
    while process.poll() is None or select.select([ours], [], [], 0)[0]:
        if select.select([ours], [], [], 0.02)[0]:
            seen += os.read(ours, 4096)
    os.close(theirs)
    os.close(ours)
    assert process.poll() == 0
    assert b"Attacking" in seen
    assert b"/s" in seen
    assert b"Attacking" not in out.read_bytes()
    assert out.read_bytes().startswith(b"model")


def test_messages_are_wrapped_and_layout_is_kept():
    text = wrapped("Refused: " + "word " * 12 + "\nthen\n    --x age=0:110", width=30)
    lines = text.split("\n")
    assert lines[-2:] == ["  then", "    --x age=0:110"]
    assert max(map(len, lines)) <= 30
    assert wrapped("Error: " + "/long" * 20, width=30).split("\n")[1] == "  " + "/long" * 20


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1.0, "1"),
        (1e-5, "1e-5"),
        (1.27857, "1.279"),
        (12345.6, "12,346"),
        (0.0, "0"),
        (1e-12, "1e-12"),
    ],
)
def test_numbers_for_people(number, text):
    assert format_short(number) == text


@pytest.mark.parametrize("command", ["fit", "search"])
def test_a_model_that_was_forgotten_is_asked_for(run, command):
    answer = run(command, "people.csv", "--x", "age=0:110", "--out", "m.reticent")
    assert answer.code == 2
    assert f"The model comes first, then the file: reticent {command} gp" in answer.err
    assert "The model comes first" not in run(command, "--nonsense").err
