"""One object without a ledger, asked for the same curve in other words.

Fresh noise can be averaged away.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import RBF

import reticent
from tests.attacks.harness import Outcome, attack

Array = NDArray[np.float64]
T = np.linspace(0, 1, 41)
Y = np.sin(6 * T)
HIDDEN = slice(16, 21)  # records in the sensitive region
PROMISED = 0.5


def new() -> reticent.Obfuscator:
    return reticent.Obfuscator(
        RBF(0.2, "fixed"), sensitive=[(0.4, 0.5)], variance=PROMISED, mean=0.0
    )


def averaged(draws: Iterable[Array]) -> Outcome:
    """What the mean of all answers is off by, where the truth is sensitive."""
    answers = np.array(list(draws))
    distinct = len(np.unique(answers[:, HIDDEN], axis=0))
    error = float(np.sqrt(((answers.mean(axis=0) - Y)[HIDDEN] ** 2).mean()))
    figure = (
        f"{len(answers)} questions, {distinct} draws; their mean is off by {error:.2f}, promised "
        f"sd {PROMISED**0.5:.2f}"
    )
    return Outcome(distinct > 1, figure)


@attack("8b", "The same records in 40 orders")
def orders() -> Outcome:
    hide = new()

    def asked(turn: int) -> Array:
        order = np.roll(np.arange(41), turn)
        answer = np.empty(41)
        answer[order] = hide.obfuscate(T[order], Y[order])
        return answer

    return averaged(asked(turn) for turn in range(40))


@attack("8b", "The same records with −0.0 for 0.0")
def minus_zero() -> Outcome:
    hide = new()
    other = T.copy()
    other[0] = -0.0
    return averaged(hide.obfuscate(x, Y) for x in (T, other))


@attack("8b", "The same curve, each time without one of its records")
def one_left_out() -> Outcome:
    hide = new()

    def asked(out: int) -> Array:
        left = np.delete(np.arange(41), out)
        answer = Y.copy()
        answer[left] = hide.obfuscate(T[left], Y[left])
        return answer

    return averaged(asked(out) for out in (*range(8), *range(30, 41)))


@attack("8b", "The same curve with inputs moved by 10⁻¹²")
def moved() -> Outcome:
    hide = new()
    return averaged(hide.obfuscate(T + turn * 1e-12, Y) for turn in range(20))


@attack("8b", "What lies left of the sensitive value, and what lies right of it, in two questions")
def two_halves() -> Outcome:
    kernel = RBF(0.2, "fixed")
    at = np.array([[0.5]])
    hide = reticent.Obfuscator(kernel, sensitive=[0.5], variance=0.05, mean=0.0)
    halves = [T[T < 0.49], T[T > 0.51]]
    noise = []
    for half in halves:
        hide.obfuscate(half, np.sin(6 * half))
        noise.append(hide.covariance_)
    x = np.concatenate(halves)[:, None]
    a = kernel(x)
    size = len(noise[0])
    a[:size, :size] += noise[0]
    a[size:, size:] += noise[1]
    cross = kernel(x, at)[:, 0]
    variance = float(1 - cross @ np.linalg.solve(a, cross))
    return Outcome(
        variance < 0.05 * (1 - 1e-6), f"promised 0.05, the two releases leave {variance:.1e}"
    )
