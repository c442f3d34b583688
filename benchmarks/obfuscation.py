"""How fast is the noise that hides part of a curve? `python benchmarks/obfuscation.py [--quick] [sizes] [clarabel] [positive]`

sizes       the weak problem with its certificate: many records, many sensitive points, general noise, low rank; CPU seconds
clarabel    the same small problem by Clarabel through CVXPY (where these are installed), by turns: ratio
positive    the positive part of UUᵀ − M by its few eigenpairs, against a full eigendecomposition: ratio
"""

import argparse
import time

import numpy as np
from sklearn.gaussian_process.kernels import RBF, Matern

from reticent.maths.obfuscation import between, observe, positive_part
from reticent.maths.obfuscation_promise import promise
from reticent.maths.obfuscation_solution import solve
from reticent.privacy.sums import one_blas_thread


def timed(task):
    start = time.process_time()
    found = task()
    return time.process_time() - start, found


def weakly(n, g, kernel, noise):
    x, s = np.linspace(0, 1, n)[:, None], np.linspace(0.4, 0.6, g)[:, None]
    made = promise(kernel, s, np.full(g, 0.5), None, 0)
    return solve(kernel, x, observe(kernel, x, noise, s), made, solution="weak").certificate


def sizes(quick):
    rng = np.random.default_rng(0)
    n = 200 if quick else 1000
    b = rng.normal(size=(n, n))
    general = 0.1 * b @ b.T / n + 0.01 * np.eye(n)
    cases = [
        ("n=3,000, g=50, white noise", (600 if quick else 3000, 50, RBF(0.05), 0.01), 10),
        ("n=3,000, g=50, no noise", (600 if quick else 3000, 50, RBF(0.05), 0.0), 10),
        ("n=1,000, g=10, general V", (n, 10, RBF(0.05), general), 10),
        ("n=1,000, g=10, rough kernel", (n, 10, Matern(0.05, nu=0.5), 0.0), 10),
        ("n=100,000, g=200, low rank", (5000 if quick else 100_000, 200, RBF(0.05), 0.01), 10),
    ]
    for name, case, most in cases:
        seconds, found = timed(lambda case=case: weakly(*case))
        print(
            f"  {name:<30} {seconds:6.2f} s CPU (goal {most})   gap {found.gap:.1e}   ratio {found.ratio:.9f}",
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
        x, s = np.linspace(0, 1, n)[:, None], np.linspace(0.4, 0.6, g)[:, None]
        m, c = between(kernel, x, x) + 0.01 * np.eye(n), between(kernel, x, s) / np.sqrt(0.5)

        def theirs(n=n, g=g, m=m, c=c):
            sigma = cp.Variable((n, n), PSD=True)
            limits = [sigma + m - np.outer(c[:, i], c[:, i]) >> 0 for i in range(g)]
            return cp.Problem(cp.Minimize(cp.trace(sigma)), limits).solve(solver="CLARABEL")

        them, trace = timed(theirs)
        us, found = timed(lambda n=n, g=g, kernel=kernel: weakly(n, g, kernel, 0.01))
        print(
            f"  n={n}, g={g}: Clarabel {them:.2f} s, ours {us:.2f} s: {them / us:.0f} ×; traces {trace:.6f}, {found.trace:.6f}"
        )


def positive(quick):
    n = 800 if quick else 4000
    kernel, x = Matern(0.1, nu=1.5), np.linspace(0, 1, n)[:, None]
    m = between(kernel, x, x) + 0.01 * np.eye(n)
    u = between(kernel, x, np.linspace(0.4, 0.6, 10)[:, None]) * 1.5
    few, factor = timed(lambda: positive_part(u, m))
    full, values = timed(lambda: np.linalg.eigh(u @ u.T - m)[0])
    traces = f"traces {(factor**2).sum():.6f}, {values[values > 0].sum():.6f}"
    print(f"  n={n:,}: {few:.2f} s against {full:.2f} s: {full / few:.0f} ×; {traces}")


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true", help="small sizes, for CI")
    parts = {part.__name__: part for part in (sizes, clarabel, positive)}
    options.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(parts)}; all if left out")
    given = options.parse_args()
    if unknown := set(given.parts) - set(parts):
        options.error(f"no such part: {', '.join(unknown)}")
    with one_blas_thread():
        for name in given.parts or parts:
            print(name, flush=True)
            parts[name](given.quick)


if __name__ == "__main__":
    main()
