"""Labels only: salaries by age.

Ages are public here (a staff list), salaries are not; the curve and its band are released.

python examples/labels.py [PICTURE]
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

import reticent

temporary = tempfile.TemporaryDirectory()
folder = Path(temporary.name)
if len(sys.argv) > 1:
    picture = Path(sys.argv[1])
else:
    picture = folder / "salaries.png"

rng = np.random.default_rng(1)  # made-up staff; yours would be a file of your own
age = rng.integers(20, 66, size=400)
salary = 24_000 + 1_500 * (age - 20) - 15 * (age - 20) ** 2 + rng.normal(0, 7_000, size=400)
(folder / "staff.csv").write_text(
    "age,salary\n" + "\n".join(f"{a},{s:.0f}" for a, s in zip(age, salary, strict=True))
)

bounds = reticent.Bounds(x={"age": (18, 68)}, y={"salary": (0, 150_000)})

# Promised to the staff: their salaries. An account for labels is never mixed with
# one for whole records.
ledger = reticent.Ledger(folder / "budget.db")
ledger.open("salaries", epsilon=2, delta=1e-5, relation="label")

model = reticent.LabelGPRegressor(
    bounds=bounds, epsilon=1, delta=1e-6, ledger=str(folder / "budget.db"), dataset="salaries"
)
model.fit(folder / "staff.csv")  # charged before the first record is read
model.save(folder / "salaries.reticent")

again = reticent.load(folder / "salaries.reticent")  # rebuilt from the releases alone
for at in (25, 35, 45, 55):
    mean, std = again.predict([[float(at)]], return_std=True)
    print(f"age {at}: {mean[0]:8,.0f} ± {std[0]:,.0f}")
print(again.guarantee_.statement)
print(f"Spent ε = {ledger.spent('salaries'):.3f}, left ε = {ledger.remaining('salaries'):.3f}")
reticent.plot.curve(again).savefig(picture)
print(f"Picture: {picture}")
temporary.cleanup()
