"""Lists of records: one record that is not a list, or of another length, must not change how the others are read."""

import reticent
from tests.attacks.harness import Outcome, attack


@attack("1a", "One label that is missing makes everybody's label missing")
def missing_label() -> Outcome:
    n = 1000
    bounds = reticent.Bounds(x=[(-1, 1)], y=(-1, 1))
    released = []
    for last in ([1.0], None):
        model = reticent.BinnedGPRegressor(bins=1, bounds=bounds, epsilon=1, delta=1e-6, learn_kernel=False)
        model.fit([[0.0]] * n, [[1.0]] * (n - 1) + [last])
        released.append(float(model.sums_[0]))
    moved, sd = abs(released[0] - released[1]), float(model.sums_sd_[0])
    return Outcome(moved > 12 * sd, f"the released sum moves by {moved:.0f}; its noise is {sd:.0f}, one record is 2")
