"""Every proof fits its code, and everything that matters has one."""

from pathlib import Path

import pytest

import reticent
from tests.proofs import PROOFS, digest, stamped

ROOT = Path(reticent.__file__).parent


@pytest.mark.parametrize("proof", PROOFS, ids=lambda path: path.name)
def test_every_proof_fits_its_code(proof):
    """When this fails: read the proof against the changed code, correct it, then run `python -m tests.proofs`."""
    covered, stamp = stamped(proof)
    assert stamp == digest(proof, covered), f"{proof.name} was written for another version of {', '.join(covered)}"


def test_everything_that_matters_has_a_proof():
    covered = {file for proof in PROOFS for file in stamped(proof)[0]}
    assert {"noise.py", "accounting.py", "statistic.py", "grid.py", "staged.py", "shared.py"} <= covered
    assert {"sums.py", "bounds.py", "curator.py", "selection.py", "choosing.py", "draws.py"} <= covered
    assert {"plan.py", "guard.py", "products.py"} <= covered
    assert {"ledger.py", "database.py", "anchor.py"} <= covered
    assert {"sources.py", "cells.py", "lines.py", "files.py", "memory.py", "cluster.py"} <= covered
    models = {path.name for path in (ROOT / "models").glob("*.py")} - {"__init__.py", "base.py", "storage.py"}
    models -= {"signature.py", "new_files.py"}  # how a file is written, and who wrote it
    assert models <= {Path(name).name for name in covered}
