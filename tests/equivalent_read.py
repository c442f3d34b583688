"""Changes that are no faults, continued: what is drawn for a search, and how records are read."""

_SIGN = "return math.copysign(math.inf, 1 if value > 0 else -1)  # type: ignore[operator]"
_HUGE = "A number beyond float64 is not near zero, and of the other number only the sign counts."
_WORD = "value = int(bits.words(1)[0]) & mask"
_MATCHED = "return float(match[1]) if match else math.nan"
_PAIRS = 'for line, bare in zip(block.split(b"\\n"), bare_block.split(b"\\n"), strict=True):'
_MARK = "del rest[LONGEST + 1 :]  # one byte too many is kept, as a mark"
_SIDES = "both = enumerate(zip(halves, candidates[index].sides, strict=True))"

READ: dict[str, dict[tuple[str, str], str]] = {
    "draws.py": {
        (_WORD, _WORD.replace("(1)", "( 2)")): "A second word is thrown away: the same law.",
        (_WORD, _WORD.replace("[0]", "[ -1]")): "There is one word.",
    },
    "choosing.py": {(_SIDES, _SIDES.replace("True", "False")): "There are two of each."},
    "cells.py": {
        **{
            (_SIGN, _SIGN.replace(old, new)): _HUGE
            for old, new in [
                (" > 0", " >= 0"),
                ("1 if", "2 if"),
                ("1 if", "0 if"),
                ("> 0", "> 1"),
                ("> 0", "> -1"),
                ("-1)", "- 2)"),
            ]
        },
        (_MATCHED, _MATCHED.replace("[1]", "[ 0]")): "Python takes the spaces off, too.",
    },
    "lines.py": {
        (_PAIRS, _PAIRS.replace("True", "False")): "No line end is taken out: there are as many.",
        (_MARK, _MARK.replace("+ 1", "+ 2")): "Two bytes too many are a mark, too.",
    },
}
