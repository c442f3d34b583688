"""How much noise do label-only models add, and how long do they take?
`python benchmarks/labels.py [--quick]`

Three parts:

    noise      the mean sd of the privacy noise at 20 test points, for 100 labels, ε = 1, δ = .01, a
               label range of 4, beside what dp4gp (Smith et al.'s own package) was measured to add
               in such a set-up: functional 49.8, cloaking 1.31, inducing cloaking .83. Inputs are
               even on [0, 10], the kernel is an RBF of length scale 1 and variance 1, the
               observation noise has a standard deviation of .5; dp4gp's inputs and kernel are not
               known to us. First the same kind of release, C y plus noise; then what is left of the
               noise in our predictions, which know its law.
    cloak      5,000 labels and 2,000 points of interest: time, feasibility on the integers, and the
               distance from the optimum
    function   a released function at 100,000 points
"""

import argparse
import time
import warnings
from base64 import b64decode

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from reticent import Bounds, LabelGPRegressor
from reticent.studies.smith2018.as_printed import Problem, noise_root

PEER = {"exact": 49.8, "trace cloak": 1.31, "inducing trace cloak": 0.83}
OURS = {"exact": "functional", "trace cloak": "cloak", "inducing trace cloak": "inducing"}


def noise(stages):
    x = np.linspace(0, 10, 100)[:, None]
    at = np.linspace(0.25, 9.75, 20)[:, None]
    y = 2 * np.sin(x[:, 0])
    problem = Problem(x, at, np.linspace(0, 10, 11)[:, None], 2**0.5, 1.0, 0.25, 4.0)
    bounds = Bounds(x=[(0, 10)], y=(-2, 2))
    print(f"{'mean noise sd':<24}{'dp4gp':>8}{'C y + noise':>14}{'our prediction':>16}")
    for method, peer in PEER.items():
        _, root = noise_root(problem, method, 1.0, 0.01)
        ours = np.sqrt(np.square(root).sum(axis=1)).mean()
        model = LabelGPRegressor(
            RBF(1.0),
            mechanism=OURS[method],
            noise=0.5,
            learn_kernel=False,
            stages=stages,
            bounds=bounds,
            epsilon=1,
            delta=0.01,
        ).fit(x, y)
        left = np.sqrt(model.variance_parts(at)["privacy"]).mean()
        print(f"{OURS[method]:<24}{peer:>8.2f}{ours:>14.2f}{left:>16.2f}")
        assert left < ours < peer


def cloak(n, points):
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 10, size=(n, 1))
    y = np.sin(x[:, 0]) + 0.1 * rng.normal(size=n)
    model = LabelGPRegressor(
        RBF(1.0),
        at=np.linspace(0, 10, points)[:, None],
        noise=0.1,
        learn_kernel=False,
        stages=1,
        bounds=Bounds(x=[(0, 10)], y=(-2, 2)),
        epsilon=1,
        delta=1e-6,
    )
    start = time.perf_counter()
    cpu = time.process_time()
    model.fit(x, y)
    seconds = time.perf_counter() - start
    cpu = time.process_time() - cpu
    told = model.releases_[0].statistic
    steps = (
        np.frombuffer(b64decode(told["table"]), dtype="<i4")
        .reshape(-1, told["length"])
        .astype(object)
    )
    longest = int((steps**2).sum(axis=1).max())
    print(f"cloak: {n:,} labels, {points:,} points of interest: {seconds:.1f} s ({cpu:.1f} s CPU),")
    print(
        f"       {model.designs_[0]} of the optimum; longest column {longest} "
        f"≤ {4**24}, in whole steps"
    )
    assert longest <= 4**24
    assert float(model.designs_[0].rpartition(" ")[2]) <= 1e-3
    return model


def function(model, points):
    start = time.perf_counter()
    cpu = time.process_time()
    model.predict(np.linspace(0, 10, points)[:, None], return_std=True)
    seconds = time.perf_counter() - start
    cpu = time.process_time() - cpu
    print(
        f"function: mean and standard deviation at {points:,} points: "
        f"{seconds:.1f} s ({cpu:.1f} s CPU)"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore", UserWarning)  # δ = .01 is large for 100 records
    noise(2 if quick else 8)
    function(cloak(200, 80) if quick else cloak(5000, 2000), 10_000 if quick else 100_000)
