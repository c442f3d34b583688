"""A first release: public bounds, a budget, a private mean, a file, and what it promises."""

import tempfile
from pathlib import Path

import reticent
from reticent.cli.demo_data import people, write_csv

temporary = tempfile.TemporaryDirectory()
folder = Path(temporary.name)
write_csv(
    people(5_000, seed=1), folder / "people.csv"
)  # made-up people; yours would be a file of your own

# What is public about one record: from the codebook or common knowledge, never from the data.
bounds = reticent.Bounds(x={"age": (0, 110), "height": (40, 220), "weight": (2, 150)})

# What the people in the data were promised, in all: the cap never changes.
ledger = reticent.Ledger(folder / "budget.db")
ledger.open("people", epsilon=3, delta=1e-5)

model = reticent.PrivateMean(
    bounds=bounds, epsilon=1, delta=1e-6, ledger=str(folder / "budget.db"), dataset="people"
)
model.fit(reticent.scan(folder / "people.csv"))  # charged before the first record is read
model.save(folder / "mean.reticent")

again = reticent.load(folder / "mean.reticent")  # rebuilt from the release alone: it needs no data
for name, mean, noise in zip(bounds.x_names, again.mean_, again.mean_sd_, strict=True):
    print(f"{name:<8} {mean:7.2f} ± {noise:.2f}")
print(again.guarantee_.statement)
print(f"Spent ε = {ledger.spent('people'):.3f}, left ε = {ledger.remaining('people'):.3f}")
temporary.cleanup()
