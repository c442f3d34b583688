"""Files beside the one that is written.

Links that somebody prepared, other writers, names that are taken meanwhile.
"""

import contextlib
import os
import threading
from pathlib import Path

import numpy as np

import reticent
from reticent.files.output import check_new, new_text
from tests.attacks.harness import Outcome, attack

MODEL = reticent.PrivateMean(bounds=reticent.Bounds(x=[(0, 1)]), epsilon=1, delta=1e-6)


@attack("7", "A link called m.reticent.part makes save() write over another file")
def prepared_link() -> Outcome:
    victim = Path("victim")
    victim.write_text("important")
    Path("m.reticent.part").symlink_to(victim)
    MODEL.fit(np.zeros((10, 1))).save("m.reticent")
    found = victim.read_bytes()
    return Outcome(found != b"important", f"the other file now begins with {found[:9].decode()!r}")


@attack("7", "Two programs write one report, and get a mixture of both")
def two_writers() -> Outcome:
    out = Path("r.html")
    first = "A" * 10 + "A" * 3
    check_new(out, "No")
    one = new_text(out)
    other = new_text(out)
    text = one.__enter__()
    text.write("A" * 10)
    text.flush()
    second = other.__enter__()
    second.write("B" * 4)
    second.flush()
    text.write("A" * 3)
    one.__exit__(None, None, None)
    found = out.read_text()
    with contextlib.suppress(OSError, reticent.ReticentError):
        other.__exit__(None, None, None)
    return Outcome(found != first, f"{first!r} was written, and {found!r} is in the file")


@attack("7", "A file that appears while another is written is replaced")
def taken_meanwhile() -> Outcome:
    out = Path("m.reticent")
    model = MODEL.fit(np.zeros((10, 1)))
    written = threading.Event()
    exists = os.path.exists

    def found_free(path: object) -> bool:
        """What another program does between the look and the write."""
        free = exists(path)
        if str(path) == str(out) and not written.is_set():
            written.set()
            out.write_text("a release that was paid for")
        return free

    os.path.exists = found_free
    try:
        model.save(out)
    except reticent.ReticentError as error:
        return Outcome(False, f"refused: {str(error)[:60]}", refused=True)
    finally:
        os.path.exists = exists
    lost = b"paid for" not in out.read_bytes()
    return Outcome(lost, "a release that was paid for is gone")
