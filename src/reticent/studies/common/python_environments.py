"""Environments of their own for peers whose versions do not go with ours.

Each is made once, in the user's cache folder, with pinned versions, and used as a subprocess that
reads and writes arrays.
"""

import os
import subprocess
import tempfile
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Unavailable", "answered", "environment"]

_INSTALLING = 900  # seconds at most


class Unavailable(Exception):
    """A peer cannot be run here: not installed, no network, or a version that does not install."""


def environment(pinned: Sequence[str], *, make: bool = True) -> Path:
    """Give the interpreter that has these packages; make its environment if it is not there.

    Without ``make``, what is not there is `Unavailable`.
    """
    name = pinned[0].partition("==")[0]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    home = cache / "reticent" / "-".join(["peers", *pinned[:2]])
    python = home / "bin" / "python"
    if (home / "ready").exists():
        return python
    if not make:
        raise Unavailable(f"{name} is not installed yet: a run without --quick does it")
    options = ("--quiet", "--disable-pip-version-check")
    try:
        venv.create(home, with_pip=True, clear=True)
        command = [str(python), "-m", "pip", "install", *options, *pinned]
        subprocess.run(command, check=True, capture_output=True, timeout=_INSTALLING)
    except (subprocess.SubprocessError, OSError) as problem:
        raise Unavailable(f"{name} could not be installed ({type(problem).__name__})") from problem
    (home / "ready").touch()
    return python


def answered(
    python: Path, name: str, script: str, word: str, given: Mapping[str, Any]
) -> NDArray[np.float64]:
    """What a script finds in the environment of peer ``name``, for a word and these arrays."""
    with tempfile.TemporaryDirectory() as folder:
        asked = Path(folder, "given.npz")
        found = Path(folder, "found.npz")
        np.savez(asked, **given)
        done = subprocess.run(
            [str(python), "-c", script, word, str(asked), str(found)],
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise Unavailable(f"{name} failed ({done.stderr.strip().splitlines()[-1:]})")
        return np.asarray(np.load(found)["found"])
