"""Private search: try candidates many times, tell the best run only. Proof: search.md and privacy/selection.md.

A run draws a candidate, fits it on the training half of the records and judges it on the validation half, both with Gaussian
noise of the same multiplier. How many runs there are is drawn before a record is read. The best run's releases are given away,
and the search costs little more than one run would; a grid search that shows every fit costs all of them.
"""

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from reticent.errors import BadInput
from reticent.models.base import COMMON, PrivateEstimator
from reticent.models.judging import MEANS, check, default_score, judge
from reticent.privacy.accounting import calibrate, epsilon
from reticent.privacy.bounds import Bounds
from reticent.privacy.curator import Candidate, Curator, Oracle, Release, Replay
from reticent.privacy.events import Event, Gaussian, Selection
from reticent.privacy.given import check_choice, check_whole, number
from reticent.privacy.selection import calibrate_selection, liu_talwar_split, stop_for
from reticent.privacy.sources import Source

__all__ = ["PrivateSearch"]

_NO_CANDIDATES = COMMON - {"bounds"}  # of the search as a whole
_SCHEMES, _LAWS = ("papernot-steinke", "liu-talwar"), ("logarithmic", "geometric")
_EACH = 8  # expected runs for each candidate: the best one is then tried with a chance of 89 %
_SLACK = 1 + 1e-9  # a run has a little more noise than is paid for, so that no rounding can make it less
_MOST = 1000


def _has(name: str) -> Callable[["PrivateSearch"], bool]:
    """Whether the estimator has a method: then the search has it too."""
    return lambda search: hasattr(search.estimator, name)


@dataclass(repr=False, eq=False)
class PrivateSearch(PrivateEstimator):
    """Choice of parameters that change what is released (columns, bounds, kernel, bins), with differential privacy.

    Parameters
    ----------
    estimator : private estimator
        What is fitted. Its own epsilon, delta, ledger and data set are not used, its bounds only if none are given here.
    candidates : list of dict, or dict of lists
        Parameters to try: each a dict for ``estimator.set_params``, or all combinations of a grid. ``bounds`` may be among them.
    scheme : "papernot-steinke" or "liu-talwar"
        How noise is calibrated: by the bound of selection.md, or as in Honkela et al. (2021), which asks for far more.
    expected_runs : float, optional
        How many runs are expected: eight for each candidate if not given, or one for a single candidate. More find better ones
        more surely, at the price of time and of a little noise.
    law : "geometric" or "logarithmic"
        The law of the number of runs.
    scoring : str or function, optional
        What a fitted candidate is judged by, record by record: "absolute" (the default for numbers), "squared" or "likelihood";
        "accuracy" (the default for labels) or "log"; "density" (for records without outputs); or a function of
        (model, X, y) that gives a number in [0, 1] for each record. It is called for one record at a time, so that it is slow;
        where it fails, that record has the worst score. It must not keep or print what it sees.
    mean : "robust", "clipped" or "coinpress"
        How the mean of the scores is taken: with the lowest 5 % held to where the others begin; of all, at once; or in steps
        that narrow (Biswas et al. 2020), which suits "likelihood" best.
    validation : float
        Share of the records, chosen at random by row number, that candidates are judged by and not fitted to.
    bounds, epsilon, delta, ledger, dataset, records_per_person, random_state
        As for every private estimator (``PrivateEstimator``), for the search as a whole. ``delta`` must be positive. The bounds
        of the outputs are what all candidates are judged within, whatever their own are.

    Attributes
    ----------
    best_estimator_ : private estimator
        The best run's fit, on the training half. Its guarantee is that of the whole search.
    best_candidate_, best_index_
        Its parameters, and their place among the candidates.
    best_score_, best_score_sd_ : float
        Its noisy mean score, higher is better, and the standard deviation of the noise. Being the best of several, it flatters.
    candidates_ : list of dict
    guarantee_, releases_, n_features_in_, feature_names_in_
        As for every private estimator.

    Privacy
    -------
    Neighbours: one record replaced, number of records public. Released: the best run's releases, its candidate and its noisy
    score; not how many runs there were, nor the other candidates' scores. Must be public: the candidates, the bounds, the number
    of records, all parameters. How long a search takes depends on the number of runs: don't let an attacker measure it. ``score``
    reads the records it is given without protection. A search can share an account only if it was charged first.

    Examples
    --------
    >>> import numpy as np, reticent
    >>> ages = np.random.default_rng(0).gamma(9, 5, size=(20_000, 1))
    >>> search = reticent.PrivateSearch(
    ...     reticent.PrivateHistogram(), {"bins": [3, 200]}, bounds=reticent.Bounds(x=(0, 110)), epsilon=1, delta=1e-6
    ... ).fit(ages)
    >>> search.best_candidate_ in [{"bins": 3}, {"bins": 200}]  # which one is chance, though 200 is far likelier
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
    law: str = "geometric"
    scoring: Any = None
    mean: str = "robust"
    validation: float = 0.5

    def _grid(self) -> list[dict[str, Any]]:
        """All candidates, one dict each."""
        given = self.candidates
        if isinstance(given, Mapping):
            if not given or not all(isinstance(v, (list, tuple, np.ndarray)) and len(v) for v in given.values()):
                raise BadInput("A grid of candidates is a dict of lists, for example {'bins': [10, 20]}.")
            given = list(ParameterGrid({name: list(values) for name, values in given.items()}))
        if not isinstance(given, (list, tuple)) or not all(isinstance(one, Mapping) for one in given):
            raise BadInput("candidates must be a list of dicts of parameters, or one dict of lists (a grid).")
        if not 1 <= len(given) <= _MOST:
            raise BadInput(f"A search needs from 1 to {_MOST:,} candidates, not {len(given)}.")
        return [dict(one) for one in given]

    def _check(self) -> None:
        if not isinstance(self.estimator, PrivateEstimator) or isinstance(self.estimator, PrivateSearch):
            raise BadInput(f"estimator must be a private estimator such as GPRegressor(), not {self.estimator!r}.")
        self._check_relation(self.estimator)
        for name, known in (("scheme", _SCHEMES), ("law", _LAWS)):
            check_choice(name, getattr(self, name), known)
        if self.scheme == "liu-talwar" and self.law != "geometric":
            raise BadInput("scheme='liu-talwar' has a geometric number of runs: leave law out.")
        share = self.validation
        if not 0 < number(share) < 1:
            raise BadInput(f"validation must be a share of the records between 0 and 1, not {share!r}.")
        names = self.estimator.get_params()
        for one in self._grid():
            for name in one:
                if name in _NO_CANDIDATES or name not in names:
                    own = ", ".join(sorted(set(self.estimator.get_params(deep=False)) - _NO_CANDIDATES))
                    raise BadInput(f"A candidate cannot set {name!r}. {type(self.estimator).__name__} has: {own}.")

    def _bounds(self) -> Bounds:
        if self.bounds is None and isinstance(getattr(self.estimator, "bounds", None), Bounds):
            return self.estimator.bounds
        return super()._bounds()

    def _event(self) -> Event:
        """What the search costs as a whole."""
        check_whole("records_per_person", self.records_per_person, 1, 10**6)
        self._check()
        bounds = self._bounds()
        check(self._scoring(bounds), self.mean, targets=self._targets, bounds=bounds)
        eps, delta = self._promise()
        number = len(self._grid())
        runs = self.expected_runs if self.expected_runs is not None else (_EACH * number if number > 1 else 1)
        shape = _LAWS.index(self.law)
        stop = stop_for(runs, shape)
        if self.scheme == "liu-talwar":
            each_eps, each_delta, most = liu_talwar_split(eps, delta, stop)
            return Selection(noise_multiplier=calibrate(each_eps, each_delta), stop=stop, most=max(most, 1))
        return Selection(
            noise_multiplier=calibrate_selection(eps, delta, shape=shape, stop=stop), shape=shape, stop=stop
        )

    def _scoring(self, bounds: Bounds) -> Any:
        return self.scoring if self.scoring is not None else default_score(self._targets, bounds)

    def _model(self, index: int, multiplier: float) -> PrivateEstimator:
        """The estimator with a candidate's parameters, and the budget of one run."""
        _, delta = self._promise()
        model: PrivateEstimator = clone(self.estimator).set_params(**self._grid()[index])
        if "bounds" not in self._grid()[index]:
            model.set_params(bounds=self._bounds())
        one_run = epsilon(Gaussian(noise_multiplier=multiplier * _SLACK), delta)
        own = {"ledger": None, "dataset": None, "random_state": None, "records_per_person": self.records_per_person}
        return model.set_params(epsilon=one_run, delta=delta, **own)

    def _check_relation(self, model: PrivateEstimator) -> None:
        if model._relation != self._relation:
            raise BadInput(f"{type(model).__name__} protects less than whole records: a search cannot promise more.")

    def _prepare(self, data: Source, bounds: Bounds) -> dict[str, Any]:
        """Rehearse every candidate, so that one that makes no sense is found before anything is charged."""
        multiplier = self._event().noise_multiplier  # type: ignore[attr-defined]
        bounds.resolve(data, targets=self._targets)
        judging = self._judging(multiplier)
        ready, candidates = [], []
        for index in range(len(self._grid())):
            model = self._model(index, multiplier)
            self._check_relation(model)
            event, own = model._event(), model._bounds()
            model._rehearse(own.resolve(data, targets=self._targets)[0])
            assert isinstance(event, Gaussian)
            # as they were given: a noise column is among what a model is judged with
            candidates.append(Candidate(own, self._judged(PrivateEstimator._bounds(model), bounds), event, judging))
            ready.append(model)
        self._ready = ready
        return {"candidates": candidates, "validation": float(self.validation)}

    def _judging(self, multiplier: float) -> Gaussian:
        """The noise of the scores, with the budget of one run."""
        steps = MEANS[self.mean]
        return Gaussian(count=steps, noise_multiplier=multiplier * math.sqrt(steps) * _SLACK)

    def _judged(self, own: Bounds, bounds: Bounds) -> Bounds:
        """A candidate's own inputs, and the outputs as all candidates have them: narrow bounds must not make a task easy."""
        if own == bounds:
            return own
        if not self._targets and not callable(self.scoring):
            raise BadInput(
                "Densities within different bounds cannot be compared: give all candidates the same bounds, or a function "
                "as scoring."
            )
        fields = bounds.to_dict()
        return Bounds.from_dict({**own.to_dict(), **{name: fields[name] for name in ("y", "y_names", "classes")}})

    def _what(self, event: Event) -> str:
        return f"PrivateSearch of {type(self.estimator).__name__}, {len(self._grid())} candidates"

    def learn(self, curator: Oracle) -> None:
        """Have the runs made, and rebuild the best one from its releases."""
        if not isinstance(curator, (Curator, Replay)):
            raise BadInput("A search learns from a curator that was paid for it, or from its replay.")
        scoring = self._scoring(self._bounds())
        choice = curator.choose(_attempt(self.__dict__.pop("_ready", []), scoring, self.mean))
        event = choice.training[0].event
        assert isinstance(event, Selection)
        model = self._model(choice.index, event.noise_multiplier)
        self.candidates_ = self._grid()
        self.best_index_, self.best_candidate_ = choice.index, self.candidates_[choice.index]
        self.best_estimator_ = type(model).from_releases(choice.training, **model.get_params(deep=False))
        replay = Replay(choice.validation, paid=self._judging(event.noise_multiplier))
        told = judge(self.best_estimator_, replay, scoring, self.mean)
        replay.check_used()
        self.best_score_, self.best_score_sd_ = told.score, told.sd
        if hasattr(self.best_estimator_, "classes_"):
            self.classes_ = self.best_estimator_.classes_

    def _fitted(self, releases: list[Release]) -> Self:
        super()._fitted(releases)
        self._params["estimator"] = clone(self.estimator)  # not what is set later
        return self

    def _best(self) -> Any:
        check_is_fitted(self)
        return self.best_estimator_

    @available_if(_has("predict"))  # type: ignore[untyped-decorator]
    def predict(self, X: Any, **options: Any) -> Any:
        """Predict with the best estimator."""
        return self._best().predict(X, **options)

    @available_if(_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes, by the best estimator."""
        return self._best().predict_proba(X)

    @available_if(_has("variance_parts"))  # type: ignore[untyped-decorator]
    def variance_parts(self, X: Any) -> Any:
        """Variances of outputs by their causes, by the best estimator."""
        return self._best().variance_parts(X)

    @available_if(_has("score_samples"))  # type: ignore[untyped-decorator]
    def score_samples(self, X: Any) -> Any:
        """Score of each record, by the best estimator. Not protected."""
        return self._best().score_samples(X)

    @available_if(_has("sample"))  # type: ignore[untyped-decorator]
    def sample(self, n_samples: int = 1, random_state: Any = None) -> Any:
        """Draw synthetic records from the best estimator."""
        return self._best().sample(n_samples, random_state)

    @available_if(_has("score"))  # type: ignore[untyped-decorator]
    def score(self, X: Any, y: Any = None) -> float:
        """Score of the best estimator on the records given. Not protected."""
        return float(self._best().score(X) if y is None else self._best().score(X, y))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = getattr(self.estimator, "__sklearn_tags__", None)
        if inner is not None:
            own = inner()
            tags.estimator_type, tags.target_tags = own.estimator_type, own.target_tags
            tags.regressor_tags, tags.classifier_tags = own.regressor_tags, own.classifier_tags
        return tags


def _attempt(ready: Sequence[PrivateEstimator], scoring: Any, mean: str) -> Callable[[int, Oracle, Oracle], float]:
    """One run: fit a copy of the candidate, judge it, forget it."""

    def attempt(index: int, training: Any, validation: Any) -> float:
        model = copy.copy(ready[index])
        model.learn(training)
        model._fitted(training.releases)
        return judge(model, validation, scoring, mean).score

    return attempt
