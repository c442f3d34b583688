"""Options of ``reticent fit`` that only some models have. A new one is a line here; a model has it if its class does."""

from reticent.apps.options import LevelColumn, option

__all__ = ["OWN", "read_bins"]


OWN = {  # the parameter of the class, and what can be said; the words before the colon are the models that have it
    "bins": option(str, "NUMBER", "histogram, gp-binned: number of bins of each column; gp-binned also 12,8."),
    "kind": option(str, "KIND", "gp-binned: mean of the output, or count of records (no --y)."),
    "protect": option(str, "WHAT", "gp-binned: records, or labels where all inputs are public; records if left out."),
    "noise": option(
        float, "SD", "gp, gp-labels, gp-binned: spread of outputs with the same inputs; learned if left out."
    ),
    "noise_column": (LevelColumn, None),
    "n_clusters": option(int, "K", "kmeans: number of clusters; 8 if left out."),
    "n_components": option(int, "K", "mixture, factors, components: how many of them."),
    "basis": option(int, "NUMBER", "gp, classifier: number of basis functions; chosen from ε and n if left out."),
    "method": option(str, "METHOD", "classifier: softmax (nearly always best), labels or dirichlet."),
    "covariance_type": option(str, "TYPE", "mixture: full (if left out), tied, diag or spherical.", "--covariance"),
    "mechanism": option(str, "NAME", "gp-labels: cloak (if left out), functional or inducing."),
}


def read_bins(text: str | None) -> int | list[int] | str | None:
    """Read ``--bins 12`` or, one number for each input, ``--bins 12,8``; what is neither is left for the model to refuse.

    >>> read_bins("12"), read_bins("12,8"), read_bins("many")
    (12, [12, 8], 'many')
    """
    numbers = [part.strip() for part in (text or "").split(",")]
    if not all(part.isascii() and part.isdigit() for part in numbers):
        return text
    found = [int(part) for part in numbers]
    return found if len(found) > 1 else found[0]
