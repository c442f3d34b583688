"""Changes of the trusted core that are no faults: (the line, the changed line) and the reason, for `tests/mutation.py`."""

from tests.equivalent_paid import BOTH, BRACKET, CHARGED, DOUBLED, LENGTH, OTHERWISE, PAID, no_faults
from tests.equivalent_read import READ

_SHORTER = "q = np.trunc(q * (factor * (1 - 2.0**-40))[:, None])"
_MARGIN = "The margin must be above the rounding of a square root and a product, 2^-50, and far below a step: any such will do."
_BEYOND = "q[~_inside(q, limit2, limit1)] = 0.0  # cannot happen, and is not left to that"
_NEVER = "Never reached, as statistic.md proves: it stands there for the day the proof is wrong."
_CELL = "cells = np.where(cells > 0, np.minimum(cells, np.array(self.groups) - 1.0), 0.0)  # NaN > 0 is false"
_BLOCK = "return max(64, min(_CACHE // self.columns, 2**26))"
_SMALLER = "A block has at most 2^17 rows already: the second limit stands there for the day the first one grows."
_RESHAPED = "low, high = np.array(self.x + self.y).reshape(-1, 2).T"
_SAME = "same = 4 * b if b >= 2 * c else 2 * b + 2 * c - (-b * b // (2 * c))"
_LARGE = 'columns = whole(f"{who[1]}.columns", statistic.columns, 1, 10**6)'
_SQUARE = "The last condition holds d below 31,623 already."

_NOWHERE = "return np.where(known, place, -1.0).astype(np.int64)"
_KNOWN = "known = (place >= 0) & (place < self.cells)  # not so for NaN"
_PLACED = "inside = np.flatnonzero(places >= 0)"
_FULL = "if self._added == _SPILL:"
_SOONER = (
    "The total moves on to unbounded integers sooner (or one block later, with half of int64 still free): the same sum."
)
_BEGUN = "self._narrow, self._added = None, 0"

_SLOPES = "most, least = _ends(linear - 2 * sums, np.diag(matrix), low, high)"
_LARGEST = "largest = float(np.abs(linear).max() + 2 * np.abs(matrix).max() * high * n) * high"
_ALIKE = "For counts high is 1; in a range that is symmetric nothing cancels, and the share of the result is enough."
_FEWER = "The margin for rounding is thousands of times what is lost: twice or half of it will do."
_SMALL = "small = mu < 1"
_EITHER = "Near 1 both ways to compute it agree to fifteen digits."
_MATRIX = "bits, up = -math.frexp(step)[1] + 1, _BITS - math.frexp(float(np.abs(self.matrices).max()) or 1.0)[1]"
_NONE = "Only where there is no matrix: one bit more or less of the other numbers."
_FORM = "_Form(*(np.rint(np.ldexp(part, by)) for part, by in zip(one, (up, up + bits, up + 2 * bits), strict=True)))"
_MATCHED = "for one in zip(symmetric, self.linear, self.constants, strict=True)"
_BESIDE = "number = np.where(np.eye(len(matrix), dtype=bool), np.maximum(counts - 1, 0), counts)"

_PAIRED = [
    "shared = sum((c * u for c, u in zip(back, past, strict=True)), start=fresh * 0)",
    "c = -(-sum(w * p for w, p in zip(self.weights, powers, strict=True)) >> SHIFT)  # rounded up",
    "powers = [-(-d * p >> SHIFT) for d, p in zip(self.decays, powers, strict=True)]",
    "lost = sum(w * min(steps, _ONE // (_ONE - d) + 1) for w, d in zip(self.weights, self.decays, strict=True))",
    "shared = sum((w * b for w, b in zip(self.weights, buffers, strict=True)), start=fresh * 0)",
    "memory[:] = [total + own, *((d * b >> SHIFT) + own for d, b in zip(self.decays, buffers, strict=True))]",
]
_LEVEL = "level = (step & -step).bit_length() - 1"
_KEYED = 'bits = Bits(None if self._seed is None else self._seed + b" step %d" % step)'
_OWN = "exact = self._total + np.zeros(statistic.size, dtype=object)"
_ENDS = (
    "y = np.concatenate([[-np.inf], (knots + eps) / mu + mu / 2, [np.inf]])  # where the likelihood ratio passes a knot"
)
_SUMMED = "return float(np.maximum(terms, 0.0).sum() * (1 + _SAFE) + 1e-12 * doubt.sum())"
_SOLVED = "eps = float(brentq(excess, 0.0, high, xtol=1e-14, rtol=8.9e-16))"
_TAKEN = "own = fresh - (self.back * memory[0] >> SHIFT) if memory else fresh"
_EVEN = "x = np.linspace(0.0, 1.0, _CELLS + 1)"
_RATIO = "ratio = (1 - event.stop) / event.stop"
_SLOPE = "slope = np.concatenate([[height[0] / t[0]], np.diff(height) / np.diff(t), [expected_runs(event)]])"
_WHATEVER = "Other cells: the bound holds whatever they are, and is as tight."
_LOGARITHM = (
    "exact = math.exp(brentq(lambda log: math.log(-math.expm1(log) / math.exp(log) / -log / runs), -14, -1e-9))"
)
_RANKS = "u = np.unique(np.clip(np.concatenate([u, ndtr(np.linspace(-14, 14, _CELLS // 4))]), 0.0, 1.0))"
_UNEVEN = "u = np.expm1(x * math.log1p(ratio)) / ratio if ratio > 0 else x"
_HEIGHT = "height = np.array([max(float((one * w - against).max()), 0.0) for one in t])"
_SPREAD = "knots = np.linspace(least, least + max(4 * -least, 1.0), _KNOTS)"
_NAMED = "self._fit, self.made, self.rows = secrets.token_hex(8), 0, 0"
_APART = "self._sum = exact if self._correlation.running else 0"
_ENOUGH = "while selection_epsilon(Selection(1, multiplier, shape, stop, most), delta) > eps:"
_TOTAL = "return selection_epsilon(Selection(1, math.exp(log), shape, stop, most), delta)"
_NOT_LOOKED_AT = "`selection_epsilon` does not look at the count."
_SHORT = "short = ((total < one) & (total > 0)).nonzero()[0]"
_PICKED = "chosen = some if 2 * len(some) <= g.size else None  # else picking rows out takes longer"
_SOME = "some = (g.ravel() > 0).nonzero()[0]"
_PARTED = "weighted, u = (None, self.rows) if self.chosen is None else hold(slice(None))"
_EVERYBODY = "seconds[0 if self.together else k] += _second(self.second, weighted, u).astype(np.int64)"
_OVER = "g[:, over], total[over] = 0.0, 0.0  # does not happen to responsibilities: too many shares, or not numbers"
_PIECE = "size = -(-rows // -(-rows // most)) if rows else 1"
_ABREAST = "many = max(1, _LOOP // max(1, len(scale)))"
_CONTIGUOUS = "whole = len(u) - len(u) % many if values.flags.c_contiguous else 0"
_LEFT = "NumPy takes any negative number for the length that is left."
_FASTER = "How many rows are picked out: zeros add nothing."


_HUGE = "_HUGE = 1e150  # ranges up to here scale without overflow or subnormal numbers"
_OUTPUTS = 'y_names, y_ranges, _ = _ranges("y", y) if y is not None else (None, (), False)'
_ONE_RANGE = 'x: Any = tuple(fields["x"][0]) if fields["same"] else given(fields["x"], fields["x_names"])'
_ONE_NAME = 'classes = {fields["y_names"][0]: classes}'

EQUIVALENT: dict[str, dict[tuple[str, str], str]] = {
    **PAID,
    **READ,
    "grid.py": no_faults(
        (_SHORTER, _MARGIN, ("40", " 41"), ("40", " 39")),
        (_BEYOND, _NEVER, ("0.0", "1.0"), ("0.0", "-1.0")),
    ),
    "bounds.py": no_faults(
        (_HUGE, "The same number.", ("1e150", "1e+150")),
        (_OUTPUTS, "It is not looked at.", ("False", "True")),
        (_ONE_RANGE, "There is one.", ("0", " -1")),
        (_ONE_NAME, "There is one.", ("0", " -1")),
        ("moved = u[some].reshape(-1, length)", _LEFT, ("1", " 2")),
        ("np.subtract(values[some].reshape(-1, length), middle[:length], out=moved)", _LEFT, ("1", " 2")),
        (
            _ABREAST,
            "How many records one loop goes over.",
            ("//", "*"),
            ("x(1, _", "x( 2, _"),
            ("x(1, l", "x( 2, l"),
            ("x(1, l", "x( 0, l"),
        ),
        (_CONTIGUOUS, "None abreast: a negative end that is further away than the beginning.", ("%", "*")),
        (
            _CONTIGUOUS,
            "A copy is made, or none: the same numbers.",
            ("values.flags.c_contiguous", "not values.flags.c_contiguous"),
        ),
        (_RESHAPED, _LEFT, ("1", " 2")),
    ),
    "celled.py": no_faults(
        (_NOWHERE, "Any negative number is no cell.", ("1.0", " 2.0")),
        (_KNOWN, "−1 stays −1, which is no cell.", ("0", "-1")),
        (_PLACED, "What is in no cell is all zeros by then, and rows are zeros to begin with.", ("0", "-1")),
    ),
    "exponential.py": no_faults(
        (_SLOPES, "The others' sums lie in a symmetric range, or a record cannot move its cell.", ("-", "+")),
        (_LARGEST, _ALIKE, ("() * hi", "() / hi"), ("n) * hi", "n) / hi")),
        (_LARGEST, _FEWER, ("2", "3"), ("2", "1")),
        (_SMALL, _EITHER, ("<", "<="), ("1", "2")),
        (_MATRIX, _NONE, ("1.0", "2.0"), ("1.0", "0.0")),
        (_FORM, "There are three of either.", ("True", "False")),
        (_MATCHED, "`check_scores` asked for as many of each.", ("True", "False")),
        (_BESIDE, "Only in cells without a record, which move nothing.", ("0", "-1")),
    ),
    "sums.py": no_faults(
        (_PIECE, "Of no rows there are no pieces.", ("1", "2")),
        (_FULL, _SOONER, ("==", "!="), ("self._added", "not self._added")),
        ("self._added += 1", _SOONER, ("1", "2")),
        (_BEGUN, _SOONER, ("0", "1"), ("0", "-1")),
    ),
    "stream.py": no_faults(
        *((line, "The constructor asked for as many of each.", ("True", "False")) for line in _PAIRED),
        (_PAIRED[1], "It is squared.", ("-(", "+(")),
        (_LEVEL, "−2^level has as many binary digits as 2^level.", ("&", "|")),
        (_LEVEL, "Two levels below the first, which stay empty.", ("- ", "+ ")),
        (_LEVEL, "One level below the first, which stays empty.", ("1", "0")),
        (_KEYED, OTHERWISE, ("% ", "* ")),
        (_TAKEN, "It remembers one noise.", ("0", " -1")),
        (_NAMED, LENGTH, ("8", " 7"), ("8", " 9")),
        (_APART, "Only running sums look at it.", ("0", "1"), ("0", "-1")),
        (_OWN, "Less zeros.", ("+", "-")),
        (CHARGED, BOTH, ("and", "or")),
    ),
    "selection.py": no_faults(
        (_ENDS, "Below the first knot H is zero, and its chord too.", ("-", "+")),
        (_SUMMED, "Chords lie above H ≥ 0; what rounding takes is paid for.", ("0.0", "-1.0")),
        (_SLOPE, "H is zero at the first knot.", (" / t", " * t"), ("[0]]", "[ 1]]"), ("[0]]", "[ -1]]")),
        (_HEIGHT, "H is zero at the first knot.", ("0.0", "-1.0")),
        (_EVEN, _WHATEVER, ("+", "-"), ("1)", "2)"), ("1)", "0)")),
        (_RATIO, _WHATEVER, ("-", "+"), ("1", " 2")),
        (_UNEVEN, _WHATEVER, ("0", "1")),
        (
            _RANKS,
            _WHATEVER,
            ("-", "+"),
            ("-14", "- 15"),
            ("-14", "- 13"),
            (" 14", " 15"),
            (" 14", " 13"),
            ("//", "*"),
            ("4)", "5)"),
            ("4)", "3)"),
            ("0.0", "-1.0"),
        ),
        (_SPREAD, _WHATEVER, ("-", "+"), ("4", " 5"), ("4", " 3"), ("1.0", "2.0")),
        (_LOGARITHM, BRACKET, (" -1e", " +1e"), ("-1e-9", "- -0.999999999"), ("14", " 15"), ("14", " 13")),
        (_SOLVED, BRACKET, ("0.0", "-1.0")),
        ("if excess(0.0) <= 0:", BRACKET, ("<=", "<")),
        ("while excess(high) > 0:", BRACKET, (">", ">="), ("0", "-1")),
        ("while total(high) > eps:", BRACKET, (">", ">=")),
        ("while total(low) <= eps:", BRACKET, ("<=", "<")),
        ("high = 1.0", BRACKET, ("1.0", "2.0")),
        ("high *= 2", BRACKET, ("2", "3")),
        ("low = high = 0.0", BRACKET, ("0.0", "1.0"), ("0.0", "-1.0")),
        ("high += 1", BRACKET, ("1", "2")),
        ("low -= 1", BRACKET, ("1", "2")),
        ("if high > 600:", "It is a power of two: 512 or 1,024.", (">", ">="), ("600", "601"), ("600", "599")),
        ("while excess(eps) > 0:", DOUBLED, (">", ">=")),
        (_ENOUGH, DOUBLED, (">", ">=")),
        ("step *= 2", DOUBLED, ("2", "3"), ("2", "1")),
        (_ENOUGH, _NOT_LOOKED_AT, ("1", " 2")),
        (_TOTAL, _NOT_LOOKED_AT, ("1", " 2")),
    ),
    "statistic.py": no_faults(
        (_CELL, "Cell 0 stays cell 0.", ("s > 0", "s >= 0")),
        (_CELL, "Cells are whole by then: above -1 is at least 0.", ("0,", "-1,")),
        (_BLOCK, _SMALLER, ("2*", "3*"), ("26", " 27"), ("26", " 25")),
    ),
    "shared.py": no_faults(
        (_SHORT, "Nothing is added to a record that is whole.", ("<", "<=")),
        (_SHORT, "There is one axis.", ("0]", " -1]")),
        (_PICKED, _FASTER, ("<=", "<"), ("<=", ">"), ("2", "not 2"), ("2", "3"), ("2", "1")),
        (_PARTED, "In pieces or all at once: the same rows.", ("is None", "is not None")),
        (_EVERYBODY, "There is one.", ("0", " -1")),
        (_OVER, "What is not above zero is not made whole.", ("0.0 ", "-1.0 ")),
        (_SOME, _FASTER, ("0)", "-1)"), (">", ">=")),
        (_SOME, "There is one axis.", ("0]", " -1]")),
        (_SAME, "At b = 2c both sides are 8c.", (">= ", "> ")),
        (
            _LARGE,
            _SQUARE,
            ("10**6", "11**6"),
            ("10**6", "9**6"),
            ("10**6", "10** 7"),
            ("10**6", "10** 5"),
        ),
    ),
}
