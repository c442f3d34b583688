"""Faults put into the trusted core on purpose: `python -m tests.mutation [FILE …]` says which ones no test notices.

cosmic-ray changes one operator, number or condition at a time in a copy of the tree, and runs the tests beside it. (mutmut is
faster, but leaves out whatever is decorated: here every sensitivity is a property.) `TARGETS` says where, and which tests must
notice; `EQUIVALENT` which changes are no faults, and why. Needs `pip install cosmic-ray`, and minutes for each file.
"""

import ast
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from tests.equivalent_mutants import EQUIVALENT

TOP = Path(__file__).parents[1]
CORE = Path("src") / "reticent" / "privacy"
# one change for each kind of fault; the others of cosmic-ray are noticed by the same tests, or are no Python
OPERATORS = {
    "core/ReplaceBinaryOperator_": "Add_Sub Sub_Add Mul_Div Div_Mul FloorDiv_Mul Mod_Mul Pow_Mul LShift_RShift RShift_LShift "
    "BitAnd_BitOr BitXor_BitAnd",
    "core/ReplaceComparisonOperator_": "Eq_NotEq NotEq_Eq Lt_LtE LtE_Lt Gt_GtE GtE_Gt Lt_GtE LtE_Gt "
    "Gt_LtE GtE_Lt Is_IsNot IsNot_Is",
    "core/ReplaceUnaryOperator_": "USub_UAdd Delete_Not Delete_Invert",
    "core/": "AddNot ReplaceTrueWithFalse ReplaceFalseWithTrue ReplaceAndWithOr ReplaceOrWithAnd ReplaceBreakWithContinue "
    "NumberReplacer ZeroIterationForLoop",
}
KEPT = [group + name for group, names in OPERATORS.items() for name in names.split()]


class Target(NamedTuple):
    """Functions and methods to change (all if there are none), and the tests that must notice."""

    functions: str
    tests: str


TARGETS = {
    "grid.py": Target("", "test_grid.py"),
    "statistic.py": Target(
        "limit1 limit2 integers sensitivity1 sensitivity2 step bits size block_rows shares coordinates block_sum _checked",
        "test_grid.py test_sums.py",
    ),
    "events.py": Target("__post_init__ _check event_from_dict", "test_events.py"),
    "accounting.py": Target(
        "check_epsilon_delta _number _minus_mills_slope log_delta _log_delta_above gaussian_mu _gaussian_epsilon _other_uses "
        "_dominating_mu epsilon _alone _renyi_epsilon _coin_renyi calibrate _total _largest_mu account_epsilon remaining_epsilon "
        "_remaining_beside",
        "test_accounting.py test_selection.py",
    ),
    "curator.py": Target(
        "__init__ release _exact _checked_times _take _scales _add_noise close release_given_inputs", "test_curator.py"
    ),
    "ledger.py": Target(
        "open charge verify _chain _load _event_body _seal _append", "test_ledger.py test_ledger_tampering.py"
    ),
    "bounds.py": Target("unit scaled radius2 natural _number _range", "test_bounds.py"),
    "noise.py": Target("__post_init__ exact scale_at_least", "test_noise.py -k scale"),
}


def lines(path: Path, functions: str) -> list[tuple[int, int]]:
    """First and last line of each of the functions."""
    tree, wanted = ast.parse(path.read_text(encoding="utf-8")), functions.split()
    found = [
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and (not wanted or node.name in wanted)
    ]
    assert {node.name for node in found} >= set(wanted), (
        f"{path.name} has no {set(wanted) - {node.name for node in found}}"
    )
    return [(node.body[0].lineno, node.end_lineno or node.lineno) for node in found]


def survivors(name: str) -> list[tuple[str, str]]:
    """The changes of one file that its tests do not notice: the line as it is, and as it was changed."""
    target = TARGETS[name]
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch)
        for one in ("src", "tests", "benchmarks"):
            shutil.copytree(TOP / one, copy / one, ignore=shutil.ignore_patterns("__pycache__"))
        for one in ("conftest.py", "pyproject.toml"):
            shutil.copy(TOP / one, copy)
        tests = " ".join(f"tests/privacy/{one}" if one.endswith(".py") else one for one in target.tests.split())
        command = f"{sys.executable} -m pytest -q -x --ff -p _hypothesis_pytestplugin {tests}"
        (copy / "cr.toml").write_text(
            f'[cosmic-ray]\nmodule-path = "{CORE / name}"\ntimeout = 150.0\nexcluded-modules = []\n'
            f'test-command = "{command}"\n[cosmic-ray.distributor]\nname = "local"\n'
        )
        around = {"PYTHONPATH": str(copy / "src"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "OPENBLAS_NUM_THREADS": "1"}

        def run(*words: str) -> str:
            done = subprocess.run(
                words, cwd=copy, check=True, text=True, stdout=subprocess.PIPE, env={**os.environ, **around}
            )
            return done.stdout

        run(*command.split())  # without a change they pass
        run("cosmic-ray", "init", "cr.toml", "session.sqlite")
        skip_others(copy / "session.sqlite", lines(copy / CORE / name, target.functions))
        run("cosmic-ray", "exec", "cr.toml", "session.sqlite")
        results = [json.loads(line) for line in run("cosmic-ray", "dump", "session.sqlite").splitlines()]
        tried = [result for _, result in results if result and result["worker_outcome"] != "skipped"]
        print(f"{name}: {len(tried)} changes", flush=True)
        return [changed(result["diff"]) for result in tried if result["test_outcome"] == "survived"]


def skip_others(session: Path, kept: list[tuple[int, int]]) -> None:
    """Mark what is outside the chosen lines, or of another kind, as skipped."""
    from cosmic_ray.work_db import use_db
    from cosmic_ray.work_item import WorkerOutcome, WorkResult

    with use_db(session) as database:
        for item in list(database.pending_work_items):
            (one,) = item.mutations
            here = any(first <= one.start_pos[0] <= last for first, last in kept)
            if not here or one.operator_name not in KEPT:
                database.set_result(item.job_id, WorkResult(output="", worker_outcome=WorkerOutcome.SKIPPED))


def changed(diff: str) -> tuple[str, str]:
    """The lines that a change takes out and puts in."""
    of = {sign: [line[1:].strip() for line in diff.splitlines() if line[:1] == sign != line[1:2]] for sign in "-+"}
    return " ".join(of["-"]), " ".join(of["+"])


def main() -> None:
    unnoticed = 0
    for name in sys.argv[1:] or TARGETS:
        for change in survivors(name):
            reason = EQUIVALENT.get(name, {}).get(change)
            unnoticed += reason is None
            print(f"  {'UNNOTICED' if reason is None else 'no fault'}: {change[0]}\n    → {change[1]}")
            print(f"    {reason}" if reason else "", flush=True)
    sys.exit(f"{unnoticed} changes were not noticed" if unnoticed else 0)


if __name__ == "__main__":
    main()
