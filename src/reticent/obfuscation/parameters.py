"""Parameters of an obfuscation, as far as they can be checked without a curve or a kernel.

Nothing heavy is imported here: the command line refuses a wrong option at once.
"""

import math

from reticent.errors import BadInput, BudgetExceeded
from reticent.validation import as_float, check_choice, is_integer

__all__ = ["SOLUTIONS", "check_parameters", "check_release_number"]

SOLUTIONS = ("weak", "strong", "kernel", "uniform", "diagonal")
_OF_KERNELS = ("kernel", "uniform")  # that hide a whole covariance function


def check_parameters(
    *,
    variance: object,
    share: object,
    solution: object,
    noise: object,
    everywhere: bool,
    releases: object,
    ledger: str | None,
    dataset: str | None,
) -> None:
    """Refuse what cannot be promised, whatever the curve is.

    ``variance`` and ``noise`` that are no plain numbers (arrays, kernels) are left to those who
    know the curve. ``everywhere``: all values are sensitive.
    """
    check_choice("solution", solution, SOLUTIONS)
    if (variance is None) == (share is None):
        raise BadInput(
            "Promise either a variance or a share of the prior's variance: "
            "give variance=… or share=…."
        )
    if share is not None and not 0 < as_float(share) < 1:
        raise BadInput(
            f"share must be above 0 and below 1, not {share!r}: it is the share of the "
            "prior's variance that stays.",
            parameter="share",
        )
    if isinstance(variance, (int, float)) and not 0 < as_float(variance) < math.inf:
        raise BadInput(
            f"variance must be a positive number, not {variance!r}: it is what sensitive values "
            "keep, in the output's unit squared.",
            parameter="variance",
        )
    if isinstance(noise, (int, float)) and not as_float(noise) >= 0:
        raise BadInput(
            f"noise is a standard deviation and cannot be {noise:g}: give 0, or a positive number.",
            parameter="noise",
        )
    if everywhere != (solution == "uniform"):
        raise BadInput('solution="uniform" and sensitive="everywhere" go together.')
    if solution in _OF_KERNELS and share is None and isinstance(variance, (int, float)):
        raise BadInput(f"solution={solution!r} needs share=…, or a kernel as the variance.")
    if (ledger is None) != (dataset is None):
        raise BadInput(
            "Give both ledger=… and dataset=…, or neither: a release is remembered by its data "
            "set's name."
        )
    if not is_integer(releases):
        raise BadInput(
            f"releases must be a whole number, 1 or more, not {releases!r}: how many are planned.",
            parameter="releases",
        )


def check_release_number(number: int, releases: int) -> None:
    """Refuse a release that was not planned, before anything is read."""
    if not is_integer(number):
        raise BadInput(
            f"number says which of the planned releases is meant: 1, 2, …, not {number!r}.",
            parameter="number",
        )
    if number > releases:
        planned = f"{releases} are"
        if releases == 1:
            planned = "1 is"
        raise BudgetExceeded(
            f"Release number {number} was asked for, and {planned} "
            "planned (releases=…): one more would break the "
            "promise that all of them keep together. Nothing was read. Plan all releases before "
            "the first one: each then has more noise."
        )
