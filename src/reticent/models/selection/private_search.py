"""Private search: try candidates many times, release the best run only.

Proof: private_search.md and privacy/accounting/selection.md.

A run draws a candidate, fits it on the training half of the records and scores it on the validation
half, both with Gaussian noise of the same multiplier. How many runs there are is drawn before a
record is read. The best run's releases are given away, and the search costs little more than one
run would; a grid search that shows every fit costs all of them.
"""

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from reticent.errors import BadInput
from reticent.models.base import COMMON, PrivateEstimator
from reticent.models.replay import Replay
from reticent.models.selection.scoring import (
    Scoring,
    check_scoring,
    default_scoring,
    release_mean_score,
)
from reticent.models.selection.settings import SEARCH
from reticent.privacy.accounting.composition import calibrate, epsilon
from reticent.privacy.accounting.events import Event, Gaussian, Selection
from reticent.privacy.accounting.selection import calibrate_selection, liu_talwar_split, stop_for
from reticent.privacy.bounds import Bounds
from reticent.privacy.curator import Candidate, Curator, Oracle, Release
from reticent.privacy.sources.base import Source
from reticent.privacy.unit import PrivacyUnit
from reticent.validation import as_float, check_choice

if TYPE_CHECKING:
    from sklearn.utils import Tags

__all__ = ["PrivateSearch"]

_OF_THE_SEARCH = COMMON - {"bounds"}  # parameters that no candidate can set
# who is protected: the search says it for all candidates
_OF_THE_UNIT = tuple(one.name for one in fields(PrivacyUnit) if one.name in COMMON)
_SCHEMES = ("papernot-steinke", "liu-talwar")
_RUN_COUNT_DISTRIBUTIONS = ("logarithmic", "geometric")


def _has(name: str) -> Callable[["PrivateSearch"], bool]:
    """Whether the estimator has a method: then the search has it too."""
    return lambda search: hasattr(search.estimator, name)


@dataclass(frozen=True)
class PreparedCandidate:
    """A candidate that was validated before the charge, and what its validation prepared."""

    model: PrivateEstimator
    prepared: object


@dataclass(repr=False, eq=False)
class PrivateSearch(PrivateEstimator):
    """Choice of parameters that change what is released, with differential privacy.

    Such as columns, bounds, kernel or bins.

    Parameters
    ----------
    estimator : private estimator
        What is fitted. Its own epsilon, delta, ledger and data set are not used, its bounds only if
        none are given here.
    candidates : list of dict, or dict of lists
        Parameters to try: each a dict for ``estimator.set_params``, or all combinations of a grid.
        ``bounds`` may be among them.
    scheme : "papernot-steinke" or "liu-talwar"
        How noise is calibrated: by the bound of selection.md, or as in Honkela et al. (2021), which
        asks for far more.
    expected_runs : float, optional
        How many runs are expected: eight for each candidate if not given, or one for a single
        candidate. More find better ones more surely, at the price of time and of a little noise.
    run_count_distribution : "geometric" or "logarithmic"
        Distribution of the number of runs.
    scoring : str or function, optional
        How a fitted candidate is scored, record by record: "absolute" (the default for
        numbers), "squared" or "likelihood"; "accuracy" (the default for labels) or "log"; "density"
        (for records without outputs); or a function of (model, X, y) that gives a number in [0, 1]
        for each record. It is called for one record at a time, so that it is slow; where it fails,
        that record has the worst score. It must not keep or print what it sees.
    mean : "robust", "clipped" or "coinpress"
        How the mean of the scores is taken: with the lowest 5 % clipped to where the others begin;
        of all, at once; or in steps that narrow (Biswas et al. 2020), which suits "likelihood"
        best.
    validation : float
        Fraction of the records, chosen at random by row number, that candidates are scored on and
        not fitted to. With ``person`` a fraction of the people, with all of their records.
    bounds, epsilon, delta, ledger, dataset, records_per_person, random_state, person, \
contribution, neighbours, weight, weight_bound
        As for every private estimator (``PrivateEstimator``), for the search as a whole. ``delta``
        must be positive. The bounds of the outputs are what all candidates are scored within,
        whatever their own are.

    Attributes
    ----------
    best_estimator_ : private estimator
        The best run's fit, on the training half. Its guarantee is that of the whole search.
    best_candidate_, best_index_
        Its parameters, and their place among the candidates.
    best_score_, best_score_sd_ : float
        Its noisy mean score, higher is better, and the standard deviation of the noise. Being the
        best of several, it flatters.
    candidates_ : list of dict
    guarantee_, releases_, n_features_in_, feature_names_in_
        As for every private estimator.

    Privacy
    -------
    Neighbours: one record replaced, number of records public. Released: the best run's releases,
    its candidate and its noisy score; not how many runs there were, nor the other candidates'
    scores. Must be public: the candidates, the bounds, the number of records, all parameters. How
    long a search takes depends on the number of runs: don't let an attacker measure it. ``score``
    reads the records it is given without protection. A search can share an account only if it was
    charged first.

    Examples
    --------
    >>> import numpy as np, reticent
    >>> ages = np.random.default_rng(0).gamma(9, 5, size=(20_000, 1))
    >>> search = reticent.PrivateSearch(
    ...     reticent.PrivateHistogram(),
    ...     {"bins": [3, 200]},
    ...     bounds=reticent.Bounds(x=(0, 110)),
    ...     epsilon=1,
    ...     delta=1e-6,
    ... ).fit(ages)
    >>> search.best_candidate_ in [{"bins": 3}, {"bins": 200}]  # 200 is far likelier
    True
    >>> round(search.guarantee_.epsilon, 6)
    1.0
    """

    _pure = False
    _targets = property(lambda self: bool(getattr(self.estimator, "_targets", False)))

    estimator: Any = None
    candidates: Any = None
    _: KW_ONLY
    scheme: str = "papernot-steinke"
    expected_runs: float | None = None
    run_count_distribution: str = "geometric"
    scoring: Any = None
    mean: str = "robust"
    validation: float = 0.5

    def _grid(self) -> list[dict[str, Any]]:
        """All candidates, one dict each."""
        candidates = self.candidates
        if isinstance(candidates, Mapping):
            if not candidates or not all(map(_is_list_of_values, candidates.values())):
                raise BadInput(
                    "A grid of candidates is a dict of lists, for example {'bins': [10, 20]}."
                )
            grid = {name: list(values) for name, values in candidates.items()}
            candidates = list(ParameterGrid(grid))
        if not isinstance(candidates, (list, tuple)) or not all(
            isinstance(candidate, Mapping) for candidate in candidates
        ):
            raise BadInput(
                "candidates must be a list of dicts of parameters, or one dict of lists (a grid)."
            )
        if not 1 <= len(candidates) <= SEARCH.most_candidates:
            raise BadInput(
                f"A search needs from 1 to {SEARCH.most_candidates:,} candidates, "
                f"not {len(candidates)}."
            )
        return [dict(candidate) for candidate in candidates]

    def _check(self) -> None:
        if not isinstance(self.estimator, PrivateEstimator) or isinstance(
            self.estimator, PrivateSearch
        ):
            raise BadInput(
                "estimator must be a private estimator such as GPRegressor(), "
                f"not {self.estimator!r}."
            )
        self._check_relation(self.estimator)
        self._check_estimator_unit()
        for name, known in (
            ("scheme", _SCHEMES),
            ("run_count_distribution", _RUN_COUNT_DISTRIBUTIONS),
        ):
            check_choice(name, getattr(self, name), known)
        if self.scheme == "liu-talwar" and self.run_count_distribution != "geometric":
            raise BadInput(
                "scheme='liu-talwar' has a geometric number of runs: leave "
                "run_count_distribution out."
            )
        if not 0 < as_float(self.validation) < 1:
            raise BadInput(
                "validation must be a fraction of the records between 0 and 1, "
                f"not {self.validation!r}."
            )
        known_names = self.estimator.get_params()
        for candidate in self._grid():
            for name in candidate:
                if name in _OF_THE_SEARCH or name not in known_names:
                    settable = sorted(set(self.estimator.get_params(deep=False)) - _OF_THE_SEARCH)
                    raise BadInput(
                        f"A candidate cannot set {name!r}. "
                        f"{type(self.estimator).__name__} has: {', '.join(settable)}."
                    )

    def _check_estimator_unit(self) -> None:
        """Refuse an estimator that says of who is protected what the search does not."""
        defaults = {one.name: one.default for one in fields(PrivacyUnit)}
        for name in _OF_THE_UNIT:
            own = getattr(self.estimator, name)
            if own not in (defaults[name], getattr(self, name)):
                raise BadInput(
                    f"{name}={own!r} of the estimator is not used in a search: give {name} to "
                    "PrivateSearch itself.",
                    parameter=name,
                )

    def _validate_unit(self, unit: PrivacyUnit) -> None:
        for candidate in self._grid():
            clone(self.estimator).set_params(**candidate)._validate_unit(unit)

    def _bounds(self) -> Bounds:
        if self.bounds is None and isinstance(getattr(self.estimator, "bounds", None), Bounds):
            return self.estimator.bounds
        return super()._bounds()

    def _event(self) -> Event:
        """What the search costs as a whole."""
        self._check_privacy_unit()
        self._check()
        bounds = self._bounds()
        scoring = self._resolved_scoring(bounds)
        check_scoring(scoring, self.mean, targets=self._targets, bounds=bounds)
        eps, delta = self._promise()
        candidates = len(self._grid())
        runs: float = 1
        if self.expected_runs is not None:
            runs = self.expected_runs
        elif candidates > 1:
            runs = SEARCH.runs_per_candidate * candidates
        shape = _RUN_COUNT_DISTRIBUTIONS.index(self.run_count_distribution)
        stop = stop_for(runs, shape)
        if self.scheme == "liu-talwar":
            each_eps, each_delta, most = liu_talwar_split(eps, delta, stop)
            return Selection(
                noise_multiplier=calibrate(each_eps, each_delta), stop=stop, most=max(most, 1)
            )
        return Selection(
            noise_multiplier=calibrate_selection(eps, delta, shape=shape, stop=stop),
            shape=shape,
            stop=stop,
        )

    def _resolved_scoring(self, bounds: Bounds) -> Scoring:
        """The user's scoring, or the default for these outputs."""
        if self.scoring is not None:
            return self.scoring
        return default_scoring(self._targets, bounds)

    def _model(self, index: int, multiplier: float) -> PrivateEstimator:
        """The estimator with a candidate's parameters, and the budget of one run."""
        _, delta = self._promise()
        candidate = self._grid()[index]
        model: PrivateEstimator = clone(self.estimator).set_params(**candidate)
        if "bounds" not in candidate:
            model.set_params(bounds=self._bounds())
        run_event = Gaussian(noise_multiplier=multiplier * SEARCH.noise_margin)
        return model.set_params(
            epsilon=epsilon(run_event, delta),
            delta=delta,
            ledger=None,
            dataset=None,
            random_state=None,
            **{name: getattr(self, name) for name in _OF_THE_UNIT},
        )

    def _check_relation(self, model: PrivateEstimator) -> None:
        if model._relation != self._relation:
            raise BadInput(
                f"{type(model).__name__} protects less than whole records, and a search cannot "
                "promise more: choose an estimator that protects whole records."
            )

    def _prepare(
        self, data: Source, bounds: Bounds
    ) -> tuple[Sequence[PreparedCandidate], dict[str, Any]]:
        """Validate every candidate before anything is charged."""
        multiplier = self._event().noise_multiplier  # type: ignore[attr-defined]
        bounds.resolve(data, targets=self._targets)
        scoring_event = self._scoring_event(multiplier)
        prepared_candidates = []
        candidates = []
        for index in range(len(self._grid())):
            model = self._model(index, multiplier)
            self._check_relation(model)
            event = model._event()
            model_bounds = model._bounds()
            prepared = model._validate_before_charge(
                model_bounds.resolve(data, targets=self._targets)[0]
            )
            assert isinstance(event, Gaussian)
            # as the user gave them: a noise column is among what a model is scored with
            scored_within = self._scoring_bounds(PrivateEstimator._bounds(model), bounds)
            candidates.append(Candidate(model_bounds, scored_within, event, scoring_event))
            prepared_candidates.append(PreparedCandidate(model, prepared))
        return prepared_candidates, {
            "candidates": candidates,
            "validation": float(self.validation),
        }

    def _scoring_event(self, multiplier: float) -> Gaussian:
        """The noise of the scores, with the budget of one run."""
        shares = SEARCH.shares(self.mean)
        noise = multiplier * math.sqrt(shares) * SEARCH.noise_margin
        return Gaussian(count=shares, noise_multiplier=noise)

    def _scoring_bounds(self, model_bounds: Bounds, bounds: Bounds) -> Bounds:
        """A candidate's own inputs, and the outputs as all candidates have them.

        Narrow bounds must not make a task easy.
        """
        if model_bounds == bounds:
            return model_bounds
        if not self._targets and not callable(self.scoring):
            raise BadInput(
                "Densities within different bounds cannot be compared: give all candidates the "
                "same bounds, or a function as scoring."
            )
        fields = bounds.to_dict()
        outputs = {name: fields[name] for name in ("y", "y_names", "classes")}
        outputs["y_kinds"] = [kind.to_dict() for kind in bounds.y_kinds]
        return Bounds.from_dict({**model_bounds.to_dict(), **outputs})

    def _ledger_description(self, event: Event) -> str:
        return f"PrivateSearch of {type(self.estimator).__name__}, {len(self._grid())} candidates"

    def learn(self, curator: Oracle) -> None:
        """Have the runs made, and rebuild the best one from its releases."""
        self._learn_prepared(curator, ())

    def _learn_prepared(self, curator: Oracle, prepared: object) -> None:
        """The same with candidates that were validated, one for each point of the grid."""
        if not isinstance(curator, (Curator, Replay)):
            raise BadInput(
                "A search learns from a curator that was paid for it, or from its replay: call "
                "fit, or from_releases."
            )
        scoring = self._resolved_scoring(self._bounds())
        candidates = cast("Sequence[PreparedCandidate]", prepared)
        choice = curator.choose(_make_run(candidates, scoring, self.mean))
        event = choice.training[0].event
        assert isinstance(event, Selection)
        model = self._model(choice.index, event.noise_multiplier)
        self.candidates_ = self._grid()
        self.best_index_ = choice.index
        self.best_candidate_ = self.candidates_[choice.index]
        self.best_estimator_ = type(model).from_releases(
            choice.training, **model.get_params(deep=False)
        )
        replay = Replay(choice.validation, paid=self._scoring_event(event.noise_multiplier))
        mean_score = release_mean_score(self.best_estimator_, replay, scoring, self.mean)
        replay.check_used()
        self.best_score_ = mean_score.score
        self.best_score_sd_ = mean_score.sd
        if hasattr(self.best_estimator_, "classes_"):
            self.classes_ = self.best_estimator_.classes_

    def _fitted(self, releases: list[Release]) -> Self:
        super()._fitted(releases)
        self._params["estimator"] = clone(self.estimator)  # not what is set later
        return self

    def _best(self) -> Any:
        """The best estimator, whose methods depend on what is searched."""
        check_is_fitted(self)
        return self.best_estimator_

    @available_if(_has("predict"))  # type: ignore[untyped-decorator]
    def predict(self, X: object, **options: Any) -> Any:
        """Predict with the best estimator."""
        return self._best().predict(X, **options)

    @available_if(_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: object) -> Any:
        """Probabilities of the classes, by the best estimator."""
        return self._best().predict_proba(X)

    @available_if(_has("variance_parts"))  # type: ignore[untyped-decorator]
    def variance_parts(self, X: object) -> Any:
        """Variances of outputs by their causes, by the best estimator."""
        return self._best().variance_parts(X)

    @available_if(_has("score_samples"))  # type: ignore[untyped-decorator]
    def score_samples(self, X: object) -> Any:
        """Score of each record, by the best estimator. Not protected."""
        return self._best().score_samples(X)

    @available_if(_has("sample"))  # type: ignore[untyped-decorator]
    def sample(self, n_samples: int = 1, random_state: object = None) -> Any:
        """Draw synthetic records from the best estimator."""
        return self._best().sample(n_samples, random_state)

    @available_if(_has("score"))  # type: ignore[untyped-decorator]
    def score(self, X: object, y: object = None) -> float:
        """Score of the best estimator on the records given. Not protected."""
        if y is None:
            return float(self._best().score(X))
        return float(self._best().score(X, y))

    def __sklearn_tags__(self) -> "Tags":
        tags = super().__sklearn_tags__()
        inner = getattr(self.estimator, "__sklearn_tags__", None)
        if inner is not None:
            inner_tags = inner()
            tags.estimator_type = inner_tags.estimator_type
            tags.target_tags = inner_tags.target_tags
            tags.regressor_tags = inner_tags.regressor_tags
            tags.classifier_tags = inner_tags.classifier_tags
        return tags


def _is_list_of_values(values: object) -> bool:
    return isinstance(values, (list, tuple, np.ndarray)) and len(values) > 0


def _make_run(
    candidates: Sequence[PreparedCandidate], scoring: Scoring, mean: str
) -> Callable[[int, Oracle, Oracle], float]:
    """One run: fit a copy of the candidate, score it, forget it."""

    def run(index: int, training: Oracle, validation: Oracle) -> float:
        candidate = candidates[index]
        model = copy.copy(candidate.model)
        model._learn_prepared(training, candidate.prepared)
        model._fitted(cast("Curator", training).releases)
        return release_mean_score(model, validation, scoring, mean).score

    return run
