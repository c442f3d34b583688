"""Changes that are no faults, continued: what is charged, counted and drawn. Reasons, as in `tests/equivalent_mutants.py`."""

_RELEASED = 'seed = None if self._seed is None else self._seed + b" release %d" % number'
_CHOSEN = 'bits = Bits(None if self._seed is None else self._seed + b" choice %d" % number)'
OTHERWISE = "Another key, as different in every step."
BOTH = "Both or neither are given: that was asked before."
CHARGED = "elif ledger is not None and dataset is not None:"
LENGTH = "How long a name is."
_THREADS = "n, threads, first, more = self.n, len(os.sched_getaffinity(0)), number == 1, self._left > 0"
_TOLD = 'told |= {"training": training[0].n, "validation": validation[0].n}'
BRACKET = "Another bracket around the same root, or the root itself at its end."
DOUBLED = "How fast the last bits are gone through."
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
_CELL_OF_F = "most, least = ((-_exponent(law, k, Decimal(end) / (w << (n - _U)))).exp() for end in (g, g + 1))"
_DELTA = "delta = check_epsilon_delta(1, delta, pure=True)[1]"
BOTH_WAYS = "There both ways to compute it agree, within the margin that is added."

_SIDE = "m = round((sqrt(8 * len(triangle) + 1) - 1) / 2)"
_SIGNATURES = [
    "def release(self, statistic: Statistic, *, times: int = 1) -> Release: ...  # noqa: D102",
    "def release_given_inputs(self, design: Design, *, times: int = 1) -> Release: ...  # noqa: D102",
]
_SEARCHED = (
    "if not 1 <= own < len(releases) - 1 or first.value.shape != (2,) or not isinstance(first.event, Selection):"
)
_SIZES = "if len(same) > 1 or sizes != [training[0].n, validation[0].n] or sum(sizes) != first.n:"
_SAME_BOUNDS = "if index not in range(candidates) or not np.isfinite(score) or training[0].bounds != first.bounds:"
_CANDIDATE = "if release.value[0] not in range(len(scores.constants)):"
_NO_HALF = "A half without a release is refused by the replay of that half."

PAID: dict[str, dict[tuple[str, str], str]] = {
    "curator.py": {
        ("training[0],", "training[ -1],"): "All of a side have the same.",
        **{
            (_TOLD, _TOLD.replace(f"{k}[0]", f"{k}[ -1]")): "All of a side have the same."
            for k in ("training", "validation")
        },
        **{("self._fit = secrets.token_hex(8)", f"self._fit = secrets.token_hex( {k})"): LENGTH for k in (7, 9)},
        (_THREADS, _THREADS.replace("(0)", "( 1)")): "How many threads add up: the same integers.",
        (CHARGED[2:], CHARGED[2:].replace(" and", " or")): BOTH,
        (_RELEASED, _RELEASED.replace('%d" % n', '%d" * n')): OTHERWISE,
        (_CHOSEN, _CHOSEN.replace('%d" % n', '%d" * n')): OTHERWISE,
    },
    "accounting.py": {
        **{
            (_ROOT, _ROOT.replace("+ 1", more)): "The next float, which is taken after it, is further away than that."
            for more in ("- 1", "+ 2", "+ 0")
        },
        **{
            (_HIGH, _HIGH.replace(old, new)): BRACKET
            for old, new in [("mu / 2", "mu * 2"), ("mu / 2", "mu / 1"), ("(2 *", "( 3 *")]
        },
        (_FOUND, _FOUND.replace("0.0", "-1.0")): BRACKET,
        **{(_FOUND, _FOUND.replace("=1000", f"= {k}")): "It never takes so many." for k in (1001, 999)},
        **{(_HALF, _HALF.replace("eps < 1", changed)): BOTH_WAYS for changed in ("eps <= 1", "eps < 2")},
        (_STEEP, _STEEP.replace("1)", "2)")): "It is looked at above 50 alone.",
        **{(_TERMS, _TERMS.replace("10395", k)): "1e-17 of the sum." for k in ("10396", "10394")},
        (_SERIES, _SERIES.replace("50", "49")): BOTH_WAYS,
        (_CANCELS, _CANCELS.replace("<= 1", "<= 2")): BOTH_WAYS,
        **{("elif x >= 0:", f"elif x {changed}:"): BOTH_WAYS for changed in ("> 0", ">= 1", ">= -1")},
        ("step *= 2", "step *= 3"): DOUBLED,
        **{(_MIDDLE, _MIDDLE.replace("(2)", f"( {k})")): BRACKET for k in (3, 1)},
        ("high *= 2", "high *= 3"): BRACKET,
        ("low /= 2", "low /= 3"): BRACKET,
        (_DELTA, _DELTA.replace("(1,", "( 2,")): "Only δ is looked at.",
        (_HALF, _HALF.replace("-ndtri", "+ndtri")): "It is squared.",
        (_LOWERED, _LOWERED.replace("step < 1", "step <= 1")): "Zero in both ways.",
        (_CANCELS, _CANCELS.replace("<=", "<")): BOTH_WAYS,
        (_SERIES, _SERIES.replace(">", ">=")): BOTH_WAYS,
        ("if _log_delta_above(0.0, mu) <= target:", "if _log_delta_above(0.0, mu) < target:"): BRACKET,
        **{
            (f"while _log_delta_above(eps, {line}", f"while _log_delta_above(eps, {changed}"): BRACKET
            for line, changed in [("high) <= target:", "high) < target:"), ("low) > target:", "low) >= target:")]
        },
        (_WRONG_SIDE, _WRONG_SIDE.replace(">", ">=")): DOUBLED,
        (_MULTIPLIED, _MULTIPLIED.replace(">", ">=")): DOUBLED,
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
        (
            _CELL_OF_F,
            _CELL_OF_F.replace("g + 1", "g + 2"),
        ): "A wider cell: more bits are drawn, and the answer is the same.",
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
    "release.py": {
        **{(_SIDE, _SIDE.replace("+ 1", k)): "Rounded to the same number." for k in ("- 1", "+ 2", "+ 0")},
        **{
            (line, line.replace(old, new)): "A signature, for type checkers alone."
            for line in _SIGNATURES
            for old, new in [("*, t", "/, t"), ("= 1)", "= 2)"), ("= 1)", "= 0)")]
        },
        **{
            (_SEARCHED, _SEARCHED.replace(old, new)): _NO_HALF
            for old, new in [
                ("releases) - 1", "releases) + 1"),
                ("releases) - 1", "releases) - 0"),
                ("own < len", "own <= len"),
                ("not 1 <=", "not 0 <="),
            ]
        },
        **{
            (_SIZES, _SIZES.replace(f"{k}[0]", f"{k}[ -1]")): "All of a half have the same."
            for k in ("training", "validation")
        },
        (_SAME_BOUNDS, _SAME_BOUNDS.replace("[0]", "[ -1]")): "All of a half have the same.",
        (_CANDIDATE, _CANDIDATE.replace("[0]", "[ -1]")): "There is one.",
        (
            "return value if isinstance(value, int) else 0",
            "return value if isinstance(value, int) else -1",
        ): "Neither is a number of them.",
    },
}
