"""The grid: every estimator over data laws × n × ε.

Bias in stated standard errors, coverage of 50, 80 and 95 % bands, ranks of the truth among
posterior draws, monotony of the error in ε and n, and the ratio to the same model without privacy
at ε = 10⁶. The acceptance test of every change to inference.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from reticent.studies.common.results import (
    Claim,
    Findings,
    Progress,
    ResultTable,
    Value,
    mean_error,
)
from reticent.studies.own.calibration.cells import FREE, Cell, Family, Trial, generator
from reticent.studies.own.calibration.comparison import by_thirds
from reticent.studies.own.calibration.families import (
    bandits,
    binned,
    classification,
    descriptive,
    factors,
    kmeans,
    labels,
    mixtures,
    real_tables,
    regression,
    search,
    two_inputs,
)
from reticent.studies.own.calibration.judging import (
    BANDS,
    FAULTS,
    NEAR,
    Judged,
    clearly_above,
    judge_cells,
)
from reticent.studies.own.calibration.picture import draw_grid
from reticent.studies.own.calibration.trial_files import write_trials

__all__ = ["FAMILIES", "choose_cells", "judge_families", "report", "run", "run_trials"]

FAMILIES = {
    family.name: family
    for family in (
        regression.FAMILY,
        two_inputs.FAMILY,
        real_tables.FAMILY,
        labels.FAMILY,
        binned.FAMILY,
        classification.FAMILY,
        mixtures.FAMILY,
        kmeans.FAMILY,
        factors.PCA_FAMILY,
        factors.FACTOR_FAMILY,
        descriptive.FAMILY,
        bandits.FAMILY,
        search.FAMILY,
    )
}


def run(out: Path, *, repeats: int, quick: bool, seed: int, progress: Progress) -> Findings:
    """Run all families."""
    chosen = choose_cells(tuple(FAMILIES), quick=quick)
    trials = run_trials(chosen, range(repeats), seed=seed, progress=progress)
    return report(out, trials, seed=seed, judge=not quick)


def choose_cells(names: Sequence[str], *, quick: bool, containing: str = "") -> list[Cell]:
    """Cells of some families, or of these the ones whose name contains some words."""
    families = [FAMILIES[name] for name in names]
    return [
        cell
        for family in families
        for cell in (family.quick if quick else family.cells)
        if containing in str(cell)
    ]


def run_trials(
    cells: Sequence[Cell], repeats: Sequence[int], *, seed: int, progress: Progress
) -> dict[Cell, list[Trial]]:
    """Try each cell once for each number of a repeat."""
    total = len(repeats) * len(cells)
    trials: dict[Cell, list[Trial]] = {cell: [] for cell in cells}
    for done, (repeat, cell) in enumerate((repeat, cell) for repeat in repeats for cell in cells):
        progress(done, total, str(cell))
        with threadpool_limits(1):  # idle threads of scikit-learn spin
            trial = FAMILIES[cell.family].trial(cell, generator(cell, seed, repeat))
        trials[cell].append(trial)
    return trials


def report(
    out: Path, trials: Mapping[Cell, Sequence[Trial]], *, seed: int, judge: bool = True
) -> Findings:
    """Judge, tabulate and draw."""
    names = _names(trials)
    judged = judge_families(trials)
    repeats = sorted({len(found) for found in trials.values()})
    findings = Findings(
        "Whether answers can be believed: every estimator over data laws, n and ε",
        [_record(one) for one in judged],
        [_failing(judged), *(_family_table(FAMILIES[name], judged) for name in names)],
        _claims(judged, names) if judge else [],
        [
            f"Repeats of a cell: {' to '.join(str(one) for one in {repeats[0], repeats[-1]})}; "
            f"seed {seed}; δ = 0.1/n.",
            "Letters: " + "; ".join(f"{letter} {words}" for letter, words in FAULTS.items()) + ".",
        ],
        [
            draw_grid(out / "grid.png", judged),
            write_trials(out / "records.json", trials, seed=seed),
        ],
    )
    findings.write(out)
    return findings


def _names(trials: Mapping[Cell, Sequence[Trial]]) -> list[str]:
    return list(dict.fromkeys(cell.family for cell in trials))


def judge_families(trials: Mapping[Cell, Sequence[Trial]]) -> list[Judged]:
    """Judge the cells of all families that were tried."""
    judged: list[Judged] = []
    for name in _names(trials):
        own = {cell: found for cell, found in trials.items() if cell.family == name}
        judged += judge_cells(FAMILIES[name], own)
    return judged


def _record(one: Judged) -> dict[str, Value]:
    loss, error = mean_error(one.losses)
    numbers = {
        "loss": loss,
        "loss_error": error,
        "ratio_to_no_privacy": one.ratio,
        "ratio_to_smaller_epsilon": one.rise_epsilon,
        "ratio_to_smaller_n": one.rise_n,
        "mean_z": one.mean_z,
        "mean_z_error": one.mean_z_error,
        "worst_z": one.worst_z,
        **{f"coverage_{100 * level:.0f}": one.coverage[level] for level in BANDS},
        "coverage_95_error": one.coverage_error[0.95],
        "rank_mean": one.rank_mean,
        "rank_p": one.rank_p,
        **{f"outputs_{third}": share for third, share in enumerate(_thirds(one), 1)},
    }
    return {
        **one.cell._asdict(),
        "repeats": len(one.losses),
        **{key: value if math.isfinite(value) else "" for key, value in numbers.items()},
        "faults": one.faults,
    }


def _thirds(one: Judged) -> Sequence[float]:
    """Coverage of outputs in each third of the inputs; NaN where they were not looked at."""
    if one.outputs.size:
        return [float(share) for share in one.outputs]
    return [math.nan] * 3


def _number(value: float, digits: int = 2) -> str:
    if not math.isfinite(value):
        return ""
    return f"{value:.{digits}f}"


def _row(one: Judged) -> tuple[str, ...]:
    cell = one.cell
    return (
        cell.model,
        cell.law,
        f"{cell.n:,}",
        f"{cell.epsilon:g}",
        f"{one.losses.mean():.4g}",
        _number(one.ratio),
        _number(one.rise_epsilon),
        _number(one.rise_n),
        _number(one.mean_z),
        _number(one.worst_z, 1),
        *(_number(one.coverage[level]) for level in BANDS),
        _number(one.rank_p, 3),
        by_thirds(one),
        one.faults,
    )


_HEADINGS = (
    "model",
    "law",
    "n",
    "ε",
    "loss",
    "to no privacy",
    "to smaller ε",
    "to smaller n",
    "mean z",
    "worst z",
    *(f"{100 * level:.0f} %" for level in BANDS),
    "rank p",
    "outputs, by thirds",
    "faults",
)


def _failing(judged: Sequence[Judged]) -> ResultTable:
    rows = [_row(one) for one in judged if one.faults]
    title = f"Cells that fail: {len(rows)} of {len(judged)}"
    return ResultTable(title, _HEADINGS, rows or [("none", *[""] * (len(_HEADINGS) - 1))], 2)


def _family_table(family: Family, judged: Sequence[Judged]) -> ResultTable:
    rows = [_row(one) for one in judged if one.cell.family == family.name]
    return ResultTable(f"{family.name}: loss is the {family.loss}", _HEADINGS, rows, 2)


_LEAST_COVERAGE = 0.88
_LEAST_RATIO = 0.1  # a loss far below that without privacy does not make up for others
_FEW = 0.05  # of the cells may have bands of a wrong width


def _claims(judged: Sequence[Judged], names: Sequence[str]) -> list[Claim]:
    """What must hold in each family."""
    claims = []
    for name in names:
        cells = [one for one in judged if one.cell.family == name]
        count = Counter(letter for one in cells for letter in one.faults)
        banded = [one for one in cells if math.isfinite(one.coverage[0.95])]
        if banded:
            claims += _band_claims(name, banded, count)
        rising = count["E"] + count["R"]
        found = f"{count['E']} rise with ε, {count['R']} with n, of {len(cells)}"
        claims.append(Claim(f"{name}: no error rises with ε or n", found, rising == 0))
        free = [one for one in cells if one.cell.epsilon == FREE]
        if free:
            claims.append(_convergence_claim(name, free))
    return claims


def _convergence_claim(name: str, free: Sequence[Judged]) -> Claim:
    """No cell is clearly worse than without privacy, nor are all of them together."""
    worse = sum("P" in one.faults for one in free)
    found = f"{worse} of {len(free)} clearly are not"
    known = [one for one in free if math.isfinite(one.ratio)]
    together = False
    if known:
        ratios = np.log([max(one.ratio, _LEAST_RATIO) for one in known])
        together = clearly_above(ratios - math.log(NEAR))
        farthest = max(known, key=lambda one: one.ratio)
        found += (
            f"; {math.exp(ratios.mean()):.2f} on average (geometric), "
            f"farthest {farthest.ratio:.2f}, {farthest.cell}"
        )
    claim = f"{name}: at ε = 10⁶ within 2 % of the model without privacy"
    return Claim(claim, found, worse == 0 and not together)


def _band_claims(name: str, banded: Sequence[Judged], count: Counter[str]) -> list[Claim]:
    worst = max(banded, key=lambda one: one.worst_z)
    found = f"{count['B']} of {len(banded)} are; farthest {worst.worst_z:.1f}, {worst.cell}"
    claims = [Claim(f"{name}: no cell is biased", found, count["B"] == 0)]
    wrong = sum("N" in one.faults or "W" in one.faults for one in banded)
    lowest = min(banded, key=lambda one: one.coverage[0.95])
    limits = [one.coverage[0.95] + 2 * one.coverage_error[0.95] for one in banded]
    kept = wrong <= _FEW * len(banded) and min(limits) >= _LEAST_COVERAGE
    mean = sum(one.coverage[0.95] for one in banded) / len(banded)
    found = (
        f"{count['N']} narrow, {count['W']} wide, of {len(banded)}; 95 % bands cover {mean:.2f} on "
        f"average, at the least {lowest.coverage[0.95]:.2f} ± "
        f"{lowest.coverage_error[0.95]:.2f}, {lowest.cell}"
    )
    claim = (
        f"{name}: at most 5 % of the cells have bands of a wrong width, and 95 % bands cover "
        f"{_LEAST_COVERAGE} everywhere"
    )
    claims.append(Claim(claim, found, kept))
    ranked = [one for one in banded if math.isfinite(one.rank_p)]
    if ranked:
        found = f"{count['U']} of {len(ranked)} are not"
        claims.append(Claim(f"{name}: ranks are uniform", found, count["U"] == 0))
    return claims
