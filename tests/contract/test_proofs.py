"""Every proof fits its code, and everything that matters has one."""

from pathlib import Path

import pytest

import reticent
from tests.proofs import PROOFS, digest, stamped

ROOT = Path(reticent.__file__).parent


@pytest.mark.parametrize("proof", PROOFS, ids=lambda path: path.name)
def test_every_proof_fits_its_code(proof):
    """When this fails.

    Read the proof against the changed code, correct it, then run `python -m tests.proofs NAME.md`.
    """
    covered, stamp = stamped(proof)
    assert stamp == digest(proof, covered), (
        f"{proof.name} was written for another version of {', '.join(covered)}"
    )


WITHOUT_PROOF = {
    "models/replay.py",  # answers from releases that were made
    "privacy/oracle.py",  # the protocol of curators and replays
    "models/base.py",
    "models/serialization.py",
    "models/signature.py",  # who wrote a file
    "privacy/accounting/events.py",
    "privacy/accounting/guarantee.py",  # words
    "privacy/release.py",
    "privacy/sources/formulas.py",  # text that is written, not read
}


def test_every_file_that_sees_records_or_learns_has_a_proof():
    """By folder: whatever is in `privacy` or `models` is covered by a proof, or is named above."""
    covered = {
        (proof.parent / file).resolve().relative_to(ROOT).as_posix()
        for proof in PROOFS
        for file in stamped(proof)[0]
    }
    files = {
        path.relative_to(ROOT).as_posix()
        for room in ("privacy", "models")
        for path in (ROOT / room).rglob("*.py")
        if path.name != "__init__.py"
    }
    assert files - covered <= WITHOUT_PROOF
