"""``reticent fit gp`` and how ``reticent inspect`` shows it.

Outputs, effects, the kernel in words.
"""

import json

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel
from sklearn.utils import get_tags

import reticent
from reticent.cli.model_words import MODEL_WORDS
from reticent.reporting.formatting import format_with_error
from reticent.reporting.presenter import SCREEN
from reticent.reporting.presenters.regression import RegressionPresenter
from tests.support.prose import says

X = ("--x", "age=0:110")
Y = ("--y", "weight=2:150")
PROMISE = ("--epsilon", 1, "--delta", 1e-5)


@pytest.fixture
def fit(run, tmp_path, people_csv):
    def call(*options, data=people_csv):
        return run("fit", "gp", data, *options, "--out", tmp_path / "m.reticent")

    return call


def made(kernel, *, n=2000, epsilon=20.0, bounds=None, **options):
    random = np.random.default_rng(0)
    x = random.uniform([0, 0], [10, 4], (n, 2))
    y = np.sin(x[:, 0]) + 0.5 * x[:, 1] + 0.1 * random.standard_normal(n)
    bounds = bounds or reticent.Bounds(x=[(0, 10), (0, 4)], y=(-2, 4))
    model = reticent.GPRegressor(
        kernel, bounds=bounds, epsilon=epsilon, delta=1e-6, basis=12, stages=2, **options
    )
    return model.fit(x, y)


def test_outputs_are_wanted_where_the_model_uses_them():
    for model in MODEL_WORDS.values():
        tags = get_tags(getattr(reticent, model.estimator)())
        assert model.outputs == tags.target_tags.required


def test_the_fit_is_shown_with_what_to_do_next(fit, run, tmp_path):
    answer = fit(*X, *Y, *PROMISE, "--noise", 12)
    assert answer.code == 0, answer.err
    model = reticent.load(tmp_path / "m.reticent")
    assert model.noise == 12
    assert model.releases_[0].bounds.y_names == ("weight",)
    text = " ".join(answer.out.split())
    assert f"weight spreads by about {model.noise_:.0f} around the function" in text
    assert says(text, "privacy noise", "not what")
    assert "noise added for privacy" not in text
    assert "reticent predict" in text
    mean, sd = model.predict([[55.0]], return_std=True)
    assert format_with_error(mean[0], sd[0]) in answer.out
    shown = run("inspect", tmp_path / "m.reticent").out
    assert "weight (output) 2 to 150" in " ".join(shown.split())
    results = json.loads(run("inspect", tmp_path / "m.reticent", "--json").out)["results"]
    assert results["effects"]["age"]["mean"][3] == pytest.approx(mean[0])


def test_effects_move_one_input_and_leave_the_others_in_the_middle():
    model = made(RBF([2.0, 4.0], "fixed"))
    found = RegressionPresenter(model).results()
    second = found["effects"]["column 1"]
    assert second["at"] == pytest.approx([0, 4 / 6, 8 / 6, 2, 16 / 6, 20 / 6, 4])
    mean, sd = model.predict([[5.0, at] for at in second["at"]], return_std=True)
    assert second["mean"] == mean.tolist()
    assert second["std"] == sd.tolist()
    assert np.hypot(second["model_std"], second["privacy_std"]) == pytest.approx(sd)
    assert second["mean"][5] - second["mean"][1] == pytest.approx(0.5 * 16 / 6, abs=0.5)
    assert found["noise"] == model.noise_
    assert found["output"] == "output"
    assert "column 0 5, column 1 2" in RegressionPresenter(model).remarks(SCREEN)[0]


def test_effects_stay_where_the_norm_lets_them():
    bounds = reticent.Bounds(x=[(0, 10), (0, 4)], y=(-2, 4), norm=3)
    effects = RegressionPresenter(made(RBF(2.0, "fixed"), bounds=bounds)).results()["effects"]
    assert (effects["column 0"]["at"][0], effects["column 0"]["at"][-1]) == (2, 8)
    assert (effects["column 1"]["at"][0], effects["column 1"]["at"][-1]) == (0, 4)


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (RBF(2.5), ["prior: output usually varies by ±1 over about 2.5 of column 0 or 2.5 of"]),
        (
            ConstantKernel(9.0) * RBF([2.0, 40.0]),
            ["prior: output usually varies by ±3 over about 2 of column 0"],
        ),
        (
            ConstantKernel(4.0) * (Matern([3.0, 30.0]) + ConstantKernel(2.25)) + WhiteKernel(0.1),
            [
                "prior: the level of output is usually within ±3 of the middle of its range",
                "prior: output usually varies by ±2 over about 3 of column 0",
            ],
        ),
        (
            ConstantKernel(9.0) * RBF([1.0, 40.0]) + ConstantKernel(16.0) * RBF([3.0, 40.0]),
            ["prior: output usually varies by ±5 over about 1 – 3 of column 0"],
        ),
        (RBF(2.0) + RBF(1.0) * RBF(3.0), ["kernel: RBF(length_scale=2) + RBF("]),
        (RBF(2.0) * RBF(1.0), ["kernel: RBF(length_scale=2) * RBF(length_scale=1)"]),
    ],
)
def test_kernels_in_words(run, tmp_path, kernel, words):
    made(kernel, learn_kernel=False).save(tmp_path / "m.reticent")
    shown = run("inspect", tmp_path / "m.reticent").out
    lines = [
        line.strip() for line in shown.split("\n") if line.strip().startswith(("prior:", "kernel:"))
    ]
    assert len(lines) == len(words)
    for line, start in zip(lines, words, strict=True):
        assert line.startswith(start)


def test_kernels_of_many_parts_are_cut_short(run, tmp_path):
    x = np.random.default_rng(0).uniform(-1, 1, (100, 4))
    bounds = reticent.Bounds(x=[(-1, 1)] * 4, y=(-1, 1))
    kernel = sum(
        (RBF([1.0 if i == j else 1e3 for i in range(4)]) for j in range(1, 4)),
        RBF([1.0, 1e3, 1e3, 1e3]),
    )
    kernel += RBF([1.0, 1.0, 1e3, 1e3]) + RBF([1e3, 1e3, 1.0, 1.0]) + RBF(1.0)
    params = {
        "bounds": bounds,
        "epsilon": 1,
        "delta": 1e-6,
        "basis": 4,
        "stages": 1,
        "learn_kernel": False,
    }
    reticent.GPRegressor(kernel, **params).fit(x, x[:, 0]).save(tmp_path / "m")
    shown = run("inspect", tmp_path / "m").out
    assert shown.count("usually varies by ±") == 5
    assert "more ways: see --json" in shown


def test_a_fit_that_says_nothing_is_noted():
    assert RegressionPresenter(made(RBF(3.0, "fixed"))).notes() == []
    little = made(RBF(3.0, "fixed"), n=20, epsilon=0.1)
    assert "hardly better known" in RegressionPresenter(little).notes()[0]


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (
            [*X, *PROMISE],
            4,
            "the output has no bounds, and reticent never takes them from the data",
        ),
        (
            [*X, *PROMISE],
            4,
            "--y weight=2:150 Columns in people.csv: age, sex, height, weight, systolic",
        ),
        ([*X, "--x", "weight=2:150", *PROMISE], 4, "--y sex=LOW:HIGH"),
        ([*Y, *PROMISE], 4, "--x age=0:110 --x height=40:220"),
        (
            [*X, *Y, "--x", "weight=2:150", *PROMISE],
            2,
            "'weight' is given both with --x and with --y",
        ),
        ([*X, "--y", "wait=2:150", *PROMISE], 2, "no column 'wait'"),
        ([*X, "--y", "weight=2-150", *PROMISE], 2, "Give COLUMN=LOW:HIGH with two numbers"),
        ([*X, "--y", "weight=150:2", *PROMISE], 4, "did you mean --y weight=2:150?"),
        ([*X, *Y, *PROMISE, "--basis", 0], 2, "basis must be a whole number"),
        ([*X, *Y, *PROMISE, "--noise", -1], 2, "--noise must be a positive"),
        ([*X, *Y, *PROMISE, "--bins", 3], 2, "gp has no option --bins"),
        ([*X, *Y, "--epsilon", 1, "--delta", 0], 2, "--delta must be above 0"),
    ],
)
def test_refusals_charge_nothing(fit, budget, tmp_path, options, code, words):
    answer = fit(*options, "--ledger", budget, "--dataset", "people")
    assert answer.code == code, answer.err
    assert words in answer.err
    assert reticent.Ledger(budget).history("people") == []
    assert not (tmp_path / "m.reticent").exists()


@pytest.mark.parametrize(
    ("rows", "epsilon"),
    [
        ("1,.7\n5,.7\n9,.7\n", 1),
        ("3,1\n3,-1\n3,0\n", 1),
        ("3,1\n", 1),
        ("1,0\n2,1\n", 1e-9),
        ("1,0\n2,1\n", 1e6),
    ],
    ids=["y constant", "all x equal", "one record", "hardly any budget", "hardly any noise"],
)
@pytest.mark.parametrize("copy", [False, True], ids=["", "a column twice"])
def test_data_that_tell_nothing_give_finite_predictions(run, tmp_path, rows, epsilon, copy):
    cells = [line.split(",") for line in f"a,y\n{rows}".split()]
    table = "".join(
        f"{a},{'b' if a == 'a' else a},{y}\n" if copy else f"{a},{y}\n" for a, y in cells
    )
    data = tmp_path / "d.csv"
    out = tmp_path / "m.reticent"
    new = tmp_path / "p.csv"
    data.write_text(table)
    x = ["--x", "a=0:10", *(["--x", "b=0:10"] if copy else [])]
    answer = run(
        "fit", "gp", data, *x, "--y", "y=-2:2", "--epsilon", epsilon, "--delta", 1e-5, "--out", out
    )
    assert (answer.code, answer.err) == (0, "")
    assert run("predict", out, data, "--out", new).code == 0
    found = np.loadtxt(new, delimiter=",", skiprows=1, ndmin=2)
    assert np.isfinite(found).all()
    assert np.abs(found).max() < 20


def test_columns_of_the_same_name_and_no_records_are_refused(run, tmp_path):
    ask = ("--x", "a=0:10", "--y", "y=-2:2", *PROMISE, "--out", tmp_path / "m.reticent")
    for text, words in (
        ("a,a,y\n1,1,0\n", "not unique"),
        ("a,y\n", "no records"),
        ("", "is empty"),
    ):
        (tmp_path / "d.csv").write_text(text)
        answer = run("fit", "gp", tmp_path / "d.csv", *ask)
        assert answer.code == 5
        assert words in " ".join(answer.err.split())


def test_that_records_were_left_out_is_said_once(run, tmp_path):
    random = np.random.default_rng(0)
    age = random.uniform(0, 110, 2000)
    rows = [f"{a:.1f},{'' if i % 5 < 2 else f'{a / 2 + 20:.1f}'}" for i, a in enumerate(age)]
    (tmp_path / "data.csv").write_text("\n".join(["age,weight", *rows]))
    about = ("--x", "age=0:110", "--y", "weight=2:150", "--epsilon", 5, "--delta", 1e-6)
    for out, more in (("screen", ()), ("machine", ("--json",))):
        answer = run("fit", "gp", tmp_path / "data.csv", *about, "--out", tmp_path / out, *more)
        assert answer.code == 0, answer.err
        text = " ".join((answer.out + answer.err).split())
        assert text.count("of the records have all") == 1, text
        assert text.count("Was everything read?") == 1, text
