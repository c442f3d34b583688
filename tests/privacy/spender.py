"""Not a test: a program that forks processes which charge a ledger.

None of them has to import SciPy anew. Each line on its input is a job in JSON (answered by the
child's process id) or ``null`` (answered by the exit codes of all children, once they have ended).
"""

import json
import os
import sys
import traceback

import psycopg  # noqa: F401  the ledger imports it late, and every child would do it again

from reticent.errors import BudgetExceeded, LedgerError
from reticent.privacy.accounting.events import event_from_json
from reticent.privacy.ledger.ledger import Ledger


def spend(url, dataset, event, log, name, tries):
    """Charge, note it durably, "read the records", note that; and again.

    Return how often it was granted.
    """
    ledger = Ledger(url)
    event = event_from_json(event)
    granted = 0
    notes = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for i in range(tries):
        what = f"{name} {i}"
        try:
            ledger.charge(dataset, event, what=what)
        except BudgetExceeded:
            continue
        granted += 1
        for marker in ("charged", "read"):
            os.write(notes, f"{marker} {what}\n".encode())
            os.fsync(notes)
    return granted


def open_account(url, dataset, epsilon, delta):
    """Open an account; return 0, or 1 if it was already open with another cap."""
    try:
        Ledger(url).open(dataset, epsilon, delta)
    except LedgerError as error:
        if "never change" in str(error):
            return 1
        raise
    return 0


def main():
    children = []
    for line in sys.stdin:
        job = json.loads(line)
        if job is None:
            answer = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
            children = []
        else:
            answer = os.fork()
            if answer == 0:
                try:
                    os._exit(spend(**job) if "event" in job else open_account(**job))
                except BaseException:
                    traceback.print_exc()
                    os._exit(255)
            children.append(answer)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
