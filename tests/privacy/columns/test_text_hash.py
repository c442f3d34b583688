"""The hash of texts: the sums that it says, in bulk and one by one, and as few collisions."""

import random
from hashlib import blake2b, shake_256

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reticent.privacy.columns.identifiers import Identifier
from reticent.privacy.columns.text_hash import LONGEST, TextHash
from reticent.privacy.sources.base import Field, scan
from reticent.privacy.sources.codes import code_texts

KEY = b"k" * 16


def plain_halves(text, key=KEY):
    """The two halves as text_hash.py describes them, in plain loops."""
    if len(text) > 64:
        text = blake2b(text, key=key).digest()
    stream = shake_256(key).digest(8 * 4 * 18)
    found = []
    for number in range(4):
        secrets = stream[144 * number : 144 * (number + 1)]
        total = int.from_bytes(secrets[:8], "little")
        characters = [len(text)]
        characters += [int.from_bytes(text[at : at + 4], "little") for at in range(0, len(text), 4)]
        for place, character in enumerate(characters, start=1):
            total += character * int.from_bytes(secrets[8 * place : 8 * place + 8], "little")
        found.append(total % 2**64 // 2**38)
    return found[0] * 2**26 + found[1], found[2] * 2**26 + found[3]


def random_texts(count, most, letters):
    rng = random.Random(0)
    return [bytes(rng.choices(letters, k=rng.randrange(most + 1))) for _ in range(count)]


def in_bulk(texts, key=KEY):
    """Halves of many texts, which lie one behind the other."""
    lengths = np.array([len(text) for text in texts])
    starts = np.cumsum(lengths) - lengths
    data = np.frombuffer(b"".join(texts) + bytes(LONGEST), dtype=np.uint8)
    halves = TextHash(key).pairs(data, starts, lengths).tolist()
    return list(zip(*halves, strict=True))


def test_texts_have_the_sums_that_are_described():
    texts = [*random_texts(500, 70, range(256)), b"", b"a" * 64, b"a" * 65, bytes(64), bytes(65)]
    assert [TextHash(KEY).halves(text) for text in texts] == list(map(plain_halves, texts))


def test_many_at_once_are_hashed_as_one_by_one():
    texts = [*random_texts(2000, LONGEST, range(256)), b"", bytes(LONGEST), b"\xff" * LONGEST]
    assert in_bulk(texts) == list(map(plain_halves, texts))
    assert in_bulk(texts[:1]) == [plain_halves(texts[0])]
    assert in_bulk([]) == []


def test_zeros_behind_a_text_and_beside_it_tell_it_apart():
    texts = [b"a" + bytes(zeros) for zeros in range(12)] + [bytes(zeros) for zeros in range(1, 12)]
    texts += [bytes(zeros) + b"a" for zeros in range(1, 12)]
    assert len(set(in_bulk(texts))) == len(texts)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (b"patient-1", b"patient-2"),
        (b"\x00\x00\x00\x00", b"\x00\x00\x00\x80"),  # a difference of 2³¹, the worst
        (b"a", b"a\x00"),  # of the length alone
        (bytes(63) + b"\x80", bytes(64)),
        (b"x" * 100, b"x" * 99 + b"y"),
    ],
)
def test_two_texts_share_bits_as_rarely_as_chance_has_it(one, other):
    """Highest bits of all four sums over many keys: each agrees by itself as it should."""
    bits = 3
    keys = 8000
    agree = np.empty((keys, 4), dtype=bool)
    for number in range(keys):
        key = number.to_bytes(16, "little")
        for half, (a, b) in enumerate(
            zip(TextHash(key).halves(one), TextHash(key).halves(other), strict=True)
        ):
            agree[number, 2 * half] = a >> (52 - bits) == b >> (52 - bits)
            agree[number, 2 * half + 1] = (a >> (26 - bits)) % 2**bits == (
                b >> (26 - bits)
            ) % 2**bits
    for columns in ([0], [1], [2], [3], [0, 1], [2, 3], [0, 3]):
        share = 2.0 ** (-bits * len(columns))
        found = agree[:, columns].all(axis=1).sum()
        assert abs(found - keys * share) < 5 * np.sqrt(keys * share)


ODD = [
    "",
    " ",
    "7",
    " 7",
    "7\t",
    "0",
    "-0",
    "00",
    "017",
    "+7",
    "7.0",
    "-3",
    "-",
    "--3",
    "1-2",
    "3-",
]
ODD += ["a" * 63, "a" * 64, "a" * 65, "a\0", "a", "\0", "NA", "NAN", " NA", "999", "-999", "999.0"]
ODD += [str(sign * 2**power + by) for power in (63, 64) for by in (-1, 0, 1) for sign in (1, -1)]
ODD += [sign + "9" * digits for digits in (17, 18, 19, 20, 21, 64, 65) for sign in ("", "-")]
ODD += ["12345678", "1" * 8 + "a", "1a1", "-1a1", "a1", "1a", "1 1", "1\n", "\n1", "1:", "1/"]


@pytest.mark.parametrize("half", [0, 1])
@pytest.mark.parametrize("dtype", [pa.string(), pa.large_string(), pa.string_view()])
@pytest.mark.parametrize("more", [[], ["é", "e\u0301", None]])
def test_codes_of_a_column_are_those_of_its_cells(half, dtype, more):
    """In bulk where texts are ASCII; whole numbers, blanks, long texts and missing codes too."""
    kind = Identifier(half, KEY, missing=("NA", 999))
    texts = [text.decode() for text in random_texts(3000, 24, b"0123456789-a \t\0")]
    cells = [*ODD, *texts, *more]
    expected = np.array([kind.code_value(cell) for cell in cells])
    assert np.array_equal(kind.code_values(cells), expected, equal_nan=True)
    column = pa.array(["before", *cells, "behind"]).cast(dtype)
    assert np.array_equal(code_texts(column[1:-1], kind), expected, equal_nan=True)
    assert code_texts(column[:0], kind).tolist() == []
    if not more:  # blanks and missing codes are no exception where all cells are alike
        for cell, code in zip(cells[:60], expected, strict=False):
            assert np.array_equal(
                code_texts(pa.array([cell]).cast(dtype), kind), [code], equal_nan=True
            )


def test_short_batches_of_a_parquet_file_are_joined_and_long_texts_are_not(tmp_path, monkeypatch):
    texts = [f"p{number % 700}" for number in range(9000)]
    texts[4500] = "x" * 5000
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"id": texts, "a": np.arange(9000.0)}), path)
    fields = [Field("id", Identifier(0, KEY)), Field("a")]
    expected = np.column_stack([[fields[0].kind.code_value(text) for text in texts], range(9000)])
    blocks = list(scan(path).blocks(fields))
    assert [len(block) for block in blocks] == [9000]
    assert np.array_equal(np.vstack(blocks), expected)
    monkeypatch.setattr("reticent.privacy.sources.parquet._TEXT_BLOCK_ROWS", 1000)
    monkeypatch.setattr("reticent.privacy.sources.parquet._BLOCK_BYTES", 40_000)
    blocks = list(scan(path).blocks(fields))
    assert len(blocks) > 4
    assert np.array_equal(np.vstack(blocks), expected)
    monkeypatch.setattr("reticent.privacy.sources.parquet._BLOCK_ROWS", 2500)
    monkeypatch.setattr("reticent.privacy.sources.parquet._BLOCK_BYTES", 2**24)
    blocks = list(scan(path).blocks(fields))
    assert [len(block) for block in blocks] == [2000, 2000, 2000, 2000, 1000]
    assert np.array_equal(np.vstack(blocks), expected)
