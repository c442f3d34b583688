"""The base of every private estimator: ``fit`` is written here, once.

A model adds three things: how many releases it wants (`_releases`), how it learns from them
(`learn`), and what it can do afterwards. Below the call of ``learn`` no record is in scope: a model
sees releases and public numbers only.
"""

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from reticent.about import checked_about
from reticent.errors import BadInput, BoundsMissing
from reticent.models.replay import Replay
from reticent.number_kinds import Limit
from reticent.privacy.accounting.composition import calibrate
from reticent.privacy.accounting.events import Event, Gaussian, Laplace, Selection
from reticent.privacy.accounting.guarantee import Guarantee
from reticent.privacy.bounds import Bounds
from reticent.privacy.curator import Curator, Oracle, Release
from reticent.privacy.oracle import CHOICE
from reticent.privacy.people.unit import REPLACE, PrivacyUnit
from reticent.privacy.people.weight_columns import weight_columns
from reticent.privacy.sources.base import Field, Source, as_source
from reticent.privacy.sources.cell_values import fitting_width
from reticent.privacy.statistics.exact_sum import one_blas_thread
from reticent.validation import check_epsilon_delta, is_integer

if TYPE_CHECKING:
    from sklearn.utils import Tags

__all__ = ["COMMON", "IncompleteRecords", "PrivateEstimator", "columns_words", "seed_bytes"]

_NAMED: Limit[int] = 3  # columns in the history of a ledger
_LONG: Limit[int] = 60  # letters of their names


class IncompleteRecords(UserWarning):
    """Releases say that clearly fewer than all records have the values that a model needs."""


@dataclass(
    kw_only=True, repr=False, eq=False
)  # scikit-learn reads parameters from the signature that this writes
class PrivateEstimator(BaseEstimator, ABC):  # type: ignore[misc]
    """Abstract: a scikit-learn estimator that reads records through a curator only.

    All private estimators have the parameters and attributes that are described here.

    Parameters
    ----------
    bounds : Bounds
        The public range of every column. Required; never taken from the data.
    epsilon, delta : float
        The strength of the promise. Required; yours to decide.
    ledger, dataset : str, optional
        A ledger (path or URL) and the data set's account in it. Every fit is charged there before
        it reads a record.
    records_per_person : int
        How many records may belong to one person, if it is the person and not the record that must
        be protected, and no column tells whose a record is. Believed, and paid for in noise.
    person : str, optional
        Column that tells whose a record is: all records of one person are protected together,
        however many they are, with the noise of one record. Each person counts once: a record of
        somebody who has k counts 1/k. A record without an identifier does not count. In an array,
        the column's position ("2"); or give identifiers to ``fit``.
    contribution : int
        How many records' weight a person may have, with ``person``. With 5, somebody who has one
        record counts a fifth of somebody who has five or more: answers are of records rather than
        of people, and noise is up to five times larger by comparison. Bands of predictions count
        a person as one record at most: right if all of her records say the same, wide if they are
        independent of each other.
    neighbours : "replace" or "add-remove"
        Whether the number of people (or records) is public, or protected too: then it is released
        with a small share of the budget, and used in its place.
    weight, weight_bound : str and float, optional
        Column of record weights (of a survey, for example), and the public number above which a
        weight counts as that number; negative and missing ones count as 0. A record counts as its
        weight by the bound, for noise and for bands: take a bound near the largest weight.
    random_state : int, optional
        Makes the noise repeatable, for tests. Whatever is fitted with it is stamped
        ``private=False``.
    about : dict of str, optional
        Public text for readers of the release: ``title``, ``controller``, ``purpose``, ``source``,
        ``period``, ``contact``, ``note``, and ``confirmed_by``: who confirmed what is assumed.
        Stored with the model, and shown in its report.

    Attributes
    ----------
    guarantee_ : Guarantee
        What is promised, and to whom.
    releases_ : list of Release
        Everything that was learned from the records; all else is computed from it.
    n_features_in_, feature_names_in_
        As in scikit-learn: number and names of the columns.
    """

    _targets: ClassVar[bool] = False  # does it use y?
    _relation: ClassVar[str] = "record"
    _pure: ClassVar[bool] = True  # may delta be 0, for Laplace noise?

    bounds: Bounds | None = None
    epsilon: float | None = None
    delta: float | None = None
    ledger: str | None = None
    dataset: str | None = None
    records_per_person: int = 1
    random_state: object = None
    person: str | int | None = None
    contribution: int = 1
    neighbours: str = REPLACE
    weight: str | int | None = None
    weight_bound: float | None = None
    about: Mapping[str, str] | None = None

    @property
    def _one_each(self) -> bool:
        """Whether each unit weighs one in all, as `PrivacyUnit.one_each`."""
        return self.contribution == 1 and self.weight_bound is None

    @staticmethod
    def _listen(releases: int) -> None:
        """Told by slow fits how many releases they made: what shows progress puts itself here."""

    @property
    def _releases(self) -> int:
        """How many releases ``learn`` may ask for."""
        return 1

    def _check(self) -> None:
        """Raise BadInput for parameters that make no sense; before anything is charged."""
        return

    def _validate_unit(self, unit: PrivacyUnit) -> None:
        """Raise BadInput for who is to be protected if the model cannot; before the charge."""
        return

    def _validate_before_charge(self, bounds: Bounds) -> object:
        """Raise BadInput for parameters that cannot be used with these bounds, one per column.

        Gives what `_learn_prepared` need not compute again: public, such as a prior. None if there
        is nothing.
        """
        return None

    def _prepare(self, data: Source, bounds: Bounds) -> tuple[object, dict[str, Any]]:
        """Check what names, dtypes and shapes of the data show, before anything is charged.

        Gives what validation has prepared, and further arguments of the `Curator`.
        """
        return self._validate_before_charge(bounds.resolve(data, targets=self._targets)[0]), {}

    def _ledger_description(self, event: Event) -> str:
        """What the ledger's history says of a fit."""
        if event.count > 1:
            plural = "s"
        else:
            plural = ""
        return (
            f"{type(self).__name__}, {event.count} release{plural}{columns_words(self._bounds())}"
        )

    @abstractmethod
    def learn(self, curator: Oracle) -> None:
        """Ask ``curator`` for releases and compute the fitted attributes from them."""

    def _learn_prepared(self, curator: Oracle, prepared: object) -> None:
        """Learn with what validation has prepared; a model that prepares nothing just learns."""
        self.learn(curator)

    def fit(
        self,
        X: object,
        y: object = None,
        *,
        person: object = None,
        sample_weight: object = None,
    ) -> Self:
        """Pay, read, learn.

        Parameters
        ----------
        X : array, data frame, path, or ``reticent.scan(...)``
            The records. Lists are records, too; lists of paths are for `reticent.scan`.
        y : array, optional
            The outputs, for models that use them; a data frame or file may hold them as a column
            named in the bounds.
        person, sample_weight : array, optional
            Whose each record is, and how much it counts, where they are no columns of X (see the
            parameters ``person``, ``weight`` and ``weight_bound``).
        """
        event = self._event()
        checked_about(self.about)
        unit = self._privacy_unit(person=person, sample_weight=sample_weight)
        self._validate_unit(unit)
        if self._targets and _is_column(y):
            warnings.warn(
                "A column-vector y was passed when a 1d array was expected: y = y.ravel() does it.",
                DataConversionWarning,
                stacklevel=2,
            )
        if isinstance(X, Source):
            if person is not None or sample_weight is not None:
                raise BadInput(
                    "person and sample_weight beside the records go with arrays and data frames, "
                    "not with a source. Name its columns: person='patient_id', weight='w'."
                )
            data = X
        else:
            outputs = y if self._targets else None
            data = as_source(X, y=outputs, person=person, weight=sample_weight)
        bounds = self._bounds()
        data = bounds.shaped(data, targets=self._targets)
        columns = weight_columns(data, unit)
        data = data.with_apart(*(field.key for field in columns.fields))
        with one_blas_thread():  # as in a rebuild, which must give the same bits
            prepared, options = self._prepare(data, bounds)
        curator = Curator(
            data,
            bounds=bounds,
            event=event,
            targets=self._targets,
            ledger=self.ledger,
            dataset=self.dataset,
            columns_of_weights=columns,
            **unit.to_dict(),
            what=self._ledger_description(event),
            seed=seed_bytes(self.random_state),
            **options,
        )
        try:
            with one_blas_thread():  # the matrices are small
                self._learn_prepared(curator, prepared)
        finally:
            curator.close()
        self._warn_of_large_delta(curator.releases[0].n)
        return self._fitted(curator.releases)

    def _warn_of_large_delta(self, n: int) -> None:
        if (self.delta or 0.0) * n >= 1:
            warnings.warn(
                f"delta = {self.delta:g} is not below 1/n = {1 / n:.2g}: the "
                "promise may fail for somebody. Take it well below, for example "
                f"{10.0 ** -math.ceil(math.log10(100 * n)):.0e}.",
                stacklevel=3,
            )

    @classmethod
    def from_releases(cls, releases: Sequence[Release], **params: Any) -> Self:
        """Rebuild a fitted model from its releases and parameters, without the data.

        The same, bit for bit; on another kind of machine linear algebra may differ in the last
        digits.
        """
        model = cls(**params)
        checked_about(model.about)
        replay = Replay(releases, paid=model._event())
        model._check_unit(releases[0])
        with one_blas_thread():
            model.learn(replay)
        replay.check_used()
        return model._fitted(list(releases))

    def _check_unit(self, release: Release) -> None:
        """Refuse to read a release as if it protected something else than it does."""
        paid = release.unit
        asked = self._privacy_unit(
            person=paid.person if self.person is None else None,
            sample_weight=paid.weight if self.weight is None else None,
        )
        if paid != replace(asked, person=paid.person, weight=paid.weight) or (
            self.person is not None and asked.person != paid.person
        ):
            raise BadInput(
                f"These releases protect any one {paid.who()} ({paid.neighbours}), and "
                f"{type(self).__name__} with these parameters would say any one {asked.who()} "
                f"({asked.neighbours}): rebuild with the parameters they had."
            )

    def _privacy_unit(self, *, person: object = None, sample_weight: object = None) -> PrivacyUnit:
        """Who is protected; ``person`` and ``sample_weight`` are what came beside the records."""
        names: dict[str, str | None] = {}
        for what, column, beside in (
            ("person", self.person, person),
            ("weight", self.weight, sample_weight),
        ):
            name = column
            if column is None and beside is not None:
                name = what
            if is_integer(name, 0):
                name = str(name)
            names[what] = name  # type: ignore[assignment]
        return PrivacyUnit(
            relation=self._relation,
            records_per_person=self.records_per_person,
            contribution=self.contribution,
            neighbours=self.neighbours,
            weight_bound=self.weight_bound,
            **names,
        )

    def save(
        self, path: str | Path, *, overwrite: bool = False, sign_with: str | Path | None = None
    ) -> None:
        """Write the releases and the public parameters to a file.

        It holds nothing else; ``reticent.load`` reads it. A file that exists is refused unless
        ``overwrite=True``: the release in it may have been paid for. ``sign_with``: a private key
        (Ed25519, PEM: ``openssl genpkey -algorithm ed25519``), whose public key then proves who
        wrote the file.
        """
        from reticent.models.serialization import save

        check_is_fitted(self)
        save(self, path, overwrite=overwrite, sign_with=sign_with)

    def report(
        self,
        path: str | Path,
        *,
        ledger: str | None = None,
        expected: Mapping[str, float] | None = None,
        overwrite: bool = False,
    ) -> None:
        """Write the release report.

        One page for people (HTML, opens offline), made from the releases and nothing else.

        Parameters
        ----------
        path : str or Path
            File to write.
        ledger : str, optional
            Ledger whose account is shown. Default: the one that the fit was charged to, which a
            loaded model has forgotten.
        expected : mapping, optional
            A row of a plan, to be shown beside what the model says of itself.
        overwrite : bool
            Replace a file that exists; otherwise it is refused, since somebody may have been given
            it.
        """
        from reticent.models.serialization import check_free
        from reticent.reporting.page.page import write_report

        check_is_fitted(self)
        check_free(Path(path), overwrite=overwrite)
        account = ledger or self._params["ledger"]
        write_report(self, Path(path), ledger=account, expected=expected, overwrite=overwrite)

    def _repr_html_inner(self) -> str:
        """What a notebook shows: a fitted model's results, an unfitted one's parameters."""
        if hasattr(self, "releases_"):
            from reticent.reporting.page.notebook import notebook_fragment

            fragment = notebook_fragment(self)
            if fragment is not None:
                return fragment
        with warnings.catch_warnings():
            # scikit-learn's parser of docstrings does not know our section "Privacy"
            warnings.filterwarnings("ignore", "Unknown section")
            diagram: str = super()._repr_html_inner()
        return diagram

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """The same, and as text: what IPython asks for first."""
        bundle = {"text/plain": repr(self)}
        if get_config()["display"] == "diagram":
            bundle["text/html"] = self._repr_html_inner()
        return bundle

    @available_if(lambda self: hasattr(self, "score_samples"))  # type: ignore[untyped-decorator]
    def score(self, X: object, y: object = None) -> float:
        """Mean of ``score_samples`` over the complete records of ``X``. Not protected.

        NaN if every record lacks a value.
        """
        scores = np.asarray(self.score_samples(X))
        known = scores[~np.isnan(scores)]
        if not len(known):
            return math.nan
        return float(np.mean(known))

    def _bounds(self) -> Bounds:
        if self.bounds is None:
            raise BoundsMissing(
                "The inputs have no bounds, and reticent never takes them from the data (that "
                "would leak the extreme records). Give each column its plausible range: "
                'bounds=reticent.Bounds(x={"age": (0, 110)}).'
            )
        if not isinstance(self.bounds, Bounds):
            raise BadInput(
                f"bounds must be a reticent.Bounds, not {type(self.bounds).__name__}: "
                "Bounds(x=...), y=... if used."
            )
        return self.bounds

    def _event(self) -> Event:
        """What a fit costs: δ > 0 buys Gaussian noise, δ = 0 Laplace noise."""
        eps, delta = self._promise()
        self._check()
        self._check_privacy_unit()
        self._bounds()
        multiplier = calibrate(eps, delta, releases=self._releases)
        kind = Gaussian if delta > 0 else Laplace
        return kind(count=self._releases, noise_multiplier=multiplier)

    def _check_privacy_unit(self) -> None:
        """Refuse parameters that are no unit of privacy, before anything else is looked at."""
        person = None
        sample_weight = None
        # identifiers and weights may still come beside the records
        if not is_integer(self.contribution) or self.contribution != 1:
            person = True
        if self.weight_bound is not None:
            sample_weight = True
        self._privacy_unit(person=person, sample_weight=sample_weight)

    @property
    def _n_is_total_weight(self) -> bool:
        """Whether n is public, and what all records would add up to if none lacked a value.

        Not so where people have less than their full weight, or records weights of their own.
        """
        whole = self.contribution == 1 and self.weight_bound is None
        return whole and self.neighbours == REPLACE

    def _promise(self) -> tuple[float, float]:
        """ε and δ, or what is wrong with them."""
        eps, delta = check_epsilon_delta(self.epsilon, self.delta, pure=True)
        if delta == 0 and not self._pure:
            raise BadInput(
                f"delta must be above 0 for {type(self).__name__}: what it releases has Gaussian "
                "noise.",
                parameter="delta",
            )
        return eps, delta

    def _fitted(self, releases: list[Release]) -> Self:
        first = releases[0]
        self._params = self.get_params(
            deep=False
        )  # a file holds what the fit was asked for, not what was set later
        self.releases_ = releases
        self.guarantee_ = Guarantee(
            delta=float(self.delta or 0.0),
            relation=first.relation,
            events=(first.event,),
            private=all(release.private for release in releases),
            records_per_person=first.records_per_person,
            person=first.person,
            neighbours=first.neighbours,
            units=_public_units(first),
        )
        given = first.bounds.given_inputs()
        self.n_features_in_ = len(given)
        if first.bounds.x_names is not None:
            names = [first.bounds.x_names[i] for i in given]
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return self

    def _unit(self, X: object) -> NDArray[np.float64]:
        """Inputs of a user of the fitted model, clipped to the bounds and scaled, (rows, d)."""
        check_is_fitted(self)
        source = self._queries(X)
        bounds = self.releases_[0].bounds
        if bounds.x_names is None or source.names is None:
            apart = (
                bounds.noise_column is not None
                and bounds.noise_column.field(source, self.n_features_in_) is not None
            )
            if source.width != self.n_features_in_ + apart:
                expected = (
                    f"{type(self).__name__} is expecting {self.n_features_in_} features as input"
                )
                raise BadInput(f"X has {source.width} features, but {expected}.")
            bounds = bounds.without_names()
        bounds, fields = bounds.resolve(source, targets=False)
        source.check(fields)
        blocks = [bounds.scale(block) for block in source.blocks(fields)]
        if not blocks:
            raise BadInput("Found array with 0 sample(s) while a minimum of 1 is required.")
        return np.vstack(blocks)

    def _queries(self, X: object) -> Source:
        """Inputs given by a user of the fitted model; they are the user's own, and not protected.

        A list is read as it is in a fit: a row that does not fit has missing cells. Only where no
        row fits, so that nothing could be predicted from any of them, is the list refused.
        """
        if not isinstance(X, (list, tuple)):
            return as_source(X)
        with_level = self.releases_[0].bounds.noise_column is not None
        widths = [self.n_features_in_, self.n_features_in_ + with_level]
        width = fitting_width(X, widths)
        if width is None and len(X):
            raise BadInput(
                f"No row of X has {self.n_features_in_} features, as "
                f"{type(self).__name__} is expecting. Give a list of rows of "
                "so many numbers each. (A 1D list: reshape your data.)"
            )
        return as_source(X).shaped(width or self.n_features_in_, 1)

    def _noise_levels(self, X: object) -> NDArray[np.float64]:
        """The noise levels that X holds in a column of their own, within their bounds.

        NaN if it holds none.
        """
        source = self._queries(X)
        bounds = self.releases_[0].bounds
        if bounds.noise_column is None:
            field = None
        else:
            field = bounds.noise_column.field(source, len(bounds.x))
        if field is None or bounds.noise_column is None:
            return np.full(sum(map(len, source.blocks((Field(0),)))), np.nan)
        source.check((field,))
        return bounds.noise_column.clip(
            np.concatenate([block[:, 0] for block in source.blocks((field,))])
        )

    def __sklearn_tags__(self) -> "Tags":
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = (
            True  # a missing value becomes a public point; nothing fails because of a record
        )
        tags.target_tags.required = self._targets
        return tags


def _public_units(first: Release) -> int | None:
    """Number of people or records that a first release tells; None where it is not public.

    Of a search, the first release tells it; those of its best fit are of one half.
    """
    half = isinstance(first.event, Selection) and first.statistic.get("kind") != CHOICE
    if half or not first.unit.number_is_public:
        return None
    return first.n


def _is_column(y: object) -> bool:
    """Whether y is an array or a frame of one column, by its public shape; a list has none."""
    if isinstance(y, (list, tuple)) or getattr(y, "ndim", 1) != 2:
        return False
    shape: tuple[int, ...] = y.shape  # type: ignore[attr-defined]
    return shape[1] == 1


# Parameters that every model has.
COMMON = frozenset(field.name for field in fields(PrivateEstimator))
# A dataclass leaves defaults behind as class attributes. A subclass with an ``__init__`` of its own
# that forgets to set a parameter would silently have them (no ledger, one record per person):
# without them it fails. The defaults in the signature stay.
for _name in COMMON:
    delattr(PrivateEstimator, _name)


def columns_words(bounds: Bounds) -> str:
    """Say which columns a fit is about, for the ledger's history.

    Nothing if the bounds do not name them.

    >>> columns_words(Bounds(x={"age": (0, 110), "height": (40, 220)}, y={"weight": (2, 150)}))
    ': weight from age, height'
    """
    if bounds.x_names is None:
        return ""

    def listed(names: Sequence[str]) -> str:  # short, for a ledger takes no long texts
        some = [name if len(name) <= _LONG else name[: _LONG - 1] + "…" for name in names[:_NAMED]]
        return ", ".join(some) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")

    inputs = listed(bounds.x_names)
    if bounds.y_names:
        words = f": {listed(bounds.y_names)} from {inputs}"
    else:
        words = f": {inputs}"
    return "".join(c if c.isprintable() else "?" for c in words)


def seed_bytes(random_state: object) -> bytes | None:
    """None for the operating system's randomness.

    Bytes for a repeatable, and so not private, fit.
    """
    if random_state is None:
        return None
    if isinstance(random_state, np.random.RandomState):
        return b"%d" % random_state.randint(2**31)
    if isinstance(random_state, np.random.Generator):
        return b"%d" % random_state.integers(2**62)
    if is_integer(random_state, -math.inf):
        return b"%d" % random_state  # type: ignore[str-format]
    raise BadInput(
        "random_state must be None (for a private release) or an integer (for "
        f"a test), not {random_state!r}."
    )
