"""Gaussian-process bandits with joint differential privacy.

A trusted server learns from everyone's rewards. Proof: joint.md.

Every round a person brings candidates; ``ask`` chooses one, by the highest upper confidence bound;
``tell`` brings the reward. The server adds up (φ, e/r), features and clipped residuals of the
current fit, and keeps the exact sum to itself; when a batch is full its noisy Gram matrix is
released, and the model learns from it (`ucb_policy`). Between releases the model is frozen: a
single update without noise would reveal the person it came from.
"""

import base64
import json
import math
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Kernel

from reticent.errors import BadInput, ReleaseRefused
from reticent.models.bandits.rounds import AskedRounds, ToldRounds
from reticent.models.bandits.settings import (
    BATCH_CORRELATION,
    EXPLORATION_WEIGHT,
    GROWTH,
    POLICY,
    UNLIMITED_STEPS,
    check_parameters,
    running_sum_correlation,
)
from reticent.models.bandits.ucb_policy import Policy, batch_sizes, random_words
from reticent.models.base import seed_bytes
from reticent.privacy.accounting.composition import calibrate
from reticent.privacy.accounting.events import Gaussian
from reticent.privacy.accounting.guarantee import Guarantee
from reticent.privacy.bounds import Bounds
from reticent.privacy.curator import Release
from reticent.privacy.people.unit import PrivacyUnit
from reticent.privacy.release import check_scale, derived, same_event
from reticent.privacy.row_maps.residual_gram import ResidualGram
from reticent.privacy.row_maps.reward_sum import RewardSum, reward_sum
from reticent.privacy.statistics.exact_sum import one_blas_thread
from reticent.privacy.streams.correlated_noise import Correlation
from reticent.privacy.streams.stream import Stream
from reticent.validation import check_epsilon_delta, check_integer

__all__ = ["JointBandit"]

Array = NDArray[np.float64]


class JointBandit:
    """Gaussian-process bandit with joint differential privacy.

    It chooses among candidates, round by round, and learns from the rewards.

    Parameters
    ----------
    kernel : scikit-learn kernel, optional
        The prior of the reward function, in the units of the data. Default: smooth functions of
        several lengths and sizes, weighed by the evidence; where there are more than five, sums of
        functions of single inputs, as rough as the data say.
    bounds : Bounds
        Public ranges of the candidates' coordinates and of the reward. Candidates and rewards
        outside are moved to the edge.
    horizon : int or None
        How many rounds there will be; more are refused. None: not known, the basis grows whenever
        the rounds have doubled.
    release : {"batches", "every"}
        Release each of ever longer batches once, or the running sums after every round.
    mechanism : {"sqrt", "blt", "tree"}
        For ``release="every"``: how the noise of the rounds is correlated.
    contexts : {"private", "public"}
        "public": the candidates that were chosen may be known, only rewards are protected; no noise
        in Σφφᵀ, another relation.
    epsilon, delta, ledger, dataset, records_per_person, random_state
        As for every private estimator. ``records_per_person``: in how many rounds a person may take
        part.
    person : str, optional
        A word for people, such as "user": then `tell` must be told whose each round is, and the
        first ``records_per_person`` rounds of a person count, later ones add nothing. Without it,
        that nobody takes part more often is believed.
    exploration_weight : float
        How many posterior standard deviations are added to the mean (√β of GP-UCB); besides, a
        share .03/√t of rounds is chosen at random after t rounds. 0 never explores.
    arms : int
        About how many candidates there are in a round: for simulating, from public numbers, what
        will be chosen.
    growth : float
        How much longer each batch is than the one before.
    basis : int, optional
        Number of basis functions; chosen from horizon and noise if left out.

    Attributes
    ----------
    posterior_ : Policy
        ``posterior_.moments(candidates)`` gives mean and standard deviation of the reward function.
    releases_, guarantee_
        As for every private estimator.
    rounds_, until_release_ : int
        Tells so far, and tells until the next release.
    journal : callable, optional
        Called with `trusted_state` whenever noise has been drawn, before anything that depends on
        it can be seen: write it down there. If it raises, go on from the state that was written
        down last.

    Privacy
    -------
    Neighbours: one round's candidates and reward replaced by any others; the number of rounds is
    public. With ``contexts="public"``: one round's reward replaced. Released: noisy sums of
    (features, residual) over batches, which share noise, or their running sums. All choices for
    *other* people, the posterior and the saved file are computed from them. The choice for a person
    depends on that person's own candidates too, and must be shown to that person only (joint
    differential privacy). Must be public: bounds, horizon, kernel, arms, growth, when rounds
    happen. Each person takes part in ``records_per_person`` rounds at most (enforced with
    ``person``: neighbours then differ in all rounds of one person), and a person's reward reaches
    others by the releases only.

    Examples
    --------
    >>> import numpy as np, reticent
    >>> bounds = reticent.Bounds(x=[(0, 1)], y=(0, 1))
    >>> bandit = reticent.JointBandit(bounds=bounds, horizon=200, epsilon=1, delta=1e-6)
    >>> rng = np.random.default_rng(0)
    >>> for _ in range(200):
    ...     doses = rng.uniform(size=(5, 1))
    ...     chosen = bandit.ask(doses)
    ...     bandit.tell(doses[chosen], rng.uniform() < doses[chosen, 0])
    >>> bandit.rounds_
    200
    """

    def __init__(
        self,
        kernel: Kernel | None = None,
        *,
        bounds: Bounds | None = None,
        horizon: int | None = None,
        release: str = "batches",
        mechanism: str = "sqrt",
        contexts: str = "private",
        epsilon: float | None = None,
        delta: float | None = None,
        ledger: str | None = None,
        dataset: str | None = None,
        records_per_person: int = 1,
        person: str | None = None,
        random_state: object = None,
        exploration_weight: float = EXPLORATION_WEIGHT,
        arms: int = 25,
        growth: float = GROWTH,
        basis: int | None = None,
    ) -> None:
        self._params = {k: v for k, v in locals().items() if k != "self"}
        self._apply_parameters(self._params)
        # A round belongs to one batch, whoever tells at the same time
        self._lock = threading.RLock()
        self._stream: Stream | None = None
        self._rebuilt = False  # from releases: it advises, and learns no more
        self._seed = seed_bytes(random_state)
        self._ledger = (ledger, dataset)
        self.journal: Callable[[bytes], None] | None = None

    def _apply_parameters(self, params: dict[str, Any]) -> None:
        """Check everything, before anything is charged, and build the public part."""
        check_parameters(params)
        self.bounds: Bounds = params["bounds"].with_indicators()
        self.horizon: int | None = None
        if params["horizon"] is not None:
            self.horizon = int(params["horizon"])  # products of NumPy's integers wrap around
        self._records_per_person = int(params["records_per_person"])
        self._unit = _privacy_unit(params)
        epsilon, self._delta = check_epsilon_delta(params["epsilon"], params["delta"], pure=False)
        self._event = Gaussian(noise_multiplier=calibrate(epsilon, self._delta))
        self._public_contexts = params["contexts"] == "public"
        self._every_round = params["release"] == "every"
        self._correlation: Correlation = BATCH_CORRELATION
        self._running_sum_variances: Array | None = None
        if self._every_round and self.horizon is not None:
            self._correlation, self._running_sum_variances = running_sum_correlation(
                params["mechanism"], self.horizon
            )
        mu = 1 / (self._event.noise_multiplier * self._records_per_person)
        if self._unit.person is not None:
            mu /= math.sqrt(2)  # a person's rounds may stand in other batches: stream.md
        self._planned_rounds = self.horizon or POLICY.planned_rounds
        with one_blas_thread():
            self.posterior_ = Policy(
                self.bounds,
                kernel=params["kernel"],
                mu=mu,
                horizon=self._planned_rounds,
                arms=params["arms"],
                exploration_weight=float(params["exploration_weight"]),
                basis=params["basis"],
                staged=not self._every_round,
            )
        self._batch_sizes = batch_sizes(mu, self.horizon, float(params["growth"]))
        self._batch_size = self._next_batch_size()
        self.releases_: list[Release] = []
        self.rounds_ = 0
        self._open_asks = 0
        self._asks = 0
        self._learned_rounds = 0

    def _next_batch_size(self) -> int:
        if self._every_round:
            return 1
        return next(self._batch_sizes, 1)

    def ask(self, candidates: object, *, several: bool | None = None) -> Any:
        """Choose one of the candidates: its number. Of several sets: one number for each.

        The answer is for the person who brought the candidates, and for nobody else.

        Parameters
        ----------
        candidates : array, frame or list
            One set, (candidates × inputs); or several, in an array (sets × candidates × inputs) or
            in a list of sets, which need not have the same number of candidates.
        several : bool, optional
            Whether these are several sets. Left out, the shape says it: an array of three
            dimensions holds several, and so does a list in which anything is a set (an array of two
            dimensions, or a list of lists).

        Notes
        -----
        A candidate that is not a row of as many numbers as there are inputs, or a cell that is not
        a number, is missing, and such a candidate is chosen only where all are. It never changes
        another set's answer, nor fails. An empty set is answered with 0. A program that hands on
        what people send should give ``several``: then nothing that they send decides it.
        """
        asked = AskedRounds(candidates, self.bounds, several)
        with self._lock:
            return self._ask(asked)

    def _ask(self, asked: AskedRounds) -> Any:
        used = self.rounds_ + self._open_asks + asked.count
        if self.horizon is not None and used > self.horizon and not self._rebuilt:
            raise ReleaseRefused(
                f"The horizon of {self.horizon} rounds is used up ({self.rounds_} told, "
                f"{self._open_asks} asked): the noise was made for it. Start another bandit, "
                "charged by itself, for more rounds."
            )
        if not self._rebuilt:
            self._paid_stream()
            self._open_asks += asked.count
        words = random_words(asked.count, self._asks, self._seed)
        self._asks += asked.count
        with one_blas_thread(), np.errstate(all="ignore"):
            chosen = self.posterior_.choose(asked.read(), words)
        if asked.several:
            return chosen
        return int(chosen[0])

    def tell(
        self,
        candidate: object,
        reward: object,
        *,
        several: bool | None = None,
        person: object = None,
    ) -> None:
        """Bring the reward of a candidate that was tried (it need not be the one that was advised).

        Or of several rounds.

        Parameters
        ----------
        candidate : array, frame or list
            The candidate, one number for each input; of several rounds, one row each.
        reward : number, or array or list of numbers
            In a list, an array or a series: those of several rounds, one each.
        several : bool, optional
            Whether these are several rounds. Left out, the reward says it, as above.
        person : text or number, or a list of them
            Whose the round is, where the bandit was made with ``person``; of several rounds, one
            each. A round of nobody (None, NaN, an empty text) adds nothing.

        Notes
        -----
        Lengths of the outermost lists and shapes of arrays are public, and must fit. What lies
        inside is never refused: a row of another length, or a cell that is not a number, is missing
        in its own round, and that round adds nothing.
        """
        rounds = ToldRounds(candidate, reward, self.bounds, several)
        people = self._people(person, rounds.count)
        with self._lock:
            self._tell(rounds, people)

    def _people(self, person: object, count: int) -> Sequence[object] | None:
        """Whose each of so many rounds is; None where rounds are the unit."""
        if self._unit.person is None:
            if person is not None:
                raise BadInput(
                    "This bandit was made without person=, so that it protects rounds: leave "
                    "person out, or make another with person='user'.",
                    parameter="person",
                )
            return None
        people: Sequence[object] = [person]
        if isinstance(person, (list, tuple, np.ndarray)):
            people = person  # type: ignore[assignment]
        if len(people) != count or (person is None and count > 1):
            raise BadInput(
                f"There are {count} rounds: say whose each one is, as a list of {count} names or "
                "numbers (person=[...]).",
                parameter="person",
            )
        return people

    def _tell(self, rounds: ToldRounds, people: Sequence[object] | None) -> None:
        if rounds.count > self._open_asks and not self._rebuilt:
            raise ReleaseRefused(
                f"{rounds.count} told, but {self._open_asks} asked and not yet told: each tell "
                "belongs to one ask, and counts once. Ask first."
            )
        stream = self._paid_stream()
        # Before anything is read: a tell that is interrupted is used up, and counts once
        self._open_asks -= rounds.count
        records = rounds.read()
        while len(records):
            batch = records[: self._batch_size - stream.rows]
            whose = None
            if people is not None:
                whose = people[: len(batch)]
                people = people[len(batch) :]
            stream.add(self._statistic(), batch, coded=True, person=whose)
            if self._public_contexts:
                contexts = batch[~np.isnan(batch[:, :-1]).any(axis=1), :-1]
                phi = self.posterior_.features(contexts)
                self._public_gram += phi.T @ phi
                self._public_rounds += len(contexts)
            self.rounds_ += len(batch)
            records = records[len(batch) :]
            if stream.rows == self._batch_size:
                self._release_batch(stream)

    @property
    def until_release_(self) -> int:
        """How many tells are left until the next release; public.

        Until then the model does not change.
        """
        with self._lock:
            if self._stream is None:
                return self._batch_size
            return self._batch_size - self._stream.rows

    def cancel(self, asks: int = 1) -> None:
        """Some asks will never be told: their rounds are free again."""
        check_integer("asks", asks, 0)
        with self._lock:
            if asks > self._open_asks:
                raise BadInput(
                    f"{asks} asks cannot be cancelled: {self._open_asks} are open. Cancel at most "
                    "as many."
                )
            self._open_asks -= int(asks)

    def _paid_stream(self) -> Stream:
        """The stream of releases; paid for before the first round is looked at."""
        if self._rebuilt:
            raise ReleaseRefused(
                "This bandit was rebuilt from releases: it can be asked, but it learns no more. To "
                "go on after a restart, keep its trusted_state and resume from it."
            )
        if self._stream is None:
            self._stream = self._make_stream(None, *self._ledger)
            self._clear_public_gram()
        return self._stream

    def _make_stream(
        self, state: bytes | None, ledger: str | None = None, dataset: str | None = None
    ) -> Stream:
        return Stream(
            bounds=self.bounds,
            event=self._event,
            correlation=self._correlation,
            steps=self.horizon or UNLIMITED_STEPS,
            ledger=ledger,
            dataset=dataset,
            relation=self._unit.relation,
            records_per_person=self._unit.records_per_person,
            person=self._unit.person,
            contribution=self._unit.contribution,
            what=f"JointBandit, {self.horizon or 'any number of'} rounds",
            seed=self._seed,
            state=state,
        )

    def _clear_public_gram(self) -> None:
        m = self.posterior_.feature_map.columns
        self._public_gram = np.zeros((m, m))
        self._public_rounds = 0  # with a context that lacks nothing

    def _statistic(self) -> ResidualGram | RewardSum:
        """What the open batch is added up with."""
        if self._public_contexts:
            return reward_sum(self.posterior_.statistic)
        return self.posterior_.statistic

    def _release_batch(self, stream: Stream) -> None:
        """Release the full batch, write it down, and learn from it."""
        release = stream.release(self._statistic())
        if self._public_contexts:  # what is public needs no noise, and a rebuild needs it
            upper_triangle = self._public_gram[np.triu_indices(len(self._public_gram))]
            public = np.append(upper_triangle, float(self._public_rounds))
            value = np.concatenate([release.value, public])
            scale = np.concatenate([release.scale, 0 * public])
            release = derived(release, value=value, scale=scale)
        self.releases_.append(release)
        if self.journal is not None:
            try:
                self.journal(self.trusted_state())
            except BaseException:  # nobody may see a release whose noise could be drawn again
                self.releases_.pop()
                self._rebuilt = True
                raise
        self._learn(release)

    def _learn(self, release: Release) -> None:
        """Learn from a release; nothing but public numbers from here on."""
        policy = self.posterior_
        described = release.statistic
        with one_blas_thread():
            if self._public_contexts:
                decoded = RewardSum.decode(release)
                policy.ingest_public_contexts(
                    A=decoded.scaled_cross,
                    A_sd=decoded.scaled_cross_sd,
                    B=decoded.gram,
                    n=decoded.contexts,
                    missing=(decoded.missing, decoded.missing_sd),
                    clip_threshold=decoded.clip_threshold,
                    centre=decoded.weights,
                    echo=described.get("echo", 0.0),
                )
            elif self._running_sum_variances is not None:
                step = described["step"]
                policy.reset()
                policy.ingest_release(
                    derived(release, n=step),
                    noise=math.sqrt(self._running_sum_variances[step - 1]),
                )
            else:
                policy.ingest_release(release)
            self._learned_rounds += described["records"]
            if self.horizon is None and self._learned_rounds >= self._planned_rounds:
                self._planned_rounds *= 2
                policy.grow(self._planned_rounds)
        self._batch_size = self._next_batch_size()
        self._clear_public_gram()

    @property
    def guarantee_(self) -> Guarantee:
        """What holds for everything that is shown, whether it was released already or not."""
        return Guarantee(
            delta=self._delta,
            relation=self._unit.relation,
            events=(self._event,),
            private=self._seed is None and all(release.private for release in self.releases_),
            records_per_person=self._unit.records_per_person,
            person=self._unit.person,
        )

    def save(
        self, path: str | Path, *, overwrite: bool = False, sign_with: str | Path | None = None
    ) -> None:
        """Write what was released so far and the public parameters to a file.

        Free at any time; ``reticent.load`` reads it.
        """
        from reticent.models.serialization import save

        save(self, path, overwrite=overwrite, sign_with=sign_with)

    @classmethod
    def from_releases(cls, releases: Sequence[Release], **params: Any) -> Self:
        """Rebuild the public part from releases: choices and posterior as they were, bit for bit.

        It cannot be told anything.
        """
        bandit = cls(**params)
        # On the same terms, charged to nobody: it knows the noise of every step
        stream = bandit._make_stream(None)
        for step, release in enumerate(releases, start=1):
            bandit._check_release(release, step, stream)
            bandit.releases_.append(release)
            bandit.rounds_ += release.n
            bandit._learn(release)
        bandit._rebuilt = True
        return bandit

    def _check_release(self, release: Release, step: int, stream: Stream) -> None:
        """Refuse what a bandit with these parameters does not release in this step."""
        release.check()
        statistic = self._statistic()
        described = release.statistic
        expected = statistic.describe()
        same_statistic = (
            described["name"] == expected["name"]
            and described.get("step") == step
            and _same_feature_map(described["head"], expected["head"])
        )
        same_size = release.n == described["records"] == self._batch_size
        first = release
        if self.releases_:
            first = self.releases_[0]
        same_fit = (release.fit, release.entry, release.private) == (
            first.fit,
            first.entry,
            first.private,
        )
        same_price = same_event(self._event, release.event) and release.unit == self._unit
        if not (same_statistic and same_size and same_fit and same_price):
            raise BadInput(
                "These releases do not fit the parameters, or were altered: "
                "rebuild with those they had."
            )
        scale = stream.scale(statistic, described.get("echo", 0.0))
        if self._public_contexts:
            scale = np.concatenate([scale, np.zeros(len(release.scale) - len(scale))])
        check_scale(release, scale)

    def trusted_state(self) -> bytes:
        """All that is needed to go on after a restart. TRUSTED: exact sums and noise.

        Keep it as you keep the records.
        """
        from reticent.models.serialization import plain_params, plain_release

        with self._lock:
            stream = self._paid_stream()
            public_gram: list[list[float]] = []
            public_rounds = 0
            if stream.rows:  # a batch that was just released is no longer open
                public_gram = self._public_gram.tolist()
                public_rounds = self._public_rounds
            # The seed in use, for a generator cannot be stored: a bandit that goes on is seeded as
            # it was
            params = {**self._params, "random_state": self._seed and int(self._seed)}
            state = {
                "params": plain_params(params),
                "releases": [plain_release(release) for release in self.releases_],
                "stream": base64.b64encode(stream.state()).decode(),
                "gram": public_gram,
                "contexts": public_rounds,
                "rounds": self.rounds_,
                "open": self._open_asks,
            }
        return json.dumps(state).encode()

    @classmethod
    def resume(cls, state: bytes, *, open_asks: int | None = None) -> Self:
        """Go on where `trusted_state` was taken; nothing is charged again.

        Never go on twice, or from an old state.

        ``open_asks``: how many asks wait for their tell by now, where that is known better than by
        the state.
        """
        from reticent.models.serialization import restored_params, restored_release

        if open_asks is not None:
            check_integer("open_asks", open_asks, 0)
        fields = json.loads(state)
        bandit = cls.from_releases(
            [restored_release(release) for release in fields["releases"]],
            **restored_params(fields["params"]),
        )
        bandit._rebuilt = False
        bandit._stream = bandit._make_stream(base64.b64decode(fields["stream"]))
        bandit._clear_public_gram()
        bandit.rounds_ = fields["rounds"]
        bandit._open_asks = fields["open"]
        if open_asks is not None:
            bandit._open_asks = int(open_asks)
        bandit._asks = bandit.rounds_ + bandit._open_asks
        if fields["gram"]:
            bandit._public_gram = np.array(fields["gram"])
            bandit._public_rounds = int(fields["contexts"])
        return bandit

    def __repr__(self) -> str:
        return (
            f"<JointBandit: {self.rounds_} of {self.horizon or 'any number of'} rounds, "
            f"{len(self.releases_)} releases>"
        )


def _privacy_unit(params: dict[str, Any]) -> PrivacyUnit:
    """Who is protected: a round, its reward alone, or a person with all rounds."""
    person = params["person"]
    rounds = params["records_per_person"]
    if params["contexts"] == "public":
        if person is not None:
            raise BadInput(
                "person= goes with private contexts: with contexts='public', which rounds are of "
                "one person would be public too. Leave one of them out.",
                parameter="person",
            )
        return PrivacyUnit("label", rounds)
    if person is None:
        return PrivacyUnit("record", rounds)
    return PrivacyUnit("record", person=person, contribution=rounds)


def _same_feature_map(described: dict[str, Any], expected: dict[str, Any]) -> bool:
    """Whether two descriptions are of the same features.

    Their scales follow from earlier releases: on another machine they are the same but for the last
    digits.
    """
    a = dict(described)
    b = dict(expected)
    a_scale = np.asarray(a.pop("energy"))
    b_scale = np.asarray(b.pop("energy"))
    return (
        a == b
        and a_scale.shape == b_scale.shape
        and bool(np.allclose(a_scale, b_scale, rtol=1e-6, atol=0))
    )
