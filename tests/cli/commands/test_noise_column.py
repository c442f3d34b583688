"""Known noise levels on the command line: fit, inspect, predict, report, plan and search."""

import csv
import json

import numpy as np
import pandas as pd
import pytest

import reticent
from reticent import Bounds, GPRegressor, Ledger, plan
from reticent.reporting.budget import budget
from reticent.reporting.presenters.effects import RegressionOutput, average_std, effect_lines
from reticent.reporting.presenters.input_distribution import box_points
from tests.support.prose import says

LEVEL = ("--noise-column", "sd=0.1:1")
ABOUT = ("--x", "x=-4:4", "--y", "y=-1.3:1.3", "--epsilon", 3, "--delta", 1e-6)
BOUNDS = reticent.Bounds(x={"x": (-4, 4), "sd": (0.1, 1)}, y={"y": (-1.3, 1.3)})


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("levels") / "data.csv"
    rng = np.random.default_rng(0)
    x = rng.uniform(-4, 4, 1000)
    sd = rng.choice([0.1, 1.0], 1000)
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(
            [["x", "sd", "y"], *zip(x, sd, np.sin(x) + sd * rng.normal(size=1000), strict=True)]
        )
    return path


@pytest.fixture(scope="module")
def model(table):
    return reticent.GPRegressor(
        noise_column="sd", bounds=BOUNDS, epsilon=3, delta=1e-6, stages=4
    ).fit(table)


def test_fit_and_inspect_say_that_each_record_has_a_level(run, table, tmp_path):
    out = tmp_path / "m.reticent"
    answer = run("fit", "gp", table, *ABOUT, *LEVEL, "--out", out)
    assert answer.code == 0, answer.err
    assert reticent.load(out).noise_column == "sd"
    text = " ".join(answer.out.split())
    assert says(text, "y spreads", "each record", "known level")
    assert says(text, "noise level is missing", "left out")
    assert "sd (noise level) 0.1 to 1" in " ".join(run("inspect", out).out.split())
    assert json.loads(run("inspect", out, "--json").out)["results"]["noise"] is None


def test_codes_of_missing_levels_leave_records_out(run, table, tmp_path):
    """A code that means missing is no level: such records change nothing but the public n."""
    frame = pd.read_csv(table)
    frame["sd"] = frame["sd"].astype(object)
    frame.loc[::2, "sd"] = "999"
    frame.loc[::2, "y"] = 1.3
    frame.to_csv(tmp_path / "coded.csv", index=False)
    places = np.linspace(-3, 3, 13)[:, None]
    found = {}
    for codes in ("999", "sd=999"):
        out = tmp_path / f"{codes}.reticent"
        answer = run(
            "fit", "gp", tmp_path / "coded.csv", *ABOUT, *LEVEL, "--missing", codes, "--out", out
        )
        assert answer.code == 0, answer.err
        fitted = reticent.load(out)
        assert fitted.releases_[0].bounds.noise_column.missing == (999.0,)
        found[codes] = fitted.predict(places) - np.sin(places[:, 0])
    for error in found.values():
        assert np.abs(error).mean() < 0.25, found
    answer = run("fit", "gp", table, *ABOUT, *LEVEL, "--missing", "z=1", "--out", tmp_path / "n")
    assert "no such column is used" in answer.err
    assert all(name in answer.err for name in ("x", "y", "sd"))


def test_predictions_tell_single_outputs_where_the_file_has_levels(run, table, model, tmp_path):
    model.save(tmp_path / "m")
    (tmp_path / "new.csv").write_text("x,sd\n0.5,0.3\n1,\n")
    (tmp_path / "bare.csv").write_text("x\n0.5\n1\n")
    answers = {
        name: run("predict", tmp_path / "m", tmp_path / name, "--out", tmp_path / f"p-{name}")
        for name in ("new.csv", "bare.csv")
    }
    assert [answer.code for answer in answers.values()] == [0, 0]
    rows, bare = (
        list(csv.DictReader((tmp_path / f"p-{name}").read_text().splitlines())) for name in answers
    )
    assert list(rows[0]) == ["x", "sd", "y", "y_std", "y_output_std"]
    assert list(bare[0]) == ["x", "y", "y_std"]
    for row, other, level in zip(rows, bare, (0.3, 1.0), strict=True):
        assert (row["y"], row["y_std"]) == (other["y"], other["y_std"])
        assert float(row["y_output_std"]) == pytest.approx(
            np.hypot(float(row["y_std"]), level), rel=1e-3
        )
    assert "of a single output" in " ".join(answers["new.csv"].out.split())
    assert says(" ".join(answers["bare.csv"].out.split()), "noisy", "does not say")


def test_drawings_and_reports_show_the_function_only(model, tmp_path):
    assert list(effect_lines(RegressionOutput(model))[0].std) == ["model", "privacy"]
    assert set(average_std(RegressionOutput(model), box_points(model))) == {
        "model",
        "privacy",
        "function",
    }
    figure = reticent.plot.release(model)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "mean",
        "model’s uncertainty",
        "and privacy noise",
    ]
    model.report(tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    for words in (
        "sd (noise level)",
        "of the sizes given",
        "a known level of its own",
        "Single outputs spread around it",
    ):
        assert words in page
    assert "nan" not in page.lower().replace("finance", "")
    assert '"spread"' not in page


def test_plans_draw_levels(run):
    model = reticent.GPRegressor(noise_column="sd", bounds=BOUNDS, basis=20, stages=3)
    noisy = reticent.GPRegressor(
        noise=1.0,
        bounds=reticent.Bounds(x={"x": (-4, 4)}, y={"y": (-1.3, 1.3)}),
        basis=20,
        stages=3,
    )
    for n in (800, 40_000):  # each record by itself, and places that stand for many
        known, all_noisy = (plan(one, n=n, epsilons=[10], draws=3) for one in (model, noisy))
        assert known.rows[0].rmse < 0.7 * all_noisy.rows[0].rmse
        assert known.noise == pytest.approx(0.4637, abs=1e-3)
    answer = run(
        "plan",
        "--x",
        "x=-4:4",
        "--y",
        "y=-1.3:1.3",
        *LEVEL,
        "--n",
        500,
        "--epsilon",
        1,
        "--draws",
        1,
        "--basis",
        6,
    )
    assert answer.code == 0, answer.err
    text = " ".join(answer.out.split())
    assert "by levels of their own" in text
    assert "--noise-column sd=0.1:1" in text


def test_searches_keep_the_column_whatever_inputs_are_tried(run, table, tmp_path):
    out = tmp_path / "s.reticent"
    answer = run(
        "search", "gp", table, *ABOUT, *LEVEL, "--try", "x=x", "--try", "basis=8", "--out", out
    )
    assert answer.code == 0, answer.err
    best = reticent.load(out).best_estimator_
    assert (best.noise_column, best.feature_names_in_.tolist()) == ("sd", ["x"])


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--noise-column", "sd=0:1"], 2, "lower bound above 0"),
        (["--noise-column", "sd"], 2, "--noise-column takes COLUMN=LOW:HIGH"),
        (["--noise-column", "x=0.1:1"], 2, "'x' is given both with --x and with --noise-column"),
        (["--noise-column", "y=0.1:1"], 2, "'y' is given both with --y and with --noise-column"),
        (["--noise-column", "spread=0.1:1"], 2, "no column 'spread'"),
        ([*LEVEL, "--noise", 1], 2, "not both"),
    ],
)
def test_refusals_charge_nothing(run, table, budget, tmp_path, options, code, words):
    out = tmp_path / "m.reticent"
    ledger = ("--ledger", budget, "--dataset", "people")
    answer = run("fit", "gp", table, *ABOUT, *options, *ledger, "--out", out)
    assert answer.code == code, answer.err
    assert words in answer.err
    assert reticent.Ledger(budget).history("people") == []
    assert not out.exists()


def test_other_models_have_no_such_option(run, table, tmp_path):
    answer = run(
        "fit",
        "mean",
        table,
        "--x",
        "x=-4:4",
        *LEVEL,
        "--epsilon",
        1,
        "--delta",
        1e-6,
        "--out",
        tmp_path / "m",
    )
    assert (answer.code, "mean has no option --noise-column" in answer.err) == (2, True)


def test_a_report_finds_the_charge_of_a_model_with_levels_and_names_of_any_length_are_charged(
    tmp_path,
):
    ledger = str(tmp_path / "budget.db")
    long = "concentration " * 80
    Ledger(ledger).open("people", 10, 1e-4)
    bounds = Bounds(x={"sd": (0.1, 1), long: (-4, 4)}, y={long + "y": (-1.3, 1.3)})
    paid = {"epsilon": 1, "delta": 1e-6, "ledger": ledger, "dataset": "people", "random_state": 0}
    model = GPRegressor(noise_column="sd", bounds=bounds, stages=2, **paid)
    model.fit(pd.DataFrame({"sd": [0.5, 0.2], long: [1.0, 2.0]}), [0.0, 1.0])
    many = Bounds(x={long: (-4, 4)}, y={f"{long}{i}": (-1, 1) for i in range(44)})
    GPRegressor(bounds=many, stages=2, basis=4, **paid).fit(
        pd.DataFrame({long: [1.0, 2.0]}), np.zeros((2, 44))
    )
    assert len(Ledger(ledger).history("people")) == 2
    assert budget(model.releases_, ledger, "people")["charged"] is not None
