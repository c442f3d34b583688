"""Tuo and Bhattacharya, Fig 3 and its supplement.

An arc of a satellite's orbit hidden, in radius, angle and velocities. The orbit is simulated here:
two bodies, with the flattening of the Earth (J₂) and drag, in the plane of the orbit. Time is in
orbits and length in Earth radii. 61 points on [0, 3], correlation exp(−200 t²), mean and variance
by maximum likelihood (from the orbit of another satellite, for the hidden one's own would tell on
it), H = share·K.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from reticent.obfuscation.obfuscator import Obfuscator
from reticent.studies.common.figures import Band, Line, Panel, draw
from reticent.studies.common.results import Claim, Findings, Progress, ResultTable, Value

__all__ = ["NAMES", "orbit", "run"]

NAMES = ("radius", "angle", "radial velocity", "angular velocity")
_ARC = (1.4, 1.8)
_J2 = 1.0826e-3
_DRAG = 1e-4
# Earth radii
_PERIGEE = 1.1
_ECCENTRICITY = 0.2


def orbit(
    t: NDArray[np.float64], *, perigee: float = _PERIGEE, eccentricity: float = _ECCENTRICITY
) -> NDArray[np.float64]:
    """Radius, angle (less its mean motion) and their rates, at times in orbits.

    One column for each.
    """
    axis = perigee / (1 - eccentricity)
    mu = (2 * np.pi) ** 2 * axis**3  # so that an orbit takes one unit of time

    def rates(_: float, state: NDArray[np.float64]) -> list[float]:
        r, _, v, w = state
        pull = mu / r**2 * (1 + 1.5 * _J2 / r**2)
        return [v, w, r * w**2 - pull - _DRAG * v, -2 * v * w / r - _DRAG * w]

    speed = np.sqrt(mu * (1 + eccentricity) / perigee) / perigee
    found = solve_ivp(
        rates, (0, float(t.max())), [perigee, 0.0, 0.0, speed], t_eval=t, rtol=1e-10, atol=1e-10
    )
    states = np.asarray(found.y.T)
    states[:, 1] -= 2 * np.pi * t
    return states


def run(out: Path, *, repeats: int, quick: bool, seed: int, progress: Progress) -> Findings:
    """Hide the arc in each of the four curves, with two shares."""
    t = np.linspace(0, 3, 61)
    fine = np.linspace(0, 3, 301)
    raw = orbit(t)
    truth = orbit(fine)
    other = orbit(t, perigee=1.15, eccentricity=0.17)
    names = NAMES[:1] if quick else NAMES
    shares = (0.1, 0.5)
    inside = (fine >= _ARC[0]) & (fine <= _ARC[1])
    far = (fine < _ARC[0] - 0.2) | (fine > _ARC[1] + 0.2)
    records: list[dict[str, Value]] = []
    panels = []
    total = len(names) * len(shares)
    for i, name in enumerate(names):
        row = []
        for j, share in enumerate(shares):
            progress(i * len(shares) + j, total, f"{name}, H = {share:g}K")
            model = Obfuscator(
                ConstantKernel(1.0, (1e-8, 1e8)) * RBF(0.05, "fixed"),
                sensitive=[_ARC],
                share=share,
                solution="kernel",
                train_on=(t, other[:, i]),
                random_state=seed + 100 * i + j,
            )
            model.obfuscate(t, raw[:, i])
            mean, sd = model.predict(fine, return_std=True)
            prior = float(np.sqrt(model.kernel_.k1.constant_value))
            records.append(
                {
                    "curve": name,
                    "share": share,
                    "ratio": model.certificate_.ratio,
                    "least_sd_inside": float(sd[inside].min()) / prior,
                    "error_inside": float(np.sqrt(((mean - truth[:, i])[inside] ** 2).mean()))
                    / prior,
                    "error_far": float(np.sqrt(((mean - truth[:, i])[far] ** 2).mean())) / prior,
                    "converged": model.certificate_.converged,
                }
            )
            parts: list[Line | Band] = [
                Band("± 2 sd", fine, mean - 2 * sd, mean + 2 * sd),
                Line("truth", truth[:, i].tolist(), fine.tolist(), colour="truth"),
                Line(
                    "hidden arc", truth[inside, i].tolist(), fine[inside].tolist(), colour="paper"
                ),
                Line(
                    "released",
                    model.released_.tolist(),
                    t.tolist(),
                    colour="dots",
                    style="",
                    marker=".",
                ),
            ]
            row.append(
                Panel(f"{name}, H = {share:g}K", parts, {"xlabel": "orbits", "ylabel": name})
            )
        panels.append(row)
    rows = [
        (
            str(r["curve"]),
            f"{r['share']:g}",
            f"{r['least_sd_inside']:.3f}",
            f"{r['error_inside']:.3f}",
            f"{r['error_far']:.4f}",
        )
        for r in records
    ]
    head = ("curve", "share", "least sd inside", "error inside", "error elsewhere")
    claims = [
        Claim(
            "the promise is kept on the whole arc",
            f"smallest ratio {min(float(r['ratio']) for r in records):.6f}",
            all(float(r["ratio"]) >= 1 for r in records),
        ),
        Claim(
            "away from the arc the curve is as good as known: error below 2 % "
            "of the prior's spread",
            f"largest {max(float(r['error_far']) for r in records):.4f}",
            all(float(r["error_far"]) < 0.02 for r in records),
        ),
    ]
    return Findings(
        "A satellite's orbit with one arc hidden",
        records,
        [ResultTable("In units of the prior's standard deviation", head, rows, 2)],
        [] if quick else claims,
        [
            "Inferential privacy, not differential privacy. The larger share hides more; the "
            "paper's text has the two swapped. Each curve is hidden by itself: radius and velocity "
            "of one satellite follow from each other by physics, which a Gaussian process for each "
            "does not know."
        ],
        [draw(out / "orbit.png", panels)],
    ).write(out)
