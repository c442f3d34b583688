"""What tests share, most of them those of the command line."""

import contextlib
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from typer.testing import CliRunner

from reticent.cli.demo_data import people, write_csv
from reticent.cli.main import app
from reticent.privacy.sources import parquet


@pytest.fixture(autouse=True, scope="session")
def files_are_settled():
    """Whose each record is may be remembered of files that a test has written just now."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet, "SETTLED", 0)
        yield


class Answer:
    """What a command said, with line breaks and spaces evened out."""

    def __init__(self, result):
        self.code = result.exit_code
        self.out = result.stdout
        self.err = re.sub(r"\s+", " ", result.stderr)


@pytest.fixture
def run(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("RETICENT_DEBUG", raising=False)

    def call(*arguments):
        return Answer(
            CliRunner().invoke(app, [str(argument) for argument in arguments], prog_name="reticent")
        )

    return call


@pytest.fixture(scope="session")
def starter():
    """A process that forks others which run commands, for `serving.Started`."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(
        [sys.executable, str(Path(__file__).parent / "support" / "starter.py")], **pipes
    ) as process:
        yield process
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()


@pytest.fixture
def elsewhere(starter, tmp_path):
    """Run Python code in a process that knows nothing of this one: its exit code and its output.

    It is forked from `starter`, for importing takes longest.
    """
    from tests.support.serving import Started  # the service, which few tests need

    def call(code):
        out = tmp_path / "elsewhere.out"
        err = tmp_path / "elsewhere.err"
        process = Started(["-c", textwrap.dedent(code)], out, err, starter)
        ended = process.wait()
        print(err.read_text())  # pytest shows it if the test fails
        return ended, out.read_text()

    return call


@pytest.fixture(scope="session")
def people_csv(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "people.csv"
    write_csv(people(500, seed=3), path)
    return path


@pytest.fixture
def budget(tmp_path, run):
    """A ledger with an account "people", cap ε = 1, δ = 1e-5."""
    path = tmp_path / "budget.db"
    assert run("ledger", "open", path, "people", "--epsilon", 1, "--delta", 1e-5).code == 0
    return path
