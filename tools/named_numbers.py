"""Numbers with a name, by kind: `python -m tools.named_numbers` prints docs/numbers.md's tables.

A number with a name is a field of a settings class, or a constant of a module in `inference` or
`models`. Its annotation says what kind it is (`reticent.number_kinds`), and its description why it
is what it is. Both are read from the source, so that older trees can be counted too; numbers there
without a kind are counted as such. A field that takes the value of another is no other number, and
numbers within expressions have no name: neither is counted.
"""

import argparse
import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "reticent"
NO_KIND = "without a kind"
# in the order of the tables; the words of `reticent.number_kinds.NumberKind`
KINDS = ("prior", "numerical", "derived", "limit", "tuned", NO_KIND)
HEADS = {
    "tuned": "Tuned numbers",
    "prior": "Priors",
    "derived": "Derived numbers",
}
ROOMS_OF_CONSTANTS = ("inference", "models")
LEFT_OUT = ("studies",)  # laws, rivals and seeds of experiments
_SECTION = re.compile(r"^(Parameters|Attributes)\n-+\n", re.MULTILINE)
_ENTRY = re.compile(r"^(\w+(?:, \w+)*) : .*$")


@dataclass(frozen=True)
class NamedNumber:
    """A number with a name.

    ``owner`` is its settings class, or "" for a constant of a module; ``file`` is relative to the
    package; ``value`` and ``about``, its description, are as written.
    """

    file: str
    owner: str
    name: str
    kind: str
    value: str
    about: str

    @property
    def room(self) -> str:
        """Folder of the file, as `inference/labels`."""
        return self.file.rpartition("/")[0]


def named_numbers(source: Path = SOURCE) -> list[NamedNumber]:
    """All of them, in the order of the files."""
    found: list[NamedNumber] = []
    for path in sorted(source.rglob("*.py")):
        file = path.relative_to(source).as_posix()
        room = file.partition("/")[0]
        if room in LEFT_OUT:
            continue
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and node.name.endswith("Settings"):
                found.extend(_fields(file, node))
        if room in ROOMS_OF_CONSTANTS:
            found.extend(_constants(file, tree, text))
    return found


def counts_by_kind(numbers: list[NamedNumber]) -> dict[str, int]:
    """How many there are of each kind."""
    counts = Counter(one.kind for one in numbers)
    return {kind: counts[kind] for kind in KINDS}


def _fields(file: str, settings: ast.ClassDef) -> Iterator[NamedNumber]:
    """Fields of a settings class that have a value of their own."""
    described = _described_in_docstring(settings) | _described_below(settings.body)
    for statement in settings.body:
        if not isinstance(statement, ast.AnnAssign) or statement.value is None:
            continue
        if isinstance(statement.value, ast.Attribute):
            continue  # another's number under this name
        name = ast.unparse(statement.target)
        yield NamedNumber(
            file=file,
            owner=settings.name,
            name=name,
            kind=_kind(statement.annotation),
            value=ast.unparse(statement.value),
            about=described.get(name, ""),
        )


def _constants(file: str, tree: ast.Module, text: str) -> Iterator[NamedNumber]:
    """Constants of a module that are numbers, or whose annotation names a kind."""
    described = _described_below(tree.body)
    comments = _comments(text)
    for statement in tree.body:
        if isinstance(statement, ast.AnnAssign) and statement.value is not None:
            target = ast.unparse(statement.target)
            kind = _kind(statement.annotation)
        elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            target = statement.targets[0].id
            kind = NO_KIND
        else:
            continue
        value = statement.value
        assert value is not None
        if not target.isupper() or (kind == NO_KIND and not is_number(value)):
            continue
        lines = (statement.lineno, statement.lineno - 1)
        comment = next((comments[line] for line in lines if line in comments), "")
        yield NamedNumber(
            file=file,
            owner="",
            name=target,
            kind=kind,
            value=ast.unparse(value),
            about=described.get(target, comment),
        )


def _kind(annotation: ast.expr) -> str:
    """The kind that an annotation names, as in `Tuned[float]`."""
    if not isinstance(annotation, ast.Subscript) or not isinstance(annotation.value, ast.Name):
        return NO_KIND
    kind = annotation.value.id.lower()
    if kind not in KINDS:
        return NO_KIND
    return kind


def is_number(node: ast.AST) -> bool:
    """Whether an expression is a number, arithmetic of numbers, or a tuple of numbers alone."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float) and not isinstance(node.value, bool)
    if isinstance(node, ast.UnaryOp):
        return is_number(node.operand)
    if isinstance(node, ast.BinOp):
        return is_number(node.left) and is_number(node.right)
    if isinstance(node, ast.Tuple):
        return bool(node.elts) and all(map(is_number, node.elts))
    return False


def _described_in_docstring(settings: ast.ClassDef) -> dict[str, str]:
    """Descriptions in the section "Parameters" or "Attributes"; names of one entry share it."""
    text = ast.get_docstring(settings) or ""
    section = _SECTION.search(text)
    if section is None:
        return {}
    described: dict[str, str] = {}
    names: list[str] = []
    for line in text[section.end() :].splitlines():
        entry = _ENTRY.match(line)
        if entry:
            names = entry[1].split(", ")
            continue
        for name in names:
            described[name] = f"{described.get(name, '')} {line.strip()}".strip()
    return described


def _described_below(body: list[ast.stmt]) -> dict[str, str]:
    """Strings that follow a field, or several that share it."""
    described: dict[str, str] = {}
    waiting: list[str] = []
    for statement in body:
        if isinstance(statement, ast.AnnAssign):
            waiting.append(ast.unparse(statement.target))
        elif (
            isinstance(statement, ast.Expr)
            and isinstance(statement.value, ast.Constant)
            and isinstance(statement.value.value, str)
        ):
            text = " ".join(statement.value.value.split())
            described.update(dict.fromkeys(waiting, text))
            waiting = []
        else:
            waiting = []
    return described


def _comments(text: str) -> dict[int, str]:
    """Text of the comments of a file, by line."""
    return {
        token.start[0]: token.string.lstrip("# ")
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT
    }


def table_of_counts(numbers: list[NamedNumber]) -> str:
    """How many numbers of each kind each room has, in Markdown."""
    kinds = [kind for kind in KINDS if kind != NO_KIND or counts_by_kind(numbers)[NO_KIND]]
    rows = [f"| room | {' | '.join(kinds)} |", f"|---|{'--:|' * len(kinds)}"]
    for room in sorted({one.room for one in numbers}):
        counts = counts_by_kind([one for one in numbers if one.room == room])
        rows.append(f"| `{room}` | {' | '.join(str(counts[kind] or '') for kind in kinds)} |")
    counts = counts_by_kind(numbers)
    rows.append(f"| all | {' | '.join(str(counts[kind]) for kind in kinds)} |")
    return "\n".join(rows)


def list_of_kind(numbers: list[NamedNumber], kind: str) -> str:
    """The numbers of one kind with their values and descriptions, room by room, in Markdown."""
    chosen = [one for one in numbers if one.kind == kind]
    parts: list[str] = []
    for room in sorted({one.room for one in chosen}):
        parts += [
            f"### {HEADS[kind]} of `{room}`",
            "",
            "| number | value | what for |",
            "|---|---|---|",
        ]
        for one in chosen:
            if one.room == room:
                owner = one.owner or Path(one.file).stem
                value = one.value.replace("|", "\\|")
                about = one.about.replace("|", "\\|")
                parts.append(f"| `{owner}.{one.name}` | `{value}` | {about} |")
        parts.append("")
    return "\n".join(parts)


def main() -> None:
    """Print the table of counts, or the list of one kind."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", nargs="?", choices=tuple(HEADS), help="list these, not the counts")
    parser.add_argument("--source", type=Path, default=SOURCE, help="another src/reticent")
    arguments = parser.parse_args()
    numbers = named_numbers(arguments.source)
    if arguments.kind:
        print(list_of_kind(numbers, arguments.kind))
    else:
        print(table_of_counts(numbers))


if __name__ == "__main__":
    main()
