"""All attacks against version 0.1.0 and against this one: `python -m tests.attacks [NAME …]`.

The old version is taken from this repository's history into a scratch folder; each attack runs in a
process of its own, with one version or the other first on the path. Ends with 1 if an attack
succeeds against this version, or fails against the old one (then it shows nothing).
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from io import BytesIO
from pathlib import Path

from tests.attacks.harness import all_attacks, as_record

TOP = Path(__file__).parents[2]
OLD = "540f509"  # the last commit of version 0.1.0
_SECONDS = 900
_INTRODUCTION = (
    "# Attacks on the promise\n\n"
    "A hostile review found these ways past the promise of version 0.1.0. Each is a program that "
    "an adversary, or a careless caller, could write; each is kept in `tests/attacks`, and a test "
    "sees to it that none succeeds any more. This page is what `python -m tests.attacks --out "
    "docs/attacks.md` prints: every attack against version 0.1.0, taken from the history of this "
    "repository, and against this version. *Succeeds*: it got more than the promise allows. *No "
    "advantage*: it ran, and got nothing. *Refused*: it was told why not, for a reason that "
    "depends on no record. Noise is fresh in every run, so figures differ a little from run to "
    "run.\n\n"
)


def old_source(folder: Path) -> Path:
    """Unpack the source of version 0.1.0 from the history."""
    packed = subprocess.run(["git", "archive", OLD, "src"], cwd=TOP, capture_output=True)
    if packed.returncode:
        sys.exit(
            f"Version 0.1.0 ({OLD}) is not in this clone's history: fetch all "
            "of it (git fetch --unshallow)."
        )
    with tarfile.open(fileobj=BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "src"


def run(name: str, source: Path) -> dict[str, object]:
    """Run one attack against the version in ``source``, in a process of its own, in a scratch
    folder.
    """
    environment = {
        **os.environ,
        "PYTHONPATH": f"{source}{os.pathsep}{TOP}",
        "OPENBLAS_NUM_THREADS": "1",
    }
    with tempfile.TemporaryDirectory() as scratch:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "tests.attacks", "--one", name],
            env=environment,
            cwd=scratch,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
        )
    if done.returncode:
        return {
            "verdict": "fails",
            "figure": (done.stderr.strip().splitlines() or ["nothing printed"])[-1],
        }
    return json.loads(done.stdout.strip().splitlines()[-1])


def _without_places(outcome: dict[str, object]) -> str:
    """The figure, without the names of this machine's scratch folders."""
    return re.sub(re.escape(tempfile.gettempdir()) + r"/[^/\s']+", "…", str(outcome["figure"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "names", nargs="*", help="attacks to run, by the beginnings of their names; default: all"
    )
    parser.add_argument("--one", help="run one attack here, and print what came of it as JSON")
    parser.add_argument(
        "--out", type=Path, help="write the table to this page, too (docs/attacks.md)"
    )
    arguments = parser.parse_args()
    attacks = all_attacks()
    if arguments.one:
        [one] = [attack for attack in attacks if attack.name == arguments.one]
        print(json.dumps(as_record(one, one.run())))
        return
    if arguments.names:
        attacks = [one for one in attacks if one.name.startswith(tuple(arguments.names))]
    rows = ["| item | attack | version 0.1.0 | now |", "| :-- | :-- | :-- | :-- |"]
    wrong = 0
    print("\n".join(rows), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        before = old_source(Path(folder))
        for one in attacks:
            old = run(one.name, before)
            new = run(one.name, TOP / "src")
            wrong += old["verdict"] != "succeeds" or new["verdict"] not in (
                "refused",
                "no advantage",
            )
            verdicts = [
                f"**{outcome['verdict']}**: {_without_places(outcome)}" for outcome in (old, new)
            ]
            rows.append(
                " | ".join([f"| {one.item}", one.title, *verdicts]).replace("\n", " ") + " |"
            )
            print(rows[-1], flush=True)
    if arguments.out:
        arguments.out.write_text(_INTRODUCTION + "\n".join(rows) + "\n")
    print(f"\n{len(attacks) - wrong} passed, {wrong} failed")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
