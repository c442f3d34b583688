"""The ways to give columns: literals, lists, dicts, JSON; and codes that mean "missing"."""

import datetime
import math

import numpy as np
import pytest

from reticent import BadInput, Bounds, Cyclic, Date, Number, Ordered, Whole, Words, YesNo
from reticent.errors import BoundsMissing
from reticent.privacy.columns.kinds import (
    as_kind,
    as_literal,
    is_plain_number,
    kind_from_dict,
    kinds_from_dicts,
    read_columns,
)
from reticent.privacy.columns.words import MissingIndicator

DAY = datetime.date
KINDS = [
    Number(0, 110, missing=[999], keep_missing=True, label="age", unit="years"),
    Whole(0, 15),
    Words(["F", "M"], missing=["?"]),
    Ordered(["I", "II"]),
    YesNo("nein", "ja"),
    Date("2019-01-01", "2024-12-31", format="%d.%m.%Y"),
    Cyclic(0, 24),
]

# ---- JSON


@pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])
def test_a_kind_survives_json_and_is_another_object(kind):
    again = kind_from_dict(kind.to_dict())
    assert again == kind
    assert again is not kind
    assert type(again) is type(kind)


def test_kinds_and_options_that_do_not_exist_are_refused():
    with pytest.raises(BadInput, match=r"There is no kind of column 'numbr'. Kinds: number, whole"):
        kind_from_dict({"kind": "numbr", "low": 0, "high": 1})
    with pytest.raises(BadInput, match="There is no kind of column None"):
        kind_from_dict({"low": 0, "high": 1})
    with pytest.raises(BadInput, match="A column of kind number has no least, most"):
        kind_from_dict({"kind": "number", "most": 0, "least": 1})


def test_an_indicator_belongs_to_the_column_before_it():
    one, two = Number(0, 1, keep_missing=True), Words(["a", "b"])
    kinds = [two, one, MissingIndicator(one), two]
    assert kinds_from_dicts([kind.to_dict() for kind in kinds]) == kinds
    with pytest.raises(BadInput, match="no kind of column 'indicator'"):
        kinds_from_dicts([MissingIndicator(one).to_dict()])


# ---- literals


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ((0, 110), Number(0, 110)),
        ([0, 110], Number(0, 110)),
        (np.array([0, 110]), Number(0, 110)),
        (["F", "M"], Words(["F", "M"])),
        (["F", "M", "X"], Words(["F", "M", "X"])),
        (bool, YesNo()),
        ((DAY(2019, 1, 1), "2020-01-01"), Date("2019-01-01", "2020-01-01")),
        (("2019-01-01", DAY(2020, 1, 1)), Date("2019-01-01", "2020-01-01")),
        (np.array(["2019-01-01", "2020-01-01"], "M8[D]"), Date("2019-01-01", "2020-01-01")),
        (Whole(0, 5, unit="m"), Whole(0, 5, unit="m")),
    ],
)
def test_what_a_literal_stands_for(given, kind):
    assert as_kind("x", given) == kind
    names, kinds, broadcast = read_columns("x", given)
    assert (names, kinds, broadcast) == (None, (kind,), True)
    if not isinstance(given, np.ndarray):
        named = read_columns("x", {"a": given, "b": (0, 1)})
        assert named == (("a", "b"), (kind, Number(0, 1)), False)


@pytest.mark.parametrize("given", [3, None, (), (1,), (1, 2, 3), "abc", {"a": 1}, float])
def test_other_literals_are_refused_by_the_name_of_their_column(given):
    with pytest.raises(BoundsMissing, match="The bounds of x column 'a' must be a pair"):
        read_columns("x", {"a": given})


def test_what_is_wrong_with_words_and_dates_is_said_of_their_column():
    with pytest.raises(BoundsMissing, match=r"^x column 'a': The level 'F' is given twice"):
        read_columns("x", {"a": ["F", "F"]})
    with pytest.raises(BoundsMissing, match=r"^x column 1: The dates .* are reversed"):
        read_columns("x", [(0, 1), (DAY(2020, 1, 1), DAY(2019, 1, 1))])
    with pytest.raises(BoundsMissing, match=r"^The bounds of x column 0 must have low < high"):
        read_columns("x", [(1, 0), (0, 1)])


def test_an_indicator_stays_as_it_is():
    indicator = MissingIndicator(Number(0, 1))
    assert as_kind("x", indicator) is indicator


# ---- several columns


@pytest.mark.parametrize(
    "given",
    [
        [(0, 1), (2, 3)],
        ((0, 1), (2, 3)),
        [[0, 1], [2, 3]],
        np.array([[0, 1], [2, 3]]),
        [Number(0, 1), (2, 3)],
    ],
)
def test_a_list_of_columns(given):
    assert read_columns("x", given) == (None, (Number(0, 1), Number(2, 3)), False)


def test_a_list_of_one_or_three_columns_and_of_words():
    assert read_columns("x", [(0, 1)]) == (None, (Number(0, 1),), False)
    three = read_columns("x", [(0, 1), ["F", "M"], bool])
    assert three == (None, (Number(0, 1), Words(["F", "M"]), YesNo()), False)
    assert read_columns("x", (["F", "M"], ["a", "b"]))[1] == (Words(["F", "M"]), Words(["a", "b"]))
    with pytest.raises(BoundsMissing, match="must be a pair"):
        read_columns("x", (1, 2, 3))


@pytest.mark.parametrize("given", [None, [], (), {}])
def test_columns_without_bounds_are_refused(given):
    with pytest.raises(BoundsMissing, match="The columns of x have no bounds"):
        read_columns("x", given)


@pytest.mark.parametrize("given", ["ab", 3, float, np.zeros(3), np.zeros((1, 2, 2))])
def test_what_is_no_list_of_columns_is_refused(given):
    with pytest.raises(BoundsMissing, match=r"must be \(low, high\), a list of columns, or a dict"):
        read_columns("x", given)


@pytest.mark.parametrize("names", [{"": (0, 1)}, {3: (0, 1)}, {"a": (0, 1), "": (0, 1)}])
def test_names_of_columns_are_texts(names):
    with pytest.raises(BadInput, match="must be non-empty texts"):
        read_columns("x", names)


# ---- the shortest way to write a kind


def test_the_shortest_way_to_write_a_kind():
    assert as_literal(Number(0, 1)) == (0.0, 1.0)
    assert as_literal(Words(["a", "b"])) == ["a", "b"]
    for kind in (Number(0, 1, unit="m"), Words(["a", "b"], missing=["?"]), Ordered(["a", "b"])):
        assert as_literal(kind) is kind
    assert is_plain_number(Number(0, 1))
    assert not is_plain_number(Number(0, 1, keep_missing=True))
    assert not is_plain_number(Whole(0, 1))


# ---- missing codes of several columns

X = {"a": (0, 1), "b": ["u", "v"], "c": Number(0, 1, missing=[8])}


def test_missing_codes_of_all_columns():
    bounds = Bounds(x=X, y={"t": (0, 1)}, missing=[9, "NA"])
    assert [kind.missing for kind in bounds.x_kinds] == [(9, "NA"), (9, "NA"), (8, 9, "NA")]
    assert bounds.y_kinds[0].missing == (9, "NA")
    assert Bounds(x=(0, 1), missing=9).x_kinds[0].missing == (9,)
    assert Bounds(x=(0, 1), missing="NA").x_kinds[0].missing == ("NA",)
    assert Bounds(x=(0, 1)).x_kinds[0].missing == ()


def test_missing_codes_by_name():
    bounds = Bounds(x=X, y={"t": (0, 1)}, missing={"a": 9, "c": ["NA"], "t": "-"})
    assert [kind.missing for kind in bounds.x_kinds] == [(9,), (), (8, "NA")]
    assert bounds.y_kinds[0].missing == ("-",)
    with pytest.raises(BadInput, match=r"the column 'z', which has no bounds. Columns: 'a', 'b', "):
        Bounds(x=X, missing={"z": [9]})
    with pytest.raises(BadInput, match=r"'z', which has no bounds. Columns: none has a name"):
        Bounds(x=(0, 1), missing={"z": [9]})


def test_missing_codes_of_columns_of_which_some_have_names():
    named = Bounds(x=[(0, 1)], y={"t": (0, 1)}, missing={"t": [9]})
    assert (named.x_kinds[0].missing, named.y_kinds[0].missing) == ((), (9,))
    turned = Bounds(x={"a": (0, 1)}, y=(0, 1), missing={"a": [9]})
    assert (turned.x_kinds[0].missing, turned.y_kinds[0].missing) == ((9,), ())


def test_missing_codes_of_labels():
    refused = "is a label and means missing"
    for names in ({"ill": [9]}, {"a": [9], "ill": [1, 9]}):
        with pytest.raises(BadInput, match=refused):
            Bounds(x=X, classes={"ill": [0, 9]}, missing=names)
    assert Bounds(x=X, classes={"ill": [0, 9]}, missing={"a": [9]}).classes == (0, 9)
    assert Bounds(x=X, classes=[0, 9], missing={"a": [9]}).classes == (0, 9)
    with pytest.raises(BadInput, match=refused):
        Bounds(x=X, classes=[0, 9], missing=[7, 9])
    assert Bounds(x=X, classes=[0, 9], missing=[7]).classes == (0, 9)
    kept = Bounds(x=X, classes={"ill": YesNo()}, missing={"ill": ["n"]})
    assert math.isnan(kept.class_kind.code_text(b"n"))
