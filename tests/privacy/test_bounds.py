"""Bounds: what they accept, what they refuse, and what they do to records."""

import copy
import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reticent import BadInput, Bounds, BoundsMissing, Curator, Gaussian, Number, Sum, scan
from reticent.privacy.columns.words import Labels


@pytest.mark.parametrize(
    "given_",
    [
        None,
        [],
        {},
        (1, 0),
        (1, 1),
        (0, float("nan")),
        (float("-inf"), 1),
        (0, 1e200),
        (1e9, 1e9 + 1e-7),
        ("0", "1"),
        (True, False),
        [(0, 1), (2,)],
        [(0, 1, 2)],
        {"age": (110, 0)},
        {"age": 5},
        5,
        "ab",
    ],
    ids=repr,
)
def test_bounds_that_make_no_sense_are_refused(given_):
    with pytest.raises(BoundsMissing):
        Bounds(x=given_)
    if given_ is not None:
        with pytest.raises(BoundsMissing):
            Bounds(x=(0, 1), y=given_)


@pytest.mark.parametrize(
    "classes", [[], ["a"], ["a", "a"], "ab", [1, "a"], [float("nan"), 1], 3, {"y": ["a"]}]
)
def test_classes_that_make_no_sense_are_refused(classes):
    with pytest.raises(BoundsMissing):
        Bounds(x=(0, 1), classes=classes)


def test_other_wrong_uses():
    with pytest.raises(BadInput):
        Bounds(x=(0, 1), y=(0, 1), classes=[0, 1])
    with pytest.raises(BadInput):
        Bounds(x=(0, 1), classes={"a": [0, 1], "b": [0, 1]})
    with pytest.raises(BadInput):
        Bounds(x={"": (0, 1)})
    for norm in (0, -1, float("nan"), float("inf"), "1"):
        with pytest.raises(BoundsMissing):
            Bounds(x=(0, 1), norm=norm)


EXAMPLES = [
    Bounds(x=(0, 1)),
    Bounds(x=[(0, 1), (-5, 5)], y=(2, 150)),
    Bounds(x={"age": (0, 110)}, y={"weight": (2, 150)}),
    Bounds(x={"age": (0, 110)}, classes={"ill": ["no", "yes"]}),
    Bounds(x=(0, 1), classes=np.array([0, 1, 2])),
    Bounds(x=[(-1, 1)] * 3, norm=1.0),
    Bounds(x=[(-1, 1), (0.1, 1), (0, 1)], y=(0, 1)).with_noise_column(1),
    Bounds(x={"sd": (0.1, 1), "age": (0, 110)}, y={"weight": (2, 150)}).with_noise_column("sd"),
]


@pytest.mark.parametrize("bounds", EXAMPLES, ids=repr)
def test_copies_are_equal(bounds):
    assert Bounds.from_dict(bounds.to_dict()) == bounds
    assert copy.deepcopy(bounds) == bounds == pickle.loads(pickle.dumps(bounds))
    assert hash(copy.deepcopy(bounds)) == hash(bounds)
    assert eval(repr(bounds), {"Bounds": Bounds}) == bounds


ANY = st.floats(allow_nan=True, allow_infinity=True)


@given(
    st.lists(st.tuples(ANY, ANY, ANY), min_size=1, max_size=8), st.sampled_from([None, 0.5, 3.0])
)
def test_every_record_ends_up_inside(data, norm):
    bounds = Bounds(x=[(-2, 3), (1e-9, 2e-9)], y=[(1e100, 1e101)], norm=norm)
    u = bounds.scale(np.array(data))
    missing = np.isnan(np.array(data))
    if norm is not None:
        missing[:, :2] |= missing[:, :2].any(axis=1, keepdims=True)
    assert np.array_equal(np.isnan(u), missing)
    u = np.where(missing, 0.0, u)
    assert (np.abs(u[:, 2]) <= 1).all()
    if norm is None:
        assert (np.abs(u) <= 1).all()
    else:
        assert (np.sqrt((u[:, :2] ** 2).sum(axis=1)) <= 1 + 1e-12).all()
    inside = np.clip(np.nan_to_num(np.array(data), nan=0.5), [-2, 1e-9, 1e100], [3, 2e-9, 1e101])
    assert bounds.scale(inside)[:, :2] == pytest.approx(u[:, :2]) or np.isnan(np.array(data)).any()


def test_edges_middle_and_classes():
    bounds = Bounds(x=[(0, 110)], classes=["no", "yes"])
    raw = np.array([[-1e9, 0.0], [np.inf, 1.0], [55.0, 0.0], [82.5, 1.0]])
    assert bounds.scale(raw).tolist() == [[-1, 0], [1, 1], [0, 0], [0.5, 1]]
    lacking = bounds.scale(np.array([[np.nan, 1.0], [55.0, np.nan]]))
    assert np.isnan(lacking).tolist() == [[True, False], [False, True]]
    assert bounds._with(classes=None).unscale(np.array([[-1.0], [0.5]])).tolist() == [[0.0], [82.5]]


def test_columns_are_matched_by_name_or_position():
    import pandas as pd

    frame = scan(pd.DataFrame({"weight": [1.0], "age": [2.0], "ward": ["a"]}))
    bounds, fields = Bounds(x={"age": (0, 110)}, y={"weight": (2, 150)}).resolve(
        frame, targets=True
    )
    assert [f.key for f in fields] == ["age", "weight"]
    assert bounds.x_names == ("age",)
    array = scan(np.zeros((4, 2)), y=np.zeros(4))
    bounds, fields = Bounds(x=(0, 1), y=(2, 150)).resolve(array, targets=True)
    assert [f.key for f in fields] == [0, 1, 2]
    assert len(bounds.x) == 2
    _, fields = Bounds(x=(0, 1), classes=["a", "b"]).resolve(array, targets=True)
    assert fields[2].kind == Labels(("a", "b"))


@pytest.mark.parametrize(
    ("bounds", "data", "message"),
    [
        (Bounds(x={"size": (0, 1)}), "frame", "There is no column 'size'. Columns: age, weight"),
        (Bounds(x={"age": (0, 1)}), "array", "no column names"),
        (Bounds(x=[(0, 1)] * 3), "array", "X has 2 features, but the bounds are for 3"),
        (Bounds(x=(0, 1)), "array", "outputs have no bounds"),
        (Bounds(x=(0, 1), y=(0, 1)), "array", "requires y to be passed"),
        (Bounds(x=(0, 1), y=[(0, 1), (0, 1)]), "pair", "y has 1 columns, but the bounds are for 2"),
        (Bounds(x={"age": (0, 1)}, y={"mass": (0, 1)}), "frame", "There is no column 'mass'"),
    ],
)
def test_columns_that_do_not_fit_are_refused(bounds, data, message):
    import pandas as pd

    sources = {
        "frame": lambda: scan(pd.DataFrame({"age": [1.0], "weight": [2.0]})),
        "array": lambda: scan(np.zeros((3, 2))),
        "pair": lambda: scan(np.zeros((3, 2)), y=np.zeros(3)),
    }
    with pytest.raises(BadInput, match=message):
        bounds.resolve(sources[data](), targets=True)


@pytest.mark.parametrize("x", [(0, 150), [(0, 110)], {"age": (0, 110)}])
def test_the_output_is_never_among_the_inputs(x):
    """A model of labels hands its inputs over: a label among them would be published."""
    import pandas

    frame = pandas.DataFrame({"age": [1.0, 2.0], "weight": [3.0, 4.0]})
    bounds, fields = Bounds(x=x, y={"weight": (0, 150)}).resolve(scan(frame), targets=True)
    assert bounds.x_names == ("age",)
    assert [
        field.key if isinstance(field.key, str) else scan(frame).names[field.key]
        for field in fields
    ] == [
        "age",
        "weight",
    ]


@pytest.mark.parametrize(
    "given", [{"y": {"weight": (0, 150)}}, {"classes": {"weight": [3.0, 4.0]}}]
)
def test_a_column_is_an_input_or_the_output(given):
    import pandas

    frame = pandas.DataFrame({"age": [1.0, 2.0], "weight": [3.0, 4.0]})
    both = Bounds(x={"age": (0, 110), "weight": (0, 150)}, **given)
    with pytest.raises(BadInput, match="'weight' is both an input and the output"):
        both.resolve(scan(frame), targets=True)
    assert both.resolve(scan(frame), targets=False)[0].x_names == ("age", "weight")


def test_the_middle_of_a_range_becomes_0_and_its_ends_become_1():
    bounds = Bounds(x=[(0, 8), (-1, 3)], y=(10, 20))
    records = np.array(
        [[0.0, -1.0, 10.0], [8.0, 3.0, 20.0], [4.0, 1.0, 15.0], [6.0, 2.0, 17.5], [9.0, -3.0, 30.0]]
    )
    unit = [[-1, -1, -1], [1, 1, 1], [0, 0, 0], [0.5, 0.5, 0.5], [1, -1, 1]]
    assert bounds.scale(records).tolist() == unit
    assert bounds.scale_unclipped(records)[-1].tolist() == [1.25, -2.0, 3.0]
    assert bounds.unscale(np.array(unit[:4])[:, :2]).tolist() == records[:4, :2].tolist()
    assert bounds.radius2 == 2


def test_outputs_may_reach_further_and_inputs_never():
    bounds = Bounds(x=[(0, 8)], y=(10, 20))
    records = np.array([[80.0, 30.0], [-80.0, -1e9], [np.inf, 1e9]])
    assert bounds.scale(records, output_limit=2.0).tolist() == [[1, 2], [-1, -2], [1, 2]]
    assert bounds.scale(records, output_limit=4.0).tolist() == [[1, 3], [-1, -4], [1, 4]]


def test_a_norm_makes_the_box_a_ball_around_its_middle():
    bounds = Bounds(x=[(0, 8), (-4, 4)], y=(10, 20), norm=2.0)
    records = np.array(
        [[4.0, 0.0, 10.0], [5.0, 1.0, 30.0], [6.0, 0.0, 15.0], [8.0, 3.0, -9.0], [99.0, 0.0, 15.0]]
    )
    found = bounds.scale(records, output_limit=3.0)
    assert found[:, 2].tolist() == [-1, 3, 0, -3, 0]
    assert found[:3, :2].tolist() == [
        [0, 0],
        [0.5, 0.5],
        [1, 0],
    ]  # inside: differences from the middle by the norm
    assert found[3, :2] == pytest.approx([0.8, 0.6])  # (4, 3), of length 5
    assert found[4, :2].tolist() == [1, 0]
    assert bounds.radius2 == 1
    assert bounds.unscale(np.array([[0.5, -1.0]])).tolist() == [[5.0, -2.0]]


def test_a_norm_larger_than_the_box_leaves_the_box():
    bounds = Bounds(x=[(0, 8), (-4, 4)], norm=10.0)
    assert bounds.scale(np.array([[99.0, 99.0], [-99.0, 0.0]])).tolist() == [
        [0.4, 0.4],
        [-0.4, 0.0],
    ]
    narrow = Bounds(x=[(0, 8), (-4, 4)], norm=4.0)
    diagonal = narrow.scale(np.array([[8.0, 4.0]]))  # a corner of the box lies outside the ball
    assert np.square(diagonal).sum() == pytest.approx(1.0)


def test_a_noise_level_stands_between_inputs_and_outputs():
    bounds = Bounds(x=[(0, 8), (0.5, 2)], y=(10, 20)).with_noise_column(1)
    records = np.array(
        [[4.0, 1.0, 30.0], [8.0, 0.1, 15.0], [0.0, 9.0, 10.0]]
    )  # as sources give them: level second
    assert bounds.scale(records, output_limit=2.0).tolist() == [
        [0, 0.5, 2],
        [1, 1, 0],
        [-1, 0.25, -1],
    ]


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (-1e150, 1e150),
        (0, 2e-150),
        (1, 1 + 2.1e-9),
        (-1 - 2.1e-9, -1),
        (0, np.float32(1)),
        (0, np.int8(1)),
    ],
)
def test_the_widest_and_the_narrowest_ranges(low, high):
    assert Bounds(x=(low, high)).x == ((float(low), float(high)),)


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (-1.1e150, 0),
        (0, 1.1e150),
        (0, 1.9e-150),
        (1, 1 + 1.9e-9),
        (-1 - 1.9e-9, -1),
        (0, np.True_),
        (0, np.inf),
    ],
)
def test_ranges_that_are_wider_or_narrower_are_refused(low, high):
    with pytest.raises(BoundsMissing):
        Bounds(x=(low, high))


def test_refusals_say_what_is_wrong():
    with pytest.raises(BoundsMissing, match=r"low < high, not \(2, 1\)\. Did you mean \(1, 2\)\?$"):
        Bounds(x=(2, 1))
    with pytest.raises(BoundsMissing, match=r"low < high, not \(1, 1\)\.$"):
        Bounds(x=(1, 1))
    for pair in ((0, np.nan), (np.nan, 0), (-np.inf, 0)):
        with pytest.raises(BoundsMissing, match="finite numbers"):
            Bounds(x=pair)


def test_a_file_with_semicolons_is_recognised(tmp_path):
    (tmp_path / "t.csv").write_text("age;weight\n1,5;2\n")
    source = scan(tmp_path / "t.csv")
    _, fields = Bounds(x={"age": (0, 2), "weight": (0, 9)}).resolve(source, targets=False)
    assert next(source.blocks(fields)).tolist() == [[1.5, 2.0]]


@pytest.mark.parametrize("columns", [1, 3, 600])
@pytest.mark.parametrize("order", ["C", "F"])
def test_records_are_scaled_alike_however_many_stand_abreast(columns, order):
    """Bit for bit the middle taken off and multiplied by the scale, in blocks that are no multiple
    of what one loop takes.
    """
    rng = np.random.default_rng(columns)
    ends = np.sort(rng.normal(size=(columns, 2)), axis=1)
    bounds = Bounds(x=[tuple(map(float, pair)) for pair in ends])
    for rows in (0, 1, 511, 512, 1031):
        values = np.asarray(rng.normal(size=(rows, columns)), order=order)
        found = bounds.scale_unclipped(values)
        assert found.shape == values.shape
        for row in {0, 1, rows // 2, rows - 1} & set(range(rows)):
            assert (
                found[row].tolist()
                == bounds.scale_unclipped(values[row : row + 1].copy())[0].tolist()
            )
        low, high = ends.T
        np.testing.assert_allclose(
            found, (2 * values - low - high) / (high - low), rtol=1e-9, atol=1e-9
        )


def test_norms_go_as_far_as_ranges_do():
    for norm in (1e-150, 1e150, 1, np.float32(2)):
        assert Bounds(x=(0, 1), norm=norm).norm == float(norm)
    for norm in (0.9e-150, 1.1e150):
        with pytest.raises(BoundsMissing, match="norm"):
            Bounds(x=(0, 1), norm=norm)


@pytest.mark.parametrize("bounds", EXAMPLES, ids=repr)
def test_without_outputs_the_inputs_stay_as_they_are(bounds):
    alone = bounds.inputs_alone()
    assert (alone.y, alone.y_names, alone.classes, alone.noise_column) == ((), None, None, None)
    assert (alone.x, alone.x_names, alone.norm, alone.broadcast) == (
        bounds.x,
        bounds.x_names,
        bounds.norm,
        bounds.broadcast,
    )
    unnamed = bounds.without_names()
    assert (unnamed.x, unnamed.x_names, unnamed.y, unnamed.classes) == (
        bounds.x,
        None,
        bounds.y,
        bounds.classes,
    )
    assert bounds.noise_column is None or (unnamed.noise_column.at, unnamed.noise_column.name) == (
        bounds.noise_column.at,
        None,
    )


def test_bounds_by_position_follow_the_columns():
    """One range for all columns, or one each.

    The outputs' columns come after the inputs' and are no inputs.
    """
    import pandas as pd

    frame = pd.DataFrame({"a": [1.0], "b": [2.0], "c": [3.0]})
    bounds, fields = Bounds(x=(0, 1), y={"b": (2, 3)}).resolve(scan(frame), targets=True)
    assert ([f.key for f in fields], bounds.x, bounds.x_names) == (
        [0, 2, "b"],
        ((0, 1), (0, 1)),
        ("a", "c"),
    )
    assert (bounds.y, bounds.broadcast) == (((2, 3),), False)
    bounds, fields = Bounds(x=[(0, 1), (4, 5)], y={"a": (2, 3)}).resolve(scan(frame), targets=True)
    assert ([f.key for f in fields], bounds.x, bounds.x_names) == (
        [1, 2, "a"],
        ((0, 1), (4, 5)),
        ("b", "c"),
    )
    bounds, fields = Bounds(x=(0, 1), y={"b": (2, 3)}).resolve(scan(frame), targets=False)
    assert ([f.key for f in fields], len(bounds.x), bounds.y) == ([0, 1, 2], 3, ())
    two = scan(np.zeros((1, 2)), y=np.zeros((1, 2)))
    bounds, fields = Bounds(x=(0, 1), y=[(2, 3), (4, 5)]).resolve(two, targets=True)
    assert ([f.key for f in fields], bounds.y) == ([0, 1, 2, 3], ((2, 3), (4, 5)))
    bounds, fields = Bounds(x={"c": (0, 1)}, classes={"a": ["x", "y"]}).resolve(
        scan(frame), targets=True
    )
    assert [(f.key, f.kind) for f in fields] == [("c", Number(0, 1)), ("a", Labels(("x", "y")))]
    for wrong in (2, 4):
        with pytest.raises(BadInput, match=f"X has 3 features, but the bounds are for {wrong}"):
            Bounds(x=[(0, 1)] * wrong).resolve(scan(frame), targets=False)


def test_lists_of_two_columns_are_not_one_range():
    assert Bounds(x=[(0, 1), (2, 3)]).x == ((0, 1), (2, 3))
    assert not Bounds(x=[(0, 1), (2, 3)]).broadcast
    assert Bounds(x=[(0, 1)]).x == Bounds(x=(0, 1)).x
    assert (
        Bounds(x=[(0, 1)]).broadcast,
        Bounds(x=(0, 1)).broadcast,
        Bounds(x={"a": (0, 1)}).broadcast,
    ) == (
        False,
        True,
        False,
    )
    for wrong in ([[(0, 1)]], [(0, 1, 2), (0, 1, 2)], [[0], [1]]):
        with pytest.raises(BoundsMissing, match="a list of"):
            Bounds(x=wrong)


@pytest.mark.parametrize(
    "classes", [[0, 1], ["a", "b"], (False, True), np.array([1.5, 2.5]), [0, 1, 2]]
)
def test_classes_that_make_sense(classes):
    assert Bounds(x=(0, 1), classes=classes).classes == tuple(np.asarray(classes).tolist())
    named = Bounds(x=(0, 1), classes={"ill": classes})
    assert (named.y_names, named.classes) == (("ill",), tuple(np.asarray(classes).tolist()))


@pytest.mark.parametrize(
    "classes",
    [[0, np.inf], [np.nan, 0.0], [None, None], [("a",), ("b",)], [0, "a"], {"ill": ["a", "a"]}],
    ids=str,
)
def test_classes_that_are_no_labels_are_refused(classes):
    with pytest.raises(BoundsMissing, match="classes must be"):
        Bounds(x=(0, 1), classes=classes)


def test_stored_bounds_with_a_name_too_few_are_refused():
    told = Bounds(x={"age": (0, 110), "height": (40, 220)}).to_dict()
    with pytest.raises(ValueError, match="longer"):
        Bounds.from_dict({**told, "x_names": ["age"]})


# --- lists, which do not say how many columns they have


@dataclass(frozen=True)
class Cells(Sum):
    """The scaled record itself, and its square: a missing cell changes both."""

    width: int
    columns = property(lambda self: 2 * self.width)
    norm2 = property(lambda self: 2 * self.width)

    def rows(self, records):
        return np.hstack([records, records**2])


RECORDS = np.array([[0.5, 0.25, -0.75], [-0.5, 0.125, 1.0], [0.75, -1.0, -0.25]])
ONE_OUTPUT = np.array([0.5, -1.0, 0.25])
TWO_OUTPUTS = np.array([[0.5, 1.0], [-1.0, 0.5], [0.25, -0.5]])
LABELS = ["b", "a", "b"]
UNIT = (-1, 1)


@pytest.mark.parametrize(
    ("bounds", "y", "width"),
    [
        (Bounds(x=[UNIT] * 3), None, 3),
        (Bounds(x=[UNIT] * 3, y=UNIT), ONE_OUTPUT, 4),
        (Bounds(x=[UNIT] * 3, y=[UNIT, (-2, 2)]), TWO_OUTPUTS, 5),
        (Bounds(x=[UNIT] * 3, classes=["a", "b"]), LABELS, 4),
    ],
    ids=["inputs", "one output", "two outputs", "classes"],
)
def test_a_list_is_read_by_the_columns_of_the_bounds(bounds, y, width):
    """As an array with the same numbers is."""

    def released(data, outputs):
        curator = Curator(
            scan(data, y=outputs),
            bounds=bounds,
            event=Gaussian(noise_multiplier=1e-6),
            targets=outputs is not None,
            seed=b"the same noise",
        )
        return curator.release(Cells(width)).value.tolist()

    wanted = released(RECORDS, None if y is None else np.array(y))
    assert released(RECORDS.tolist(), y if y is None else np.array(y).tolist()) == wanted
    assert released(RECORDS.tolist(), None if y is None else np.array(y)) == wanted


def test_one_range_for_all_columns_does_not_say_how_many_a_list_has():
    with pytest.raises(BadInput, match="how many columns"):
        Curator(
            scan(RECORDS.tolist()),
            bounds=Bounds(x=UNIT),
            event=Gaussian(noise_multiplier=1.0),
        )


def test_a_list_with_a_noise_column_has_one_column_more_than_ranges():
    bounds = Bounds(x=[UNIT, UNIT, (0.5, 2.0)], y=UNIT).with_noise_column(2)
    table = np.column_stack([RECORDS[:, :2], [1.0, 0.5, 2.0]])
    found = []
    for data in (table, table.tolist()):
        resolved, fields = bounds.resolve(scan(data, y=ONE_OUTPUT), targets=True)
        blocks = bounds.shaped(scan(data, y=ONE_OUTPUT), targets=True).blocks(fields)
        found.append(np.vstack([resolved.scale(block) for block in blocks]))
    assert not np.isnan(found[0]).any()
    assert found[1].tolist() == found[0].tolist()


def test_subclasses_of_bounds_see_no_records():
    class Own(Bounds):
        pass

    for bounds in (Own(x=[UNIT] * 3), "bounds", None):
        with pytest.raises(BadInput, match=r"must be a reticent\.Bounds itself"):
            Curator(scan(RECORDS), bounds=bounds, event=Gaussian(noise_multiplier=1.0))


@pytest.mark.parametrize("form", [np.array, list])
def test_outputs_without_bounds_are_refused_for_want_of_them(form):
    with pytest.raises(BoundsMissing, match="outputs have no bounds"):
        Curator(
            scan(form(RECORDS.tolist()), y=form(ONE_OUTPUT.tolist())),
            bounds=Bounds(x=[UNIT] * 3),
            event=Gaussian(noise_multiplier=1.0),
            targets=True,
        )
