"""The colours of plots and pages: one accent, shades of it, and what each is for on light and on dark paper.

Told apart by everybody: scales go from light to dark in one hue, and signs are blue and orange. No two values for light paper are
equal, so that a page can find each in a drawing and exchange it.
"""

__all__ = ["COLOURS", "LIGHT", "STEPS", "shades"]

STEPS = 9  # of a scale
_SIGNED = STEPS // 2 + 1  # of half a scale with signs

Pair = tuple[str, str]


def _mixed(ends: Pair, share: float) -> str:
    first, last = (bytes.fromhex(one[1:]) for one in ends)
    return "#" + bytes(round(a + (b - a) * share) for a, b in zip(first, last, strict=True)).hex()


def _scale(name: str, light: Pair, dark: Pair, steps: int) -> dict[str, Pair]:
    return {f"{name}-{i}": (_mixed(light, i / (steps - 1)), _mixed(dark, i / (steps - 1))) for i in range(steps)}


COLOURS: dict[str, Pair] = {
    "paper": ("#fefefe", "#15181d"),
    "ink": ("#1b2430", "#e7eaef"),
    "muted": ("#566070", "#a6afbc"),
    "rule": ("#d3d9e1", "#3a434f"),
    "accent": ("#0b4f8a", "#7cbcf5"),
    "model": ("#6ea6d7", "#2f73ad"),  # the three causes of doubt
    "privacy": ("#accdea", "#244d73"),
    "noise": ("#dceaf7", "#1c3145"),
    "kept": ("#1a6b3c", "#7fd6a2"),  # the seal
    "broken": ("#b3261e", "#ff9d94"),
    **_scale("more", ("#eaf2fa", "#0b3c6c"), ("#1a2633", "#a9d6ff"), STEPS),
    **_scale("below", ("#f6f3f0", "#863505"), ("#1d2024", "#e99c66"), _SIGNED),
    **_scale("above", ("#f6f4f1", "#0b4f8b"), ("#22262b", "#6fb2ef"), _SIGNED),
}
LIGHT = {name: light for name, (light, _) in COLOURS.items()}


def shades(count: int) -> list[str]:
    """Give ``count`` colours from little to much, for light paper."""
    return [LIGHT[f"more-{round(i * (STEPS - 1) / max(count - 1, 1))}"] for i in range(count)]
