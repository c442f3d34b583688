"""Gram matrices of rows that have two parts, each with a bound of its own."""

from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np

from reticent.privacy.statistics.partitioned_gram import FixedFeatures, PartitionedGram


@dataclass(frozen=True)
class FirstColumns(FixedFeatures):
    columns = 2
    norm2 = 1

    def rows(self, records):
        return records[:, :2]


@dataclass(frozen=True)
class AllColumns(PartitionedGram):
    residual_columns = 3
    residual_norm2 = 1

    def residuals(self, features, records):
        return records[:, 2:]


def test_only_products_across_the_two_parts_accumulate():
    """In the order of a release: the upper triangle by rows."""
    pairs = combinations_with_replacement(range(5), 2)
    expected = [row < 2 <= column for row, column in pairs]
    assert np.asarray(AllColumns(FirstColumns()).accumulates()).tolist() == expected
