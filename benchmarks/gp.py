"""How fast is a Gaussian-process fit? `python benchmarks/gp.py [--quick]`

Everything is timed in one run, by turns, so that the ratios mean something on a shared machine:

    stages       a whole fit, with all its releases, against one Gram sum of its features, from raw
                 records to exact integers: less than 6 times as long. Also where a Gram sum's time
                 goes, and what a later stage takes.
    default      fits with nothing given and the basis that is chosen: one input, and so many that
                 400 functions are worth having, in seconds of CPU, and by what a product of two
                 400 × 400 matrices takes meanwhile: a second of CPU does less on a busy machine
    prediction   mean and standard deviation at many points, in seconds of CPU
"""

import argparse
import math
import time

import numpy as np

from reticent import Bounds, GPRegressor, scan
from reticent.privacy.process import available_cpus
from reticent.privacy.record_sum import BlockSum, RecordSum
from reticent.privacy.row_maps.residual_gram import stage
from reticent.privacy.statistics.enforced import enforce
from reticent.privacy.statistics.exact_sum import one_blas_thread
from reticent.privacy.statistics.feature_cache import FeatureCache


def surface(n, d, seed):
    """A smooth function of d inputs in [−1, 1]ᵈ (a draw from a squared-exponential prior), and
    noisy outputs.
    """
    rng = np.random.default_rng(seed)
    law = np.random.default_rng(0)
    frequency = law.normal(size=(d, 300)) / 0.8
    phase = law.uniform(0, 2 * math.pi, 300)
    x = rng.uniform(-1, 1, size=(n, d))
    f = np.empty(n)
    for start in range(0, n, 50_000):
        f[start : start + 50_000] = np.cos(x[start : start + 50_000] @ frequency + phase).sum(
            axis=1
        )
    f *= 0.8 * math.sqrt(2 / 300)
    return x, f, f + 0.1 * rng.normal(size=n)


def timed(task):
    start = time.perf_counter()
    cpu = time.process_time()
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
    feature_map = model._feature_map
    source = scan(x, y=y)
    threads = available_cpus()
    resolved, fields = bounds.resolve(source, targets=True)
    first, later = (
        stage(feature_map, w * np.ones((1, feature_map.columns)) / 10, [1.0]) for w in (0, 1)
    )
    cache = FeatureCache()
    sums = RecordSum(source, fields, resolved, threads)
    cache.total(sums, enforce(first), n=n, keep=True)
    tasks = {
        "one Gram sum": lambda: source.total(
            fields, BlockSum(enforce(first), resolved), rows=first.block_rows, threads=threads
        ).integers(),
        "a later stage": lambda: cache.total(sums, enforce(later), n=n, keep=True),
        "whole fit": lambda: model.fit(x, y),
    }
    best = by_turns(tasks, repeats)
    print(
        f"stages: n = {n:,}, {d} inputs, m = {feature_map.columns} functions, "
        f"{len(model.releases_)} releases"
    )
    for name, (wall, cpu) in best.items():
        print(f"  {name:14s} {wall:7.2f} s   {cpu:7.2f} s of CPU")
    wall, cpu = best["whole fit"] / best["one Gram sum"]
    print(f"  whole fit / one Gram sum = {wall:.2f} (CPU {cpu:.2f}; wanted for 1,000,000: below 6)")
    with one_blas_thread():
        records = resolved.scale(np.column_stack([x[:4096], y[:4096]]))
        enforced = enforce(first)
        q = enforced.stacked(records)
        rows, product = (
            by_turns({0: task}, 20)[0][1]
            for task in (lambda: enforced.stacked(records), lambda: q.T @ q)
        )
    print(
        f"  of a Gram sum's CPU, {rows / (rows + product):.0%} makes rows, "
        f"{product / (rows + product):.0%} multiplies"
    )
    return model


def default(n, repeats):
    factor = np.random.default_rng(0).normal(size=(400, 400))

    def products():
        with one_blas_thread():
            for _ in range(20):
                factor @ factor

    for d, epsilon, wanted in ((1, 1.0, 0.5), (6, 10.0, 6.0), (6, 1e4, 6.0)):
        x, _, y = surface(n, d, 1)
        bounds = Bounds(x=[(-1, 1)] * d, y=(-4, 4))
        model = GPRegressor(bounds=bounds, epsilon=epsilon, delta=1e-6, random_state=0)
        fits = []
        product = []
        for _ in range(repeats):
            product.append(timed(products)[1] / 20)
            fits.append(timed(lambda model=model, x=x, y=y: model.fit(x, y))[1])
        print(
            f"default: n = {n:,}, {d} input{'s' * (d > 1)}, ε = {epsilon:g}, "
            f"m = {model._feature_map.columns} functions: {min(fits):.2f} s of CPU, median "
            f"{np.median(fits):.2f} of {repeats} (wanted for 20,000: below {wanted:g}); "
            f"{np.median(np.divide(fits, product)):,.0f} products of "
            f"{1000 * np.median(product):.2f} ms"
        )


def prediction(model, points):
    at = np.random.default_rng(3).uniform(-1, 1, size=(points, model.n_features_in_))
    cpu = min(timed(lambda: model.predict(at, return_std=True))[1] for _ in range(3))
    print(
        f"prediction: {points:,} points with standard deviation: {cpu:.2f} s "
        "of CPU (wanted for 100,000: below 2)"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    model = stages(10_000 if given.quick else 1_000_000, 100, 5, 1 if given.quick else 3)
    default(2_000 if given.quick else 20_000, 1 if given.quick else 7)
    prediction(model, 10_000 if given.quick else 100_000)


if __name__ == "__main__":
    main()
