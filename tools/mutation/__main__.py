"""Command line of the mutation tests."""

import argparse
import contextlib
import math
import os
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tools.mutation.first_look import FirstLook
from tools.mutation.mutants import Mutant, mutants
from tools.mutation.second_look import Workspace
from tools.mutation.targets import TOP, Excuses, Target, named, targets, unlisted


def main() -> None:
    """Print the survivors of the named files, or of all, and how many mutants passed and failed."""
    parser = argparse.ArgumentParser("python -m tools.mutation", description=__doc__)
    parser.add_argument(
        "targets", nargs="*", metavar="FILE[:FUNCTION,…]", help="its path, or the end of it"
    )
    parser.add_argument("--list", action="store_true", help="show all targets with their tests")
    parser.add_argument("-k", dest="keyword", help="only these of the tests, as for pytest")
    parser.add_argument("--quick", action="store_true", help="take no second look at survivors")
    parser.add_argument(
        "--minutes",
        type=float,
        default=math.inf,
        help="time for each file: mutants are tried in random order until it is over",
    )
    parser.add_argument("--seed", type=int, default=0, help="of that order")
    arguments = parser.parse_args()
    if arguments.list:
        show_list()
        return
    # the tests of a mutant must neither load what they do not need nor start threads
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    os.environ["PYTEST_PLUGINS"] = "_hypothesis_pytestplugin"
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    passed = failed = 0
    for word in arguments.targets or targets():
        file, _, names = word.partition(":")
        target = named(file)
        functions = [name for name in names.split(",") if name]
        with database_server(target):
            more_passed, more_failed = run(target, functions, arguments)
        passed += more_passed
        failed += more_failed
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)


def show_list() -> None:
    """Print every target with its tests, and the files of the core that are none."""
    for target in targets().values():
        number = sum(sum(row.excused.values()) for row in target.equivalent)
        skipped = f"; skipped: {', '.join(target.skip)}" if target.skip else ""
        print(f"{target.file}: {number} mutants excused{skipped}")
        for test in target.test_files:
            print(f"    {test}")
    print(f"not in the table: {', '.join(unlisted())}")


def run(target: Target, functions: list[str], arguments: argparse.Namespace) -> tuple[int, int]:
    """Numbers of mutants that were noticed or excused, and that survived; with a report."""
    places = target.places(functions)
    code = (TOP / target.path).read_text(encoding="utf-8")
    made = mutants(code, places)
    print(f"{target.file}: {len(made)} mutants", flush=True)
    if arguments.minutes < math.inf:
        random.Random(arguments.seed).shuffle(made)
    tried, unnoticed = look(target, made, arguments)
    if tried < len(made):
        print(f"  tried {tried} of them, drawn with seed {arguments.seed}", flush=True)
    excuses = Excuses(target.equivalent)
    survivors = excess(unnoticed, excuses)
    original = code.splitlines()
    for mutant in survivors:
        line = mutant.line - 1
        print(f"  SURVIVED {mutant.function}, {mutant.kinds[0]}, line {mutant.line}")
        print(f"    - {original[line].strip()}")
        print(f"    + {mutant.code.splitlines()[line].strip()}")
    if tried == len(made):
        for row in excuses.unused(place.name for place in places):
            print(f"  excused in vain: {row}")
    noticed = tried - len(unnoticed)
    excused = len(unnoticed) - len(survivors)
    print(f"  {noticed} noticed, {excused} excused, {len(survivors)} survived", flush=True)
    return noticed + excused, len(survivors)


def look(
    target: Target, made: list[Mutant], arguments: argparse.Namespace
) -> tuple[int, list[Mutant]]:
    """How many mutants were tried, and those that no test notices."""
    tests = [str(test) for test in target.test_files]
    keywords = [word for word in (target.keyword, arguments.keyword) if word]
    if keywords:
        tests += ["-k", " and ".join(f"({word})" for word in keywords)]
    with tempfile.TemporaryDirectory() as folder:
        workspace = Workspace(Path(folder), tests)
        output = workspace.folder / "results.txt"
        output.touch()
        first_look = FirstLook(target.module, made, output, 60 * arguments.minutes)
        failed = workspace.fails(plugin=first_look)
        results = [line.split() for line in output.read_text().splitlines()]
        noticed = {int(number): answer == "1" for number, answer in results}
        if failed:
            print("  the first look failed: all others need a second one", flush=True)
            noticed = dict.fromkeys(range(len(made)), False) | noticed
        unnoticed = [made[number] for number in sorted(noticed) if not noticed[number]]
        if arguments.quick:
            return len(noticed), unnoticed
        # Which of several alike are the excused ones is not known: look at all of them again.
        doubtful = {one.place for one in excess(unnoticed, Excuses(target.equivalent))}
        again = [mutant for mutant in unnoticed if mutant.place in doubtful]
        if again:
            print(f"  {len(again)} need a second look", flush=True)
            workspace.load()
        for mutant in again:
            workspace.write(target.path, mutant.code)
            if workspace.fails():
                unnoticed.remove(mutant)
    return len(noticed), unnoticed


def excess(unnoticed: list[Mutant], excuses: Excuses) -> list[Mutant]:
    """The mutants that are left when the others have been excused."""
    return [one for one in unnoticed if excuses.take(one.function, one.kinds) is None]


@contextlib.contextmanager
def database_server(target: Target) -> Iterator[None]:
    """A PostgreSQL server for all forks: to start one takes longer than most tests."""
    if not any("ledger" in str(test) for test in target.test_files):
        yield
        return
    from tests.support.postgres import server

    with server() as os.environ["TEST_POSTGRES"]:
        yield
    del os.environ["TEST_POSTGRES"]


if __name__ == "__main__":
    main()
