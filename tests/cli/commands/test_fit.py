"""``reticent fit``: the release, the charge, and every refusal."""

import json
import re
import shlex
from inspect import signature
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import reticent
from reticent.cli.columns import parse_columns
from reticent.cli.commands.fit import MODEL_OPTIONS
from reticent.cli.main import app
from reticent.cli.model_words import MODEL_WORDS
from reticent.errors import ReticentError
from reticent.files.output import page_of
from reticent.privacy.sources.parquet import write_parquet
from reticent.reporting.registry import PRESENTERS, presenter_class
from tests.support.prose import says

PROMISE = ("--epsilon", 0.5, "--delta", 1e-5)
AGE = ("--x", "age=0:110")


@pytest.fixture
def fit(run, tmp_path, people_csv):
    def call(*options, word="mean", data=people_csv, out=tmp_path / "m.reticent"):
        return run("fit", word, data, *options, "--out", out)

    return call


@pytest.mark.parametrize("word", ["mean", "histogram", "covariance", "gp"])
def test_a_fit_writes_a_private_model_and_charges_it(fit, word, tmp_path, budget, people_csv):
    account = ("--ledger", budget, "--dataset", "people")
    output = ("--y", "weight=2:150") if word == "gp" else ()
    answer = fit(*AGE, "--x", "height=40:220", *output, *PROMISE, *account, word=word)
    assert answer.code == 0, answer.err
    assert "500 records" in answer.out
    assert " PRIVATE " in answer.out
    assert "reticent inspect" in answer.out
    model = reticent.load(tmp_path / "m.reticent")
    assert model.guarantee_.private
    assert model.guarantee_.epsilon == pytest.approx(0.5)
    assert list(model.feature_names_in_) == ["age", "height"]
    assert reticent.Ledger(budget).spent("people") == pytest.approx(0.5)
    assert "spent ε=0.5" in answer.out


def test_options_reach_the_model(fit, tmp_path):
    assert fit(*AGE, *PROMISE, "--bins", 7, "--records-per-person", 3, word="histogram").code == 0
    model = reticent.load(tmp_path / "m.reticent")
    assert model.counts_.shape == (1, 7)
    assert model.guarantee_.records_per_person == 3
    answer = fit(
        *AGE, *PROMISE, "--norm", 40, "--records-per-person", 3, out=tmp_path / "n.reticent"
    )
    assert "protects any one person with up to 3 records of 500 records" in answer.out
    assert reticent.load(tmp_path / "n.reticent").releases_[0].bounds.norm == 40


def test_only_what_is_missing_is_asked_for(fit):
    assert "--epsilon" not in fit(*AGE, "--epsilon", 1).err
    assert "--delta" not in fit(*AGE, "--delta", 1e-5).err


def test_the_example_of_the_help_works_as_it_stands(run, people_csv, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    header, *lines = people_csv.read_text().splitlines()
    labelled = [
        f"{header},ill",
        *(f"{line},{'no' if i % 3 else 'yes'}" for i, line in enumerate(lines)),
    ]
    Path("patients.csv").write_text("\n".join(labelled))
    Path("staff.csv").write_text(
        "\n".join(["age,salary", *(f"{20 + i % 40},{30_000 + 500 * i}" for i in range(60))])
    )
    visits = [f'{i // 2},"ear, nose, throat",7,no' for i in range(60)]
    Path("visits.csv").write_text("\n".join(["patient_id,ward,stay,died", *visits]))
    text = run("fit", "--help").out.partition("Example:\n")[2].replace("\\\n", " ")
    lines = text.strip().split("\n")
    piped = lines.pop()
    assert piped.split()[:6] == ["zcat", "patients.csv.gz", "|", "reticent", "fit", "mean"]
    commands = [shlex.split(line)[1:] for line in lines]
    assert [command[:2] for command in commands] == [
        ["ledger", "open"],
        ["fit", "mean"],
        ["fit", "gp"],
        ["fit", "gp-labels"],
        ["fit", "classifier"],
        ["fit", "table"],
    ]
    for command in commands:
        answer = run(*command)
        assert answer.code == 0, answer.err
    after_pipe = shlex.split(piped.partition("| reticent ")[2])
    answer = CliRunner().invoke(app, after_pipe, input=people_csv.read_text())
    assert answer.exit_code == 0, answer.output


@pytest.mark.parametrize("command", ["fit", "inspect"])
def test_what_happens_to_odd_values_is_said(fit, run, tmp_path, command):
    answer = fit(*AGE, *PROMISE)
    if command == "inspect":
        answer = run("inspect", tmp_path / "m.reticent")
    text = " ".join(answer.out.split())
    assert says(text, "lacks", "left out", "outside", "edge")
    assert "± is the noise added for privacy; it covers neither" in text


def test_an_output_outside_is_not_said_to_be_moved_to_the_edge(fit):
    text = " ".join(fit(*AGE, "--y", "weight=2:150", *PROMISE, word="gp").out.split())
    assert says(text, "input outside", "edge", "output")
    moved = re.compile("a (value|number) outside (its range )?counts as the nearest edge")
    assert not moved.search(text)
    for name in PRESENTERS:
        clipping = presenter_class(getattr(reticent, name)).clipping
        assert bool(moved.search(clipping)) == (name != "GPRegressor"), clipping


def test_the_report_that_is_advised_can_be_written(fit, run, tmp_path):
    assert f"--out {tmp_path / 'm.html'}\n" in fit(*AGE, *PROMISE).out
    assert page_of(tmp_path / "m.v2") == tmp_path / "m.v2.html"
    for name in ("m.html", "m-2.html"):
        (tmp_path / name).write_text("")
    assert page_of(tmp_path / "m.reticent") == tmp_path / "m-3.html"


def test_how_a_text_file_was_read_is_said_whatever_is_in_it(fit, tmp_path):
    words = "counted as missing"
    for i, cells in enumerate(("1\n2\n", "1\nabc\n")):
        (tmp_path / "some.csv").write_text(f"age\n{cells}")
        answer = fit(*AGE, *PROMISE, data=tmp_path / "some.csv", out=tmp_path / f"{i}.reticent")
        said = " ".join(answer.out.split())
        assert says(said, "some.csv is text", words)
        assert says(said, "reticent check")
    typed = tmp_path / "some.parquet"
    write_parquet(typed, {"age": [1.0, 2.0]})
    assert words not in " ".join(
        fit(*AGE, *PROMISE, data=typed, out=tmp_path / "p.reticent").out.split()
    )


def test_spent_and_left_are_explained_where_they_do_not_add_up(fit, run, tmp_path, budget):
    account = ("--ledger", budget, "--dataset")
    answer = fit(*AGE, *PROMISE, *account, "people")
    assert "for one more release" in answer.out
    assert says(" ".join(answer.out.split()), "less", "sum")
    assert run("ledger", "open", budget, "pure", "--epsilon", 1, "--delta", 0).code == 0
    pure = fit(*AGE, "--epsilon", 0.5, "--delta", 0, *account, "pure", out=tmp_path / "n.reticent")
    assert pure.code == 0
    assert "less than their sum" not in pure.out


def test_a_weak_delta_and_a_small_budget_are_noted_calmly(fit, tmp_path):
    (tmp_path / "few.csv").write_text("age\n" + "1\n2\n3\n4\n" * 10)
    answer = fit(*AGE, "--epsilon", 0.1, "--delta", 0.25, data=tmp_path / "few.csv")
    assert (answer.code, answer.err) == (0, "")
    assert "Note: --delta = 0.25" in answer.out
    assert "too small for so few" not in answer.out
    answer = fit(
        *AGE,
        "--epsilon",
        0.1,
        "--delta",
        1e-6,
        data=tmp_path / "few.csv",
        out=tmp_path / "n.reticent",
    )
    assert "--delta =" not in answer.out
    assert says(" ".join(answer.out.split()), "too small")
    answer = fit(
        *AGE,
        "--epsilon",
        0.01,
        "--delta",
        0.01,
        "--json",
        data=tmp_path / "few.csv",
        out=tmp_path / "o",
    )
    assert ["too small" in note for note in json.loads(answer.out)["notes"]] == [True]
    assert "Note:" not in fit(*AGE, *PROMISE, out=tmp_path / "p.reticent").out


def test_json_and_quiet(fit, tmp_path):
    found = json.loads(fit(*AGE, *PROMISE, "--json").out)
    assert found["private"] is True
    assert found["guarantee"]["epsilon"] == pytest.approx(0.5)
    assert found["guarantee"]["epsilon_asked"] == 0.5
    assert found["results"]["mean"]["age"]["value"] == pytest.approx(38, abs=15)
    answer = fit(*AGE, *PROMISE, "--quiet", out=tmp_path / "n.reticent")
    assert (answer.code, answer.out, answer.err) == (0, "", "")


def test_no_bounds_is_refused_with_the_columns(fit):
    answer = fit(*PROMISE)
    assert answer.code == 4
    assert answer.err.startswith("Refused: ")
    assert says(answer.err, "bounds", "data")
    assert "--x age=0:110 --x height=40:220" in answer.err
    assert says(answer.err, "people.csv", "age", "sex", "height", "weight", "systolic")


def test_no_bounds_names_other_columns_too(fit, tmp_path):
    (tmp_path / "other.csv").write_text("dose,side effect\n1,2\n")
    answer = fit(*PROMISE, data=tmp_path / "other.csv")
    assert answer.code == 4
    assert "--x dose=LOW:HIGH --x 'side effect=LOW:HIGH'" in answer.err


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--x", "age=110:0", *PROMISE], 4, "did you mean --x age=0:110?"),
        (["--x", "age=0:1e999", *PROMISE], 4, "finite"),
        (["--x", "age=0-110", *PROMISE], 2, "COLUMN=LOW:HIGH"),
        (["--x", "age=0:110", "--x", "age=0:90", *PROMISE], 2, "twice"),
        (["--x", "wage=0:110", *PROMISE], 2, "no column 'wage'"),
        ([*AGE, "--epsilon", -1, "--delta", 1e-5], 2, "--epsilon must be a positive number"),
        ([*AGE, "--epsilon", 1, "--delta", 2], 2, "--delta must be a number"),
        ([*AGE], 2, "There are no defaults"),
        ([*AGE, "--epsilon", 1], 2, "Give --delta, the chance"),
        ([*AGE, "--delta", 1e-5], 2, "Give --epsilon, for example"),
        ([*AGE, *PROMISE, "--bins", 5], 2, "mean has no option --bins"),
        ([*AGE, *PROMISE, "--noise", 5], 2, "mean has no option --noise"),
        ([*AGE, *PROMISE, "--y", "weight=2:150"], 2, "mean has no outputs: leave --y out"),
        (
            [*AGE, *PROMISE, "--records-per-person", 0],
            2,
            "--records-per-person must be a whole number from 1",
        ),
        ([*AGE, "--x", "height=5:5", *PROMISE], 4, "height=5:5 has no width"),
        ([*AGE, *PROMISE, "--norm", -1], 4, "--norm must be"),
        ([*AGE, "--epsilon", 1.5, "--delta", 1e-5], 3, "cap"),
    ],
)
def test_refusals_charge_nothing_and_write_nothing(fit, budget, tmp_path, options, code, words):
    answer = fit(*options, "--ledger", budget, "--dataset", "people")
    assert answer.code == code
    assert words in answer.err
    assert answer.err.startswith("Refused: " if code in (3, 4) else "Error: ")
    assert answer.err.count("Refused:") <= 1
    assert answer.out == ""
    assert reticent.Ledger(budget).history("people") == []
    assert not (tmp_path / "m.reticent").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([*AGE, "--epsilon", -1, "--delta", 1e-5], "--epsilon must be a positive number"),
        ([*AGE, "--x", "height=5:5", *PROMISE], "has no width"),
        (["--x", "wage=0:110", *PROMISE], "no column 'wage'"),
        ([*AGE, *PROMISE], "exists already"),
    ],
)
def test_what_was_asked_is_checked_before_where_it_is_to_go(fit, tmp_path, options, words):
    (tmp_path / "m.reticent").write_text("precious")
    assert words in fit(*options).err
    assert (tmp_path / "m.reticent").read_text() == "precious"


def test_ledger_and_dataset_go_together(fit, budget):
    answer = fit(*AGE, *PROMISE, "--ledger", budget)
    assert answer.code == 2
    assert "both --ledger and --dataset" in answer.err
    answer = fit(*AGE, *PROMISE, "--ledger", budget, "--dataset", "peopel")
    assert answer.code == 5
    assert "'people'" in answer.err


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("missing.csv", None, "missing.csv"),
        ("empty.csv", "age\n", "no records"),
        ("odd.xlsx", "age\n1\n", "odd.xlsx"),
    ],
)
def test_a_bad_file_is_5(fit, tmp_path, name, content, words):
    if content is not None:
        (tmp_path / name).write_text(content)
    answer = fit(*AGE, *PROMISE, data=tmp_path / name)
    assert answer.code == 5
    assert words in answer.err


def test_a_column_of_lists_is_5(fit, tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"age": [["secret"]]}), tmp_path / "text.parquet")
    answer = fit(*AGE, *PROMISE, data=tmp_path / "text.parquet")
    assert answer.code == 5
    assert "'age'" in answer.err
    assert "secret" not in answer.err


def test_an_unknown_model_is_2(fit):
    answer = fit(*AGE, *PROMISE, word="oracle")
    assert answer.code == 2
    assert all(f" {word}" in answer.err for word in MODEL_WORDS)


def test_a_release_is_never_overwritten(fit, tmp_path, budget):
    (tmp_path / "m.reticent").write_text("paid for")
    answer = fit(*AGE, *PROMISE, "--ledger", budget, "--dataset", "people")
    assert answer.code == 5
    assert "exists already" in answer.err
    assert (tmp_path / "m.reticent").read_text() == "paid for"
    assert fit(*AGE, *PROMISE, out=tmp_path / "nowhere" / "m.reticent").code == 5
    assert reticent.Ledger(budget).history("people") == []


def test_ctrl_c_says_what_was_charged(fit, budget, monkeypatch):
    def stopped(self, curator):
        raise KeyboardInterrupt

    monkeypatch.setattr(reticent.PrivateMean, "learn", stopped)
    answer = fit(*AGE, *PROMISE, "--ledger", budget, "--dataset", "people")
    assert answer.code == 130
    assert says(answer.err, "interrupted", "'people'", "stays charged", "entry 2", "PrivateMean")
    assert "nothing was charged anywhere" in fit(*AGE, *PROMISE).err
    monkeypatch.setattr(reticent.PrivateMean, "fit", stopped)
    assert says(
        fit(*AGE, *PROMISE, "--ledger", budget, "--dataset", "people").err,
        "nothing was charged",
        "'people'",
    )


def test_a_full_disk_says_what_was_charged(fit, budget, monkeypatch):
    def full(self, path, **how):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(reticent.PrivateMean, "save", full)
    answer = fit(*AGE, *PROMISE, "--ledger", budget, "--dataset", "people")
    assert answer.code == 5
    said = " ".join(answer.err.split())
    assert says(said, "no space left")
    assert "Charged to data set 'people'" in said
    assert "in memory" not in said
    assert len(reticent.Ledger(budget).history("people")) == 1


def test_a_model_that_cannot_be_saved_is_rescued(fit, tmp_path, budget, monkeypatch):
    """The disk filled up after the charge, or somebody made the file meanwhile.

    The model is elsewhere, and whole.
    """
    real = reticent.PrivateMean.save

    def taken(self, path, **options):
        if path == tmp_path / "m.reticent":
            path.write_text("somebody else's")
        real(self, path, **options)

    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setattr(reticent.PrivateMean, "save", taken)
    answer = fit(*AGE, *PROMISE, "--ledger", budget, "--dataset", "people")
    assert answer.code == 5
    assert "in memory" not in answer.err
    [rescued] = (tmp_path / "work").glob("m-rescued-*.reticent")
    assert rescued.name in "".join(answer.err.split())
    assert "Charged to data set 'people'" in " ".join(answer.err.split())
    assert len(reticent.load(rescued).releases_) == 1
    assert (tmp_path / "m.reticent").read_text() == "somebody else's"


def test_a_ledger_that_is_gone_after_the_charge_costs_no_model(fit, tmp_path, budget, monkeypatch):
    """A server that ends, or a lock that somebody holds: what was paid for is saved first."""
    real = reticent.PrivateMean.learn

    def learn(self, curator):
        real(self, curator)
        budget.rename(tmp_path / "away.db")

    monkeypatch.setattr(reticent.PrivateMean, "learn", learn)
    answer = fit(*AGE, *PROMISE, "--ledger", budget, "--dataset", "people")
    monkeypatch.undo()
    assert answer.code == 0, answer.err
    assert len(reticent.load(tmp_path / "m.reticent").releases_) == 1
    assert says(answer.out, '"people": charged')


def test_ctrl_c_after_a_fit_does_not_say_that_nothing_was_charged(
    fit, tmp_path, budget, monkeypatch
):
    def stopped(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("reticent.cli.commands.inspect.print_fit", stopped)
    answer = fit(*AGE, *PROMISE, "--ledger", budget, "--dataset", "people")
    assert answer.code == 130
    assert "what it cost stays charged" in " ".join(answer.err.split())
    assert (tmp_path / "m.reticent").exists()


def test_if_the_working_folder_is_no_place_the_temporary_one_is(fit, tmp_path, budget, monkeypatch):
    real = reticent.PrivateMean.save

    def only_there(self, path, **options):
        if Path(path).parent != tmp_path / "temporary":
            raise OSError(28, "No space left on device", str(path))
        real(self, path, **options)

    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "temporary"))
    monkeypatch.setattr(reticent.PrivateMean, "save", only_there)
    assert "The model was saved as" in " ".join(fit(*AGE, *PROMISE).err.split())
    assert len(list((tmp_path / "temporary").iterdir())) == 1


@pytest.mark.parametrize("name", ["m" * 300 + ".reticent", "folder"])
def test_a_place_that_cannot_be_written_is_refused_before_the_charge(fit, tmp_path, budget, name):
    (tmp_path / "folder").mkdir()
    answer = fit(*AGE, *PROMISE, "--ledger", budget, "--dataset", "people", out=tmp_path / name)
    assert answer.code == 5
    assert reticent.Ledger(budget).history("people") == []


def test_a_full_disk_is_found_before_the_charge(fit, tmp_path, budget, monkeypatch):
    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("reticent.cli.files.model_files.os.fsync", full)
    answer = fit(*AGE, *PROMISE, "--ledger", budget, "--dataset", "people")
    assert answer.code == 5
    said = " ".join(answer.err.split())
    assert "No space left on device" in said
    assert "Nothing was charged" in said
    assert not (tmp_path / "m.reticent").exists()
    assert reticent.Ledger(budget).history("people") == []


@pytest.mark.parametrize(
    ("text", "name", "low", "high"),
    [
        ("t=-40:50", "t", -40, 50),
        ("t=-5e-1:.5", "t", -0.5, 0.5),
        ("a=b=0:1", "a=b", 0, 1),
        ("a:b=1.:2", "a:b", 1, 2),
        ("body mass= 10 : 60 ", "body mass", 10, 60),
        ("t=+1E2:2e+2", "t", 100, 200),
    ],
)
def test_ranges(text, name, low, high):
    assert parse_columns("--x", [text]) == {name: reticent.Number(low, high)}


@pytest.mark.parametrize(
    "text",
    ["", "age", "=0:1", "age=", "age=0", "age=0:", "age=0:1:2", "age=a:b", "age=0:inf", "age=٠:١"],
)
def test_ranges_that_are_none(text):
    with pytest.raises(ReticentError, match=r"^--x "):
        parse_columns("--x", [text])


def test_negative_ranges_work_from_the_command_line(fit, tmp_path):
    (tmp_path / "t.csv").write_text("t\n" + "\n".join(map(str, np.linspace(-20, 0, 2000))))
    assert (
        fit("--x", "t=-40:40", "--epsilon", 20, "--delta", 1e-2, data=tmp_path / "t.csv").code == 0
    )
    assert reticent.load(tmp_path / "m.reticent").mean_[0] == pytest.approx(-10, abs=1)


def test_help_says_which_models_have_an_option():
    """The words before the colon.

    So a new option is one line, and a model has it if its class does.
    """
    for name, (kind, _) in MODEL_OPTIONS.items():
        told = kind.__metadata__[0].help.partition(":")[0].split(", ")
        classes = {word: getattr(reticent, model.estimator) for word, model in MODEL_WORDS.items()}
        assert sorted(told) == sorted(
            word for word, one in classes.items() if name in signature(one).parameters
        ), name
