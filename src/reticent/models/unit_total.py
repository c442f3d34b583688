"""Unit total: what a model knows of the total weight of all records before it asks for sums."""

from reticent.inference.inputs.complete_records import UnitTotal
from reticent.privacy.oracle import Oracle

__all__ = ["unit_total"]


def unit_total(oracle: Oracle) -> UnitTotal:
    """Number of units, its noise, and whether each weighs one; public or released."""
    return UnitTotal(oracle.n, oracle.n_sd, oracle.unit.one_each)
