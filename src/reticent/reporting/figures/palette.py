"""The colours of plots and pages.

One accent, shades of it, and what each is for on light and on dark paper.

Told apart by everybody: scales go from light to dark in one hue, and signs are blue and orange. No
two values for light paper are equal, so that a page can find each in a drawing and exchange it.
"""

__all__ = ["COLOURS", "DEPTHS", "HUES", "LIGHT", "STEPS", "hue", "shades"]

STEPS = 9  # of a scale
_SIGNED = STEPS // 2 + 1  # of half a scale with signs
DEPTHS = 4  # of the colour of a class, from little to much

Pair = tuple[str, str]


def _mixed(ends: Pair, share: float) -> str:
    first, last = (bytes.fromhex(one[1:]) for one in ends)
    return "#" + bytes(round(a + (b - a) * share) for a, b in zip(first, last, strict=True)).hex()


def _scale(name: str, light: Pair, dark: Pair, steps: int) -> dict[str, Pair]:
    return {
        f"{name}-{i}": (_mixed(light, i / (steps - 1)), _mixed(dark, i / (steps - 1)))
        for i in range(steps)
    }


# of classes, after Okabe and Ito, darker on light paper and lighter on dark: told
# apart by everybody
_CLASSES: list[Pair] = [
    ("#0a5a9c", "#74b9f2"),
    ("#c2570c", "#f5a35c"),
    ("#00735a", "#45cfa8"),
    ("#a3457f", "#ec9cc8"),
    ("#7d6b00", "#e0cf4a"),
    ("#3a3f9e", "#a8adf7"),
    ("#8c1d1d", "#f28b82"),
]
HUES = len(_CLASSES)


def _tint(name: str, hue: Pair) -> dict[str, Pair]:
    return _scale(
        name,
        (_mixed(("#fdfdfe", hue[0]), 0.12), hue[0]),
        (_mixed(("#171a1f", hue[1]), 0.12), hue[1]),
        DEPTHS,
    )


COLOURS: dict[str, Pair] = {
    "paper": ("#fefefe", "#15181d"),
    "ink": ("#1b2430", "#e7eaef"),
    "muted": ("#566070", "#a6afbc"),
    "rule": ("#d3d9e1", "#3a434f"),
    "accent": ("#0b4f8a", "#7cbcf5"),
    "model": ("#6ea6d7", "#2f73ad"),  # the three causes of uncertainty
    "privacy": ("#accdea", "#244d73"),
    "noise": ("#dceaf7", "#1c3145"),
    "kept": ("#1a6b3c", "#7fd6a2"),  # the seal
    "broken": ("#b3261e", "#ff9d94"),
    **_scale("more", ("#eaf2fa", "#0b3c6c"), ("#1a2633", "#a9d6ff"), STEPS),
    **_scale("below", ("#f6f3f0", "#863505"), ("#1d2024", "#e99c66"), _SIGNED),
    **{
        role: pair
        for c, one in enumerate(_CLASSES)
        for role, pair in _tint(f"class{c}", one).items()
    },
    **_scale("above", ("#f6f4f1", "#0b4f8b"), ("#22262b", "#6fb2ef"), _SIGNED),
}
LIGHT = {name: light for name, (light, _) in COLOURS.items()}


def shades(count: int) -> list[str]:
    """Give ``count`` colours from little to much, for light paper."""
    return [LIGHT[f"more-{round(i * (STEPS - 1) / max(count - 1, 1))}"] for i in range(count)]


def hue(number: int | None, depth: int = DEPTHS - 1) -> str:
    """Give the colour of a class for light paper, by its place among those drawn.

    Grey for the others (None).
    """
    return LIGHT["rule" if number is None else f"class{number % HUES}-{depth}"]
