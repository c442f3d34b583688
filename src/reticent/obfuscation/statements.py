"""Statements of a release: what is promised, against whom, and on which condition."""

from typing import Any

from reticent.reporting.formatting import format_number

__all__ = ["ANOTHER", "UNPROTECTED", "promise_in_words", "statement"]

UNPROTECTED = "curve-unprotected"
ANOTHER = "another curve"
_STATEMENT = (
    "Inferential privacy, NOT differential privacy: to somebody who knows the released values, the "
    "inputs, the mean, the kernel and the noise covariances, and whose knowledge of the function "
    "is this Gaussian process, each sensitive value keeps at least the promised variance. Nothing "
    "is promised against other knowledge, or for other values."
)
_SEEDED = (
    "NOT PRIVATE: the noise was drawn from a seed (random_state), so whoever knows the seed can "
    "take it away again. Use it for tests only."
)
_TRAINED = {
    None: "",
    ANOTHER: (
        " The kernel's hyperparameters, and the mean if it was not given, were learned from "
        "another curve and are released as they are: nothing in that curve is protected, and it "
        "must tell nothing of this one."
    ),
    UNPROTECTED: (
        " CONDITIONAL: the kernel's hyperparameters were learned from the curve itself and are "
        "released as they are. The promise is for a kernel that was fixed beforehand; what the "
        "hyperparameters tell about the sensitive values is NOT counted, and it can be nearly all."
    ),
}
_PROTECTED_VALUES = {
    "weak": "each sensitive value by itself",
    "strong": "every linear combination of the sensitive values",
    "kernel": "every linear combination of the sensitive values",
    "uniform": "every input",
    "diagonal": "each sensitive value by itself, with independent noise",
}


def promise_in_words(model: Any) -> str:
    """The promised variance and the values it is for, for a fitted `Obfuscator`."""
    certificate = model.certificate_
    if model.share:
        promised = f"{format_number(100 * model.share, 3)} % of the prior variance"
    else:
        promised = f"a variance of {format_number(certificate.promised)}"
    words = f"{promised} for {_PROTECTED_VALUES[certificate.solution]}"
    if model.releases > 1:
        words += f", by {model.releases} releases together"
    return words


def statement(trained_on: str | None, releases: int, *, private: bool) -> str:
    """The promise of a release in words, with its conditions."""
    if not private:
        return _SEEDED
    together = ""
    if releases > 1:
        together = f" It is kept by all {releases} planned releases together."
    return _STATEMENT + together + _TRAINED[trained_on]
