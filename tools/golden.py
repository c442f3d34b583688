"""Golden set: what every model gives, hashed, to be the same before and after code is moved.

    python -m tools.golden record FILE          hash everything and write it down
    python -m tools.golden compare FILE         do it again, and list what is not the same
    python -m tools.golden against REV          the same for a commit and the present tree
    python -m tools.golden show --only WORD     print what is hashed, to be read or given to diff

`--only WORD` runs the cases whose name contains the word. What is hashed, bit for bit: released
values and noise scales, predictions, samples, ledgers, the contents of saved files, the numbers in
reports, and the output of commands. What is not: words, names of classes and modules, the order of
keys in files, versions, times, checksums (which words go into). The cases (`golden_cases`) use
public names only. The package is taken from `src` beside this folder, or from the folder that the
variable RETICENT_GOLDEN_SOURCE names, whatever is installed.
"""

import argparse
import contextlib
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any
from unittest import mock

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"  # sums of floats depend on how many threads share them

import numpy as np  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
SOURCE = Path(os.environ.get("RETICENT_GOLDEN_SOURCE", ROOT / "src"))
Hashes = dict[str, dict[str, str]]


def content(value: Any) -> bytes:
    """Every bit of arrays, numbers, text, and of lists and dictionaries of such."""
    if isinstance(value, dict):
        parts = [repr(key).encode() + content(part) for key, part in sorted(value.items())]
        return b"{" + b",".join(parts) + b"}"
    array = np.asarray(value) if not isinstance(value, (list, tuple, str, bytes)) else None
    if array is not None and array.dtype.kind in "biuf":
        return str(array.shape).encode() + array.astype("<f8").tobytes()
    if isinstance(value, (list, tuple, np.ndarray)):
        return b"[" + b",".join(content(part) for part in value) + b"]"
    return repr(value).encode()


def digest(value: Any) -> str:
    """A short hash of `content`."""
    return sha256(content(value)).hexdigest()[:16]


@contextlib.contextmanager
def same_noise(name: str) -> Iterator[None]:
    """Let whatever asks the system for randomness get bytes that depend on ``name`` alone."""
    count = itertools.count()

    def urandom(size: int) -> bytes:
        number = next(count)
        blocks = range(-(-size // 32))
        drawn = (sha256(f"{name} {number} {block}".encode()).digest() for block in blocks)
        return b"".join(drawn)[:size]

    with mock.patch.object(os, "urandom", urandom):
        yield


def run(only: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and outcome of each case, each made in an empty folder of its own."""
    sys.path.insert(0, str(SOURCE))
    import reticent

    if not Path(reticent.__file__).is_relative_to(SOURCE):
        sys.exit(f"reticent was taken from {reticent.__file__}, and not from {SOURCE}.")
    from tools.golden_cases import cases

    warnings.simplefilter("ignore")
    os.environ["COLUMNS"] = "100"
    home = Path.cwd()
    for name, case in cases():
        if only.lower() not in name.lower():
            continue
        began = time.process_time()
        with tempfile.TemporaryDirectory() as folder, same_noise(name):
            os.chdir(folder)
            try:
                outcome = case()
            except Exception as error:  # a case that fails is a case that is not the same
                traceback.print_exc()
                outcome = {"failed": type(error).__name__}
            finally:
                os.chdir(home)
        print(f"{time.process_time() - began:5.1f} s  {name}", file=sys.stderr, flush=True)
        yield name, outcome


def everything(only: str = "") -> Hashes:
    """Hashes of all outcomes, by case and part."""
    found = {}
    for name, outcome in run(only):
        found[name] = {part: digest(value) for part, value in outcome.items()}
    return found


def show(only: str) -> None:
    """Print what is hashed, every digit."""
    np.set_printoptions(threshold=sys.maxsize, floatmode="unique", linewidth=100)
    for name, outcome in run(only):
        for part, value in outcome.items():
            print(f"== {name} | {part}\n{value}")


def compare(before: Hashes, now: Hashes) -> bool:
    """Print what is not the same, and whether all is."""
    wrong = 0
    for name in [*before, *(name for name in now if name not in before)]:
        old, new = before.get(name, {}), now.get(name, {})
        changed = [part for part in [*old, *new] if old.get(part) != new.get(part)]
        failed = "failed" in new
        if changed or failed:
            wrong += 1
            print(f"{name}: not the same: {', '.join(dict.fromkeys(changed)) or 'it fails'}")
    print(f"{len(before.keys() | now.keys()) - wrong} passed, {wrong} failed")
    return not wrong


def against(revision: str, only: str) -> bool:
    """Compare a commit with the present tree, both by the cases that are here now."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--detach", "--quiet", str(tree), revision], check=True)
        try:
            sources = {"before": tree / "src", "now": ROOT / "src"}
            running = []
            for name, source in sources.items():
                environment = os.environ | {
                    "RETICENT_GOLDEN_SOURCE": str(source),
                    "PYTHONPATH": str(source),
                }
                asked = ["-m", "tools.golden", "record", f"{folder}/{name}.json", "--only", only]
                running.append(
                    subprocess.Popen([sys.executable, *asked], cwd=ROOT, env=environment)
                )
            for process in running:
                process.wait()
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)
        before, now = (json.loads(Path(folder, f"{name}.json").read_text()) for name in sources)
    return compare(before, now)


def main() -> None:
    """Record, compare or show."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("action", choices=("record", "compare", "against", "show"))
    parser.add_argument("what", nargs="?", default="", help="a file; for against, a commit")
    parser.add_argument("--only", default="", metavar="WORD", help="cases whose name contains it")
    asked = parser.parse_args()
    if not asked.what and asked.action != "show":
        parser.error(f"{asked.action} needs a file, or a commit")
    if asked.action == "show":
        show(asked.only)
        return
    if asked.action == "against":
        sys.exit(not against(asked.what, asked.only))
    file = Path(asked.what).absolute()
    now = everything(asked.only)
    if asked.action == "record":
        file.write_text(json.dumps(now, indent=1, ensure_ascii=False) + "\n")
        failed = sum("failed" in parts for parts in now.values())
        print(f"{len(now) - failed} recorded, {failed} failed")
        sys.exit(failed > 0)
    recorded = json.loads(file.read_text())
    before = {name: parts for name, parts in recorded.items() if asked.only.lower() in name.lower()}
    sys.exit(not compare(before, now))


if __name__ == "__main__":
    main()
