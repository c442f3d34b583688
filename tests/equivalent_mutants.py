"""Changes of the trusted core that are no faults: (the line, the changed line) and the reason, for `tests/mutation.py`."""

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
_RELEASED = 'seed = None if self._seed is None else self._seed + b" release %d" % number'
_CHOSEN = 'bits = Bits(None if self._seed is None else self._seed + b" choice %d" % number)'
_OTHERWISE = "Another key, as different in every step."
_OWN = "exact = self._total + np.zeros(statistic.size, dtype=object)"
_BOTH = "Both or neither are given: that was asked before."
_CHARGED = "elif ledger is not None and dataset is not None:"
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
_LENGTH = "How long a name is."
_THREADS = "n, threads, first, more = self.n, len(os.sched_getaffinity(0)), number == 1, self._left > 0"
_TOLD = 'told |= {"training": training[0].n, "validation": validation[0].n}'
_APART = "self._sum = exact if self._correlation.running else 0"
_ENOUGH = "while selection_epsilon(Selection(1, multiplier, shape, stop, most), delta) > eps:"
_TOTAL = "return selection_epsilon(Selection(1, math.exp(log), shape, stop, most), delta)"
_NOT_LOOKED_AT = "`selection_epsilon` does not look at the count."
_BRACKET = "Another bracket around the same root, or the root itself at its end."
_DOUBLED = "How fast the last bits are gone through."
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

_ROOT = "root = math.isqrt(total) + 1"
_HIGH = "high = mu * mu / 2 + mu * math.sqrt(2 * -target) + mu  # δ(ε) ≤ Φ(−x) ≤ exp(−x²/2)"
_HALF = "half = math.sqrt(2) * erfinv(math.tanh(eps / 2)) if eps < 1 else -ndtri(1 / (1 + math.exp(eps)))"
_LOWERED = "best = best * (1 - step) if step < 1 else 0.0"
_CANCELS = "if mu <= 1:  # M(x) − M(x+μ) would cancel: integrate its slope, which is smooth and positive"
_SERIES = "slope: np.ndarray = np.where(t > 50, series, direct)"
_WRONG_SIDE = "while _log_delta_above(eps, mu) > target:  # the root may lie a few units on the wrong side"
_MULTIPLIED = "while _total(kind, multiplier, releases, delta) > eps:"
_STEEP = "v = 1 / np.maximum(t, 1) ** 2"
_TERMS = "series = v * (1 - v * (3 - v * (15 - v * (105 - v * (945 - v * 10395)))))"
_FOUND = "eps = brentq(lambda e: _log_delta_above(e, mu) - target, 0.0, high, xtol=1e-300, rtol=8.9e-16, maxiter=1000)"
_MIDDLE = "low = high = math.sqrt(2) * math.sqrt(eps)  # x = 0"
_PAST = "if not total <= account.epsilon * (1 + _VERIFY_TOLERANCE):"
_NAMES = """names = f"It has: {', '.join(map(repr, known[:10]))}." if known else "It has none yet.\""""
_LAST = "number, previous = last[0] if last else (0, _FIRST)"
_CHANCE = "chance = np.exp(-_exponent(law, k, (j + 0.5) / scale.w))"
_ROOM = "A cell of f further off, 2^-40 (k + 1): the margin has room for a hundred times that (noise.md, 3)."
_MASK = "j = first & np.uint64((1 << (scale.w - 1).bit_length()) - 1)"
_WIDER = "More words are thrown away: the same law."
_FEWEST = "The loop that follows takes off what is too much; there is no less than 2^40 to begin with."
_MARGINAL = "undecided = (thresholds[k] == u) | (np.abs(distance) <= _MARGIN * (k + 1))"
_AT_THE_END = "What is added for errors is far above them: at its very end either will do."
_FITS = "while square * 4 ** (e - 1) >= 4**40 and e > 0:"
_FURTHER = "e = 57 - bits  # square < 4^(bits + 1), so w ≤ 2⁵⁸"
_SHIFTED = "values >>= min(max(scale.e, 0), 63)"
_ATTEMPTED = "accepted = _attempts(law, scale, min(_BATCH, 2 * (size - filled) + 16), bits)[: size - filled]"
_COUNTS = [(3, 16), (1, 16), (2, 17), (2, 15)]
_AT_ONCE = "How many attempts are made at once."
_CERTAIN = 'assert Decimal("1e-30") < point - int(point) < 1 - Decimal("1e-30"), "a threshold that is not certain"'
_FOUND_FIRST = "whole, below, found = sum(weights), Decimal(0), [-1]"
_DELTA = "delta = check_epsilon_delta(1, delta, pure=True)[1]"
_BOTH_WAYS = "There both ways to compute it agree, within the margin that is added."

EQUIVALENT: dict[str, dict[tuple[str, str], str]] = {
    "grid.py": {
        (_SHORTER, _SHORTER.replace("-40", "- 41")): _MARGIN,
        (_SHORTER, _SHORTER.replace("-40", "- 39")): _MARGIN,
        (_BEYOND, _BEYOND.replace("0.0", "1.0")): _NEVER,
        (_BEYOND, _BEYOND.replace("0.0", "-1.0")): _NEVER,
    },
    "bounds.py": {
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
    "curator.py": {
        ("training[0],", "training[ -1],"): "All of a side have the same.",
        **{
            (_TOLD, _TOLD.replace(f"{k}[0]", f"{k}[ -1]")): "All of a side have the same."
            for k in ("training", "validation")
        },
        **{("self._fit = secrets.token_hex(8)", f"self._fit = secrets.token_hex( {k})"): _LENGTH for k in (7, 9)},
        (_THREADS, _THREADS.replace("(0)", "( 1)")): "How many threads add up: the same integers.",
        (_CHARGED[2:], _CHARGED[2:].replace(" and", " or")): _BOTH,
        (_RELEASED, _RELEASED.replace('%d" % n', '%d" * n')): _OTHERWISE,
        (_CHOSEN, _CHOSEN.replace('%d" % n', '%d" * n')): _OTHERWISE,
    },
    "accounting.py": {
        **{
            (_ROOT, _ROOT.replace("+ 1", more)): "The next float, which is taken after it, is further away than that."
            for more in ("- 1", "+ 2", "+ 0")
        },
        **{
            (_HIGH, _HIGH.replace(old, new)): _BRACKET
            for old, new in [("mu / 2", "mu * 2"), ("mu / 2", "mu / 1"), ("(2 *", "( 3 *")]
        },
        (_FOUND, _FOUND.replace("0.0", "-1.0")): _BRACKET,
        **{(_FOUND, _FOUND.replace("=1000", f"= {k}")): "It never takes so many." for k in (1001, 999)},
        **{(_HALF, _HALF.replace("eps < 1", changed)): _BOTH_WAYS for changed in ("eps <= 1", "eps < 2")},
        (_STEEP, _STEEP.replace("1)", "2)")): "It is looked at above 50 alone.",
        **{(_TERMS, _TERMS.replace("10395", k)): "1e-17 of the sum." for k in ("10396", "10394")},
        (_SERIES, _SERIES.replace("50", "49")): _BOTH_WAYS,
        (_CANCELS, _CANCELS.replace("<= 1", "<= 2")): _BOTH_WAYS,
        **{("elif x >= 0:", f"elif x {changed}:"): _BOTH_WAYS for changed in ("> 0", ">= 1", ">= -1")},
        ("step *= 2", "step *= 3"): _DOUBLED,
        **{(_MIDDLE, _MIDDLE.replace("(2)", f"( {k})")): _BRACKET for k in (3, 1)},
        ("high *= 2", "high *= 3"): _BRACKET,
        ("low /= 2", "low /= 3"): _BRACKET,
        (_DELTA, _DELTA.replace("(1,", "( 2,")): "Only δ is looked at.",
        (_HALF, _HALF.replace("-ndtri", "+ndtri")): "It is squared.",
        (_LOWERED, _LOWERED.replace("step < 1", "step <= 1")): "Zero in both ways.",
        (_CANCELS, _CANCELS.replace("<=", "<")): _BOTH_WAYS,
        (_SERIES, _SERIES.replace(">", ">=")): _BOTH_WAYS,
        ("if _log_delta_above(0.0, mu) <= target:", "if _log_delta_above(0.0, mu) < target:"): _BRACKET,
        **{
            (f"while _log_delta_above(eps, {line}", f"while _log_delta_above(eps, {changed}"): _BRACKET
            for line, changed in [("high) <= target:", "high) < target:"), ("low) > target:", "low) >= target:")]
        },
        (_WRONG_SIDE, _WRONG_SIDE.replace(">", ">=")): _DOUBLED,
        (_MULTIPLIED, _MULTIPLIED.replace(">", ">=")): _DOUBLED,
    },
    "noise.py": {
        **{
            (_ATTEMPTED, _ATTEMPTED.replace("2 * (size - filled) + 16", changed)): _AT_ONCE
            for changed in ("2 * (size + filled) + 16", *(f"{a} * (size - filled) + {b}" for a, b in _COUNTS))
        },
        **{
            (f"with localcontext(_digits({at}", f"with localcontext(_digits({changed}"): "Digits to spare."
            for at, changed in [("60)):", " 61)):"), ("60)):", " 59)):")]
        },
        **{
            (_CERTAIN, _CERTAIN.replace(old, new)): "It holds with room to spare; a test has the thresholds themselves."
            for old, new in [
                ("1 - D", "1 + D"),
                ("1 - D", "2 - D"),
                ('-30") <', '-30") <='),
                ("int(point) <", "int(point) <="),
            ]
        },
        ("if Decimal(v + 1) / 2**n < least - error:", "if Decimal(v + 1) / 2**n <= least - error:"): _AT_THE_END,
        ("if Decimal(v) / 2**n > most + error:", "if Decimal(v) / 2**n >= most + error:"): _AT_THE_END,
        ("while weights[-1] > least:", "while weights[-1] >= least:"): _AT_THE_END,
        **{
            (_FOUND_FIRST, _FOUND_FIRST.replace("[-1]", k)): "It is left out again." for k in ("[+1]", "[- 2]", "[- 0]")
        },
        ("break", "continue"): "Nothing follows.",
        **{("if bits < 41:", f"if bits {changed}:"): _FEWEST for changed in ("<= 41", "< 42")},
        **{("e = 42 - bits", f"e = {k} - bits"): _FEWEST for k in ("43", "41")},
        (_MARGINAL, _MARGINAL.replace("<=", "<")): _AT_THE_END,
        ("accepted = distance > 0", "accepted = distance >= 0"): "A distance of zero is within the margin: undecided.",
        ("if high < below / whole - error:", "if high <= below / whole - error:"): _AT_THE_END,
        ("if low < below / whole + error:", "if low <= below / whole + error:"): _AT_THE_END,
        **{(_CHANCE, _CHANCE.replace("j + 0.5", changed)): _ROOM for changed in ("j - 0.5", "j + 1.5", "j + -0.5")},
        **{
            (_MASK, _MASK.replace(old, new)): _WIDER
            for old, new in [("w - 1", "w + 1"), ("w - 1", "w - 0"), ("((1 <<", "(( 2 <<")]
        },
        **{
            (_FITS, _FITS.replace("> 0", changed)): "Below 2^41 the first condition ends the loop at 0."
            for changed in ("> -1", ">= 0")
        },
        ("elif bits > 56:", "elif bits > 57:"): "w is below 2^58 in any case.",
        (_FURTHER, _FURTHER.replace("57", "56")): "w has one bit less, and is still the least that is enough.",
        (_SHIFTED, _SHIFTED.replace("63", "64")): "NumPy leaves the sign alone, as by 63.",
    },
    "ledger.py": {
        **{(_NAMES, _NAMES.replace(":10", f": {k}")): "How many names an error tells." for k in (11, 9)},
        (_LAST, _LAST.replace("last[0]", "last[ -1]")): "It asks for one row.",
        (_PAST, _PAST.replace("<=", "<")): "At exactly a millionth more than the cap either will do.",
    },
    "events.py": {
        ("_LEAST, _MOST = 1e-9, 1e30", "_LEAST, _MOST = 1e-9, 1e+30"): "The same number.",
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
        (_KEYED, _KEYED.replace('" % step', '" * step')): _OTHERWISE,
        (_TAKEN, _TAKEN.replace("[0]", "[ -1]")): "It remembers one noise.",
        **{(_NAMED, _NAMED.replace("(8)", f"( {k})")): _LENGTH for k in (7, 9)},
        **{(_APART, _APART[:-1] + k): "Only running sums look at it." for k in ("1", "-1")},
        (_OWN, _OWN.replace("+", "-")): "Less zeros.",
        (_CHARGED, _CHARGED.replace(" and", " or")): _BOTH,
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
            (_LOGARITHM, _LOGARITHM.replace(old, new)): _BRACKET
            for old, new in [("-1e-9", "+1e-9"), ("-1e-9", "- -0.999999999"), ("-14", "- 15"), ("-14", "- 13")]
        },
        (_SOLVED, _SOLVED.replace("excess, 0.0", "excess, -1.0")): _BRACKET,
        **{
            (line, line.replace(old, new)): _BRACKET
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
        ("while excess(eps) > 0:", "while excess(eps) >= 0:"): _DOUBLED,
        (_ENOUGH, _ENOUGH.replace("> eps", ">= eps")): _DOUBLED,
        ("step *= 2", "step *= 3"): _DOUBLED,
        ("step *= 2", "step *= 1"): _DOUBLED,
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
