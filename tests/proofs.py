"""Proofs and their stamps: `python -m tests.proofs NAME.md …` stamps proofs with their code's hash.

Without a name nothing is stamped: those whose code has changed are listed.

A proof is a Markdown file beside the code. Its first line names the files it covers and carries
their hash; a test fails when the code has changed since. Stamp only after reading the proof against
the new code.
"""

import re
import sys
from hashlib import sha256
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "src" / "reticent"
PROOFS = sorted(PACKAGE.rglob("*.md"))
_FIRST = re.compile(r"<!-- covers: ([\w./ ]+?)(?: \| sha256: ([0-9a-f]*))? -->")


def stamped(proof: Path) -> tuple[list[str], str | None]:
    """The files a proof covers, and the hash it was stamped with."""
    found = _FIRST.match(proof.read_text())
    assert found, f"{proof.name} does not say what it covers in its first line"
    return found[1].split(), found[2]


def digest(proof: Path, covered: list[str]) -> str:
    """Hash of the covered files."""
    return sha256(b"\0".join((proof.parent / name).read_bytes() for name in covered)).hexdigest()[
        :32
    ]


def main() -> None:
    wanted = set(sys.argv[1:])
    for proof in PROOFS:
        covered, old = stamped(proof)
        new = digest(proof, covered)
        if new == old:
            continue
        if proof.name not in wanted:
            print(f"stale: {proof.relative_to(PACKAGE)}")
            continue
        line = f"<!-- covers: {' '.join(covered)} | sha256: {new} -->"
        proof.write_text(_FIRST.sub(line, proof.read_text(), count=1))
        print(f"stamped: {proof.relative_to(PACKAGE)}")


if __name__ == "__main__":
    main()
