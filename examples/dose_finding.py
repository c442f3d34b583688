"""Find a good dose from patients' responses, without any patient being recognisable in what the
others are advised.

Each patient may get one of five doses that suit them; the response is best around 62 mg, less for
heavier people. Run it anywhere: it draws its own patients, and writes dose_finding.png.
"""

import numpy as np
from matplotlib.figure import Figure

import reticent

PATIENTS = 3000
DOSES = 5


def benefit(people):
    dose = people[..., 0]
    weight = people[..., 1]
    return 0.9 * np.exp(-(((dose - 62 + 0.2 * (weight - 70)) / 25) ** 2))


rng = np.random.default_rng(7)
bandit = reticent.JointBandit(
    bounds=reticent.Bounds(x=[(0, 100), (40, 140)], y=(0, 1)),
    horizon=PATIENTS,
    epsilon=2,
    delta=1e-5,
    arms=DOSES,
)
regret = np.zeros(PATIENTS)
chance = np.zeros(PATIENTS)
for i in range(PATIENTS):
    options = np.column_stack([rng.uniform(0, 100, DOSES), np.full(DOSES, rng.normal(75, 12))])
    chosen = bandit.ask(options)  # the advice for this patient, to be shown to this patient only
    bandit.tell(options[chosen], rng.uniform() < benefit(options[chosen]))
    regret[i] = benefit(options).max() - benefit(options[chosen])
    chance[i] = benefit(options).max() - benefit(options).mean()

print(bandit.guarantee_.statement)
print(
    f"lost benefit a patient: {regret.mean():.3f}, with doses at random {chance.mean():.3f}, last "
    f"500: {regret[-500:].mean():.3f}"
)

figure = Figure(figsize=(6, 3.4), layout="constrained")
axes = figure.subplots()
axes.plot(np.cumsum(chance), color="#8b95a3", label="random doses")
axes.plot(np.cumsum(regret), color="#0b4f8a", label="reticent, ε = 2")
axes.set(xlabel="patients", ylabel="benefit lost so far")
axes.spines[["top", "right"]].set_visible(False)
axes.legend(frameon=False)
figure.savefig("dose_finding.png", dpi=150)
