"""Gaussian-process bandits with joint differential privacy: a trusted server learns from everyone's rewards. Proof: bandit.md.

Every round a person brings candidates; ``ask`` chooses one, by the highest mean + width·sd; ``tell`` brings the reward.
The server adds up (φ, e/r), features and clipped residuals of the current fit, and keeps the exact sum to itself; when a batch is
full its noisy Gram matrix is released, and the model learns from it (`models.policy`). Between releases the model
is frozen: a single update without noise would tell of the person it came from.
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

from reticent.errors import BadInput, ReleaseRefused
from reticent.models.bandit_setup import SHARED, STEPS, check, correlation
from reticent.models.base import seed_bytes
from reticent.models.policy import GROWTH, Policy, batch_sizes, coins
from reticent.models.rewards import reward_sum
from reticent.models.rounds import AskedRounds, ToldRounds
from reticent.privacy.accounting import calibrate, check_epsilon_delta
from reticent.privacy.bounds import Bounds
from reticent.privacy.curator import Release
from reticent.privacy.events import Gaussian
from reticent.privacy.given import check_whole
from reticent.privacy.guarantee import Guarantee
from reticent.privacy.release import check_scale, derived, same_event, symmetric
from reticent.privacy.stream import Correlation, Stream
from reticent.privacy.sums import one_blas_thread

__all__ = ["JointBandit"]

Array = NDArray[np.float64]
_START = 1024  # rounds that are planned for first where the horizon is not known
_WIDTH = 0.7


class JointBandit:
    """Choose among candidates, round by round, and learn from the rewards, with joint differential privacy.

    Parameters
    ----------
    kernel : scikit-learn kernel, optional
        The prior of the reward function, in the units of the data. Default: smooth functions of several lengths and sizes,
        weighed by the evidence; where there are more than five, sums of functions of single inputs, as rough as the data say.
    bounds : Bounds
        Public ranges of the candidates' coordinates and of the reward. Candidates and rewards outside are moved to the edge.
    horizon : int or None
        How many rounds there will be; more are refused. None: not known, the basis grows whenever the rounds have doubled.
    release : {"batches", "every"}
        Release each of ever longer batches once, or the running sums after every round.
    mechanism : {"sqrt", "blt", "tree"}
        For ``release="every"``: how the rounds' noise hangs together.
    contexts : {"private", "public"}
        "public": the candidates that were chosen may be known, only rewards are protected; no noise in Σφφᵀ, another relation.
    epsilon, delta, ledger, dataset, records_per_person, random_state
        As for every private estimator. ``records_per_person``: in how many rounds a person may take part.
    width : float or "paper"
        How many standard deviations are added to the mean; "paper": √β_t of GP-UCB, log-determinant of the noisy Gram matrix
        and all, which explores far more than pays.
    arms : int
        About how many candidates there are in a round: for guessing, in public, what will be chosen.
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
        Called with `trusted_state` whenever noise has been drawn, before anything that depends on it can be seen: write it
        down there. If it raises, go on from the state that was written down last.

    Privacy
    -------
    Neighbours: one round's candidates and reward replaced by any others; the number of rounds is public. With
    ``contexts="public"``: one round's reward replaced.
    Released: noisy sums of (features, residual) over batches, which share noise, or their running sums. All choices for *other*
    people, the posterior and the saved file are computed from them. The choice for a person depends on that person's own
    candidates too, and must be shown to that person only (joint differential privacy).
    Must be public: bounds, horizon, kernel, arms, growth, when rounds happen. Each person takes part in ``records_per_person``
    rounds at most, and a person's reward reaches others by the releases only.

    Examples
    --------
    >>> import numpy as np, reticent
    >>> bandit = reticent.JointBandit(bounds=reticent.Bounds(x=[(0, 1)], y=(0, 1)), horizon=200, epsilon=1, delta=1e-6)
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
        kernel: Any = None,
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
        random_state: Any = None,
        width: float | str = _WIDTH,
        arms: int = 25,
        growth: float = GROWTH,
        basis: int | None = None,
    ) -> None:
        self._params = {k: v for k, v in locals().items() if k != "self"}
        self._settings(self._params)
        self._lock = threading.RLock()  # a round belongs to one batch, whoever tells at the same time
        self._stream: Stream | None = None
        self._rebuilt = False  # from releases: it advises, and learns no more
        self._seed = seed_bytes(random_state)
        self._ledger = (ledger, dataset)
        self.journal: Callable[[bytes], None] | None = None

    def _settings(self, params: dict[str, Any]) -> None:
        """Check everything, before anything is charged, and build the public part."""
        check(params)
        bounds = params["bounds"]
        width = params["width"]
        # int: products of NumPy's integers wrap around
        horizon = None if params["horizon"] is None else int(params["horizon"])
        self._records_per_person = int(params["records_per_person"])
        release, mechanism, contexts = params["release"], params["mechanism"], params["contexts"]
        eps, delta = check_epsilon_delta(params["epsilon"], params["delta"], pure=False)
        self._event = Gaussian(noise_multiplier=calibrate(eps, delta))
        self._delta, self._public, self._every = delta, contexts == "public", release == "every"
        self._correlation: Correlation = SHARED
        self._variances: Array | None = None
        if self._every and horizon is not None:
            self._correlation, self._variances = correlation(mechanism, horizon)
        self.bounds, self.horizon, self._paper = bounds, horizon, isinstance(width, str)
        mu = 1 / (self._event.noise_multiplier * self._records_per_person)
        with one_blas_thread():
            self.posterior_ = Policy(
                bounds,
                kernel=params["kernel"],
                mu=mu,
                horizon=horizon or _START,
                arms=params["arms"],
                width=0.0 if self._paper else float(width),
                basis=params["basis"],
                staged=not self._every,
            )
        self._planned = horizon or _START
        self._sizes = batch_sizes(mu, horizon, float(params["growth"]))
        self._size = 1 if self._every else next(self._sizes)
        self.releases_: list[Release] = []
        self.rounds_ = self._open = self._learned = 0
        self._begun = 0  # rounds that were asked for
        self._widen()

    def ask(self, candidates: Any, *, several: bool | None = None) -> Any:
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
        A candidate that is not a row of as many numbers as there are inputs, or a cell that is not a number, is missing
        and stands in the middle of its range. It never changes another set's answer, nor fails. An empty set is answered
        with 0. A program that hands on what people send should give ``several``: then nothing that they send decides it.
        """
        asked = AskedRounds(candidates, self.posterior_.dimension, several)
        with self._lock:
            return self._ask(asked)

    def _ask(self, asked: AskedRounds) -> Any:
        used = self.rounds_ + self._open + asked.count
        if self.horizon is not None and used > self.horizon and not self._rebuilt:
            raise ReleaseRefused(
                f"The horizon of {self.horizon} rounds is used up ({self.rounds_} told, {self._open} asked): the noise "
                "was made for it. Start another bandit, charged by itself, for more rounds."
            )
        if not self._rebuilt:
            self._start()
            self._open += asked.count
        words = coins(asked.count, self._begun, self._seed)
        self._begun += asked.count
        with one_blas_thread(), np.errstate(all="ignore"):
            chosen = self.posterior_.choose(asked.read(), words)
        return chosen if asked.several else int(chosen[0])

    def tell(self, candidate: Any, reward: Any, *, several: bool | None = None) -> None:
        """Bring the reward of a candidate that was tried (it need not be the one that was advised); or of several rounds.

        Parameters
        ----------
        candidate : array, frame or list
            The candidate, one number for each input; of several rounds, one row each.
        reward : number, or array or list of numbers
            In a list, an array or a series: those of several rounds, one each.
        several : bool, optional
            Whether these are several rounds. Left out, the reward says it, as above.

        Notes
        -----
        Lengths of the outermost lists and shapes of arrays are public, and must fit. What lies inside is never refused: a
        row of another length, or a cell that is not a number, is missing in its own round, and counts as the middle of
        its range.
        """
        told = ToldRounds(candidate, reward, self.posterior_.dimension, several)
        with self._lock:
            self._tell(told)

    def _tell(self, told: ToldRounds) -> None:
        if told.count > self._open and not self._rebuilt:
            raise ReleaseRefused(
                f"{told.count} told, but {self._open} asked and not yet told: each tell belongs to one ask, and counts once."
            )
        stream = self._start()
        self._open -= told.count  # before anything is read: a tell that is interrupted is used up, and counts once
        records = told.read()
        while len(records):
            now = records[: self._size - stream.rows]
            stream.add(self._statistic(), now)
            if self._public:
                phi = self.posterior_.features(now[:, :-1])
                self._gram += phi.T @ phi
            self.rounds_ += len(now)
            records = records[len(now) :]
            if stream.rows == self._size:
                self._release(stream)

    @property
    def until_release_(self) -> int:
        """How many tells are left until the next release; public. Until then the model does not change."""
        with self._lock:
            return self._size - (self._stream.rows if self._stream is not None else 0)

    def cancel(self, asks: int = 1) -> None:
        """Some asks will never be told: their rounds are free again."""
        check_whole("asks", asks, 0)
        with self._lock:
            if asks > self._open:
                raise BadInput(f"{asks} asks cannot be cancelled: {self._open} are open.")
            self._open -= int(asks)

    def _start(self) -> Stream:
        """Pay, before the first round is looked at."""
        if self._rebuilt:
            raise ReleaseRefused(
                "This bandit was rebuilt from releases: it can be asked, but it learns no more. See trusted_state."
            )
        if self._stream is None:
            self._stream = self._paid(None, *self._ledger)
            self._clear()
        return self._stream

    def _paid(self, state: bytes | None, ledger: str | None = None, dataset: str | None = None) -> Stream:
        return Stream(
            bounds=self.bounds,
            event=self._event,
            correlation=self._correlation,
            steps=self.horizon or STEPS,
            records_per_person=self._records_per_person,
            ledger=ledger,
            dataset=dataset,
            relation=self._relation,
            what=f"JointBandit, {self.horizon or 'any number of'} rounds",
            seed=self._seed,
            state=state,
        )

    def _clear(self) -> None:
        m = self.posterior_.head.columns
        self._gram = np.zeros((m, m))

    def _statistic(self) -> Any:
        policy = self.posterior_
        return reward_sum(policy.statistic) if self._public else policy.statistic

    def _release(self, stream: Stream) -> None:
        release = stream.release(self._statistic())
        if self._public:  # what is public needs no noise, and a rebuild needs it
            upper = self._gram[np.triu_indices(len(self._gram))]
            value, scale = np.concatenate([release.value, upper]), np.concatenate([release.scale, 0 * upper])
            release = derived(release, value=value, scale=scale)
        self.releases_.append(release)
        if self.journal is not None:
            try:
                self.journal(self.trusted_state())
            except BaseException:  # nobody may see a release whose noise could be drawn again
                self.releases_.pop()
                self._rebuilt = True
                raise
        self._take(release)

    def _take(self, release: Release) -> None:
        """Learn from a release; nothing but public numbers from here on."""
        policy, told = self.posterior_, release.statistic
        with one_blas_thread():
            if self._public:
                m = policy.head.columns
                B = symmetric(release.value[m:])
                centre = np.array(told["weights"]) * 2.0 ** -told["shift"]
                seen = release.value[:m], float(release.scale[0]), B, release.n, told["reach"]
                policy.take_public(*seen, centre, told.get("echo", 0.0))
            elif self._variances is not None:
                policy.again()
                running = derived(release, n=told["step"])
                policy.take(running, noise=math.sqrt(self._variances[told["step"] - 1]))
            else:
                policy.take(release)
            self._learned += told["records"]
            if self.horizon is None and self._learned >= self._planned:
                self._planned *= 2
                policy.grow(self._planned)
        self._size = 1 if self._every else next(self._sizes, 1)
        self._widen()
        self._clear()

    def _widen(self) -> None:
        if self._paper:
            self.posterior_.width = self.posterior_.paper_width()

    @property
    def _relation(self) -> str:
        """What is protected: of a record with public contexts, the reward alone."""
        return "label" if self._public else "record"

    @property
    def guarantee_(self) -> Guarantee:
        """What holds for everything that is shown, whether it was released already or not."""
        return Guarantee(
            delta=self._delta,
            relation=self._relation,
            events=(self._event,),
            private=self._seed is None and all(one.private for one in self.releases_),
            records_per_person=self._records_per_person,
        )

    def save(self, path: str | Path, *, overwrite: bool = False, sign_with: str | Path | None = None) -> None:
        """Write what was released so far and the public parameters to a file; ``reticent.load`` reads it. Free at any time."""
        from reticent.models.storage import save

        save(self, path, overwrite=overwrite, sign_with=sign_with)

    @classmethod
    def from_releases(cls, releases: Sequence[Release], **params: Any) -> Self:
        """Rebuild the public part from releases: choices and posterior as they were, bit for bit. It cannot be told anything."""
        bandit = cls(**params)
        stream = bandit._paid(None)  # of the same terms, charged to nobody: it knows the noise of every step
        for number, release in enumerate(releases, start=1):
            bandit._check_release(release, number, stream)
            bandit.releases_.append(release)
            bandit.rounds_ += release.n
            bandit._take(release)
        bandit._rebuilt = True
        return bandit

    def _check_release(self, release: Release, number: int, stream: Stream) -> None:
        """Refuse what a bandit with these parameters does not release in this step."""
        release.check()
        statistic = self._statistic()
        stated = release.statistic
        asked = statistic.describe()
        same = (
            stated["name"] == asked["name"] and stated.get("step") == number and _alike(stated["head"], asked["head"])
        )
        size = release.n == stated["records"] == self._size
        first = release if not self.releases_ else self.releases_[0]
        together = (release.fit, release.entry, release.private) == (first.fit, first.entry, first.private)
        unit = release.relation, release.records_per_person
        paid = same_event(self._event, release.event) and unit == (self._relation, self._params["records_per_person"])
        if not (same and size and together and paid):
            raise BadInput("These releases do not fit the parameters, or were altered: rebuild with those they had.")
        scale = stream.scale(statistic, stated.get("echo", 0.0))
        public = np.zeros(len(release.scale) - len(scale) if self._public else 0)
        check_scale(release, np.concatenate([scale, public]))

    def trusted_state(self) -> bytes:
        """All that is needed to go on after a restart. TRUSTED: exact sums and noise. Keep it as you keep the records."""
        from reticent.models.storage import plain_params, plain_release

        with self._lock:
            stream = self._start()
            told = {
                # the seed in use, for a generator cannot be stored: a bandit that goes on is seeded as it was
                "params": plain_params({**self._params, "random_state": self._seed and int(self._seed)}),
                "releases": [plain_release(one) for one in self.releases_],
                "stream": base64.b64encode(stream.state()).decode(),
                "gram": self._gram.tolist() if stream.rows else [],  # a batch that was just released is no longer open
                "rounds": self.rounds_,
                "open": self._open,
            }
        return json.dumps(told).encode()

    @classmethod
    def resume(cls, state: bytes, *, open_asks: int | None = None) -> Self:
        """Go on where `trusted_state` was taken; nothing is charged again. Never go on twice, or from an old state.

        ``open_asks``: how many asks wait for their tell by now, where that is known better than by the state.
        """
        from reticent.models.storage import restored_params, restored_release

        if open_asks is not None:
            check_whole("open_asks", open_asks, 0)
        fields = json.loads(state)
        bandit = cls.from_releases(
            [restored_release(one) for one in fields["releases"]], **restored_params(fields["params"])
        )
        bandit._rebuilt = False
        bandit._stream = bandit._paid(base64.b64decode(fields["stream"]))
        bandit._clear()
        bandit.rounds_ = fields["rounds"]
        bandit._open = fields["open"] if open_asks is None else int(open_asks)
        bandit._begun = bandit.rounds_ + bandit._open
        if fields["gram"]:
            bandit._gram = np.array(fields["gram"])
        return bandit

    def __repr__(self) -> str:
        return (
            f"<JointBandit: {self.rounds_} of {self.horizon or 'any number of'} rounds, {len(self.releases_)} releases>"
        )


def _alike(head: dict[str, Any], other: dict[str, Any]) -> bool:
    """The same features; their energies follow from earlier releases, on another machine but for the last digits."""
    a, b = (dict(one) for one in (head, other))
    energies = np.asarray(a.pop("energy")), np.asarray(b.pop("energy"))
    return a == b and energies[0].shape == energies[1].shape and bool(np.allclose(*energies, rtol=1e-6, atol=0))
