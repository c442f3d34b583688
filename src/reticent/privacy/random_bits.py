"""Random bits: a cryptographic generator, one for each release.

Proof: noise.md, 1 and 5.
"""

import os
from hashlib import sha256
from typing import NoReturn

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from reticent.errors import ReleaseRefused
from reticent.privacy.process import identity

__all__ = ["Bits", "seeded_bits"]


class Bits:
    """A stream of random bits: AES-256 in counter mode under a key from the operating system.

    One object per release, so that there is no state to share between threads or to save; a fork
    that has one is refused. ``seed`` makes it repeatable, for tests only; whatever it touches is
    stamped as not private.
    """

    def __init__(self, seed: bytes | None = None) -> None:
        if seed is None:
            key = os.urandom(32)
        else:
            key = sha256(b"reticent, not private: " + seed).digest()
        self._words = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
        self._more = Cipher(
            algorithms.AES(key), modes.CTR(b"\x80" + bytes(15))
        ).encryptor()  # 2^127 blocks away
        self._process = identity()

    def words(self, count: int) -> NDArray[np.uint64]:
        """Give ``count`` random 64-bit words."""
        self._check_process()
        words = np.empty(count + 2, dtype="<u8")  # `update_into` asks for room for one more block
        written = self._words.update_into(bytes(8 * count), words.data.cast("B"))
        if written != 8 * count:  # what was not written is not random
            raise ReleaseRefused("Random bits could not be drawn. The charge stays.")
        return words[:count]

    def more(self) -> int:
        """Give 64 more bits for a number that was not decided by its first ones."""
        self._check_process()
        return int.from_bytes(self._more.update(bytes(8)), "little")

    def _check_process(self) -> None:
        if identity() != self._process:
            raise ReleaseRefused(
                "These random bits belong to another process: a fork would draw its parent's again."
            )

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "Random bits are never copied, pickled or sent: noise drawn twice is no noise."
        )


def seeded_bits(seed: bytes | None, name: bytes) -> Bits:
    """Random bits for one purpose: from the operating system, or from a seed and ``name``."""
    if seed is None:
        return Bits(None)
    return Bits(seed + b" " + name)
