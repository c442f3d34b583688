"""The made-up people have to be plausible, or nothing that is shown with them is."""

import csv

import numpy as np
import pytest

from reticent.cli.demo_data import RANGES, mean_weight, people, write_csv


@pytest.fixture(scope="module")
def table():
    return people(40_000, seed=5)


def test_the_same_seed_gives_the_same_people():
    one = people(50, seed=1)
    again = people(50, seed=1)
    other = people(50, seed=2)
    assert all(np.array_equal(one[name], again[name]) for name in RANGES)
    assert not np.array_equal(one["weight"], other["weight"])


def test_columns_and_ranges(table):
    assert list(table) == list(RANGES)
    for name, (low, high) in RANGES.items():
        assert np.mean((table[name] < low) | (table[name] > high)) < 0.002, name
        assert np.isfinite(table[name]).all()
    assert set(table["sex"]) == {0.0, 1.0}


def test_the_mean_weight_is_the_mean_of_weights(table):
    expected = mean_weight(table["age"], table["height"])
    off = table["weight"] - expected
    for low, high in ((0, 5), (5, 15), (15, 40), (40, 70), (70, 104)):
        for tall in (True, False):
            chosen = (table["age"] >= low) & (table["age"] < high)
            chosen &= (table["height"] > np.median(table["height"][chosen])) == tall
            error = off[chosen].std() / np.sqrt(chosen.sum())
            assert np.mean(off[chosen]) == pytest.approx(0, abs=4 * error)
            assert error < 0.02 * expected[chosen].mean()


@pytest.mark.parametrize(
    ("sex", "age", "height", "weight"),
    [
        (0, 0.1, 54, 4.5),
        (0, 1, 76, 9.8),
        (1, 2, 86, 12),
        (0, 5, 110, 18.5),
        (1, 10, 138, 32),
        (1, 13, 157, 46),
        (0, 13, 156, 45),
        (0, 16, 173, 62),
        (0, 25, 177, 76),
        (1, 25, 164, 65),
        (1, 60, 163, 72),
        (0, 80, 174, 79),
    ],
)
def test_medians_are_those_of_growth_charts(sex, age, height, weight):
    table = people(400_000, seed=7)
    near = (table["sex"] == sex) & (np.abs(table["age"] - age) < max(0.04 * age, 0.1) / 2)
    assert near.sum() > 100
    assert np.median(table["height"][near]) == pytest.approx(height, rel=0.03)
    assert np.median(table["weight"][near]) == pytest.approx(weight, rel=0.09)


def test_spread_and_relations(table):
    adult = table["age"] > 25
    men = adult & (table["sex"] == 0)
    assert np.std(table["height"][men]) == pytest.approx(7, abs=1)
    assert 12 < np.std(table["weight"][men]) < 18
    heavy, light = np.quantile(table["weight"][men], [0.95, 0.05]) - np.median(table["weight"][men])
    assert heavy > -1.2 * light  # skewed to the right
    assert 0.3 < np.corrcoef(table["height"][men], table["weight"][men])[0, 1] < 0.6
    assert 0.3 < np.corrcoef(table["age"][adult], table["systolic"][adult])[0, 1] < 0.7
    assert 105 < np.median(table["systolic"][adult & (table["age"] < 40)]) < 122


def test_csv_round_trip(tmp_path):
    table = people(200, seed=9)
    write_csv(table, tmp_path / "p.csv")
    with open(tmp_path / "p.csv", newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == list(table)
    assert np.array_equal(np.array(rows[1:], dtype=float), np.column_stack(list(table.values())))
    with pytest.raises(FileExistsError):
        write_csv(table, tmp_path / "p.csv")
