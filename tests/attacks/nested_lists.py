"""Lists of records.

One record that is not a list, or of another length, must not change how the others are read.
"""

import warnings

import reticent
from tests.attacks.harness import Outcome, attack


def _binned(X: list[object], y: list[object]) -> tuple[float, float]:
    """The released sum of the outputs in one bin, and the standard deviation of its noise."""
    bounds = reticent.Bounds(x=[(-1, 1)], y=(-1, 1))
    model = reticent.BinnedGPRegressor(
        bins=1, bounds=bounds, epsilon=1, delta=1e-6, learn_kernel=False
    )
    model.fit(X, y)
    return float(model.sums_[0]), float(model.sums_sd_[0])


def _moved_by(last: object) -> Outcome:
    """How far the released sum moves if the last of 1,000 labels is replaced."""
    n = 1000
    first, sd = _binned([[0.0]] * n, [[1.0]] * n)
    second, _ = _binned([[0.0]] * n, [[1.0]] * (n - 1) + [last])
    moved = abs(first - second)
    figure = f"the released sum moves by {moved:.0f}; its noise is {sd:.0f}, one record is 2"
    return Outcome(moved > 12 * sd, figure)


@attack("1a", "One label that is missing makes everybody's label missing")
def missing_label() -> Outcome:
    return _moved_by(None)


@attack("1a", "One label that is a bare number makes everybody's label missing")
def bare_label() -> Outcome:
    return _moved_by(1.0)


def _fails(X: list[object], y: list[object]) -> bool:
    """Whether a fit refuses these records, or warns of them."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            _binned(X, y)
        except (reticent.ReticentError, Warning):
            return True
    return False


@attack("1a", "One row of X that is missing, ragged or a bare number makes the fit refuse")
def odd_row() -> Outcome:
    odd = {"missing": None, "ragged": [0.0, 1.0], "empty": [], "bare": 0.0, "text": "x"}
    rows: list[object] = [[0.0]] * 99
    refused = [name for name, row in odd.items() if _fails([*rows, row], [[1.0]] * 100)]
    figure = (
        f"of {len(odd)} odd rows {len(refused)} make the fit refuse, where an ordinary row does not"
    )
    return Outcome(bool(refused), figure)


@attack("1a", "One row of y that is ragged makes the fit refuse")
def odd_label() -> Outcome:
    odd = {"ragged": [0.0, 1.0], "empty": []}
    labels: list[object] = [[1.0]] * 99
    refused = [name for name, row in odd.items() if _fails([[0.0]] * 100, [*labels, row])]
    figure = (
        f"of {len(odd)} odd labels {len(refused)} make the fit refuse, where "
        "an ordinary label does not"
    )
    return Outcome(bool(refused), figure)
