"""Settings of a private search: its fixed numbers, in one place."""

from dataclasses import dataclass

from reticent.number_kinds import Derived, Limit, Tuned

__all__ = ["SEARCH", "SearchSettings"]


@dataclass(frozen=True)
class SearchSettings:
    """Numbers of `PrivateSearch` and of the mean scores that its runs are compared by."""

    most_candidates: Limit[int] = 1000
    """That a user may compare."""
    runs_per_candidate: Tuned[int] = 8
    """Expected runs, if the user gives no number: the best candidate is then tried with a
    probability of 89 %."""
    noise_margin: Derived[float] = 1 + 1e-9
    """A run has a little more noise than is paid for, so that no rounding can make it less."""

    # Budget shares of a mean score, by estimator
    clipped_shares: Derived[int] = 1
    """Its one release is the unit of shares."""
    coinpress_shares: Tuned[int] = 12
    """All steps of CoinPress together."""
    coinpress_narrowing: Tuned[int] = 3
    """Of these, spent one by one on narrowing the interval; the last mean spends the rest."""
    robust_shares: Tuned[int] = 4
    """One for counts that find the lower limit; the mean spends the rest."""

    coinpress_failure: Tuned[float] = 0.01
    """Probability that a step of CoinPress cuts something off (β of Biswas et al. 2020)."""
    robust_fraction: Tuned[float] = 0.95
    """Fraction of the scores that the lower limit of a robust mean leaves as they are."""

    clear_shortfall: Tuned[float] = 3.0
    """Standard deviations of its noise by which the number of complete records must fall short of
    all records to be believed: chance alone does so once in 700 means."""

    # Limits of scores
    least_probability: Tuned[float] = 0.01
    """Of the class that was observed: a log score below that of this probability counts as that."""
    density_nats: Tuned[float] = 5.0
    """Log-densities are clipped to so much about that of the uniform density, per column."""

    def shares(self, mean: str) -> int:
        """Budget shares of a mean score."""
        return {
            "clipped": self.clipped_shares,
            "coinpress": self.coinpress_shares,
            "robust": self.robust_shares,
        }[mean]


SEARCH = SearchSettings()
