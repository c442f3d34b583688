"""Faults put into the trusted core on purpose: `python -m tests.mutation [FILE[:FUNCTION,…] …]` says which ones no test notices.

cosmic-ray changes one operator, number or condition at a time. The tests beside it look first in a fork of one session
(`tests/quick_mutants.py`); what they do not notice there is put into a copy of the tree, and they run in a fork that has all but
reticent loaded. (mutmut leaves out whatever is decorated: here every sensitivity is a property.) `TARGETS` says where, and which
tests must notice; `EQUIVALENT` which changes are no faults, and why. Needs `pip install cosmic-ray`, and minutes.
"""

import ast
import contextlib
import difflib
import importlib
import math
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.equivalent_mutants import EQUIVALENT
from tests.quick_mutants import FirstLook

TOP = Path(__file__).parents[1]
CORE = Path("src") / "reticent" / "privacy"
PATIENCE, TIMES = 10, 3  # CPU for the tests of one change: seconds, and so often what they take without one
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
    """Functions, methods and constants to change (all functions if there are none), and the tests that must notice."""

    functions: str
    tests: str


TARGETS = {
    "grid.py": Target("", "test_grid.py"),
    "statistic.py": Target(
        "limits sum_limits integers nonnegative norm1 sensitivity1 sensitivity2 step bits size block_rows piece_rows "
        "stacked shares coordinates upper block_sum _counts_plan",
        "test_grid.py test_sums.py",
    ),
    "plan.py": Target("", "test_grid.py test_curator.py ../contract/test_statistics.py"),
    "guard.py": Target("", "test_guard.py test_curator.py"),
    "events.py": Target("_LEAST __post_init__ to_dict to_json event_from_dict event_from_json", "test_events.py"),
    "given.py": Target("number whole check_whole", "test_given.py"),
    "accounting.py": Target(
        "_FIXED _CELLS _FFT_ERROR _HUGE check_epsilon_delta _minus_mills_slope log_delta _log_delta_above gaussian_mu "
        "_gaussian_epsilon _other_uses _dominating_mu _pld_epsilon _coin _repeated epsilon _alone _renyi_epsilon _coin_renyi "
        "calibrate _total _largest_mu account_epsilon remaining_epsilon _remaining_beside",
        "test_accounting_margins.py test_accounting_rounding.py test_accounting.py test_selection.py",
    ),
    "curator.py": Target("", "test_curator_counts.py test_curator.py test_choosing.py"),
    "ledger.py": Target(
        "_VERIFY_TOLERANCE __init__ open charge account history datasets verify _chain _refuse_curve _load _account _entry "
        "_composed _another_unit _check_unit _unit _check_text _event_fields _charged _canonical _seal _append",
        "test_ledger.py test_ledger_tampering.py",
    ),
    "bounds.py": Target(
        "_HUGE __init__ to_dict from_dict apart _together resolve inputs_alone unnamed unit scaled _abreast _with radius2 "
        "natural _number _ranges _range _classes",
        "test_bounds.py test_levels.py",
    ),
    "release.py": Target(
        "sd matrix matrix_sd symmetric __init__ release select _recorded _whole release_given_inputs _following check_used",
        "test_replay.py test_curator.py test_choosing.py",
    ),
    "kept.py": Target("__init__ try_out total _sum close _put _key", "test_kept.py test_choosing.py test_guard.py"),
    "database.py": Target(
        "create _create_file _drop_name_of_a_crash transaction has_table _heads _head _readable _hash_of _check_recorded "
        "append_only _lock _check_one_name _check_anchor _upgrade _anchor _check_version _check_is_file _check_sqlite_format "
        "_check_postgres_format _postgres_connection",
        "test_ledger.py test_ledger_tampering.py test_ledger_failures.py test_ledger_anchor.py",
    ),
    "anchor.py": Target("", "test_ledger_anchor.py"),
    "noise.py": Target("", "test_noise_bits.py test_noise.py"),
    "levels.py": Target("held weights", "test_levels.py"),
    "staged.py": Target(
        "columns norm2 tail_columns _staged_plan head_integers tail_integers integers stacked tail_sum joined",
        "test_kept.py test_grid.py",
    ),
    "shared.py": Target(
        "sizes sensitivity2 step block_rows each pairs _moments block_sum coordinates shares _shares _shared_plan _held_shares",
        "test_shared.py",
    ),
    "celled.py": Target("_cell_sum_plan integers block_rows block_sum _places _short", "test_celled.py"),
    "sums.py": Target(
        "EXACT _SPILL __init__ add merge integers _spill add_up one_blas_thread pieces",
        "test_sums.py",
    ),
    "products.py": Target("", "test_products.py"),
    "process.py": Target("", "test_process.py"),
    "exponential.py": Target(
        "whole __call__ epsilon_of sensitivity _ends _range exponents pick _happens _coin", "test_exponential.py"
    ),
    "selection.py": Target(
        "log_weight expected_runs stop_for _cells _chords selection_delta selection_epsilon calibrate_selection selection_renyi "
        "renyi_to_epsilon best_order",
        "test_selection_rounding.py test_selection.py -k not(stated_law)",
    ),
    "stream.py": Target(
        "__init__ tied told spread stretch stretch_of_others _lost next _stretch add _released _same _scales _restore",
        "test_correlations.py test_stream.py",
    ),
    "draws.py": Target("", "test_draws.py"),
    "choosing.py": Target("check_candidates too_much split draw best_run _run", "test_draws.py test_choosing.py"),
    "halves.py": Target("", "test_draws.py test_choosing.py"),
    "guarantee.py": Target("", "test_guarantee.py"),
    "obfuscation.py": Target("_BITS _DIGITS grid_step obfuscated _integers", "test_obfuscation.py"),
    "remembered.py": Target("", "../models/test_obfuscator_releases.py test_ledger.py"),
    "cells.py": Target("", "test_cells.py"),
    "lines.py": Target("", "test_cells.py"),
    "files.py": Target("", "test_blocks.py test_source_refusals.py"),
    "sources.py": Target("", "test_blocks.py"),
    "memory.py": Target("", "test_blocks.py test_source_refusals.py"),
    "cluster.py": Target("", "test_dask.py"),
}


def lines(path: Path, functions: str) -> list[tuple[int, int]]:
    """First and last line of each of the functions and constants."""
    tree, wanted = ast.parse(path.read_text(encoding="utf-8")), functions.split()
    found = [(node.name, node.body[0], node) for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    chosen = [one for one in found if not wanted or one[0] in wanted]
    for node in tree.body:
        if isinstance(node, ast.Assign):
            names = {part.id for target in node.targets for part in ast.walk(target) if isinstance(part, ast.Name)}
            chosen += [(name, node, node) for name in names & set(wanted)]
    missing = set(wanted) - {name for name, _, _ in chosen}
    assert not missing, f"{path.name} has no {missing}"
    return [(first.lineno, last.end_lineno or last.lineno) for _, first, last in chosen]


def survivors(name: str, functions: str = "") -> Iterator[tuple[str, str]]:
    """The changes of one file that its tests do not notice, as they are found: the line as it is, and as it was changed."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    target, changes = TARGETS[name], []
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch)
        for one in ("src", "tests", "benchmarks"):
            shutil.copytree(TOP / one, copy / one, ignore=shutil.ignore_patterns("__pycache__"))
        for one in ("conftest.py", "pyproject.toml"):
            shutil.copy(TOP / one, copy)
        tests = [f"tests/privacy/{one}" if one.endswith(".py") else one for one in target.tests.split()]
        path = copy / CORE / name
        code, kept = path.read_text(encoding="utf-8"), lines(path, functions or target.functions)
        patience = PATIENCE + TIMES * load(copy, tests)
        for compiled in path.parent.glob(f"__pycache__/{path.stem}.*"):  # all others stay compiled
            compiled.unlink()
        for operator in (get_operator(kind)() for kind in KEPT):
            places = (start for node in ast_nodes(get_ast(code)) for start, _ in operator.mutation_positions(node))
            for occurrence, (line, _) in enumerate(list(places)):
                if any(first <= line <= last for first, last in kept):
                    changes.append(mutate_code(code, operator, occurrence))
        print(f"{name}: {len(changes)} changes", flush=True)
        told = copy / "noticed.txt"
        told.touch()
        noticed(copy, tests, by=FirstLook(path, changes, told, patience), patience=math.inf)
        seen = {int(number) for number in told.read_text().split()}
        print(f"{name}: {len(changes) - len(seen)} were not noticed at a first look", flush=True)
        by = Sharp(copy / "sharp.txt")
        for changed in (change for number, change in enumerate(changes) if number not in seen):
            path.write_text(changed, encoding="utf-8")
            if not noticed(copy, tests, by=by, patience=patience):
                yield difference(code, changed)


class Sharp:
    """Tests that noticed a change, the last one first: they are asked first about the next change."""

    def __init__(self, told: Path) -> None:
        self.told = told
        self.told.touch()

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        order = self.told.read_text(encoding="utf-8").splitlines()[::-1]
        items.sort(key=lambda item: order.index(item.nodeid) if item.nodeid in order else len(order))

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            with self.told.open("a", encoding="utf-8") as file:
                file.write(report.nodeid + "\n")


def load(copy: Path, tests: list[str]) -> float:
    """Check that the tests pass without a change, and import whatever they need but what is changed: once for all of them.

    Gives how long they take then, in CPU: a busy machine must not count as a test that fails.
    """
    used, before = copy / "used.txt", 0.0
    for modules in (used, None):  # once more with all of them loaded
        before = os.times().children_user
        if noticed(copy, tests, modules):
            sys.exit(f"{' '.join(tests)}: fails without a change")
        for module in used.read_text().split():
            with contextlib.suppress(Exception):
                importlib.import_module(module)
    return os.times().children_user - before


def noticed(copy: Path, tests: list[str], used: Path | None = None, by: object = None, patience: float = 600.0) -> bool:
    """Run the tests in a fork of this process, which has no part of reticent loaded, and see whether they fail."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1] != 0
    code = 1
    try:
        code = _run(copy, tests, used, by, patience)
    finally:
        os._exit(code)


def _run(copy: Path, tests: list[str], used: Path | None, by: object, patience: float) -> int:
    if patience < math.inf:
        signal.setitimer(signal.ITIMER_PROF, patience)  # a change may make a loop endless
        signal.alarm(math.ceil(20 * patience))  # or wait for ever
    os.chdir(copy)
    sys.path[:0] = [str(copy / "src"), str(copy)]
    sys.pycache_prefix = None
    sys.dont_write_bytecode = used is None  # compiled files are told apart by their time, to the second
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    import pytest

    code = pytest.main(["-q", "-x", "-p", "no:cacheprovider", *tests], plugins=[by] if by else None)
    if used is not None:
        ours = ("reticent", "tests", "conftest", "__main__", "_hypothesis_pytestplugin")
        used.write_text("\n".join(module for module in sys.modules if module.partition(".")[0] not in ours))
    return int(code)


def difference(code: str, changed: str) -> tuple[str, str]:
    """The lines that a change takes out and puts in."""
    words = list(difflib.ndiff(code.splitlines(), changed.splitlines()))
    out, put = ([line[2:].strip() for line in words if line.startswith(sign)] for sign in ("- ", "+ "))
    return " ".join(out), " ".join(put)


@contextlib.contextmanager
def one_server() -> Iterator[None]:
    """A PostgreSQL server for all forks: to start one takes longer than most tests."""
    from tests.postgres import server

    with server() as os.environ["TEST_POSTGRES"]:
        yield
    del os.environ["TEST_POSTGRES"]


def told(name: str, functions: str) -> int:
    """Print the changes that were not noticed, and say how many of them may be faults."""
    unnoticed = 0
    for change in survivors(name, functions.replace(",", " ")):
        reason = EQUIVALENT.get(name, {}).get(change)
        unnoticed += reason is None
        print(f"  {'UNNOTICED' if reason is None else 'no fault'}: {change[0]}\n    → {change[1]}")
        print(f"    {reason}" if reason else "", flush=True)
    return unnoticed


def main() -> None:
    os.environ |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "_hypothesis_pytestplugin"}
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    unnoticed = 0
    for word in sys.argv[1:] or TARGETS:
        name, _, functions = word.partition(":")
        with one_server() if "ledger" in TARGETS[name].tests else contextlib.nullcontext():
            unnoticed += told(name, functions)
    sys.exit(f"{unnoticed} changes were not noticed" if unnoticed else 0)


if __name__ == "__main__":
    main()
