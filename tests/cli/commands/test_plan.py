"""``reticent plan``: tables, answers and drawings of a plan, and what it refuses."""

import json
import re
import warnings

import pytest

from reticent.planning.plan import Plan, plan
from tests.support.prose import says

ASK = (
    "plan",
    "--x",
    "age=0:110",
    "--y",
    "weight=2:150",
    "--n",
    300,
    "--epsilon",
    "3,30",
    "--draws",
    1,
)
_KNOWN: dict[str, Plan] = {}


@pytest.fixture(autouse=True)
def _simulated_once(monkeypatch):
    """A plan has a seed, so the same question need not be simulated twice."""

    def known(model, n, epsilons, **options):
        key = repr((model, n, epsilons, options["draws"], options["basis"]))
        if key not in _KNOWN:
            _KNOWN[key] = plan(model, n, epsilons, **options)
        return _KNOWN[key]

    monkeypatch.setattr("reticent.planning.plan.plan", known)


def test_the_command_prints_a_calm_table(run):
    answer = run(*ASK, "--noise", 12)
    assert answer.code == 0, answer.err
    text = " ".join(answer.out.split())
    assert says(text, "weight", "age", "300 records", "δ=1e-6")
    rows = [line.split() for line in answer.out.split("\n") if line.startswith("  ")]
    assert [row[0] for row in rows if row and row[0] in ("3", "30", "no", "a")] == [
        "3",
        "30",
        "no",
        "a",
    ]
    assert says(text, "drawn", "prior")
    assert says(text, "spread by 12")
    assert "No record was read, nothing was charged." in text
    command = (
        "reticent fit gp FILE --x age=0:110 --y weight=2:150 --noise 12 "
        "--epsilon 3 --delta 1e-6 --out m.reticent"
    )
    assert answer.out.endswith(f"Next:  {command}\n")
    assert "Next:" not in run(*ASK, "--quiet").out


def test_help_says_what_is_assumed_and_gives_an_example(run):
    text = " ".join(run("plan", "--help").out.split())
    assert "Draws functions from the prior" in text
    assert says(text, "easier or harder")
    assert "Example: reticent plan --x age=0:110 --y weight=2:150 --n 5000" in text


def test_the_command_answers_questions(run):
    answer = run(*ASK, "--error", 25, "--json")
    assert answer.code == 0, answer.err
    found = json.loads(answer.out)
    assert [row["epsilon"] for row in found["rows"]] == [3, 30]
    assert found["draws"] == 1
    assert "with 300 records" in found["answers"][0]
    between = 0.5 * (found["rows"][0]["rmse"] + found["rows"][1]["rmse"])
    easy = run(*ASK, "--error", between)
    needed = re.search(
        r"with 300 records needs about ε=([\d.]+): ε=3 leaves [\d.]+, ε=30 leaves [\d.]+", easy.out
    )
    assert 3 < float(needed[1]) < 30
    assert float(re.search(r"Next: .* --epsilon ([\d.]+) ", easy.out)[1]) == pytest.approx(
        float(needed[1]), rel=0.11
    )
    hard = run(*ASK, "--error", 0.0001)
    assert says(hard.out, "out of reach", "without privacy")
    assert "at ε=30 it needs" in hard.out


@pytest.mark.parametrize("kind", ["png", "svg", "html"])
def test_the_command_draws(run, tmp_path, kind):
    out = tmp_path / f"plan.{kind}"
    assert run(*ASK[:6], 200, "--epsilon", 5, "--draws", 1, "--out", out).code == 0
    content = out.read_bytes()
    assert content.startswith(
        {"png": b"\x89PNG", "svg": b"<?xml", "html": b"<!doctype html>"}[kind]
    )
    if kind == "html":
        text = content.decode()
        assert "<svg" in text
        assert "<td>no privacy</td>" in text
        assert "http" not in text.replace("http://www.w3.org", "")
    for wrong, words in (
        (("--draws", 0), "--draws must be"),
        (("--error", -1), "--error must be"),
        (("--delta", 0), "--delta must be above 0"),
    ):
        refused = run(
            *ASK[:-2], *wrong, "--out", out
        )  # what was asked is checked before where it is to go
        assert refused.code == 2
        assert words in refused.err
    again = run(*ASK, "--out", out)
    assert again.code == 5
    assert "exists already" in again.err
    assert out.read_bytes() == content


def test_several_bases(run):
    answer = run(*ASK, "--basis", "4,12")
    assert answer.code == 0, answer.err
    rows = [
        line.split() for line in answer.out.split("\n") if line.startswith("  ") and "%" in line
    ][1:]
    assert [(row[0], row[1]) for row in rows[:4]] == [
        ("3", "4"),
        ("30", "4"),
        ("3", "12"),
        ("30", "12"),
    ]
    assert re.search(r"Next: .* --basis (4|12) --epsilon 3 ", answer.out)


def test_several_numbers_of_records(run):
    answer = run(*ASK[:6], "100,1_000", "--epsilon", 3, "--draws", 1)
    assert answer.code == 0, answer.err
    assert [line.split()[0] for line in answer.out.split("\n") if " ± " in line] == ["100", "1,000"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (ASK[:5], 2, "How many records will there be? Give --n"),
        (ASK[:5], 2, "How many records will there be?"),
        (("plan", "--y", "weight=2:150", "--n", 9), 4, "needs the range of each input"),
        (("plan", "--x", "age=0:110", "--n", 9), 4, "--y weight=2:150"),
        (
            ("plan", "--x", "age=0:110", "--y", "age=0:110", "--n", 9),
            2,
            "both with --x and with --y",
        ),
        ((*ASK[:6], "many"), 2, "--n takes positive whole numbers"),
        ((*ASK[:6], "300", "--epsilon", "1;2"), 2, "--epsilon takes positive numbers"),
        ((*ASK[:6], "300", "--out", "plan.pdf"), 2, ".png, .svg, .html"),
        ((*ASK, "--basis", "many"), 2, "--basis takes positive whole numbers"),
        ((*ASK[:6], "300", "--delta", 0), 2, "--delta must be above 0"),
        ((*ASK, "--error", -1), 2, "must be a positive number"),
        ((*ASK[:-1], 0), 2, "--draws must be at least 1"),
    ],
)
def test_wrong_use(run, arguments, code, words):
    with warnings.catch_warnings():
        answer = run(*arguments)
    assert answer.code == code, answer.err
    assert words in answer.err


def test_odd_names_of_columns_are_quoted_for_the_shell(run):
    answer = run(*ASK[:2], "Hours/week (avg.)=0:80", *ASK[3:])
    assert (
        "reticent fit gp FILE --x 'Hours/week (avg.)=0:80' --y weight=2:150 --epsilon "
        in answer.out
    )


COST = ("plan", "--x", "age=0:110", "--y", "weight=2:150", "--rows", "1e9", "--basis", "5,8")


@pytest.fixture
def _quick_look(monkeypatch):
    for name, value in {"_LEAST": 2**14, "_MOST": 2**14, "_REPEATS": 1}.items():
        monkeypatch.setattr(f"reticent.planning.cost.{name}", value)


@pytest.mark.usefixtures("_quick_look")
def test_the_command_says_how_long_a_fit_takes(run):
    answer = run(*COST, "--workers", "8,64")
    assert answer.code == 0, answer.err
    text = " ".join(answer.out.split())
    assert says(text, "1,000,000,000 records in Parquet files", "24 releases", "8 workers")
    rows = [line.split() for line in answer.out.split("\n") if line[:1] == " "]
    assert [row[:2] for row in rows if row and row[0] in "58"] == [["5", "24"], ["8", "24"]]
    assert "No record was read, nothing was charged." in text
    found = json.loads(run(*COST, "--source", "memory", "--json").out)["costs"]
    assert [one["rows"] for one in found] == [10**9, 10**9]
    assert found[0]["seconds"] > 60


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--n", 5), "ask one after the other"),
        (("--error", 1), "ask one after the other"),
        (("--rows", "1,2"), "one whole number"),
        (("--rows", "many"), "positive numbers"),
        (("--source", "paper"), "--source is memory, parquet or csv"),
        (("--workers", "0"), "--workers takes"),
    ],
)
def test_questions_about_time_that_make_no_sense(run, given, words):
    refused = run(*COST, *given)
    assert refused.code == 2
    assert words in " ".join(refused.err.split())
    assert "--workers goes with --rows" in " ".join(run(*ASK, "--workers", "8").err.split())
