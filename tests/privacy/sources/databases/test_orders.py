"""A protected value may decide in which order a query gives its rows: that must tell nothing.

A query may sort by what is protected, and a database's plan may do so unasked. Then one record,
replaced, moves all others: nothing that is released may hang on where a record stands.
"""

import numpy as np
import polars as pl
import pytest

import reticent
from reticent.models.selection.scoring import release_mean_score
from tests.privacy.sources.databases.conftest import BOUNDS, EVENT, Inputs

ROWS = [(float(i % 10), float(i % 7)) for i in range(500)]


@pytest.fixture
def sorted_query(sqlite_database):
    """A table of 500 people, as two queries give it: by a column upward, and downward."""
    sqlite_database.run("CREATE TABLE people (a double precision, b double precision)")
    values = ", ".join(map(str, ROWS))
    sqlite_database.run(f"INSERT INTO people VALUES {values}")

    def scan(order):
        query = f"SELECT a, b FROM people ORDER BY b {order}, a"
        return reticent.scan(sqlite_database.address, query=query)

    return scan


class PlaceInItsBlock:
    """A fitted model whose predictions depend, exaggerated, on the place in the block."""

    def predict(self, X):
        return X[:, 0] + 1e-3 * np.arange(len(X))


@pytest.mark.parametrize("mean", ["clipped", "robust"])
def test_scores_of_a_search_do_not_tell_in_which_order_records_came(sorted_query, mean):
    scores = []
    for order in ("ASC", "DESC"):
        event = reticent.Gaussian(noise_multiplier=1.0, count=12)
        curator = reticent.Curator(
            sorted_query(order), bounds=BOUNDS, event=event, targets=True, seed=b"orders"
        )
        scores.append(release_mean_score(PlaceInItsBlock(), curator, "absolute", mean).score)
        curator.close()
    assert scores[0] == scores[1]


def test_public_inputs_do_not_tell_the_order_of_protected_labels(sorted_query):
    """Labels of two records exchanged: a query that sorts by them gives inputs in another order."""
    seen = []

    def design(unit):
        seen.append(unit)
        return Inputs()

    for order in ("ASC", "DESC"):
        curator = reticent.Curator(
            sorted_query(order), bounds=BOUNDS, event=EVENT, targets=True, relation="label"
        )
        curator.release_given_inputs(design)
        curator.close()
    one, other = seen
    assert one.tobytes() == other.tobytes()
    assert np.sort(one[:, 0]) == pytest.approx(sorted(a / 5 - 1 for a, _ in ROWS))


def test_weights_beside_public_inputs_do_not_tell_the_order_of_labels(tmp_path):
    """A file that was written in the order of its labels, one of which is another."""
    seen = []

    def design(unit, weights):
        seen.append((unit.tobytes(), weights.tobytes()))
        return Inputs()

    for labels in ([1.0, 2.0, 3.0], [3.0, 1.0, 2.0]):
        rows = sorted(zip(labels, [1.0, 5.0, 9.0], [0.5, 1.0, 0.25], strict=True))
        frame = pl.DataFrame(rows, schema=["b", "a", "w"], orient="row")
        frame.write_parquet(tmp_path / "people.parquet")
        curator = reticent.Curator(
            reticent.scan(tmp_path / "people.parquet"),
            bounds=BOUNDS,
            event=EVENT,
            targets=True,
            relation="label",
            weight="w",
            weight_bound=1.0,
        )
        curator.release_given_inputs(design)
        curator.close()
    assert seen[0] == seen[1]
    assert sorted(np.frombuffer(seen[0][1])) == [0.25, 0.5, 1.0]
