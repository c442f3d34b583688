"""One table of made-up people, and what a seeded fit releases of it, wherever it lies."""

import numpy as np
import pandas as pd

import reticent

BOUNDS = reticent.Bounds(
    x={"age": (0, 110), "sex": ["F", "M"], "visit": reticent.Date("2019-01-01", "2024-12-31")},
    y={"weight": (2, 150)},
)
N = 500


class Everything(reticent.Sum):
    columns = 5
    norm2 = 5

    def rows(self, records):
        return np.column_stack([records, np.ones(len(records))])


def people() -> pd.DataFrame:
    """Made up; some values are missing, some are no numbers of float64 with few digits."""
    rng = np.random.default_rng(26)
    weight = rng.normal(70.0, 15.0, N)
    weight[::7] = np.nan
    sex = rng.choice(["F", "M"], N).astype(object)
    sex[::11] = None
    return pd.DataFrame(
        {
            "id": [f"p{i}" for i in rng.integers(0, 120, N)],
            "age": rng.integers(0, 120, N),
            "sex": pd.Series(sex, dtype="str"),
            "visit": pd.to_datetime("2018-06-01") + pd.to_timedelta(rng.integers(0, 2500, N), "D"),
            "weight": weight,
        }
    )


def released(source, person):
    seed = {"seed": b"one seed for all", "event": reticent.Gaussian(noise_multiplier=2.0)}
    curator = reticent.Curator(source, bounds=BOUNDS, targets=True, person=person, **seed)
    try:
        release = curator.release(Everything())
    finally:
        curator.close()
    return release.value, release.n
