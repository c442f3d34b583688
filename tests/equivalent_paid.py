"""Changes that are no faults, continued: what is charged, counted and drawn. Reasons, as in `tests/equivalent_mutants.py`."""

_RELEASED = 'seed = None if self._seed is None else self._seed + b" release %d" % number'
_CHOSEN = 'bits = Bits(None if self._seed is None else self._seed + b" choice %d" % number)'
OTHERWISE = "Another key, as different in every step."
BOTH = "Both or neither are given: that was asked before."
CHARGED = "elif ledger is not None and dataset is not None:"
LENGTH = "How long a name is."
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


def no_faults(*rows: tuple) -> dict[tuple[str, str], str]:
    """Rows of a line, the reason why its changes are no faults, and these: what is put in place of what."""
    return {(line, line.replace(*change)): reason for line, reason, *changes in rows for change in changes}


PAID: dict[str, dict[tuple[str, str], str]] = {
    "curator.py": no_faults(
        ("training[0],", "All of a side have the same.", ("0", " -1")),
        (_TOLD, "All of a side have the same.", ("g[0].", "g[ -1]."), ("n[0].", "n[ -1].")),
        ("self._fit = secrets.token_hex(8)", LENGTH, ("8", " 7"), ("8", " 9")),
        ("if ledger is not None and dataset is not None:", BOTH, ("and", "or")),
        (_RELEASED, OTHERWISE, ("% ", "* ")),
        (_CHOSEN, OTHERWISE, ("% ", "* ")),
    ),
    "accounting.py": no_faults(
        (
            _ROOT,
            "The next float, which is taken after it, is further away than that.",
            ("+", "-"),
            ("1", "2"),
            ("1", "0"),
        ),
        (_HIGH, BRACKET, ("/ ", "* "), (" 2 ", " 1 "), ("(2 ", "( 3 ")),
        (_FOUND, BRACKET, ("0.0", "-1.0")),
        (_FOUND, "It never takes so many.", ("1000", " 1001"), ("1000", " 999")),
        (_HALF, BOTH_WAYS, ("<", "<="), (" 1 ", " 2 ")),
        (_STEEP, "It is looked at above 50 alone.", ("1)", "2)")),
        (_TERMS, "1e-17 of the sum.", ("10395", "10396"), ("10395", "10394")),
        (_SERIES, BOTH_WAYS, ("50", "49"), (">", ">=")),
        (_CANCELS, BOTH_WAYS, ("1", "2"), ("<=", "<")),
        ("elif x >= 0:", BOTH_WAYS, (">=", ">"), ("0", "1"), ("0", "-1")),
        ("step *= 2", DOUBLED, ("2", "3")),
        (_MIDDLE, BRACKET, ("2", " 3"), ("2", " 1")),
        ("high *= 2", BRACKET, ("2", "3")),
        ("low /= 2", BRACKET, ("2", "3")),
        (_DELTA, "Only δ is looked at.", ("1,", " 2,")),
        (_HALF, "It is squared.", ("-", "+")),
        (_LOWERED, "Zero in both ways.", ("<", "<=")),
        ("if _log_delta_above(0.0, mu) <= target:", BRACKET, ("<=", "<")),
        ("while _log_delta_above(eps, high) <= target:", BRACKET, ("<=", "<")),
        ("while _log_delta_above(eps, low) > target:", BRACKET, (">", ">=")),
        (_WRONG_SIDE, DOUBLED, (">", ">=")),
        (_MULTIPLIED, DOUBLED, (">", ">=")),
    ),
    "noise.py": no_faults(
        (_ATTEMPTED, _AT_ONCE, ("(size - fille", "(size + fille"), ("2", "3"), ("2", "1"), ("16", "17"), ("16", "15")),
        ("with localcontext(_digits(60)):", "Digits to spare.", ("60", " 61"), ("60", " 59")),
        (
            _CERTAIN,
            "It holds with room to spare; a test has the thresholds themselves.",
            (" - D", " + D"),
            ("1 ", "2 "),
            (" < p", " <= p"),
            (" < 1", " <= 1"),
        ),
        ("if Decimal(v + 1) / 2**n < least - error:", _AT_THE_END, ("<", "<=")),
        ("if Decimal(v) / 2**n > most + error:", _AT_THE_END, (">", ">=")),
        ("while weights[-1] > least:", _AT_THE_END, (">", ">=")),
        (_FOUND_FIRST, "It is left out again.", ("-", "+"), ("1", " 2"), ("1", " 0")),
        ("break", "Nothing follows.", ("break", "continue")),
        (_CELL_OF_F, "A wider cell: more bits are drawn, and the answer is the same.", ("1", "2")),
        ("if bits < 41:", _FEWEST, ("<", "<="), ("41", "42")),
        ("e = 42 - bits", _FEWEST, ("42", "43"), ("42", "41")),
        (_MARGINAL, _AT_THE_END, ("<= ", "< ")),
        ("accepted = distance > 0", "A distance of zero is within the margin: undecided.", (">", ">=")),
        ("if high < below / whole - error:", _AT_THE_END, ("<", "<=")),
        ("if low < below / whole + error:", _AT_THE_END, ("<", "<=")),
        (_CHANCE, _ROOM, ("+", "-"), ("0.5", "1.5"), ("0.5", "-0.5")),
        (_MASK, _WIDER, ("w - 1", "w + 1"), (" 1).", " 0)."), ("1 ", " 2 ")),
        (_FITS, "Below 2^41 the first condition ends the loop at 0.", ("0:", "-1:"), ("> ", ">= ")),
        ("elif bits > 56:", "w is below 2^58 in any case.", ("56", "57")),
        (_FURTHER, "w has one bit less, and is still the least that is enough.", ("57", "56")),
        (_SHIFTED, "NumPy leaves the sign alone, as by 63.", ("63", "64")),
    ),
    "ledger.py": no_faults(
        (_NAMES, "How many names an error tells.", ("10", " 11"), ("10", " 9")),
        (_LAST, "It asks for one row.", ("0]", " -1]")),
        (_PAST, "At exactly a millionth more than the cap either will do.", ("<=", "<")),
    ),
    "events.py": no_faults(
        ("_LEAST, _MOST = 1e-9, 1e30", "The same number.", ("1e30", "1e+30")),
    ),
    "release.py": no_faults(
        (_SIDE, "Rounded to the same number.", ("+", "-"), ("+ 1) ", "+ 2) "), ("+ 1) ", "+ 0) ")),
        (_SIGNATURES[0], "A signature, for type checkers alone.", ("*", "/"), ("1)", "2)"), ("1)", "0)")),
        (_SIGNATURES[1], "A signature, for type checkers alone.", ("*", "/"), ("1)", "2)"), ("1)", "0)")),
        (_SEARCHED, _NO_HALF, ("-", "+"), (" 1 o", " 0 o"), ("< ", "<= "), (" 1 <", " 0 <")),
        (_SIZES, "All of a half have the same.", ("g[0].", "g[ -1]."), ("n[0].", "n[ -1].")),
        (_SAME_BOUNDS, "All of a half have the same.", ("0", " -1")),
        (_CANDIDATE, "There is one.", ("0", " -1")),
        ("return value if isinstance(value, int) else 0", "Neither is a number of them.", ("0", "-1")),
    ),
}
