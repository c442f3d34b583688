"""Known noise levels: what one becomes, which column holds them, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reticent import BadInput, Bounds, Number, Whole
from reticent.privacy.noise_column import NoiseColumn
from reticent.privacy.sources.base import scan

NAMED = Bounds(x={"age": (0, 110), "sd": (0.5, 10), "size": (0, 2)}, y={"weight": (2, 150)})
LISTED = Bounds(x=[(0, 110), (0.5, 10), (0, 2)], y=(2, 150))


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=1, max_size=20))
def test_weights_are_at_most_one_and_missing_where_levels_are(levels):
    level = NoiseColumn(1, None, 0.3, 7.0)
    weights = level.weights(np.array(levels))
    missing = np.isnan(np.array(levels))
    assert np.array_equal(np.isnan(weights), missing)
    assert ((weights >= 0.3 / 7.0) & (weights <= 1.0))[~missing].all()
    for one, weight in zip(levels, weights, strict=True):
        assert np.array_equal(level.weights(np.array([one])), [weight], equal_nan=True)


def test_what_levels_become():
    given_ = np.array(
        [0.5, 0.1, 5.0, 10.0, 99.0, np.inf, np.nan, 0.0, -3.0, -np.inf, 5e-324, 1e-300, 1.1e-300]
    )
    expected = [0.5, 0.5, 5.0, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0, 0.5]
    assert NoiseColumn(0, None, 0.5, 10.0).clip(given_).tolist() == expected


@pytest.mark.parametrize(
    "bounds",
    [
        NAMED.with_noise_column("sd"),
        LISTED.with_noise_column(1),
        LISTED.with_noise_column(-2),
        LISTED.with_noise_column(np.int64(1)),
    ],
)
def test_a_level_stands_between_inputs_and_outputs(bounds):
    assert bounds.x == ((0, 110), (0, 2))
    records = np.array([[55.0, 2.0, 5.0, 150.0], [-9.0, np.nan, 0.0, 2.0], [1, 1, np.nan, 2]])
    scaled = bounds.scale(records)
    assert scaled[0].tolist() == [0, 1, 0.1, 1]
    assert np.isnan(scaled).tolist() == [
        [False] * 4,
        [False, True, *[False] * 2],
        [*[False] * 2, True, False],
    ]
    assert scaled[1, [0, 2, 3]].tolist() == [-1, 0.05, -1]
    assert bounds.scale(records, 64.0)[:2, 2].tolist() == [0.1, 0.05]


def test_a_missing_code_of_the_column_is_missing():
    bounds = Bounds(x=[(0, 1), Number(0.5, 10, missing=[999])], y=(0, 1))
    bounds = bounds.with_noise_column(1)
    assert Bounds.from_dict(bounds.to_dict()) == bounds
    source = scan(np.array([[0.5, 5.0], [0.5, 999.0], [0.5, 99.0]]), y=np.zeros(3))
    concrete, fields = bounds.resolve(source, targets=True)
    weights = concrete.scale(next(iter(source.blocks(fields))))[:, 1]
    assert weights[[0, 2]].tolist() == [0.1, 0.05]
    assert np.isnan(weights[1])


@pytest.mark.parametrize("kind", [["a", "b"], bool, Whole(1, 9), Number(1, 2, keep_missing=True)])
def test_a_column_that_is_no_plain_number_is_refused(kind):
    with pytest.raises(BadInput, match="must be a number, with a range such as"):
        Bounds(x=[(0, 1), kind], y=(0, 1)).with_noise_column(1)


def test_the_column_is_found_by_name_or_position():
    import pandas as pd

    frame = pd.DataFrame(np.zeros((1, 4)), columns=["size", "sd", "weight", "age"])
    bounds, fields = NAMED.with_noise_column("sd").resolve(scan(frame), targets=True)
    assert [field.key for field in fields] == ["age", "size", "sd", "weight"]
    assert bounds.noise_column == NoiseColumn(1, "sd", 0.5, 10.0)
    # bounds by position take the frame's names
    bounds, fields = LISTED.with_noise_column(1).resolve(
        scan(frame[["age", "sd", "size"]], y=np.zeros(1)), targets=True
    )
    assert [field.key for field in fields] == [0, 2, "sd", 3]
    assert (bounds.x_names, bounds.noise_column.name) == (("age", "size"), "sd")
    _, fields = LISTED.with_noise_column(1).resolve(
        scan(np.zeros((1, 3)), y=np.zeros(1)), targets=True
    )
    assert [field.key for field in fields] == [0, 2, 1, 3]


def test_a_column_with_a_name_is_found_by_position_where_there_are_no_names():
    level = NoiseColumn(1, "sd", 0.5, 10.0)
    assert level.field(scan(np.zeros((1, 3))), inputs=2).key == 1
    assert level.field(scan(np.zeros((1, 3))), inputs=3) is None


def test_predictions_need_no_levels():
    import pandas as pd

    frame = pd.DataFrame(np.zeros((1, 2)), columns=["size", "age"])
    bounds, fields = NAMED.with_noise_column("sd").resolve(scan(frame), targets=False)
    assert ([field.key for field in fields], bounds.noise_column) == (["age", "size"], None)
    for width, keys in ((2, [0, 1]), (3, [0, 2])):
        _, fields = LISTED.with_noise_column(1).resolve(scan(np.zeros((1, width))), targets=False)
        assert [field.key for field in fields] == keys
    with pytest.raises(BadInput, match="X has 4 features, but the bounds are for 3"):
        LISTED.with_noise_column(1).resolve(scan(np.zeros((1, 4))), targets=False)


@pytest.mark.parametrize(
    ("bounds", "column", "words"),
    [
        (NAMED, "spread", "'spread' has no bounds.*lower bound above 0.*'age', 'sd', 'size'"),
        (NAMED, 1, "has no bounds"),
        (LISTED, "sd", "has no bounds"),
        (LISTED, 3, "has no bounds"),
        (LISTED, -4, "has no bounds"),
        (LISTED, True, "has no bounds"),
        (NAMED, "age", "lower bound above 0, not 0: .*smallest level"),
        (Bounds(x=[(0, 1), (-1, 1)]), 1, "lower bound above 0, not -1"),
        (Bounds(x=(0.1, 1)), 1, "a range of its own"),
        (Bounds(x=[(0.1, 1)]), 0, "at least one input"),
    ],
)
def test_bounds_without_a_usable_level_are_refused(bounds, column, words):
    with pytest.raises(BadInput, match=words):
        bounds.with_noise_column(column)


def test_a_column_that_the_data_do_not_have_is_refused():
    import pandas as pd

    frame = pd.DataFrame(np.zeros((1, 3)), columns=["size", "age", "weight"])
    with pytest.raises(BadInput, match="no column 'sd'"):
        NAMED.with_noise_column("sd").resolve(scan(frame), targets=True)
    with pytest.raises(BadInput, match="X has 2 features, but the bounds are for 3"):
        LISTED.with_noise_column(1).resolve(scan(np.zeros((1, 2)), y=np.zeros(1)), targets=True)


def test_columns_are_counted_from_either_end():
    three = Bounds(x=[(1, 2), (3, 4), (5, 6)], y=(0, 1))
    for column, at in ((0, 0), (1, 1), (2, 2), (-1, 2), (-2, 1), (-3, 0), (np.int64(-1), 2)):
        apart = three.with_noise_column(column)
        assert (apart.noise_column.at, apart.noise_column.low) == (at, 1 + 2 * at)
        assert apart.x == three.x[:at] + three.x[at + 1 :]


def test_a_refusal_shows_how_levels_are_given():
    with pytest.raises(BadInput, match=r"Bounds\(x=\{\.\.\., 'spread': \(0\.1, 5\)\}"):
        NAMED.with_noise_column("spread")
    with pytest.raises(BadInput, match=r"its position in Bounds\(x=\[\.\.\.\]\)"):
        LISTED.with_noise_column(7)
