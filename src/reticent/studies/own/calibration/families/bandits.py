"""Cells of `JointBandit`: regret in the second half of the rounds, and bands of the reward."""

import inspect

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from reticent.models.bandits.joint import JointBandit
from reticent.privacy.bounds import Bounds
from reticent.studies.own.calibration.cells import FREE, Cell, Family, Trial, grid
from reticent.studies.own.calibration.laws import INPUTS, REWARDS, Rewards, places
from reticent.studies.own.calibration.references import upper_confidence_choices

__all__ = ["FAMILY"]

Array = NDArray[np.float64]
_GIVEN = "JointBandit, kernel given"
_DEFAULT = "JointBandit, default"
_ARMS = 10
_PLACES = 16
_CENTRE = 0.5
_SPREAD = 0.25
_NOISE = 0.1
_WEIGHT = inspect.signature(JointBandit).parameters["exploration_weight"].default
_POINTS = ((1_000, 1.0), (1_000, 10.0), (1_000, 1e3), (1_000, FREE))


def _trial(cell: Cell, rng: np.random.Generator) -> Trial:
    """Play all rounds; regret is relative to that of choosing at random."""
    law = REWARDS[cell.law]
    truths, records, noise = rng.spawn(3)
    function = law.function(truths)
    inputs = INPUTS[law.inputs]
    candidates = inputs.draw(cell.n * _ARMS, records).reshape(cell.n, _ARMS)
    values = function(candidates)
    rewards = law.draw(values, records)
    bandit = _bandit(cell, law, noise)
    chosen = _play(bandit, candidates, rewards)
    at = places(inputs, _PLACES)
    estimate, sd = bandit.posterior_.moments(at[:, None])
    reference = float("nan")
    if cell.epsilon == FREE:
        exact = upper_confidence_choices(
            candidates,
            rewards - _CENTRE,  # priors are around the middle of the range
            constant=_CENTRE,
            spread=_SPREAD,
            noise=0.4 if law.binary else _NOISE,
            length=law.length,
            weight=_WEIGHT,
        )
        reference = _regret(values, exact)
    return Trial(_regret(values, chosen), reference, function(at), estimate, sd)


def _bandit(cell: Cell, law: Rewards, noise: np.random.Generator) -> JointBandit:
    kernel = None
    if cell.model == _GIVEN:
        smooth = ConstantKernel(_SPREAD**2, "fixed") * RBF(law.length, "fixed")
        kernel = smooth + ConstantKernel(_CENTRE**2, "fixed")
    return JointBandit(
        kernel,
        bounds=Bounds(x=[(-INPUTS[law.inputs].half, INPUTS[law.inputs].half)], y=(0.0, 1.0)),
        horizon=cell.n,
        arms=_ARMS,
        epsilon=cell.epsilon,
        delta=0.1 / cell.n,
        random_state=noise,
    )


def _play(bandit: JointBandit, candidates: Array, rewards: Array) -> NDArray[np.intp]:
    """Number of the chosen candidate of each round; rounds between two releases at once."""
    chosen = np.empty(len(candidates), dtype=np.intp)
    begin = 0
    while begin < len(candidates):
        rounds = slice(begin, begin + bandit.until_release_)
        sets = candidates[rounds, :, None]
        chosen[rounds] = bandit.ask(sets, several=True)
        own = np.arange(len(sets)), chosen[rounds]
        bandit.tell(sets[own], rewards[rounds][own])
        begin += len(sets)
    return chosen


def _regret(values: Array, chosen: NDArray[np.intp]) -> float:
    """Mean regret in the second half, in that of choosing at random."""
    later = slice(len(values) // 2, None)
    best = values[later].max(axis=1)
    own = values[later][np.arange(len(best)), chosen[later]]
    return float(np.mean(best - own) / np.mean(best - values[later].mean(axis=1)))


FAMILY = Family(
    "bandits",
    grid("bandits", (_GIVEN, _DEFAULT), REWARDS, _POINTS),
    grid("bandits", (_GIVEN,), ("normal",), ((200, FREE),)),
    _trial,
    "regret in the second half, relative to choosing at random",
    negligible=0.005,
)
