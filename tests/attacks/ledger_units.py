"""The unit of an account.

Noise for one record of a person is not noise for all of their records.
"""

import reticent
from tests.attacks.harness import Outcome, attack


@attack("3", "Fits for people with five records, then for single records, in one account")
def five_records_then_one() -> Outcome:
    delta = 1e-6
    noise = reticent.calibrate(1.0, delta)
    bounds = reticent.Bounds(x=[(-1, 1)])
    ledger = reticent.Ledger("budget.db")
    try:
        ledger.open("people", epsilon=2, delta=delta, records_per_person=5)
    except TypeError:  # 0.1.0 knows no such unit
        ledger.open("people", epsilon=2, delta=delta)
    refusal = ""
    shares = []  # of noise in each fit that went through, in units of what five records need
    for records_per_person in (5, 1, 1):
        model = reticent.PrivateMean(
            bounds=bounds,
            epsilon=1.0,
            delta=delta,
            records_per_person=records_per_person,
            ledger="budget.db",
            dataset="people",
        )
        try:
            model.fit([[0.0]] * 100)
            shares.append(records_per_person / 5)
        except reticent.LedgerError as error:
            refusal = f" ({str(error).partition(': ')[2].partition('.')[0]})"
    stated = ledger.spent("people")
    lost = reticent.epsilon(
        [reticent.Gaussian(noise_multiplier=noise * share) for share in shares], delta
    )
    figure = f"the account says ε = {stated:.2f}; a person with five records has lost {lost:.2f}"
    return Outcome(lost > 1.01 * stated, figure + refusal, refused=bool(refusal))
