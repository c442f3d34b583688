"""The table of mutation targets fits the code, and excuses no more than it says."""

from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

from tools.mutation.first_look import _CALLED, FirstLook, _exchange_code, _noting_calls
from tools.mutation.targets import TOP, Equivalent, Excuses, Target, named, places, targets

FILES = list(targets())
ROWS = [Equivalent("f", {"NumberReplacer 2": 1, "Lt_LtE": 1}, "why")]
CODE = """\
LIMIT, OTHER = 1, 2

class Outer:
    def method(self, n=1): return n + 1

    @property
    def name(self):
        def inner():
            return 1
        return inner()
"""


def test_the_table_names_what_is_there():
    """Whoever renames a function or moves a file changes `targets.toml`, too."""
    table = targets()
    for file in FILES:
        assert table[file].places(), file
        assert [test for test in table[file].test_files if not (TOP / test).is_file()] == [], file
        equivalent = table[file].equivalent
        assert all(row.reason and min(row.excused.values()) > 0 for row in equivalent), file


def test_rows_excuse_mutants_that_exist():
    pytest.importorskip("cosmic_ray")
    from tools.mutation.mutants import mutants

    for target in targets().values():
        functions = {row.function for row in target.equivalent}
        code = (TOP / target.path).read_text(encoding="utf-8")
        found = mutants(code, target.places(functions)) if functions else []
        made = Counter((mutant.function, kind) for mutant in found for kind in mutant.kinds)
        excused = Counter()
        for row in target.equivalent:
            excused.update({(row.function, kind): number for kind, number in row.excused.items()})
        assert {key: number for key, number in excused.items() if number > made[key]} == {}


def test_places_are_functions_and_constants_by_qualified_name():
    found = places(CODE)
    assert [place.name for place in found] == ["LIMIT", "OTHER", "Outer.method", "Outer.name"]
    assert [place.is_function for place in found] == [False, False, True, True]


def test_mutants_are_named_by_function_and_operator():
    pytest.importorskip("cosmic_ray")
    from tools.mutation.mutants import mutants

    found = {(one.function, one.kinds[0]): one for one in mutants(CODE, places(CODE)[2:])}
    assert set(found) == {
        ("Outer.method", "Add_Sub"),
        ("Outer.method", "NumberReplacer 1 → 2"),
        ("Outer.method", "NumberReplacer 1 → 0"),
        ("Outer.name", "NumberReplacer 1 → 2"),
        ("Outer.name", "NumberReplacer 1 → 0"),
    }  # and the default value of n is left alone
    changed = found["Outer.method", "Add_Sub"]
    assert changed.code == CODE.replace("n + 1", "n - 1")
    assert changed.line == 4


def test_an_excuse_is_good_for_its_number_of_survivors():
    excuses = Excuses(ROWS)
    assert excuses.take("f", ["NumberReplacer 2 → 3", "NumberReplacer 2"]) == "why"
    assert excuses.take("f", ["NumberReplacer 2 → 1", "NumberReplacer 2"]) is None
    assert excuses.take("g", ["Lt_LtE"]) is None
    assert excuses.unused(["f"]) == ["f, Lt_LtE: 1"]
    assert excuses.unused(["g"]) == []


def test_a_file_is_named_by_the_end_of_its_path():
    assert named("statistics/integer_grid.py").file == "privacy/statistics/integer_grid.py"
    with pytest.raises(SystemExit, match=r"statistics/base\.py.*sources/base\.py"):
        named("base.py")
    with pytest.raises(SystemExit, match="--list"):
        named("nowhere.py")


def test_a_function_that_is_not_there_is_refused():
    with pytest.raises(SystemExit, match="nowhere"):
        Target("privacy/process.py").places(["nowhere"])


def test_calls_are_noted_by_the_name_of_the_outermost_function():
    tree = _noting_calls(CODE)
    called = set()
    names = {_CALLED: called}
    exec(compile(tree, "code", "exec"), names)
    outer = names["Outer"]()
    assert called == set()
    assert outer.method() == 2
    assert called == {"Outer.method"}
    assert outer.name == 1
    assert called == {"Outer.method", "Outer.name"}


def test_inner_functions_that_outlive_the_outer_one_are_noted_too():
    code = "def outer():\n    def inner():\n        return 1\n    return inner\n"
    names = {_CALLED: set()}
    exec(compile(_noting_calls(code), "code", "exec"), names)
    inner = names["outer"]()
    names[_CALLED].clear()
    assert inner() == 1
    assert names[_CALLED] == {"outer"}


def test_code_that_notes_calls_takes_the_place_of_a_loaded_function():
    """By name and first line, which noting must not move."""
    before = compile(CODE, "code", "exec")
    names = {_CALLED: set()}
    exec(before, names)
    method = names["Outer"].method
    assert _exchange_code(before, compile(_noting_calls(CODE), "code", "exec"), [method])
    assert names["Outer"]().method(4) == 5
    assert names[_CALLED] == {"Outer.method"}


def test_only_tests_that_call_a_function_look_at_its_mutants_the_cheapest_first():
    look = FirstLook("module", [], Path("unused"))
    tests = [SimpleNamespace(nodeid=name) for name in ("slow", "other", "quick")]
    look.called = {"slow": {"f", "g"}, "other": {"g"}, "quick": {"f"}}
    look.cost = {"slow": 2.0, "other": 0.5, "quick": 1.0}
    assert [test.nodeid for test in look._callers(tests, "f")] == ["quick", "slow"]
    assert [test.nodeid for test in look._callers(tests, "LIMIT")] == ["other", "quick", "slow"]
