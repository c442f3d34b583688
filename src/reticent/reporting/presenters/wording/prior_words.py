"""Priors in words: what a kernel takes for usual, with its hyperparameters as numbers."""

from typing import TYPE_CHECKING, Any

import numpy as np

from reticent.reporting.columns import Column, input_columns
from reticent.reporting.formatting import format_short
from reticent.reporting.presenter import Json, Medium

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel

    from reticent.reporting.presenters.effects import RegressionOutput

__all__ = ["default_prior", "kernel_parts", "prior_sentences"]

_MOST_PARTS = 5  # of a kernel, that are told
_LEAST_FRACTION = 0.005  # of the prior's variance, to be told
_ORDERS = ("single inputs", "pairs", "triples")


def kernel_parts(output: "RegressionOutput") -> list[Json] | None:
    """Give for each smooth part of the kernel its standard deviation and its length in each input.

    None if it has other parts.
    """
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, RationalQuadratic, WhiteKernel

    names = [column.name for column in input_columns(output.model)]
    parts = []
    for factors in _terms(output.kernel):
        constants = [one.constant_value for one in factors if isinstance(one, ConstantKernel)]
        variance = float(np.prod(constants))
        smooth = [one for one in factors if not isinstance(one, ConstantKernel)]
        if any(isinstance(one, WhiteKernel) for one in smooth):
            continue  # not a part of the function
        known = all(isinstance(one, (RBF, RationalQuadratic)) for one in smooth)  # Matérn is an RBF
        if len(smooth) > 1 or not known:
            return None
        lengths: list[float | None] = [None] * len(names)
        if smooth:
            lengths = np.broadcast_to(smooth[0].length_scale, len(names)).tolist()
        parts.append({"std": variance**0.5, "lengths": dict(zip(names, lengths, strict=True))})
    return parts


def _terms(kernel: "Kernel") -> list[list["Kernel"]]:
    """Multiply a kernel out: a list of terms, each a list of factors."""
    from sklearn.gaussian_process.kernels import Product, Sum

    if isinstance(kernel, Sum):
        return _terms(kernel.k1) + _terms(kernel.k2)
    if isinstance(kernel, Product):
        return [left + right for left in _terms(kernel.k1) for right in _terms(kernel.k2)]
    return [[kernel]]


def default_prior(output: "RegressionOutput") -> Json | None:
    """Give what was learned of reticent's default prior; None if another kernel was given.

    The standard deviation of effects in units of the output, the fraction of its variance in
    effects of single inputs, pairs and triples, and the length in parts of the inputs' spread.
    """
    kernel = output.kernel
    if not hasattr(kernel, "shares"):
        return None
    low, high = output.range
    orders = kernel.shares[: output.model.n_features_in_]
    return {
        "std": kernel.variance**0.5 * (high - low) / 2,
        "shares": [fraction / sum(orders) for fraction in orders],
        "linear": kernel.linear,
        "length": kernel.length / 2,
    }


def prior_sentences(found: Json, medium: Medium, column: Column) -> list[str]:
    """Say what the kernel takes for usual, from the results of one output.

    Parts that change along the same inputs are told together. These are numbers of the prior,
    learned or given, and are called so: nobody should read them as results.
    """
    title = column.title
    if found["default_prior"] is not None:
        return [_default_sentence(column, found["default_prior"], len(found["effects"]))]
    if found["kernel_parts"] is None:
        return [f"kernel: {found['kernel']}"]
    together: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for part in found["kernel_parts"]:
        together.setdefault(_varying(part["lengths"], found["effects"]), []).append(part)
    sized = []
    for names, parts in together.items():
        size = float(np.hypot.reduce([part["std"] for part in parts]))
        sized.append((size, _part_sentence(title, size, names, parts)))
    sized.sort(key=lambda pair: -pair[0])
    sentences = [sentence for _, sentence in sized[:_MOST_PARTS]]
    if len(sized) > _MOST_PARTS:
        rest = f"prior: and less in {len(sized) - _MOST_PARTS} more ways"
        if medium.all_numbers:
            rest = f"{rest}: see {medium.all_numbers}"
        sentences.append(rest)
    return sentences


def _default_sentence(column: Column, prior: Json, inputs: int) -> str:
    spread = format_short(prior["std"], 2)
    if column.is_rate:
        spread = f"{format_short(100 * prior['std'], 2)} percentage points"
    elif column.unit:
        spread = f"{spread} {column.unit}"
    size = f"prior: {column.title} usually varies by ±{spread}"
    if inputs > 1:
        orders = zip(prior["shares"], _ORDERS, strict=False)
        fractions = ", ".join(
            f"{100 * fraction:.0f} % {order}"
            for fraction, order in orders
            if fraction >= _LEAST_FRACTION
        )
        size = f"{size} (of its variance {fractions})"
    length = f"{100 * prior['length']:.0f} % of its spread"
    return f"{size}; to change it much, an input has to move by about {length}"


def _part_sentence(
    output: str, size: float, names: tuple[str, ...], parts: list[dict[str, Any]]
) -> str:
    if not names:
        return (
            f"prior: the level of {output} is usually within "
            f"±{format_short(size, 2)} of the middle of its range"
        )
    lengths = " or ".join(
        f"{_span([part['lengths'][name] for part in parts])} of {name}" for name in names
    )
    return f"prior: {output} usually varies by ±{format_short(size, 2)} over about {lengths}"


def _varying(lengths: dict[str, float | None], effects: Json) -> tuple[str, ...]:
    """The inputs along which something changes within their range."""
    found = []
    for name, length in lengths.items():
        first, *_, last = effects[name]["at"]
        numbers = isinstance(first, (int, float))
        if length is not None and (not numbers or length < last - first):
            found.append(name)
    return tuple(found)


def _span(lengths: list[float]) -> str:
    shortest = format_short(min(lengths), 2)
    longest = format_short(max(lengths), 2)
    if shortest == longest:
        return shortest
    return f"{shortest} – {longest}"
