"""How fast is a Gaussian-process fit? `python benchmarks/gp.py [--quick] [--peer PYTHON]`

Everything is timed in one run, by turns, so that the ratios mean something on a shared machine:

    stages       a whole fit, with all its releases, against one Gram sum of its features, from raw records to exact integers:
                 less than 6 times as long. Also where a Gram sum's time goes, and what a later stage takes.
    prediction   mean and standard deviation at many points, in seconds of CPU
    peer         GPflow's SGPR, which is not private, with as many inducing points: time and error. PYTHON is an interpreter that
                 has GPflow; without one, this part is left out.
"""

import argparse
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from reticent import Bounds, GPRegressor, scan
from reticent.models.residuals import stage
from reticent.privacy.kept import BlockSum, Keeper
from reticent.privacy.sums import one_blas_thread

PEER = """
import sys, time
import numpy as np, gpflow
given = np.load(sys.argv[1])
x, y = given["x"], given["y"][:, None]
inducing = x[np.random.default_rng(0).choice(len(x), int(given["m"]), replace=False)]
start, cpu = time.perf_counter(), time.process_time()
model = gpflow.models.SGPR(
    (x, y), gpflow.kernels.SquaredExponential(lengthscales=[1.0] * x.shape[1]), inducing.copy(), noise_variance=0.1
)
gpflow.optimizers.Scipy().minimize(
    model.training_loss_closure(compile=True), model.trainable_variables, options={"maxiter": int(given["steps"])}
)
seconds = time.perf_counter() - start, time.process_time() - cpu
np.savez(sys.argv[2], mean=model.predict_f(given["at"])[0].numpy()[:, 0], seconds=seconds)
"""


def surface(n, d, seed):
    """A smooth function of d inputs in [−1, 1]ᵈ (a draw from a squared-exponential prior), and noisy outputs."""
    rng, law = np.random.default_rng(seed), np.random.default_rng(0)
    frequency, phase = law.normal(size=(d, 300)) / 0.8, law.uniform(0, 2 * math.pi, 300)
    x = rng.uniform(-1, 1, size=(n, d))
    f = np.empty(n)
    for start in range(0, n, 50_000):
        f[start : start + 50_000] = np.cos(x[start : start + 50_000] @ frequency + phase).sum(axis=1)
    f *= 0.8 * math.sqrt(2 / 300)
    return x, f, f + 0.1 * rng.normal(size=n)


def timed(task):
    start, cpu = time.perf_counter(), time.process_time()
    task()
    return np.array([time.perf_counter() - start, time.process_time() - cpu])


def by_turns(tasks, repeats):
    """Least wall and CPU seconds of each task, all tasks taking turns."""
    best = dict.fromkeys(tasks, np.full(2, math.inf))
    for _ in range(repeats):
        for name, task in tasks.items():
            best[name] = np.minimum(best[name], timed(task))
    return best


def stages(n, m, d, repeats):
    x, _, y = surface(n, d, 1)
    bounds = Bounds(x=[(-1, 1)] * d, y=(-4, 4))
    model = GPRegressor(bounds=bounds, epsilon=1, delta=1e-8, basis=m)
    model.fit(x[:5000], y[:5000])  # for its features; the machine's caches are warm, too
    head, source, threads = model._head, scan(x, y=y), len(os.sched_getaffinity(0))
    resolved, fields = bounds.resolve(source, targets=True)
    first, later = (stage(head, w * np.ones((1, head.columns)) / 10, [1.0]) for w in (0, 1))
    keeper = Keeper(resolved)
    keeper.total(source, fields, first, n=n, threads=threads, keep=True)
    tasks = {
        "one Gram sum": lambda: source.total(
            fields, BlockSum(first, resolved), rows=first.block_rows, threads=threads
        ).integers(),
        "a later stage": lambda: keeper.total(source, fields, later, n=n, threads=threads, keep=True),
        "whole fit": lambda: model.fit(x, y),
    }
    best = by_turns(tasks, repeats)
    print(f"stages: n = {n:,}, {d} inputs, m = {head.columns} functions, {len(model.releases_)} releases")
    for name, (wall, cpu) in best.items():
        print(f"  {name:14s} {wall:7.2f} s   {cpu:7.2f} s of CPU")
    wall, cpu = best["whole fit"] / best["one Gram sum"]
    print(f"  whole fit / one Gram sum = {wall:.2f} (CPU {cpu:.2f}; wanted for 1,000,000: below 6)")
    with one_blas_thread():
        records = resolved.unit(np.column_stack([x[:4096], y[:4096]]))
        q = first.stacked(records)
        rows, product = (by_turns({0: task}, 20)[0][1] for task in (lambda: first.stacked(records), lambda: q.T @ q))
    print(
        f"  of a Gram sum's CPU, {rows / (rows + product):.0%} makes rows, {product / (rows + product):.0%} multiplies"
    )
    return model


def prediction(model, points):
    at = np.random.default_rng(3).uniform(-1, 1, size=(points, model.n_features_in_))
    cpu = min(timed(lambda: model.predict(at, return_std=True))[1] for _ in range(3))
    print(f"prediction: {points:,} points with standard deviation: {cpu:.2f} s of CPU (wanted for 100,000: below 2)")


def peer(python, n, m, steps):
    if subprocess.run([python, "-c", "import gpflow"], capture_output=True).returncode:
        print(
            f"peer: left out, for {python} has no GPflow. Install it anywhere and name that interpreter: --peer PYTHON."
        )
        return
    x, _, y = surface(n, 2, 1)
    at, truth, seen = surface(10_000, 2, 2)
    with tempfile.TemporaryDirectory() as folder:
        given, answer = Path(folder, "given.npz"), Path(folder, "answer.npz")
        np.savez(given, x=x, y=y, at=at, m=m, steps=steps)
        subprocess.run([python, "-c", PEER, given, answer], check=True, capture_output=True)
        theirs = dict(np.load(answer))
    bounds = Bounds(x=[(-1, 1)] * 2, y=(-4, 4))
    found = {"GPflow SGPR": theirs}
    for name, kernel in {"ours, RBF": RBF([1.0, 1.0]), "ours, default": None}.items():
        model = GPRegressor(kernel, basis=m, bounds=bounds, epsilon=1e6, delta=1e-8)
        found[name] = {"seconds": timed(lambda model=model: model.fit(x, y)), "mean": model.predict(at)}
    print(f"peer: n = {n:,}, 2 inputs, m = {m}, ours at ε = 10⁶, SGPR with up to {steps} steps of L-BFGS")
    errors = []
    for name, one in found.items():
        error, function = (math.sqrt(np.mean((one["mean"] - target) ** 2)) for target in (seen, truth))
        errors.append(error)
        wall, cpu = one["seconds"]
        print(f"  {name:14s} {wall:7.2f} s   {cpu:7.2f} s of CPU   RMSE {error:.5f} (to the function {function:.5f})")
    ratios = [error / errors[0] for error in errors[1:]]
    print(
        f"  RMSE ours / theirs = {ratios[0]:.4f} with the same kernel, {ratios[1]:.4f} with ours (wanted: below 1.01)"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--peer", default=sys.executable, metavar="PYTHON", help="an interpreter that has GPflow")
    given = parser.parse_args()
    model = stages(10_000 if given.quick else 1_000_000, 100, 5, 1 if given.quick else 3)
    prediction(model, 10_000 if given.quick else 100_000)
    peer(given.peer, *((2_000, 30, 5) if given.quick else (100_000, 100, 100)))


if __name__ == "__main__":
    main()
