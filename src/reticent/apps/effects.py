"""What a regression says: how its function moves with each input, and over which distances. Computed from releases only."""

from typing import TYPE_CHECKING, Any

import numpy as np

from reticent.apps.figures import column_names, digits_beside, measured
from reticent.apps.outputs import output_name, outputs
from reticent.apps.slices import along, medians, ranges, two_valued
from reticent.apps.terminal import compact, table

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = [
    "COUNTED",
    "LEARNED",
    "OWN_LEVELS",
    "PRIOR",
    "anchor_words",
    "effect_numbers",
    "kernel_words",
    "label_remarks",
    "regression_notes",
    "regression_numbers",
    "regression_remarks",
    "regression_tables",
]

COUNTED = "numbers of records scatter around it by chance"
PRIOR = "The prior is what the model takes for usual where it knows nothing, not what it found."
LEARNED = (
    "The prior, as learned from the releases, is what the model takes for usual among the records, not what it found; where "
    "hardly any are, it doubts as much as before the fit, which can be far more."
)
OWN_LEVELS = "in each record by a known level of its own"
_POINTS = 7
_SAID = 5  # parts of a kernel
_LITTLE = 0.7  # of the prior's standard deviation: what is known no better than this is not known


def regression_numbers(model: Any) -> dict[str, Any]:
    """Give the effects, the kernel and the noise as plain values; of each output, if there are several."""
    found = [effect_numbers(one) for one in outputs(model)]
    return found[0] if len(found) == 1 else {"outputs": {one["output"]: one for one in found}}


def effect_numbers(model: Any) -> dict[str, Any]:
    """The same, of one output."""
    effects = {}
    for j, (name, points) in enumerate(along(model, _POINTS)):
        mean, sd = model.predict(points, return_std=True)
        parts = model.variance_parts(points)
        effects[name] = {
            "at": points[:, j].tolist(),
            "mean": mean.tolist(),
            "std": sd.tolist(),
            "model_std": np.sqrt(parts["model"]).tolist(),
            "privacy_std": np.sqrt(parts["privacy"]).tolist(),
        }
    return {
        "output": output_name(model),
        "effects": effects,
        "kernel": str(model.kernel_),
        "kernel_parts": _kernel_parts(model),
        "default_prior": _default_prior(model),
        "noise": model.noise_,
        "counts": getattr(model, "kind", "") == "count",
    }


def regression_tables(model: Any) -> "RenderableType":
    """Lay out the effects side by side, and say the kernel in words; one output after the other."""
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = []
    for one in outputs(model):
        if one is not model:
            parts += [Text(output_name(one), "bold")]
        parts += [*_tables(effect_numbers(one)), Text("")]
    return Group(*parts[:-1])


def _tables(found: dict[str, Any]) -> "list[RenderableType]":
    from rich.columns import Columns
    from rich.text import Text

    output, noise, tables = found["output"], found["noise"], []
    for name, effect in found["effects"].items():
        points = zip(effect["at"], effect["mean"], effect["std"], strict=True)
        rows = [[compact(at), measured(mean, sd)] for at, mean, sd in points]
        tables.append(table(name, f"{output} ±", left=0, rows=rows))
    parts: list[RenderableType] = [Columns(tables, padding=(0, 4)), Text("")]
    parts += [Text(words) for words in kernel_words(found)]
    spread = OWN_LEVELS if noise is None else f"by about {noise:,.{digits_beside(noise)}f}"
    parts.append(Text(COUNTED if found["counts"] else f"{output} spreads {spread} around the function"))
    return parts


def regression_remarks(model: Any) -> list[str]:
    """Say how the tables are to be read."""
    level = model.releases_[0].bounds.level
    said = [] if level is None else [f"A missing noise level counts as the highest, {compact(level.high)}."]
    return [*said, *anchor_words(model), *_two_valued(model), _prior_words(model)]


def _prior_words(model: Any) -> str:
    """What a prior that was learned where records are says of other places, if the model knows which these are."""
    return LEARNED if getattr(model, "_where", []) else PRIOR


def _two_valued(model: Any) -> list[str]:
    """Say of which inputs two places alone are shown."""
    low, _, high = ranges(model)
    found = [
        f"{name} at {compact(low[j])} or {compact(high[j])}"
        for j, (name, two) in enumerate(zip(column_names(model), two_valued(model), strict=True))
        if two
    ]
    return (
        [f"Nearly all records have {', '.join(found)}, as counts tell: nothing is said of values between."]
        if found
        else []
    )


def anchor_words(model: Any) -> list[str]:
    """Say where the other inputs are while one is moved."""
    if model.n_features_in_ == 1:
        return []
    where = (
        "near their medians, as far as the noisy counts tell them"
        if medians(model) is not None
        else "in the middle of their ranges"
    )
    anchor = ", ".join(
        f"{name} {compact(value)}" for name, value in zip(column_names(model), ranges(model)[1], strict=True)
    )
    return [
        f"Each table moves one input and leaves the others {where}: {anchor}.",
        "There may be nobody with some of these combinations: what is said of them rests on the prior.",
    ]


def label_remarks(model: Any) -> list[str]:
    """Say first what a label-only model does not protect."""
    return ["Inputs are NOT protected: they are part of this release.", *regression_remarks(model)]


def regression_notes(model: Any) -> list[str]:
    """Say so if the function is known hardly better than before the fit."""
    points = np.vstack([points for _, points in along(model, _POINTS)])
    unknown = [
        one for one in outputs(model) if np.median(one.predict(points, return_std=True)[1]) >= _LITTLE * one.prior_std_
    ]
    return [
        f"the function{'' if one is model else f' of {output_name(one)}'} is hardly better known than before the fit: the budget "
        "(--epsilon) is too small for so few records."
        for one in unknown
    ]


def _kernel_parts(model: Any) -> list[dict[str, Any]] | None:
    """For each smooth part of the kernel its standard deviation and its length in each input; None if it has other parts."""
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, RationalQuadratic, WhiteKernel

    names, parts = column_names(model), []
    for factors in _terms(model.kernel_):
        variance = float(np.prod([one.constant_value for one in factors if isinstance(one, ConstantKernel)]))
        smooth = [one for one in factors if not isinstance(one, ConstantKernel)]
        if any(isinstance(one, WhiteKernel) for one in smooth):
            continue  # not a part of the function
        if len(smooth) > 1 or not all(isinstance(one, (RBF, RationalQuadratic)) for one in smooth):  # Matérn is an RBF
            return None
        lengths = np.broadcast_to(smooth[0].length_scale, len(names)).tolist() if smooth else [None] * len(names)
        parts.append({"std": variance**0.5, "lengths": dict(zip(names, lengths, strict=True))})
    return parts


def _default_prior(model: Any) -> dict[str, Any] | None:
    """What was learned of the default prior: the size of effects and how it is shared between their kinds."""
    if not hasattr(model.kernel_, "shares"):
        return None
    kernel, (low, high) = model.kernel_, model.releases_[0].bounds.y[getattr(model, "output", 0)]
    orders = kernel.shares[: model.n_features_in_]
    return {
        "std": kernel.variance**0.5 * (high - low) / 2,
        "shares": [share / sum(orders) for share in orders],
        "linear": kernel.linear,
        "length": kernel.length / 2,
    }


def _default_words(output: str, prior: dict[str, Any], inputs: int) -> str:
    kinds = zip(prior["shares"], ("single inputs", "pairs", "triples"), strict=False)
    shares = ", ".join(f"{100 * share:.0f} % {kind}" for share, kind in kinds if share >= 0.005)
    size = f"prior: {output} usually varies by ±{compact(prior['std'], 2)}"
    bend = f"to change it much, an input has to move by about {100 * prior['length']:.0f} % of its spread"
    return f"{size}{f' (of its variance {shares})' if inputs > 1 else ''}; {bend}"


def _terms(kernel: Any) -> list[list[Any]]:
    """Multiply a kernel out: a list of terms, each a list of factors."""
    from sklearn.gaussian_process.kernels import Product, Sum

    if isinstance(kernel, Sum):
        return _terms(kernel.k1) + _terms(kernel.k2)
    if isinstance(kernel, Product):
        return [left + right for left in _terms(kernel.k1) for right in _terms(kernel.k2)]
    return [[kernel]]


def kernel_words(found: dict[str, Any]) -> list[str]:
    """Say what the kernel takes for usual; parts that change along the same inputs are said together.

    These are numbers of the prior, learned or given, and are called so: nobody should read them as results.
    """
    if found["default_prior"] is not None:
        return [_default_words(found["output"], found["default_prior"], len(found["effects"]))]
    if found["kernel_parts"] is None:
        return [f"kernel: {found['kernel']}"]
    together: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for part in found["kernel_parts"]:
        together.setdefault(tuple(_felt(part["lengths"], found["effects"])), []).append(part)
    said = []
    for names, parts in together.items():
        size = float(np.hypot.reduce([part["std"] for part in parts]))
        over = " or ".join(f"{_span([part['lengths'][name] for part in parts])} of {name}" for name in names)
        usual = f"{found['output']} usually varies by ±{compact(size, 2)} over about {over}"
        level = f"the level of {found['output']} is usually within ±{compact(size, 2)} of the middle of its range"
        said.append((size, f"prior: {usual if names else level}"))
    said.sort(key=lambda one: -one[0])
    rest = [f"prior: and less in {len(said) - _SAID} more ways: see --json"] if len(said) > _SAID else []
    return [words for _, words in said[:_SAID]] + rest


def _felt(lengths: dict[str, float | None], effects: dict[str, Any]) -> list[str]:
    """The inputs along which something changes within their range."""
    width = {name: effect["at"][-1] - effect["at"][0] for name, effect in effects.items()}
    return [name for name, length in lengths.items() if length is not None and length < width[name]]


def _span(lengths: list[float]) -> str:
    shortest, longest = (compact(length, 2) for length in (min(lengths), max(lengths)))
    return shortest if shortest == longest else f"{shortest} – {longest}"
