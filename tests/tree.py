"""The table of the tree: `python -m tests.tree [FOLDER …]` prints each file with its lines and its
role, in Markdown.
"""

import ast
import re
import sys
from pathlib import Path
from statistics import median

TOP = Path(__file__).parents[1]
FOLDERS = ("src", "tests", "benchmarks", "examples")


def role(path: Path) -> str:
    """What a file is for: the first sentence of its docstring."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    first = " ".join(text.split("\n\n")[0].split())
    return re.split(r"(?<! al)\. ", first)[0].rstrip(".")  # "et al." ends no sentence


def tree(folders: tuple[str, ...] = FOLDERS) -> list[tuple[str, int, str]]:
    """Every Python file with its lines and its role."""
    paths = [path for folder in folders for path in sorted((TOP / folder).rglob("*.py"))]
    return [
        (str(path.relative_to(TOP)), len(path.read_text(encoding="utf-8").splitlines()), role(path))
        for path in paths
    ]


def main() -> None:
    rows = tree(tuple(sys.argv[1:]) or FOLDERS)
    print("| file | lines | what it is |\n| :-- | --: | :-- |")
    for name, lines, about in rows:
        print(f"| `{name}` | {lines} | {about.replace('|', chr(92) + '|')} |")
    sizes = [lines for _, lines, _ in rows]
    print(
        f"\n{len(rows)} files, {sum(sizes):,} lines, median "
        f"{median(sizes):.0f}, longest {max(sizes)}"
    )


if __name__ == "__main__":
    main()
