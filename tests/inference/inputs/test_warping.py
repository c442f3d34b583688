"""Warps spread inputs evenly, zoom in, and can be undone."""

import numpy as np
import pytest

from reticent.inference.inputs.density import (
    DENSITY_BINS,
    density_from_counts,
    density_from_moments,
)
from reticent.inference.inputs.warping import (
    compressed_fraction,
    equalizing_warp,
    magnify_interval,
    unwarp,
)

EDGES = np.linspace(-1, 1, DENSITY_BINS + 1)


def moments(x):
    return float(x.mean()), float((x**2).mean())


def test_inputs_are_more_even_after_the_map():
    x = np.random.default_rng(4).normal(-0.7, 0.03, size=10_000).clip(-1, 1)
    density = density_from_counts(
        density_from_moments(*moments(x), 1e-4),
        np.histogram(x, EDGES)[0].astype(float),
        0.1,
        len(x),
    )
    assert np.interp(x, EDGES, equalizing_warp(density)).std() > 5 * x.std()


@pytest.mark.parametrize("part", [(-0.3, 0.1), (-1.0, -0.9), (0.5, 1.0)])
def test_zooming_gives_most_room_to_a_part_and_can_be_undone(part):
    warp = [magnify_interval(EDGES, *part), tuple(EDGES)]
    u = np.random.default_rng(5).uniform(-1, 1, size=(1000, 2))
    natural = unwarp(warp, u)
    assert np.interp(natural[:, 0], EDGES, warp[0]) == pytest.approx(u[:, 0], abs=1e-12)
    assert natural[:, 1] == pytest.approx(u[:, 1], abs=1e-12)
    room = np.diff(np.interp(part, EDGES, warp[0]))[0] / 2
    assert room > 0.85
    assert compressed_fraction(warp) == pytest.approx(
        1 - room, abs=0.08
    )  # parts of bins at both ends
    assert compressed_fraction([tuple(EDGES)] * 2) == 0
