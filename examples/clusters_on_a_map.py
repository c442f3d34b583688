"""Where people are, without telling where anybody is.

Private clusters of places, drawn on a map.
"""

import tempfile
from pathlib import Path

import numpy as np

import reticent

# Made-up visits around four cities (longitude, latitude), and some in between.
rng = np.random.default_rng(0)
cities = np.array([[13.4, 52.5], [10.0, 53.5], [11.6, 48.1], [6.9, 50.9]])
visits = cities[rng.choice(4, size=60_000, p=[0.35, 0.15, 0.25, 0.25])] + 0.3 * rng.normal(
    size=(60_000, 2)
)
visits[:2_000] = rng.uniform([6, 47.5], [15, 54.5], size=(2_000, 2))

bounds = reticent.Bounds(x=[(5.5, 15.5), (47.0, 55.0)])  # the country's edges: public
model = reticent.KMeans(4, bounds=bounds, epsilon=0.1, delta=1e-6).fit(visits)
for centre, size, noise in zip(
    model.cluster_centers_, model.cluster_sizes_, model.cluster_sizes_sd_, strict=True
):
    print(f"{centre[0]:6.2f}° E {centre[1]:6.2f}° N  {size:8,.0f} ± {noise:,.0f} visits")

with tempfile.TemporaryDirectory() as folder:
    model.report(Path(folder) / "clusters.html")  # the map is in it; open it in a browser
    print(
        f"A report of {(Path(folder) / 'clusters.html').stat().st_size // 1024} kB; "
        f"{model.guarantee_.statement}"
    )
