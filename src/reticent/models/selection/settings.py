"""Settings of a private search: its fixed numbers, in one place."""

from dataclasses import dataclass

__all__ = ["SEARCH", "SearchSettings"]


@dataclass(frozen=True)
class SearchSettings:
    """Numbers of `PrivateSearch` and of the mean scores that its runs are compared by."""

    most_candidates: int = 1000
    runs_per_candidate: int = 8
    """Expected runs, if the user gives no number: the best candidate is then tried with a
    probability of 89 %."""
    noise_margin: float = 1 + 1e-9
    """A run has a little more noise than is paid for, so that no rounding can make it less."""

    # Budget shares of a mean score, by estimator
    clipped_shares: int = 1
    coinpress_shares: int = 12
    coinpress_narrowing: int = 3
    """Of these, spent one by one on narrowing the interval; the last mean spends the rest."""
    robust_shares: int = 4
    """One for counts that find the lower limit; the mean spends the rest."""

    coinpress_failure: float = 0.01
    """Probability that a step of CoinPress cuts something off (β of Biswas et al. 2020)."""
    robust_fraction: float = 0.95
    """Fraction of the scores that the lower limit of a robust mean leaves as they are."""

    clear_shortfall: float = 3.0
    """Standard deviations of its noise by which the number of complete records must fall short of
    all records to be believed: chance alone does so once in 700 means."""

    # Limits of scores
    least_probability: float = 0.01
    """Of the class that was observed: a log score below that of this probability counts as that."""
    density_nats: float = 5.0
    """Log-densities are clipped to so much about that of the uniform density, per column."""

    def shares(self, mean: str) -> int:
        """Budget shares of a mean score."""
        return {
            "clipped": self.clipped_shares,
            "coinpress": self.coinpress_shares,
            "robust": self.robust_shares,
        }[mean]


SEARCH = SearchSettings()
