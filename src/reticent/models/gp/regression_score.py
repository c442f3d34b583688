"""R² of regressions with one output, of rows that lack nothing."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

if TYPE_CHECKING:
    from reticent.privacy.release import Release

__all__ = ["RegressionScore"]


class RegressionScore(RegressorMixin):  # type: ignore[misc]
    """`score` of a model that predicts NaN where an input is missing."""

    releases_: "list[Release]"

    def score(self, X: object, y: Any, sample_weight: Any = None) -> float:
        """R² of the predictions for the outputs ``y``. Not protected.

        Rows that lack an input or the output are left out; NaN if all do.
        """
        from sklearn.metrics import r2_score

        predicted = np.asarray(self.predict(X))
        outputs = self._output_codes(y)
        known = np.isfinite(predicted) & np.isfinite(outputs)
        if not known.any():
            return math.nan
        weights = None
        if sample_weight is not None:
            weights = np.asarray(sample_weight)[known]
        return float(r2_score(outputs[known], predicted[known], sample_weight=weights))

    def _output_codes(self, y: Any) -> NDArray[np.float64]:
        """Outputs that a user gives, as numbers (rows,); NaN where they are missing."""
        given = np.asarray(y).ravel()
        kinds = self.releases_[0].bounds.y_kinds
        if not kinds:  # a model of counts is asked for densities
            return given.astype(np.float64)
        if given.dtype.kind in "biuf":
            return kinds[0].code_numbers(given.astype(np.float64))
        return np.array([kinds[0].code_value(value) for value in given.tolist()])
