"""Another number in a module, and what is told of it."""

import ast

import numpy as np
import pytest

from tools.named_numbers import NamedNumber
from tools.perturbed_numbers import in_a_fork, told, with_other_number

SOURCE = """
A: Tuned[int] = 1
class OneSettings:
    A: Tuned[float] = 3.0
    pair: Tuned[tuple[float, int]] = (-2.0, 5)
    power: Numerical[int] = 2**10
    whole: Tuned[int] = 1
"""


@pytest.mark.parametrize(
    ("owner", "name", "factor", "value"),
    [
        ("OneSettings", "A", 0.5, 1.5),
        ("", "A", 2.0, 2),
        ("OneSettings", "pair", 0.5, (-1.0, 2)),
        ("OneSettings", "power", 2.0, 2**11),
        ("OneSettings", "whole", 1.2, 2),
    ],
)
def test_one_number_is_changed(owner, name, factor, value):
    number = NamedNumber("a.py", owner, name, "tuned", "", "")
    tree = with_other_number(SOURCE, number, factor)
    before = ast.unparse(ast.parse(SOURCE)).splitlines()
    changed = [
        (a, b) for a, b in zip(before, ast.unparse(tree).splitlines(), strict=True) if a != b
    ]
    ((_, line),) = changed
    assert eval(line.partition(" = ")[2]) == value


def test_what_is_told():
    before = {"cell": (2.0, np.array([1.0, 2.0]), np.array([0.1, 0.1]))}
    assert told(before, before) == "nothing"
    after = {"cell": (3.0, np.array([1.1, 2.1]), np.array([0.1, 0.1]))}
    assert told(before, after) == "moves 1, loss × 1.500"
    assert in_a_fork(lambda: before).keys() == before.keys()
    assert in_a_fork(lambda: {}["gone"]) == "KeyError: 'gone'"
