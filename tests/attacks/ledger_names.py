"""A ledger file with two names, and a crash in the middle of a charge."""

import os
import signal
import struct
import subprocess
import sys
import time

import reticent
from tests.attacks.harness import Outcome, attack, first_sentence

_CAP = 1.0
_SPENT = 0.9
_DELTA = 1e-6
_MAGIC = bytes.fromhex("d9d505f920a163d7")  # of SQLite's journal
_CHARGES = """
import sys, reticent
while True:
    reticent.Ledger(sys.argv[1]).charge("people", reticent.Gaussian(noise_multiplier=1e4))
"""


def _hot(journal: str) -> bool:
    """Whether a crash now would leave a journal that the next access through this
    name rolls back.
    """
    try:
        with open(journal, "rb") as file:
            head = file.read(12)
    except FileNotFoundError:
        return False
    return len(head) == 12 and head[:8] == _MAGIC and struct.unpack(">I", head[8:])[0] > 0


def _crash_in_a_commit(path: str, *, seconds: float = 10.0) -> bool:
    """Stop a charging process now and then; kill it where its journal is hot.

    False if there was no such moment.
    """
    child = subprocess.Popen([sys.executable, "-c", _CHARGES, path], stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + seconds
        while time.monotonic() < until and child.poll() is None:
            if _hot(path + "-journal"):
                child.send_signal(signal.SIGSTOP)
                if _hot(path + "-journal"):
                    return True
                child.send_signal(signal.SIGCONT)
        return False
    finally:
        child.kill()
        child.wait()


def _release(path: str) -> str:
    """A release of ε = 0.9; the refusal, or nothing."""
    model = reticent.PrivateMean(
        bounds=reticent.Bounds(x=[(-1, 1)]),
        epsilon=_SPENT,
        delta=_DELTA,
        ledger=path,
        dataset="people",
    )
    try:
        model.fit([[0.5]] * 100)
    except reticent.ReticentError as error:
        return first_sentence(error, 200).replace(os.getcwd() + os.sep, "")
    return ""


def _spend_twice(first: str, second: str) -> Outcome:
    """After a crash through the first name, release through the second one, then through the first
    one again.
    """
    refusals = [_release(path) for path in (second, first)]
    made = refusals.count("")
    figure = f"{made} of 2 releases with ε = {_SPENT} under a cap of {_CAP:g}"
    refused = [text for text in refusals if text and "cap of" not in text]
    if made == 2:
        return Outcome(True, f"{figure}; the first one is no longer on the ledger, and it verifies")
    return Outcome(False, f"{figure}: {refused[0]}" if refused else figure, refused=bool(refused))


@attack(
    "2a",
    "A ledger with a hard link: a crash through one name takes back what was "
    "paid through the other",
)
def hard_link() -> Outcome:
    reticent.Ledger("budget.db").open("people", epsilon=_CAP, delta=_DELTA)
    if not _crash_in_a_commit("budget.db"):
        raise RuntimeError("no crash met a journal: nothing is shown")
    for name in os.listdir("."):  # the database and, if there is one, the file of its heads
        if not name.endswith("-journal"):
            os.link(name, name.replace("budget", "other"))
    return _spend_twice("budget.db", "other.db")


@attack("2a", "The same with the file mounted into a container")
def bind_mount() -> Outcome:
    os.makedirs("host")
    os.makedirs("container")
    reticent.Ledger("host/budget.db").open("people", epsilon=_CAP, delta=_DELTA)
    unshare = ["unshare", "-m"] if os.getuid() == 0 else ["unshare", "-rm"]
    if subprocess.run([*unshare, "true"], capture_output=True).returncode:
        return Outcome(False, "not tried: this machine gives no mount namespace")
    command = [*unshare, sys.executable, "-W", "ignore", "-m", "tests.attacks.ledger_names"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[-300:])
    broke, refused, figure = done.stdout.strip().splitlines()[-1].split("\t")
    return Outcome(broke == "True", figure, refused=refused == "True")


def _inside() -> None:
    """The attack in a mount namespace of its own.

    The database and, if there is one, the file of its heads.
    """
    if not _crash_in_a_commit("host/budget.db"):
        raise RuntimeError("no crash met a journal: nothing is shown")
    for name in os.listdir("host"):
        if not name.endswith("-journal"):
            open(f"container/{name}", "w").close()
            subprocess.run(["mount", "--bind", f"host/{name}", f"container/{name}"], check=True)
    outcome = _spend_twice("host/budget.db", "container/budget.db")
    print(outcome.broke, outcome.refused, outcome.figure, sep="\t")


if __name__ == "__main__":
    _inside()
