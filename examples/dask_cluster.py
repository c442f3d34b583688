"""Records on a cluster.

Each worker adds up its own, in whole numbers, and the sums are the same as on one machine.

python examples/dask_cluster.py [PICTURE]
"""

import sys
from pathlib import Path

import dask.dataframe as dd
import pandas as pd
from distributed import Client, LocalCluster

import reticent
from reticent.cli.demo_data import people


def main(picture: Path) -> None:
    table = pd.DataFrame(
        people(40_000, seed=11)
    )  # made-up people; yours would be read from where they lie
    bounds = reticent.Bounds(x={"age": (0, 110)}, y={"systolic": (60, 220)})
    options = {"bounds": bounds, "epsilon": 1, "delta": 1e-6, "stages": 6}

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster),
    ):
        parts = dd.from_pandas(table, npartitions=8)
        model = reticent.GPRegressor(**options).fit(
            parts
        )  # records stay with the workers: sums travel
        # Seeds are for tests, and what they touch is not private. Here they show that nothing but
        # the noise is chance.
        there = reticent.GPRegressor(**options, random_state=0).fit(parts)
    here = reticent.GPRegressor(**options, random_state=0).fit(table)
    same = all(
        (a.value == b.value).all() for a, b in zip(here.releases_, there.releases_, strict=True)
    )
    print(
        "Two workers and one machine release "
        f"{'the same numbers, bit for bit' if same else 'DIFFERENT numbers'}."
    )

    mean, sd = model.predict([[30], [70]], return_std=True)
    print(
        f"systolic pressure at 30: {mean[0]:.0f} ± {sd[0]:.1f}, at 70: "
        f"{mean[1]:.0f} ± {sd[1]:.1f} mmHg"
    )
    print(model.guarantee_.statement)
    reticent.plot.curve(model).savefig(picture, dpi=130)
    print(f"Open {picture}.")


if __name__ == "__main__":  # workers are processes that begin by importing this file
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "dask_cluster.png"))
