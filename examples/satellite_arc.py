"""An operator publishes a satellite's radius over three orbits, but for one arc.

Inferential privacy, not DP.
"""

import tempfile
from pathlib import Path

import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import reticent
from reticent.studies.tuo2023.orbit import orbit

temporary = tempfile.TemporaryDirectory()
folder = Path(temporary.name)
time = np.linspace(0, 3, 61)
radius = orbit(time)[:, 0]  # simulated; yours would be a file of your own
other = orbit(time, perigee=1.15, eccentricity=0.17)[
    :, 0
]  # another satellite, of which nothing is secret

reticent.Ledger(folder / "budget.db").create()  # remembers the one release
# the variance is learned from it, and released; from the arc's own curve it would tell on it
hide = reticent.Obfuscator(
    ConstantKernel(1.0, (1e-8, 1e8)) * RBF(0.1, "fixed"),
    train_on=(
        time,
        other,
    ),
    sensitive=[(1.4, 1.8)],  # an interval: every moment in it, not only some
    share=0.5,  # half of the prior's variance stays
    ledger=str(folder / "budget.db"),
    dataset="orbit",
)
W = hide.obfuscate(time, radius)
print(hide.statement_)
one = hide.certificate_
print(
    f"promised {one.promised:.6f}, attained {one.attained:.6f} at {one.checked:,} points; noise "
    f"within {one.gap:.0e} of the least"
)

mean, sd = hide.predict([0.5, 1.6, 2.5], return_std=True)  # what a reader can conclude
for t, m, s in zip((0.5, 1.6, 2.5), mean, sd, strict=True):
    print(
        f"radius at {t:g} orbits: {m:.3f} ± {2 * s:.3f}, in truth {orbit(np.array([t]))[0, 0]:.3f}"
    )

assert (hide.obfuscate(time, radius) == W).all()  # asked again, the same answer
try:
    hide.set_params(share=0.4).obfuscate(time, radius)
except reticent.BudgetExceeded as refusal:
    print(refusal)
hide.set_params(share=0.5).report(folder / "report.html")
temporary.cleanup()
