"""What is refused is refused at once: no model is imported, nor what models need."""

import json
import re
import subprocess
import sys

import pytest

FIT = ("fit", "gp", "t.csv", "--x", "age=0:110", "--y", "weight=2:150", "--out", "m.reticent")
FIT_PROMISE = ("--epsilon", "1", "--delta", "1e-6")
CURVE = (
    "obfuscate",
    "t.csv",
    "--x",
    "age",
    "--y",
    "weight",
    "--out",
    "w.csv",
    "--sensitive",
    "1:2",
)
REFUSED = {
    "epsilon": ((*FIT, "--epsilon=-1", "--delta", "1e-6"), 2, "--epsilon"),
    "delta": ((*FIT, "--epsilon", "1", "--delta", "2"), 2, "--delta"),
    "no promise": (FIT, 2, "--epsilon"),
    "option of another model": ((*FIT, "--n-clusters", "3"), 2, "--n-clusters"),
    "column": ((*FIT, "--x", "hight=40:220", "--epsilon", "1", "--delta", "1e-6"), 2, "hight"),
    "range": ((*FIT, "--x", "height=220:40"), 4, "--x"),
    "no bounds": (("fit", "mean", "t.csv", "--out", "m.reticent"), 4, "--x"),
    "model": (("fit", "gpp", "t.csv", "--out", "m.reticent"), 2, "gpp"),
    "records": (("fit", "gp", "none.csv", *FIT[3:]), 5, "none.csv"),
    "model file": (("predict", "none.reticent", "t.csv", "--out", "p.csv"), 5, "none.reticent"),
    "number of records": (("plan", *FIT[3:7], "--n", "-4"), 2, "--n"),
    "column with a unit": (
        ("fit", "mean", "u.csv", "--x", "height=40:220", "--out", "m.reticent"),
        2,
        "Did you mean --x 'height (cm)=40:220'?",
    ),
    "range of labels": (
        ("fit", "classifier", "t.csv", *FIT[3:5], "--y", "weight", "--out", "m.reticent"),
        2,
        "for example --classes weight=no,yes",
    ),
    "variance": ((*CURVE, "--variance=-1"), 2, "--variance must be a positive number"),
    "share": ((*CURVE, "--share", "2"), 2, "--share must be above 0"),
    "share or variance": (CURVE, 2, "give --variance or --share."),
    "interval": ((*CURVE[:-1], "2:1", "--share", "0.5"), 2, "did you mean 1:2?"),
    "measurement error": ((*CURVE, "--share", "0.5", "--noise=-1"), 2, "--noise is a standard"),
    "solution": ((*CURVE, "--share", "0.5", "--solution", "best"), 2, "--solution must be one of"),
    "everywhere": (
        (*CURVE, "--share", "0.5", "--solution", "uniform"),
        2,
        "--solution uniform and --sensitive everywhere go together",
    ),
    "account of a curve": (
        (*CURVE, "--share", "0.5", "--ledger", "b.db"),
        2,
        "Give both --ledger and --dataset",
    ),
    "planned releases": (
        (*CURVE, "--share", "0.5", "--number", "2"),
        3,
        "1 is planned (--releases)",
    ),
    "person": ((*FIT, "--person", "agee", "--epsilon", "1", "--delta", "1e-6"), 2, "mean age?"),
    "contribution": ((*FIT, "--contribution", "5"), 2, "needs --person"),
    "neighbours": ((*FIT, "--neighbours", "near"), 2, "replace, add-remove"),
    "weight": ((*FIT, "--weight", "height=1:9"), 4, "height=0:9"),
    "weight without a bound": ((*FIT, "--weight", "height"), 4, "public upper bound"),
    "text about a release": ((*FIT, "--title", "\a"), 2, "--title must be printable"),
    "unit of an account": (
        (
            *("ledger", "open", "b.db", "d", "--epsilon", "1", "--delta", "1e-6"),
            "--neighbours",
            "x",
        ),
        2,
        "replace, add-remove",
    ),
    "guess of a plan": (
        ("plan", *FIT[3:7], "--n", "9", "--records-per-person-guess", "3"),
        2,
        "goes with --person",
    ),
    "cap": (("ledger", "open", "b.db", "d", "--epsilon", "0", "--delta", "1e-6"), 2, "--epsilon"),
}
RUN = """
import contextlib, io, json, sys
from reticent.cli.main import main

needless = {"sklearn", "scipy", "matplotlib"}
blamed = set()

def refused(words):
    sys.argv = ["reticent", *words]
    said = [io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2)]
    with contextlib.redirect_stdout(said[0]), contextlib.redirect_stderr(said[1]):
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code
    imported = needless & set(sys.modules) - blamed
    blamed.update(imported)
    return code, *(one.buffer.getvalue().decode() for one in said), sorted(imported)

print(json.dumps([refused(words) for words in json.load(sys.stdin)]))
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """Each case's exit code, output, errors, and needless imports.

    All in one process, for starting takes longest; the first case to import a package is blamed.
    """
    folder = tmp_path_factory.mktemp("refusals")
    (folder / "u.csv").write_text("age,height (cm),weight\n1,80,12\n30,170,70\n")
    (folder / "t.csv").write_text("age,height,weight\n1,80,12\n30,170,70\n")
    asked = json.dumps([words for words, *_ in REFUSED.values()])
    piped = {"input": asked, "stdout": subprocess.PIPE, "text": True}
    done = subprocess.run([sys.executable, "-c", RUN], cwd=folder, check=True, **piped)
    yield dict(zip(REFUSED, json.loads(done.stdout), strict=True))
    assert {file.name for file in folder.iterdir()} == {"t.csv", "u.csv"}


@pytest.mark.parametrize("case", REFUSED)
def test_a_refusal_imports_no_model(case, answers):
    _, expected, named = REFUSED[case]
    code, out, err, needless = answers[case]
    assert code == expected
    assert named in re.sub(r"\s+", " ", err)
    assert out == ""
    assert needless == []
