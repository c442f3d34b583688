"""Every number with a name has a kind, and a tuned one says what for."""

from pathlib import Path
from textwrap import dedent

import pytest

from reticent.number_kinds import NumberKind
from tools.named_numbers import KINDS, NO_KIND, counts_by_kind, list_of_kind, named_numbers

FEWEST_WORDS = 4


@pytest.fixture(scope="module")
def numbers():
    return named_numbers()


def read(folder: Path, text: str, file: str = "models/settings.py"):
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(text))
    return named_numbers(folder)


def test_every_number_with_a_name_has_a_kind(numbers):
    assert [f"{one.file}: {one.name}" for one in numbers if one.kind == NO_KIND] == []
    assert len(numbers) > 400


def test_every_tuned_number_says_what_for(numbers):
    silent = [
        f"{one.file}: {one.name}"
        for one in numbers
        if one.kind == "tuned" and len(one.about.split()) < FEWEST_WORDS
    ]
    assert silent == []


def test_kinds_are_those_of_the_annotations():
    assert {*KINDS} == {NO_KIND, *(kind.value for kind in NumberKind)}


def test_fields_are_read_with_kind_value_and_description(tmp_path):
    found = read(
        tmp_path,
        '''
        class OneSettings:
            """What they are.

            Parameters
            ----------
            first, second : float
                Two of them, on
                two lines.
            third : int
                Another.
            """

            first: Tuned[float] = 2 * 0.5
            second: float = 3.0
            third: Numerical[int] = 4
            without_value: float

        class OtherSettings:
            a: Prior[tuple[int, int]] = (1, 2)
            """Below
            it."""
            b: Limit[int] = 7
            c: int = OneSettings.third
        ''',
    )
    assert [(one.owner, one.name, one.kind, one.value, one.about) for one in found] == [
        ("OneSettings", "first", "tuned", "2 * 0.5", "Two of them, on two lines."),
        ("OneSettings", "second", NO_KIND, "3.0", "Two of them, on two lines."),
        ("OneSettings", "third", "numerical", "4", "Another."),
        ("OtherSettings", "a", "prior", "(1, 2)", "Below it."),
        ("OtherSettings", "b", "limit", "7", ""),
    ]
    assert counts_by_kind(found) == {
        "prior": 1,
        "numerical": 1,
        "derived": 0,
        "limit": 1,
        "tuned": 1,
        NO_KIND: 1,
    }
    assert "| `OneSettings.first` | `2 * 0.5` | Two of them, on two lines. |" in list_of_kind(
        found, "tuned"
    )


def test_constants_of_modules_count_where_models_learn(tmp_path):
    text = """
    # on the line before
    FIRST: Derived[float] = 1 / 3
    _SECOND = -2.0  # behind it
    WORD = "no number"
    YES = True
    lower = 1.0
    MADE: Tuned[Shape] = Shape(0.65)
    LIST = (1, "a")
    """
    found = read(tmp_path, text, "inference/constants.py")
    assert [(one.name, one.kind, one.about) for one in found] == [
        ("FIRST", "derived", "on the line before"),
        ("_SECOND", NO_KIND, "behind it"),
        ("MADE", "tuned", ""),
    ]
    assert len(read(tmp_path, text, "privacy/constants.py")) == 3  # those of before
    assert len(read(tmp_path, text, "studies/settings.py")) == 3
