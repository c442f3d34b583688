"""Columns of a model: names of its inputs and outputs, and their public ranges."""

from typing import TYPE_CHECKING

from reticent.reporting.formatting import printable

if TYPE_CHECKING:
    from reticent.models.base import PrivateEstimator
    from reticent.privacy.noise_column import NoiseColumn

__all__ = ["column_names", "noise_column_name", "output_names", "public_ranges"]


def column_names(model: "PrivateEstimator") -> list[str]:
    """Give the names of a model's inputs, or their numbers where they have none."""
    names = getattr(model, "feature_names_in_", [])
    if len(names):
        return [printable(str(name)) for name in names]
    return [f"column {i}" for i in range(model.n_features_in_)]


def noise_column_name(column: "NoiseColumn") -> str:
    """Give the name of a column of noise levels, or its number where it has none."""
    name = f"column {column.at}"
    if column.name:
        name = printable(column.name)
    return f"{name} (noise level)"


def output_names(model: "PrivateEstimator") -> list[str]:
    """Give the names of a model's outputs, or their numbers where they have none."""
    bounds = model.releases_[0].bounds
    if bounds.y_names:
        return [printable(name) for name in bounds.y_names]
    if getattr(model, "kind", "") == "count":
        return ["density"]
    if bounds.classes is not None:
        return ["class"]
    if len(bounds.y) == 1:
        return ["output"]
    return [f"output {j}" for j in range(len(bounds.y))]


def public_ranges(model: "PrivateEstimator") -> list[tuple[str, float, float]]:
    """Give the columns that a model was given ranges of, inputs first, with these ranges."""
    bounds = model.releases_[0].bounds
    names = column_names(model)
    names += [f"{name} (output)" for name, _ in zip(output_names(model), bounds.y, strict=False)]
    found = [(name, *ends) for name, ends in zip(names, (*bounds.x, *bounds.y), strict=True)]
    if bounds.noise_column is None:
        return found
    return [
        *found,
        (noise_column_name(bounds.noise_column), bounds.noise_column.low, bounds.noise_column.high),
    ]
