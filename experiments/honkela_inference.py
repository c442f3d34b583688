"""Honkela et al., Secs 6.1 and 6.2: accuracy and calibration of a private Gaussian process.

Fits `GPRegressor` as a user would, with the kernel and the noise level given as in the paper, δ = 1e-4, and prints the mean RMSE
to the true function ± its standard error, and the coverage of 95 % bands. Beside it, for orientation, figures of the paper's own
method, measured elsewhere with our reading of it (bounds of y ±1.3 in 6.1 and ±3 in 6.2, x uniform, amplitude 1); its literal
variant is not part of this repository yet.

    --repeats 40   the default; --quick: 3, for CI
"""

import argparse
import os
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from reticent import Bounds, GPRegressor

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
PAPER = {"6.1, σ=.1": (0.356, 0.253, 0.174, 0.111, 0.062), "6.2, σ=.1": (0.785, 0.671, 0.495, 0.368, 0.276)}
SEED = 20261116  # never used while the method was made


def draw(rng):
    """A function from the prior: RBF with length 1 on [−4, 4], by a fine grid."""
    grid = np.linspace(-4, 4, 161)
    values = rng.multivariate_normal(np.zeros(161), RBF(1.0)(grid[:, None]) + 1e-9 * np.eye(161), method="cholesky")
    return lambda x: np.interp(x, grid, values)


def run(section, sigma, epsilon, repeat):
    """RMSE to the truth, and coverage of 95 % bands at fresh points."""
    rng = np.random.default_rng([SEED, repeat, int(section * 10), int(sigma * 10)])
    n, reach = (1024, 1.3) if section == 6.1 else (512, 3.0)
    truth = (lambda x: np.sinc(2 * x / np.pi)) if section == 6.1 else draw(rng)
    x, at = rng.uniform(-4, 4, n), rng.uniform(-4, 4, 512)
    y = truth(x) + sigma * rng.normal(size=n)
    bounds = Bounds(x=[(-4, 4)], y=(-reach, reach))
    model = GPRegressor(RBF(1.0, "fixed"), noise=sigma, bounds=bounds, epsilon=epsilon, delta=1e-4)
    mean, std = model.fit(x[:, None], y).predict(at[:, None], return_std=True)
    error = mean - truth(at)
    return np.sqrt(np.mean(error**2)), np.mean(np.abs(error) < 1.96 * std)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    repeats = 3 if args.quick else args.repeats
    start = time.process_time()
    print(f"mean RMSE ± standard error of {repeats} repeats; coverage of 95 % bands; δ = 1e-4")
    print(f"{'':12s}" + "".join(f"{f'ε = {epsilon:g}':>15s}" for epsilon in EPSILONS))
    for section, sigma in ((6.1, 0.1), (6.2, 0.1), (6.2, 0.3), (6.2, 1.0)):
        name = f"{section}, σ={f'{sigma:g}'.lstrip('0')}"
        results = np.array([[run(section, sigma, epsilon, i) for i in range(repeats)] for epsilon in EPSILONS])
        means, errors = results[:, :, 0].mean(axis=1), results[:, :, 0].std(axis=1, ddof=1) / np.sqrt(repeats)
        print(f"{name:12s}" + "".join(f"{f'{m:.3f} ± {e:.3f}':>15s}" for m, e in zip(means, errors, strict=True)))
        print(f"{'  coverage':12s}" + "".join(f"{c:15.3f}" for c in results[:, :, 1].mean(axis=1)))
        if name in PAPER:
            print(f"{'  paper':12s}" + "".join(f"{value:15.3f}" for value in PAPER[name]))
    print(f"{time.process_time() - start:.0f} s CPU")


if __name__ == "__main__":
    main()
