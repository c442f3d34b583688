"""How fast is the noise that hides part of a curve? `python benchmarks/obfuscation.py [--quick]
[PART …]`

sizes       the weak problem with its certificate: many records, many sensitive points, general
            noise, low rank; CPU seconds
clarabel    the same small problem by Clarabel through CVXPY (where these are installed), by turns:
            ratio
chance      random small problems: the largest gap, and by how much the nearest promise is kept
positive    the positive part of UUᵀ − M by its few eigenpairs, against a full eigendecomposition:
            ratio
"""

import argparse
import time

import numpy as np
from sklearn.gaussian_process.kernels import RBF, Matern

from reticent.obfuscation.solver.certificate import solve
from reticent.obfuscation.solver.constraints import promise
from reticent.obfuscation.solver.covariance import between, observe, positive_part, prior_variance
from reticent.privacy.statistics.exact_sum import one_blas_thread


def timed(task):
    start = time.process_time()
    found = task()
    return time.process_time() - start, found


def weakly(n, g, kernel, noise):
    x = np.linspace(0, 1, n)[:, None]
    s = np.linspace(0.4, 0.6, g)[:, None]
    made = promise(kernel, s, np.full(g, 0.5), None, 0)
    return solve(kernel, x, observe(kernel, x, noise, s), made, solution="weak").certificate


def sizes(quick):
    rng = np.random.default_rng(0)
    if quick:
        n = 200
    else:
        n = 1000
    b = rng.normal(size=(n, n))
    general = 0.1 * b @ b.T / n + 0.01 * np.eye(n)
    cases = [
        ("white noise", (600 if quick else 3000, 50, RBF(0.05), 0.01), 10),
        ("no noise", (600 if quick else 3000, 50, RBF(0.05), 0.0), 10),
        ("general V", (n, 10, RBF(0.05), general), 10),
        ("rough kernel", (n, 10, Matern(0.05, nu=0.5), 0.0), 10),
        ("low rank", (5000 if quick else 100_000, 200, RBF(0.05), 0.01), 10),
    ]
    for name, case, most in cases:
        seconds, found = timed(lambda case=case: weakly(*case))
        name = f"n={case[0]:,}, g={case[1]}, {name}"
        print(
            f"  {name:<30} {seconds:6.2f} s CPU (goal {most})   gap "
            f"{found.gap:.1e}   ratio {found.ratio:.9f}",
            flush=True,
        )


def clarabel(quick):
    try:
        import cvxpy as cp
    except ImportError:
        print("  CVXPY is not installed: left out")
        return
    for n, g in ((20, 3),) if quick else ((30, 5), (60, 5)):
        kernel = RBF(0.1)
        x = np.linspace(0, 1, n)[:, None]
        s = np.linspace(0.4, 0.6, g)[:, None]
        m, c = between(kernel, x, x) + 0.01 * np.eye(n), between(kernel, x, s) / np.sqrt(0.5)

        def theirs(n=n, g=g, m=m, c=c):
            sigma = cp.Variable((n, n), PSD=True)
            limits = [sigma + m - np.outer(c[:, i], c[:, i]) >> 0 for i in range(g)]
            return cp.Problem(cp.Minimize(cp.trace(sigma)), limits).solve(solver="CLARABEL")

        them, trace = timed(theirs)
        us, found = timed(lambda n=n, g=g, kernel=kernel: weakly(n, g, kernel, 0.01))
        print(
            f"  n={n}, g={g}: Clarabel {them:.2f} s, ours {us:.2f} s: {them / us:.0f} ×; traces "
            f"{trace:.6f}, {found.trace:.6f}"
        )


def chance(quick):
    kernels = (RBF(0.2), Matern(0.3, nu=1.5), Matern(0.2, nu=0.5), 3.0 * RBF(0.1))
    if quick:
        count = 10
    else:
        count = 150
    gaps = []
    kept = []
    for seed in range(1_000_000, 1_000_000 + count):
        rng = np.random.default_rng(seed)
        n = rng.integers(1, 30)
        g = rng.integers(1, 6)
        x = rng.uniform(size=(n, 1))
        s = rng.uniform(size=(g, 1))
        kernel = kernels[rng.integers(4)]
        noise = (0.0, 0.01, rng.uniform(0.01, 0.1, n))[rng.integers(3)]
        prior = prior_variance(kernel, s)
        made = promise(kernel, s, prior * rng.uniform(0.05, 0.9, g), None, 0)
        found = solve(kernel, x, observe(kernel, x, noise, s), made, solution="weak")
        a = (
            between(kernel, x, x)
            + np.diag(np.broadcast_to(noise, n))
            + found.factor @ found.factor.T
        )
        a += found.floor * np.eye(n)
        c = between(kernel, x, s)
        attained = prior - np.einsum("ij,ij->j", c, np.linalg.solve(a, c))
        kept.append(((attained - made.promised) / prior).min())
        if found.certificate.trace > 1e-5 * prior[0]:  # otherwise there is nothing to hide
            gaps.append(found.certificate.gap)
    print(
        f"  {count} problems: largest gap {max(gaps):.1e}; smallest attained − promised, of the "
        f"prior: {min(kept):.1e}"
    )


def positive(quick):
    if quick:
        n = 800
    else:
        n = 4000
    kernel = Matern(0.1, nu=1.5)
    x = np.linspace(0, 1, n)[:, None]
    m = between(kernel, x, x) + 0.01 * np.eye(n)
    u = between(kernel, x, np.linspace(0.4, 0.6, 10)[:, None]) * 1.5
    few, factor = timed(lambda: positive_part(u, m))
    full, values = timed(lambda: np.linalg.eigh(u @ u.T - m)[0])
    traces = f"traces {(factor**2).sum():.6f}, {values[values > 0].sum():.6f}"
    print(f"  n={n:,}: {few:.2f} s against {full:.2f} s: {full / few:.0f} ×; {traces}")


def main():
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--quick", action="store_true", help="small sizes, for CI")
    parts = {part.__name__: part for part in (sizes, clarabel, chance, positive)}
    options.add_argument(
        "parts", nargs="*", metavar="PART", help=f"{', '.join(parts)}; all if left out"
    )
    given = options.parse_args()
    if unknown := set(given.parts) - set(parts):
        options.error(f"no such part: {', '.join(unknown)}")
    with one_blas_thread():
        for name in given.parts or parts:
            print(name, flush=True)
            parts[name](given.quick)


if __name__ == "__main__":
    main()
