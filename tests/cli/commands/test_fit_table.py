"""``reticent fit table``: tables by group from a file."""

import json

import numpy as np
import pandas as pd
import pytest

import reticent
from reticent.cli.table_columns import table_columns
from tests.support.prose import says

PROMISE = ("--epsilon", 5, "--delta", 1e-6)
SEX = ("--by", "sex=F,M")


@pytest.fixture
def stays(tmp_path):
    rng = np.random.default_rng(0)
    n = 3000
    frame = pd.DataFrame(
        {
            "sex": rng.choice(["F", "M", ""], n),
            "age": rng.integers(0, 100, n),
            "stay": rng.uniform(0, 20, n).round(1),
            "died": rng.choice(["alive", "dead"], n, p=[0.8, 0.2]),
        }
    )
    frame.loc[:999, "stay"] = np.nan
    frame.to_csv(tmp_path / "stays.csv", index=False)
    return tmp_path / "stays.csv"


@pytest.fixture
def fit(run, stays, tmp_path):
    def call(*options, out="t.reticent"):
        return run("fit", "table", stays, *options, *PROMISE, "--out", tmp_path / out)

    return call


def test_a_table_on_the_terminal_in_json_and_in_a_file(fit, run, tmp_path):
    asked = (*SEX, "--by", "age=0:18:65:110:whole", "--count", "--mean", "stay=0:60")
    answer = fit(*asked, "--rate", "died=alive/dead")
    assert answer.code == 0, answer.err
    assert says(answer.out, "sex", "age", "records", "mean of stay", "rate of died", "0 – 17")
    model = reticent.load(tmp_path / "t.reticent")
    assert len(model.table_) == 6
    told = json.loads(run("inspect", tmp_path / "t.reticent", "--json").out)
    assert told["results"]["cells"] == model.table_
    total = model.margins_[-1]
    assert abs(total["count"] - 2000) < 150
    assert abs(total["stay_mean"] - 10) < 6 * total["stay_mean_sd"]
    assert abs(total["died_rate"] - 0.2) < 0.03
    page = run("report", tmp_path / "t.reticent", "--out", tmp_path / "t.html")
    assert page.code == 0, page.err
    written = (tmp_path / "t.html").read_text("utf-8")
    assert "mean of stay" in written
    for told_by in (" ".join(answer.out.split()), written):  # what a reader may take ± to cover
        assert says(told_by, "± is the noise added for privacy", "these records are a sample")


def test_a_column_is_described_once(fit, tmp_path):
    asked = ("--total", "stay=0:60", "--quantile", "stay", "--smooth", "--no-count")
    answer = fit(*SEX, *asked)
    assert answer.code == 0, answer.err
    row = reticent.load(tmp_path / "t.reticent").table_[0]
    names = [name for name in row if not name.endswith("_sd")]
    assert names == ["sex", "stay_total", "stay_q25", "stay_q50", "stay_q75"]


def test_a_rate_alone_is_of_yes_and_no():
    texts, options = table_columns([], {"by": ["sex=F,M"], "rate": ["died"]}, None)
    assert texts == ["sex=F,M", "died=no/yes"]
    assert (options["by"], options["rate"]) == (["sex"], ["died"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), ("--by", "--mean")),
        (("--by", "age=0:110"), ("edges", "0:18:65:110")),
        (("--by", "sx=F,M"), ("--by", "no column", "sx")),
        ((*SEX, "--mean", "stay"), ("--mean",)),
        ((*SEX, "--mean", "stay=0:30:60"), ("--mean", "range")),
        ((*SEX, "--mean", "stay=0:60", "--total", "stay=0:50"), ("otherwise",)),
        (("--by", "age=0:60:18:110"), ("edges", "rise")),
        ((*SEX, "--rate", "stay=0:60"), ("rate", "yes and no")),
        ((*SEX, "--n-clusters", 3), ("table has no option",)),
        ((*SEX, "--y", "stay=0:60"), ("no outputs",)),
    ],
)
def test_refusals_name_the_option(fit, options, words, tmp_path):
    answer = fit(*options)
    assert answer.code in (2, 4)
    assert says(answer.err, *words)
    assert not (tmp_path / "t.reticent").exists()
