"""Keyed hash of texts: 104 bits, of which any two different texts share all with chance 2⁻¹⁰⁴.

A text of at most 64 bytes is a sequence of characters of 32 bits: c₀ its length in bytes, then its
bytes, four to a character (little-endian, with zeros behind them). For secret 64-bit numbers a, b₀,
b₁, … each of four sums

    a + b₀·c₀ + b₁·c₁ + …      modulo 2⁶⁴

gives its highest 26 bits (multilinear hashing, which is strongly universal). A longer text is
replaced by the 64 bytes of its keyed BLAKE2b digest before. Proof: weights.md, 5.
"""

from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b, shake_256
from struct import unpack

import numpy as np
from numpy.typing import NDArray

__all__ = ["LONGEST", "TextHash"]

LONGEST = 64  # bytes of a text that is hashed as it is
HALF_BITS = 52  # of the hash: two sums each
_SUM_BITS = HALF_BITS // 2
_SUMS = 4
_WORD = 8  # bytes: two characters, read at once
_NUMBERS = 2 + LONGEST // 4  # secret ones of each sum
_SHIFT = 64 - _SUM_BITS
# Keeps the first k bytes of a word, for k = 0, …, 8.
_FIRST_BYTES = np.array([2 ** (8 * k) - 1 for k in range(_WORD + 1)], dtype=np.uint64)

Bytes = NDArray[np.uint8]
Places = NDArray[np.int64]


@dataclass(frozen=True, repr=False)
class TextHash:
    """Hash of texts with a secret ``key``."""

    key: bytes

    @cached_property
    def _secrets(self) -> NDArray[np.uint64]:
        """The secret numbers of each sum, a first: shape ``(4, 18)``."""
        stream = shake_256(self.key).digest(8 * _SUMS * _NUMBERS)
        return np.frombuffer(stream, dtype="<u8").reshape(_SUMS, _NUMBERS)

    @cached_property
    def _integers(self) -> list[list[int]]:
        return [[int(number) for number in row] for row in self._secrets]

    def halves(self, text: bytes) -> tuple[int, int]:
        """Two halves of 52 bits."""
        if len(text) > LONGEST:
            text = blake2b(text, key=self.key).digest()
        padded = text + bytes(-len(text) % 4)
        characters = (len(text), *unpack(f"<{len(padded) // 4}I", padded))
        first, second, third, fourth = (
            sum(map(int.__mul__, row[1:], characters), row[0]) % 2**64 >> _SHIFT
            for row in self._integers
        )
        return first << _SUM_BITS | second, third << _SUM_BITS | fourth

    def pairs(self, data: Bytes, starts: Places, lengths: Places) -> NDArray[np.uint64]:
        """Both halves of each of many texts of at most 64 bytes, as `halves` gives them.

        Texts lie in ``data`` with at least 64 bytes behind the last of them. Shape ``(2, texts)``.
        """
        rows = self._secrets
        sums = rows[:, 1:2] * lengths.astype(np.uint64)
        sums += rows[:, :1]
        words = np.ndarray(len(data) - _WORD + 1, dtype="<u8", buffer=data, strides=1)  # overlap
        shortest = int(lengths.min(initial=LONGEST))
        for start in range(0, int(lengths.max(initial=0)), _WORD):
            word = words[starts + start]
            if start + _WORD > shortest:
                word &= _FIRST_BYTES[np.clip(lengths - start, 0, _WORD)]
            low = word & np.uint64(2**32 - 1)
            high = word >> np.uint64(32)
            place = 2 + start // 4
            for sum_, row in zip(sums, rows, strict=True):
                sum_ += row[place] * low
                sum_ += row[place + 1] * high
        sums >>= np.uint64(_SHIFT)
        return np.asarray(sums[::2] << np.uint64(_SUM_BITS) | sums[1::2])
