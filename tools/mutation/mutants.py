"""Mutants of functions and constants, made by cosmic-ray one at a time."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tools.mutation.targets import Place

# One operator for each kind of fault: the same tests notice cosmic-ray's others.
BINARY = (
    "Add_Sub Sub_Add Mul_Div Div_Mul FloorDiv_Mul Mod_Mul Pow_Mul LShift_RShift RShift_LShift "
    "BitAnd_BitOr BitXor_BitAnd"
)
COMPARISONS = (
    "Eq_NotEq NotEq_Eq Lt_LtE LtE_Lt Gt_GtE GtE_Gt Lt_GtE LtE_Gt Gt_LtE GtE_Lt Is_IsNot IsNot_Is"
)
UNARY = "USub_UAdd Delete_Not Delete_Invert"
OTHERS = (
    "AddNot ReplaceTrueWithFalse ReplaceFalseWithTrue ReplaceAndWithOr ReplaceOrWithAnd "
    "ReplaceBreakWithContinue NumberReplacer ZeroIterationForLoop"
)
OPERATORS = {
    **{name: f"core/ReplaceBinaryOperator_{name}" for name in BINARY.split()},
    **{name: f"core/ReplaceComparisonOperator_{name}" for name in COMPARISONS.split()},
    **{name: f"core/ReplaceUnaryOperator_{name}" for name in UNARY.split()},
    **{name: f"core/{name}" for name in OTHERS.split()},
}
_HEADER = "class Body:\n"  # lets a method be parsed where it stands, with its indentation


@dataclass(frozen=True)
class Mutant:
    """A file with one change, and how the table names the change."""

    function: str
    operator: str
    numbers: tuple[str, str] | None  # before and after, of NumberReplacer
    line: int
    code: str

    @property
    def place(self) -> tuple[str, str]:
        """Function and operator."""
        return self.function, self.operator

    @property
    def kinds(self) -> list[str]:
        """Names of the change in the table, the narrowest first."""
        if self.numbers is None:
            return [self.operator]
        before, after = self.numbers
        exact = f"{self.operator} {before} → {after}"
        return [exact, f"{self.operator} {before}", self.operator]


def mutants(code: str, places: list[Place]) -> list[Mutant]:
    """All mutants of some functions and constants of a file."""
    return [mutant for place in places for mutant in _mutants(code, place)]


def _mutants(code: str, place: Place) -> Iterator[Mutant]:
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    lines = code.splitlines(keepends=True)
    first, last = place.lines
    part = _HEADER + "".join(lines[first - 1 : last])
    offset = first - 2  # the header is the first line of the part
    if not lines[first - 1][0].isspace():
        part = part.removeprefix(_HEADER)
        offset = first - 1
    tree = get_ast(part)
    for name, full_name in OPERATORS.items():
        operator = get_operator(full_name)()
        nodes = [node for node in ast_nodes(tree) for _ in operator.mutation_positions(node)]
        starts = [
            start for node in ast_nodes(tree) for start, _ in operator.mutation_positions(node)
        ]
        for occurrence, (node, (line, column)) in enumerate(zip(nodes, starts, strict=True)):
            if (line + offset, column) < place.body:
                continue
            changed = mutate_code(part, operator, occurrence)
            if offset == first - 2:
                changed = changed.removeprefix(_HEADER)
            whole = "".join([*lines[: first - 1], changed, *lines[last:]])
            numbers = _numbers(node, occurrence) if name == "NumberReplacer" else None
            unchanged = numbers is not None and numbers[0] == numbers[1]  # 1e30 + 1 is 1e30
            if not unchanged and _is_python(whole):
                yield Mutant(place.name, name, numbers, line + offset, whole)


def _is_python(code: str) -> bool:
    """Whether the text can be parsed: `not` before an assignment expression cannot."""
    try:
        ast.parse(code)
    except SyntaxError:
        return False
    return True


def _numbers(node: Any, occurrence: int) -> tuple[str, str]:
    """A number before and after: cosmic-ray adds one, then takes one away, at every number."""
    value = ast.literal_eval(node.value)
    return str(value), str(value + (1, -1)[occurrence % 2])
