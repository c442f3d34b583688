"""Real tables by the command line, tried on made-up ones: the package of the real ones is not
needed here."""

import numpy as np
import pandas as pd
import pytest

from reticent.codebook import read_codebook
from reticent.studies.real_tables import exports
from reticent.studies.real_tables.comparison import compare
from reticent.studies.real_tables.exports import EXPORTS


@pytest.mark.parametrize("name", EXPORTS)
def test_every_codebook_can_be_read(name, tmp_path):
    path = tmp_path / "codebook.toml"
    path.write_text(EXPORTS[name].codebook, encoding="utf-8")
    codebook = read_codebook(path)
    assert codebook.kinds
    if EXPORTS[name].options[0] != "table":
        bounds = codebook.bounds()
        assert bounds.y or bounds.classes


def test_rates_by_group_lie_near_the_exact_ones(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    n = 3000
    race = rng.choice(["black", "white"], n)
    frame = pd.DataFrame(
        {
            "job_city": "a",
            "job_industry": "b",
            "race": race,
            "gender": rng.choice(["f", "m"], n),
            "received_callback": (rng.random(n) < np.where(race == "white", 0.3, 0.1)).astype(int),
        }
    )
    monkeypatch.setattr(exports, "rdatasets_frame", lambda *_: frame)
    places = compare("callbacks", tmp_path, epsilon=5.0)
    assert len(places) == 8  # a count and a rate for each of four groups
    assert all(place.distance < 6 for place in places)
    rates = {place.place: place.private for place in places if "rate" in place.place}
    whites = [rate for place, rate in rates.items() if place.startswith("white")]
    others = [rate for place, rate in rates.items() if place.startswith("black")]
    assert min(whites) > max(others)
