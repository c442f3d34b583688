"""Not a test: a program that has imported what commands need, and forks processes that run them.

Importing takes longest. Each line on its input is JSON: a command, or ``-c`` and Python code, with
the files that it writes to (answered by the process id), or the id of a process (answered by its
exit code, or null while it runs).
"""

import json
import os
import sys

# late imports of the commands that tests start
import psycopg  # noqa: F401
import scipy.stats  # noqa: F401
import uvicorn  # noqa: F401

import reticent.auditing.attack
import reticent.cli.commands.inspect
import reticent.service.http_api  # noqa: F401
from reticent.cli.main import main


def serve():
    """Answer until the input ends; in a forked process, return what is to be done there."""
    while line := sys.stdin.readline():
        asked = json.loads(line)
        if isinstance(asked, dict):
            answer = os.fork()
            if answer == 0:
                return asked
        else:
            ended, status = os.waitpid(asked, os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if ended else None
        print(json.dumps(answer), flush=True)
    return None


def run(words, out, err, env):
    """What a shell does before a program begins; then the program, to its very end."""
    for file, name in enumerate((os.devnull, out, err)):
        opened = os.open(
            name, os.O_RDONLY if file == 0 else os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600
        )
        os.dup2(opened, file)
        os.close(opened)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)  # knows what the file is now
    unbuffered = {"buffering": 1, "errors": "backslashreplace"}
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False, **unbuffered)
    os.environ.update(env)
    if words[0] == "-c":
        exec(words[1], {"__name__": "__main__"})
        return
    sys.argv = ["reticent", *words]
    main()


if __name__ == "__main__":
    job = serve()
    if job is not None:
        run(**job)
