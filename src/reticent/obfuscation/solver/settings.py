"""Settings of the solver: its tuned numbers, with their meaning and reason.

What is released is checked against the promise at the end, and scaled up or refused where it falls
short: these numbers decide how much noise and time that takes. The check itself has one of them,
``strong_slack``.
"""

from dataclasses import dataclass

from reticent.number_kinds import Limit, Numerical, Prior

__all__ = ["SOLVER", "SolverSettings"]


@dataclass(frozen=True)
class SolverSettings:
    """Tuned numbers of the modules beside this one.

    Parameters
    ----------
    floor : float
        Variance of the white noise that every released value has, relative to the prior's mean
        variance: small beside any promise, large beside rounding.
    covariance_block : int
        Points whose prior covariances are made together, to bound memory.
    factor_tolerance : float
        Prior variance, relative to the largest, at which the incomplete Cholesky factor of K stops.
    dense_records : int
        Up to so many records M is kept whole: a factor would not pay.
    max_factor_rank : int
        Largest rank of the incomplete factor; beyond it M is kept whole.
    max_dense_records : int
        Records up to which M is kept whole where no factor will do. More are refused: time grows
        with their cube.
    lanczos_dimension : int
        Dimensions above which only the positive eigenpairs of UUᵀ − M are computed.
    lanczos_check_every : int
        Steps before the Ritz pairs are first looked at, and the least between two looks.
    lanczos_residual : float
        Residual, relative to the largest eigenvalue, below which a Ritz pair counts as exact.
    lanczos_negligible : float
        Eigenvalue, relative to the largest, below which a pair is left out.
    span_tolerance : float
        Size of a column, relative to the largest, below which rounding has made it.
    region_cells : int
        Points at which all regions together are checked.
    strong_slack : float
        Strong promises: negative eigenvalue of Cov[f(S) | W] − Ξ, relative to the prior variance,
        that is tolerated. Combinations that vary less than this are not resolved.
    strong_subset : int
        Strong promises on regions: most points that stand for them.
    strong_tolerance : float
        The same: prior variance, relative to the largest, that these points leave unexplained.
    max_diagonal_records : int
        Most records for independent noise, which is there to compare with.
    scaling_attempts : int
        How often noise that falls short of the promise is scaled up before it is refused.
    gap : float
        Relative gap between trace and lower bound to which the weak problem is solved.
    small_dimension, small_gap : int, float
        Problems of at most this dimension are solved to this gap, for it costs little.
    whole_dimension : int
        Dimensions up to which S is looked for in the whole space, not in a subspace.
    first_constraints : int
        Constraints in the first working set; half as many are added in a round.
    working_set_rounds : int
        Most rounds of working set and subspace.
    first_gap : float
        Relative gap of the first round.
    constraint_tolerance : float
        By how much a constraint may be broken: what is released is scaled up.
    similar_constraints : float
        Squared cosine above which a constraint says nearly the same as one that was added.
    negligible_noise : float
        Eigenvalue of S, relative to the largest, below which it is left out.
    newton_steps, step_halvings : int
        Most Newton steps at one t of the barrier, and halvings of one step.
    newton_decrement : float
        Newton decrement that ends a stage of the barrier.
    barrier_growth : float
        Factor by which t grows from stage to stage.
    training_records : int
        Records, evenly spread, that the marginal likelihood is made of.
    training_jitter : float
        Added to the diagonal of its covariance, relative to the mean variance.
    training_starts : int
        Starts of its maximization; the first is the kernel as given.
    max_variance_ratio : float
        Factor within which the prior's variance stays of the values' mean square: a jump or a
        straight line would otherwise be explained by a variance without end.
    variance_penalty : float
        Nats per record and squared log ratio beyond that factor.
    spectrum_panels, spectrum_nodes : int
        Gauss–Legendre panels over log ω, and nodes of each.
    spectrum_tail : float
        Spectral density, relative to the largest, beyond which nothing counts.
    spectrum_margin : float
        How far h/k must stay below one for the integral of Proposition 2.
    """

    floor: Numerical[float] = 1e-10
    covariance_block: Numerical[int] = 64
    factor_tolerance: Numerical[float] = 1e-13
    dense_records: Numerical[int] = 64
    max_factor_rank: Numerical[int] = 400
    max_dense_records: Limit[int] = 6000
    lanczos_dimension: Numerical[int] = 500
    lanczos_check_every: Numerical[int] = 3
    lanczos_residual: Numerical[float] = 1e-11
    lanczos_negligible: Numerical[float] = 1e-9
    span_tolerance: Numerical[float] = 1e-13
    region_cells: Numerical[int] = 10_000
    strong_slack: Limit[float] = 1e-7
    strong_subset: Numerical[int] = 300
    strong_tolerance: Numerical[float] = 1e-9
    max_diagonal_records: Limit[int] = 600
    scaling_attempts: Numerical[int] = 40
    gap: Numerical[float] = 3e-7
    small_dimension: Numerical[int] = 30
    small_gap: Numerical[float] = 3e-8
    whole_dimension: Numerical[int] = 100
    first_constraints: Numerical[int] = 12
    working_set_rounds: Numerical[int] = 40
    first_gap: Numerical[float] = 1e-2
    constraint_tolerance: Numerical[float] = 1e-9
    similar_constraints: Numerical[float] = 0.98
    negligible_noise: Numerical[float] = 1e-9
    newton_steps: Numerical[int] = 60
    step_halvings: Numerical[int] = 40
    newton_decrement: Numerical[float] = 1e-2
    barrier_growth: Numerical[float] = 20.0
    training_records: Numerical[int] = 1000
    training_jitter: Numerical[float] = 1e-10
    training_starts: Numerical[int] = 3
    max_variance_ratio: Prior[float] = 100.0
    variance_penalty: Prior[float] = 100.0
    spectrum_panels: Numerical[int] = 80
    spectrum_nodes: Numerical[int] = 24
    spectrum_tail: Numerical[float] = 1e-15
    spectrum_margin: Numerical[float] = 1e-6


SOLVER = SolverSettings()
