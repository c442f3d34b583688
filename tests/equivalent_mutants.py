"""Changes of the trusted core that are no faults: (the line, the changed line) and the reason, for `tests/mutation.py`."""

from tests.equivalent_paid import BOTH, BRACKET, CHARGED, DOUBLED, LENGTH, OTHERWISE, PAID
from tests.equivalent_read import READ

_SHORTER = "q = np.trunc(q * (factor * (1 - 2.0**-40))[:, None])"
_MARGIN = "The margin must be above the rounding of a square root and a product, 2^-50, and far below a step: any such will do."
_BEYOND = "q[~_inside(q, limit2, limit1)] = 0.0  # cannot happen, and is not left to that"
_NEVER = "Never reached, as statistic.md proves: it stands there for the day the proof is wrong."
_CELL = "cells = np.where(cells > 0, np.minimum(cells, np.array(groups) - 1.0), 0.0)  # NaN > 0 is false"
_BLOCK = "return max(64, min(_CACHE // self.columns, 2**26))"
_SMALLER = "A block has at most 2^17 rows already: the second limit stands there for the day the first one grows."
_RESHAPED = "low, high = np.array(self.x + self.y).reshape(-1, 2).T"
_SAME = "same = 4 * b if b >= 2 * c else 2 * b + 2 * c - (-b * b // (2 * c))"
_LARGE = "if not (1 <= parts <= 10**6 and 1 <= d <= 10**6 and parts * d * d <= 10**9):"
_SQUARE = "The last condition holds d below 31,623 already."

_NOWHERE = "return np.where(known, cell, -1.0).astype(np.int64)"
_KNOWN = "known = (cell >= 0) & (cell < index(self.cells))  # not so for NaN"
_PLACED = "inside = np.flatnonzero(places >= 0)"
_TRIED = "q = 2**21 - 1 - place * (place + 2654435761) // 8 % 4093  # just under 2^21, irregular: sums come within 1 % of 2^53"
_IRREGULAR = "Other numbers just under 2^21, as irregular: a test holds them to 1 % of the limit."
_ROWS = "rows, columns = 2048, 24"
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
_PICKED = "if 2 * len(some) <= len(shares):  # else picking rows out takes longer"
_SOME = "some, chosen = (shares > 0).nonzero()[0], None"
_PARTED = "return g, each(None, found) if chosen is None else each(*hold(slice(None)))"
_EVERYBODY = "seconds[0 if together else k] += _second(second, weighted, u).astype(np.int64)"
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
    "grid.py": {
        (_SHORTER, _SHORTER.replace("-40", "- 41")): _MARGIN,
        (_SHORTER, _SHORTER.replace("-40", "- 39")): _MARGIN,
        (_BEYOND, _BEYOND.replace("0.0", "1.0")): _NEVER,
        (_BEYOND, _BEYOND.replace("0.0", "-1.0")): _NEVER,
    },
    "bounds.py": {
        (_HUGE, _HUGE.replace("1e150", "1e+150")): "The same number.",
        (_OUTPUTS, _OUTPUTS.replace("False", "True")): "It is not looked at.",
        (_ONE_RANGE, _ONE_RANGE.replace("[0]", "[ -1]")): "There is one.",
        (_ONE_NAME, _ONE_NAME.replace("[0]", "[ -1]")): "There is one.",
        **{
            (line, line.replace("-1", "- 2")): _LEFT
            for line in (
                "moved = u[some].reshape(-1, length)",
                "np.subtract(values[some].reshape(-1, length), middle[:length], out=moved)",
            )
        },
        **{
            (_ABREAST, _ABREAST.replace(old, new)): "How many records one loop goes over."
            for old, new in [
                ("//", "*"),
                ("max(1, _", "max( 2, _"),
                ("max(1, l", "max( 2, l"),
                ("max(1, l", "max( 0, l"),
            ]
        },
        (
            _CONTIGUOUS,
            _CONTIGUOUS.replace("%", "*"),
        ): "None abreast: a negative end that is further away than the beginning.",
        (_CONTIGUOUS, _CONTIGUOUS.replace("if values", "if not values")): "A copy is made, or none: the same numbers.",
        (_RESHAPED, _RESHAPED.replace("-1", "- 2")): "NumPy takes any negative number for the length that is left.",
    },
    "celled.py": {
        (_NOWHERE, _NOWHERE.replace("-1.0", "- 2.0")): "Any negative number is no cell.",
        (_KNOWN, _KNOWN.replace("cell >= 0", "cell >= -1")): "−1 stays −1, which is no cell.",
        (
            _PLACED,
            _PLACED.replace("0", "-1"),
        ): "What is in no cell is all zeros by then, and rows are zeros to begin with.",
    },
    "exponential.py": {
        (
            _SLOPES,
            _SLOPES.replace("-", "+"),
        ): "The others' sums lie in a symmetric range, or a record cannot move its cell.",
        (_LARGEST, _LARGEST.replace("max() * high", "max() / high")): _ALIKE,
        (_LARGEST, _LARGEST[: -len("* high")] + "/ high"): _ALIKE,
        (_LARGEST, _LARGEST.replace("2 *", "3 *")): _FEWER,
        (_LARGEST, _LARGEST.replace("2 *", "1 *")): _FEWER,
        (_SMALL, _SMALL.replace("<", "<=")): _EITHER,
        (_SMALL, _SMALL.replace("1", "2")): _EITHER,
        (_MATRIX, _MATRIX.replace("or 1.0", "or 2.0")): _NONE,
        (_MATRIX, _MATRIX.replace("or 1.0", "or 0.0")): _NONE,
        (_FORM, _FORM.replace("True", "False")): "There are three of either.",
        (_MATCHED, _MATCHED.replace("True", "False")): "`check_scores` asked for as many of each.",
        (_BESIDE, _BESIDE.replace("- 1, 0", "- 1, -1")): "Only in cells without a record, which move nothing.",
    },
    "sums.py": {
        (_PIECE, _PIECE.replace("else 1", "else 2")): "Of no rows there are no pieces.",
        **{
            (_TRIED, _TRIED.replace(old, new, 1)): _IRREGULAR
            for old, new in [
                ("+ 2654435761", "- 2654435761"),
                ("21 - 1", "21 + 1"),
                ("// 8", "* 8"),
                ("21 - 1", "21 - 2"),
                ("21 - 1", "21 - 0"),
                ("2654435761", "2654435762"),
                ("2654435761", "2654435760"),
                ("// 8", "// 9"),
                ("// 8", "// 7"),
            ]
        },
        (_ROWS, _ROWS.replace("2048", "2049")): _IRREGULAR,
        (_ROWS, _ROWS.replace("2048", "2047")): _IRREGULAR,
        (_FULL, _FULL.replace("==", "!=")): _SOONER,
        (_FULL, _FULL.replace("self", "not self")): _SOONER,
        ("self._added += 1", "self._added += 2"): _SOONER,
        (_BEGUN, _BEGUN.replace("0", "1")): _SOONER,
        (_BEGUN, _BEGUN.replace("0", "-1")): _SOONER,
    },
    "stream.py": {
        **{(line, line.replace("True", "False")): "The constructor asked for as many of each." for line in _PAIRED},
        (_PAIRED[1], _PAIRED[1].replace("-(-sum", "+(-sum")): "It is squared.",
        (_LEVEL, _LEVEL.replace("&", "|")): "−2^level has as many binary digits as 2^level.",
        (_LEVEL, _LEVEL.replace(") - 1", ") + 1")): "Two levels below the first, which stay empty.",
        (_LEVEL, _LEVEL.replace(") - 1", ") - 0")): "One level below the first, which stays empty.",
        (_KEYED, _KEYED.replace('" % step', '" * step')): OTHERWISE,
        (_TAKEN, _TAKEN.replace("[0]", "[ -1]")): "It remembers one noise.",
        **{(_NAMED, _NAMED.replace("(8)", f"( {k})")): LENGTH for k in (7, 9)},
        **{(_APART, _APART[:-1] + k): "Only running sums look at it." for k in ("1", "-1")},
        (_OWN, _OWN.replace("+", "-")): "Less zeros.",
        (CHARGED, CHARGED.replace(" and", " or")): BOTH,
    },
    "selection.py": {
        (_ENDS, _ENDS.replace("[-np", "[+np")): "Below the first knot H is zero, and its chord too.",
        (
            _SUMMED,
            _SUMMED.replace("terms, 0.0", "terms, -1.0"),
        ): "Chords lie above H ≥ 0; what rounding takes is paid for.",
        **{
            (line, line.replace(old, new)): "H is zero at the first knot."
            for line, old, new in [
                (_SLOPE, "[0] / t", "[0] * t"),
                (_SLOPE, "/ t[0]", "/ t[ 1]"),
                (_SLOPE, "/ t[0]", "/ t[ -1]"),
                (_HEIGHT, "0.0", "-1.0"),
            ]
        },
        **{
            (line, line.replace(old, new)): _WHATEVER
            for line, old, new in [
                *((_EVEN, "+ 1", new) for new in ("- 1", "+ 2", "+ 0")),
                (_RATIO, "1 -", "1 +"),
                (_RATIO, "1 -", " 2 -"),
                (_UNEVEN, "> 0", "> 1"),
                *((_RANKS, "(-14", new) for new in ("(+14", "(- 15", "(- 13")),
                *((_RANKS, "14, _CELLS // 4", new) for new in ("15, _CELLS // 4", "13, _CELLS // 4")),
                *((_RANKS, "// 4", new) for new in ("* 4", "// 5", "// 3")),
                (_RANKS, "0.0", "-1.0"),
                (_SPREAD, "-least, 1", "+least, 1"),
                *((_SPREAD, "4 *", new) for new in (" 5 *", " 3 *")),
                (_SPREAD, "1.0", "2.0"),
            ]
        },
        **{
            (_LOGARITHM, _LOGARITHM.replace(old, new)): BRACKET
            for old, new in [("-1e-9", "+1e-9"), ("-1e-9", "- -0.999999999"), ("-14", "- 15"), ("-14", "- 13")]
        },
        (_SOLVED, _SOLVED.replace("excess, 0.0", "excess, -1.0")): BRACKET,
        **{
            (line, line.replace(old, new)): BRACKET
            for line, old, new in [
                ("if excess(0.0) <= 0:", "<=", "<"),
                ("while excess(high) > 0:", ">", ">="),
                ("while excess(high) > 0:", "> 0", "> -1"),
                ("while total(high) > eps:", ">", ">="),
                ("while total(low) <= eps:", "<=", "<"),
                ("high = 1.0", "1.0", "2.0"),
                ("high *= 2", "2", "3"),
                ("low = high = 0.0", "0.0", "1.0"),
                ("low = high = 0.0", "0.0", "-1.0"),
                ("high += 1", "1", "2"),
                ("low -= 1", "1", "2"),
            ]
        },
        **{
            ("if high > 600:", f"if high {more}:"): "It is a power of two: 512 or 1,024."
            for more in (">= 600", "> 601", "> 599")
        },
        ("while excess(eps) > 0:", "while excess(eps) >= 0:"): DOUBLED,
        (_ENOUGH, _ENOUGH.replace("> eps", ">= eps")): DOUBLED,
        ("step *= 2", "step *= 3"): DOUBLED,
        ("step *= 2", "step *= 1"): DOUBLED,
        (_ENOUGH, _ENOUGH.replace("(1,", "( 2,")): _NOT_LOOKED_AT,
        (_TOTAL, _TOTAL.replace("(1,", "( 2,")): _NOT_LOOKED_AT,
    },
    "statistic.py": {
        (_CELL, _CELL.replace("cells > 0,", "cells >= 0,")): "Cell 0 stays cell 0.",
        (_CELL, _CELL.replace("cells > 0,", "cells > -1,")): "Cells are whole by then: above -1 is at least 0.",
        (_BLOCK, _BLOCK.replace("2**26", "3**26")): _SMALLER,
        (_BLOCK, _BLOCK.replace("2**26", "2** 27")): _SMALLER,
        (_BLOCK, _BLOCK.replace("2**26", "2** 25")): _SMALLER,
    },
    "shared.py": {
        (_SHORT, _SHORT.replace("<", "<=")): "Nothing is added to a record that is whole.",
        (_SHORT, _SHORT.replace("[0]", "[ -1]")): "There is one axis.",
        (_PICKED, _PICKED.replace("<=", "<")): _FASTER,
        (_PICKED, _PICKED.replace("<=", ">")): _FASTER,
        (_PICKED, _PICKED.replace("if 2", "if not 2")): _FASTER,
        (_PICKED, _PICKED.replace("2", "3")): _FASTER,
        (_PICKED, _PICKED.replace("2", "1")): _FASTER,
        (_PARTED, _PARTED.replace("is None", "is not None")): "In pieces or all at once: the same rows.",
        (_PARTED, _PARTED.replace("if chosen", "if not chosen")): "In pieces or all at once: the same rows.",
        (_EVERYBODY, _EVERYBODY.replace("[0", "[ -1")): "There is one.",
        (_OVER, _OVER.replace("0.0, 0.0", "0.0, -1.0")): "What is not above zero is not made whole.",
        (_SOME, _SOME.replace("> 0", "> -1")): _FASTER,
        (_SOME, _SOME.replace("[0]", "[ -1]")): "There is one axis.",
        (_SOME, _SOME.replace(">", ">=")): _FASTER,
        (_SAME, _SAME.replace(">=", ">")): "At b = 2c both sides are 8c.",
        (_LARGE, _LARGE.replace("d <= 10**6", "d < 10**6")): _SQUARE,
        (_LARGE, _LARGE.replace("d <= 10**6", "d <= 11**6")): _SQUARE,
        (_LARGE, _LARGE.replace("d <= 10**6", "d <= 9**6")): _SQUARE,
        (_LARGE, _LARGE.replace("d <= 10**6", "d <= 10** 7")): _SQUARE,
        (_LARGE, _LARGE.replace("d <= 10**6", "d <= 10** 5")): _SQUARE,
    },
}
