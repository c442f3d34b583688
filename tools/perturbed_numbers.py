"""What each number with a name does: it is halved and doubled, on a few cells of the grid.

    python -m tools.perturbed_numbers NUMBERS CELLS [--factors .5,2] [--repeats 1] [--seed 0]

NUMBERS and CELLS are regular expressions: of ``kind Settings.name``, as in ``tuned FactorModel``,
and of a cell's words, as in ``FactorAnalysis, normal, n=500``. Each change runs the same fits, with
the same noise, in a fork whose source has the other number. Printed: by how many stated standard
errors estimates move (root mean square, the largest of all cells), and the loss by that before,
cell by cell. A number that does nothing in the cells that read it is numerical, or needless.
"""

import argparse
import ast
import importlib.abc
import importlib.util
import os
import pickle
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType

import numpy as np
import sklearn.gaussian_process
import sklearn.mixture  # noqa: F401  (a fork imports only what is its own)

from tools.named_numbers import SOURCE, NamedNumber, is_number, named_numbers

Answers = dict[str, tuple[float, np.ndarray, np.ndarray]]  # loss, estimates and their sd, by cell


class Scaled(ast.NodeTransformer):
    """Multiply all numbers in an expression; whole ones stay whole, and change."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def visit(self, node: ast.AST) -> ast.AST:
        """Change what is one number, and look for others inside."""
        if not isinstance(node, ast.expr) or isinstance(node, ast.Tuple) or not is_number(node):
            return self.generic_visit(node)
        value = eval(compile(ast.Expression(node), "a number", "eval"))
        changed = value * self.factor
        if isinstance(value, int):
            changed = round(changed)
            if changed == value:
                changed += 1 if self.factor > 1 else -1
        return ast.copy_location(ast.Constant(changed), node)


def with_other_number(source: str, number: NamedNumber, factor: float) -> ast.Module:
    """The module with one number multiplied."""
    tree = ast.parse(source)
    body = tree.body
    if number.owner:
        classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
        body = next(node for node in classes if node.name == number.owner).body
    for node in body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == number.name:
            assert node.value is not None
            node.value = Scaled(factor).visit(node.value)
            return ast.fix_missing_locations(tree)
    raise KeyError(number.name)


class _Loader(SourceFileLoader):
    """Loads a module with another number."""

    def __init__(self, name: str, path: str, number: NamedNumber, factor: float) -> None:
        super().__init__(name, path)
        self._change = number, factor

    def get_code(self, fullname: str) -> CodeType:
        tree = with_other_number(Path(self.path).read_text(encoding="utf-8"), *self._change)
        return compile(tree, self.path, "exec")


class _Finder(importlib.abc.MetaPathFinder):
    """Finds one module before others do."""

    def __init__(self, number: NamedNumber, factor: float) -> None:
        self._number = number
        self._factor = factor
        self._name = "reticent." + number.file.removesuffix(".py").replace("/", ".")

    def find_spec(self, fullname: str, *_: object) -> ModuleSpec | None:
        if fullname != self._name:
            return None
        path = str(SOURCE / self._number.file)
        loader = _Loader(fullname, path, self._number, self._factor)
        return importlib.util.spec_from_file_location(fullname, path, loader=loader)


def answers(cells: str, repeats: int, seed: int) -> Answers:
    """What the grid gives in the cells."""
    warnings.simplefilter("ignore")
    from reticent.studies.own.calibration.study import FAMILIES, choose_cells, run_trials

    chosen = [
        one for one in choose_cells(list(FAMILIES), quick=False) if re.search(cells, str(one))
    ]
    trials = run_trials(chosen, range(repeats), seed=seed, progress=lambda *_: None)
    return {
        str(cell): (
            float(np.mean([one.loss for one in several])),
            np.concatenate([one.estimate for one in several]),
            np.concatenate([one.sd for one in several]),
        )
        for cell, several in trials.items()
    }


def in_a_fork(action: Callable[[], Answers]) -> Answers | str:
    """The outcome of an action that leaves nothing behind, or the words of its error."""
    ours, theirs = os.pipe()
    if os.fork() == 0:
        try:
            outcome: Answers | str = action()
        except Exception as error:  # another number may be refused
            outcome = f"{type(error).__name__}: {error}"
        with os.fdopen(theirs, "wb") as file:
            pickle.dump(outcome, file)
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours, "rb") as file:
        outcome = pickle.load(file)
    os.wait()
    return outcome


def told(before: Answers, now: Answers | str) -> str:
    """What has changed, in words."""
    if isinstance(now, str):
        return now
    moves = [0.0]
    for cell, (_, estimate, sd) in before.items():
        if len(estimate) and len(estimate) == len(now[cell][1]):
            off = (now[cell][1] - estimate) / np.maximum(sd, 1e-12)
            moves += [float(np.sqrt(np.mean(off**2))), float(np.abs(now[cell][2] / sd - 1).max())]
    losses = [now[cell][0] / max(loss, 1e-300) for cell, (loss, _, _) in before.items()]
    if max(moves) == 0 and all(loss == 1 for loss in losses):
        return "nothing"
    return f"moves {max(moves):.2g}, loss × {' '.join(f'{loss:.3f}' for loss in losses)}"


def main(given: Sequence[str] | None = None) -> None:
    """Change one number after the other."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("numbers")
    parser.add_argument("cells")
    parser.add_argument("--factors", default=".5,2")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(given)
    assert "reticent" not in sys.modules, "forks must import it anew"

    def run() -> Answers:
        return answers(options.cells, options.repeats, options.seed)

    before = in_a_fork(run)
    if isinstance(before, str):
        sys.exit(before)
    for cell, (loss, _, _) in before.items():
        print(f"{loss:10.4g}  {cell}", flush=True)
    for number in named_numbers():
        if not re.search(options.numbers, f"{number.kind} {number.owner}.{number.name}"):
            continue
        print(f"{number.owner}.{number.name} = {number.value} ({number.kind})", flush=True)
        for factor in map(float, options.factors.split(",")):

            def changed(number: NamedNumber = number, factor: float = factor) -> Answers:
                sys.meta_path.insert(0, _Finder(number, factor))
                return run()

            print(f"    × {factor:g}: {told(before, in_a_fork(changed))}", flush=True)


if __name__ == "__main__":
    main()
