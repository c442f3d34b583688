"""An audit that attacks one statistic, or too few releases, calls a program right that is wrong."""

from contextlib import contextmanager
from unittest import mock

from reticent.auditing import attack as audits
from reticent.privacy import noise
from reticent.privacy.curator import Curator
from tests.attacks.harness import Outcome, attack

PROMISE = {"epsilon": 1.0, "delta": 0.05}  # what the command attacks unless told otherwise
DRAW = noise._attempts
RELEASE = Curator.release


def half_the_noise(*args):
    return DRAW(*args) // 2


@contextmanager
def half_in_later_stages():
    """Releases about residuals of an earlier fit have half the noise that they state."""

    def release(self, statistic, **options):
        later = any(any(weights) for weights in getattr(statistic, "weights", ()))
        with mock.patch.object(noise, "_attempts", half_the_noise if later else DRAW):
            return RELEASE(self, statistic, **options)

    with mock.patch.object(Curator, "release", release):
        yield


def quick_verdicts(name, times):
    """What ``reticent audit NAME --quick`` says, by the interface of either version."""
    if hasattr(audits, "QUICK"):
        findings = audits.audit([name] * times, **PROMISE, effort=audits.QUICK)
    else:
        runs = {"runs": audits.QUICK_RUNS, "advance": lambda steps: None}
        findings = audits.audit([name] * times, **PROMISE, **runs)
    return [one.verdict for one in findings]


@attack("11", "The audit misses a model that adds half the noise in its later stages")
def later_stages() -> Outcome:
    with half_in_later_stages():
        [verdict] = quick_verdicts("gp", 1)
    return Outcome(
        verdict == "holds", f"half the noise in all stages of gp but the first: {verdict}"
    )


@attack("11", "A quick audit says that a promise holds with half the noise in everything")
def everything() -> Outcome:
    times = 5
    with mock.patch.object(noise, "_attempts", half_the_noise):
        verdicts = quick_verdicts("mean", times)
    caught = sum(one in ("BROKEN", "violated") for one in verdicts)
    return Outcome(
        caught < times,
        f"half the noise in all releases of mean: found by {caught} of {times} audits",
    )
