"""Tuo and Bhattacharya, Examples 1 to 3.

The least noise for one and two sensitive inputs, and which kernels may be hidden.
"""

from pathlib import Path

import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from reticent.errors import BadInput
from reticent.obfuscation.obfuscator import Obfuscator
from reticent.obfuscation.solver.spectral_density import check_below
from reticent.studies.common.figures import Line, Panel, draw
from reticent.studies.common.results import Claim, Findings, Progress, ResultTable, Value

__all__ = ["run"]

_KERNEL = RBF(np.sqrt(1 / 20), "fixed")  # exp(−10 (x − y)²)
_X = np.arange(1, 10) / 10
_CASES = (  # what, sensitive, solution, the trace that a reference implementation has
    ("Example 1, one input", [0.5], "weak", 3.545614),
    ("Example 1, independent noise", [0.5], "diagonal", 20.0729),
    ("Example 2, weak", [0.4, 0.6], "weak", 5.329920),
    ("Example 2, independent noise", [0.4, 0.6], "diagonal", 24.3928),
)


def run(out: Path, *, repeats: int, quick: bool, seed: int, progress: Progress) -> Findings:
    """Compute the examples; nothing is random in them but the release, which is not looked at."""
    records: list[dict[str, Value]] = []
    cs = np.linspace(np.exp(-0.4) - 0.5 + 1e-3, 0.5, 9 if quick else 60)
    total = len(_CASES) + len(cs) + 1
    models = {}
    for i, (what, sensitive, solution, known) in enumerate(_CASES):
        progress(i, total, what)
        model = Obfuscator(
            _KERNEL,
            sensitive=sensitive,
            variance=0.5,
            solution=solution,
            mean=0.0,
            random_state=seed,
        )
        model.obfuscate(_X, np.zeros(9))
        models[what] = model
        one = model.certificate_
        records.append(
            {
                "what": what,
                "trace": one.trace,
                "expected": known,
                "gap": one.gap,
                "attained": one.attained,
                "c": 0.0,
            }
        )
    traces = []
    for i, c in enumerate(cs):
        progress(len(_CASES) + i, total, "Example 2, strong")
        xi = [[0.5, c], [c, 0.5]]
        model = Obfuscator(
            _KERNEL,
            sensitive=[0.4, 0.6],
            variance=xi,
            solution="strong",
            mean=0.0,
            random_state=seed,
        )
        model.obfuscate(_X, np.zeros(9))
        one = model.certificate_
        traces.append(one.trace)
        records.append(
            {
                "what": "Example 2, strong",
                "trace": one.trace,
                "expected": 0.0,
                "gap": one.gap,
                "attained": one.attained,
                "c": c,
            }
        )
    progress(total - 1, total, "Example 3")
    rows = [
        (f"{c:g}", f"{theta:g}", _fits(c, theta))
        for c, theta in ((0.4, 10.0), (0.4, 5.0), (0.4, 1.7), (0.4, 1.5), (0.4, 11.0))
    ]
    at = np.linspace(0, 1, 201)
    variances = {name: model.predict(at, return_std=True)[1] ** 2 for name, model in models.items()}
    weak = records[2]["trace"]
    panels = [
        Panel(
            "Example 1: predictive variance",
            [
                Line("least noise", variances["Example 1, one input"].tolist(), at.tolist()),
                Line(
                    "independent noise",
                    variances["Example 1, independent noise"].tolist(),
                    at.tolist(),
                    colour="paper",
                ),
                Line("promised at 0.5", [0.5], colour="naive", style=":"),
            ],
            {"xlabel": "x", "ylabel": "variance", "ylim": (0, 1)},
        ),
        Panel(
            "Example 2: trace against c",
            [
                Line("strong", traces, cs.tolist(), colour="paper"),
                Line("weak", [float(weak)], colour="reticent"),
            ],
            {"xlabel": "c", "ylabel": "trace", "ylim": (5, 8)},
        ),
    ]
    claims = [
        Claim(
            f"{r['what']}: trace {r['expected']:g}",
            f"{r['trace']:.7g}",
            abs(float(r["trace"]) - float(r["expected"])) < 6e-5,
        )
        for r in records[:4]
    ]
    claims += [
        Claim(
            f"Example 2, strong, c = {c:g}: trace {known:g}",
            f"{_strong(c, seed):.7g}",
            abs(_strong(c, seed) - known) < 1e-5,
        )
        for c, known in ((0.39150, 5.329920), (0.45, 5.58829))
    ]
    least = np.exp(-0.4) - 0.5
    edges = [
        c for c in (least - 1e-4, least + 1e-4, 0.5 - 1e-4, 0.5 + 1e-4) if _strong(c, seed) < np.inf
    ]
    claims.append(
        Claim(
            "Example 2: Ξ is feasible for c from exp(−.4) − .5 = .17032 to .5",
            ", ".join(f"{c:.4f}" for c in edges),
            edges == [least + 1e-4, 0.5 - 1e-4],
        )
    )
    three = models["Example 1, one input"].predict([0.4, 0.5, 0.6], return_std=True)[1] ** 2
    claims.append(
        Claim(
            "Example 1: variances .3787, .5, .3787 at .4, .5, .6",
            ", ".join(f"{v:.4f}" for v in three),
            bool(np.abs(three - [0.3787, 0.5, 0.3787]).max() < 1e-4),
        )
    )
    tables = [
        ResultTable(
            "Least noise",
            ("case", "trace", "expected", "gap"),
            [
                (str(r["what"]), f"{r['trace']:.6f}", f"{r['expected']:g}", f"{r['gap']:.1e}")
                for r in records[:4]
            ],
        ),
        ResultTable(
            "Example 3: c·exp(−θ‖x−y‖²) behind exp(−10‖x−y‖²), one input: θ from 10c² to 10",
            ("c", "θ", "fits"),
            rows,
            3,
        ),
    ]
    note = "Inferential privacy, not differential privacy."
    picture = draw(out / "examples.png", [panels])
    return Findings(
        "Tuo and Bhattacharya, Examples 1–3",
        records,
        tables,
        [] if quick else claims,
        [note],
        [picture],
    ).write(out)


def _strong(c: float, seed: int) -> float:
    """The trace for Ξ with .5 on its diagonal and c beside it; infinite where that is refused."""
    xi = [[0.5, c], [c, 0.5]]
    model = Obfuscator(
        _KERNEL, sensitive=[0.4, 0.6], variance=xi, solution="strong", mean=0.0, random_state=seed
    )
    try:
        model.obfuscate(_X, np.zeros(9))
    except BadInput:
        return np.inf
    return float(model.certificate_.trace)


def _fits(c: float, theta: float) -> str:
    try:
        return (
            "yes, largest ratio "
            f"{check_below(_KERNEL, ConstantKernel(c) * RBF(np.sqrt(1 / (2 * theta))), 1):.3f}"
        )
    except ValueError:
        return "no"
