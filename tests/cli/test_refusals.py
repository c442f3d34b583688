"""What is refused is refused at once: no model is imported, nor what models need."""

import subprocess
import sys

import pytest

FIT = ("fit", "gp", "t.csv", "--x", "age=0:110", "--y", "weight=2:150", "--out", "m.reticent")
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
    "cap": (("ledger", "open", "b.db", "d", "--epsilon", "0", "--delta", "1e-6"), 2, "--epsilon"),
}
RUN = """
import sys
from reticent.cli.main import main
try:
    main()
finally:
    print(*(set(sys.modules) & {"sklearn", "scipy", "matplotlib"}))
"""


@pytest.mark.parametrize("case", REFUSED)
def test_a_refusal_imports_no_model(case, tmp_path):
    words, code, named = REFUSED[case]
    (tmp_path / "t.csv").write_text("age,height,weight\n1,80,12\n30,170,70\n")
    command = [sys.executable, "-c", RUN, *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == code
    assert named in done.stderr
    assert done.stdout.split() == []
