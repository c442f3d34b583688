"""Models by their word on the command line, and the options that each has.

Nothing here imports a model, so that a wrong option is refused at once; a test compares the table
with the classes.
"""

from dataclasses import dataclass

from reticent.errors import BadInput

__all__ = ["MODEL_WORDS", "ModelWord", "model_word"]


@dataclass(frozen=True)
class ModelWord:
    """One word of ``reticent fit``: the class behind it, what it predicts, and its own options."""

    estimator: str
    options: tuple[str, ...] = ()
    outputs: bool = False  # whether it predicts a column from others
    labels: bool = False  # and whether that column holds labels
    transforms: bool = False  # whether it gives new records their clusters or factors

    @property
    def predicts(self) -> bool:
        """Whether ``reticent predict`` has something to say with it."""
        return self.outputs or self.transforms


MODEL_WORDS = {
    "mean": ModelWord("PrivateMean"),
    "mixture": ModelWord("GaussianMixture", ("n_components", "covariance_type")),
    "histogram": ModelWord("PrivateHistogram", ("bins",)),
    "covariance": ModelWord("PrivateCovariance"),
    "table": ModelWord(
        "PrivateTable", ("bins", "by", "count", "mean", "rate", "total", "quantile", "smooth")
    ),
    "gp": ModelWord("GPRegressor", ("noise", "outcome", "noise_column", "basis"), outputs=True),
    "gp-binned": ModelWord("BinnedGPRegressor", ("bins", "kind", "protect", "noise"), outputs=True),
    "gp-labels": ModelWord("LabelGPRegressor", ("noise", "outcome", "mechanism"), outputs=True),
    "classifier": ModelWord("GPClassifier", ("basis", "method"), outputs=True, labels=True),
    "kmeans": ModelWord("KMeans", ("n_clusters",), transforms=True),
    "factors": ModelWord("FactorAnalysis", ("n_components",), transforms=True),
    "components": ModelWord("PCA", ("n_components",), transforms=True),
}


def model_word(word: str) -> ModelWord:
    """Find a model by its word."""
    if word not in MODEL_WORDS:
        raise BadInput(
            f"There is no model {word!r}: the model comes first, then the file. Models: "
            f"{', '.join(MODEL_WORDS)}."
        )
    return MODEL_WORDS[word]
