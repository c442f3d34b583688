"""Changes of the trusted core that are no faults: (the line, the changed line) and the reason, for `tests/mutation.py`."""

_SHORTER = "q = np.trunc(q * (factor * (1 - 2.0**-40))[:, None])"
_MARGIN = "The margin must be above the rounding of a square root and a product, 2^-50, and far below a step: any such will do."
_BEYOND = "q[~_inside(q, limit2, limit1)] = 0.0  # cannot happen, and is not left to that"
_NEVER = "Never reached, as statistic.md proves: it stands there for the day the proof is wrong."

EQUIVALENT: dict[str, dict[tuple[str, str], str]] = {
    "grid.py": {
        (_SHORTER, _SHORTER.replace("-40", "- 41")): _MARGIN,
        (_SHORTER, _SHORTER.replace("-40", "- 39")): _MARGIN,
        (_BEYOND, _BEYOND.replace("0.0", "1.0")): _NEVER,
        (_BEYOND, _BEYOND.replace("0.0", "-1.0")): _NEVER,
    },
}
