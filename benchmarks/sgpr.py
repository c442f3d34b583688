"""How far from a sparse Gaussian process without privacy? `python benchmarks/sgpr.py [--quick]
[--peer PYTHON]`

SGPR (sparse regression after Titsias) of GPyTorch or GPflow, with as many inducing points as
`GPRegressor` has functions, in one run: time, and error on outputs that neither has seen. Ours at
ε = 10⁶, where privacy noise no longer matters, once with the same kernel family, whose scales and
noise level both learn, and once with nothing given. Theirs learns by L-BFGS.

PYTHON is an interpreter that has GPyTorch (`pip install torch gpytorch`) or GPflow
(`pip install gpflow`); neither is needed for anything else, so an environment of their own is best.
Without one, only ours is shown.
"""

import argparse
import math
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from gp import surface, timed
from sklearn.gaussian_process.kernels import RBF

from reticent import Bounds, GPRegressor
from reticent.privacy.process import available_cpus

GPFLOW = """
import gpflow
version = gpflow.__version__

def fitted(x, y, inducing, steps):
    kernel = gpflow.kernels.SquaredExponential(lengthscales=[1.0] * x.shape[1])
    model = gpflow.models.SGPR((x, y[:, None]), kernel, inducing, noise_variance=0.1)
    loss = model.training_loss_closure(compile=True)
    gpflow.optimizers.Scipy().minimize(loss, model.trainable_variables, options={"maxiter": steps})
    return lambda at: model.predict_f(at)[0].numpy()[:, 0]
"""

GPYTORCH = """
import gpytorch, torch
from gpytorch.kernels import InducingPointKernel, RBFKernel, ScaleKernel
version = gpytorch.__version__
torch.set_default_dtype(torch.float64)
torch.set_num_threads(THREADS)

class Sparse(gpytorch.models.ExactGP):
    def __init__(self, x, y, inducing, likelihood):
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        whole = ScaleKernel(RBFKernel(ard_num_dims=x.shape[1]))
        self.covar_module = InducingPointKernel(whole, inducing, likelihood)

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

def fitted(x, y, inducing, steps):
    x, y, inducing = map(torch.from_numpy, (x, y, inducing))
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    model = Sparse(x, y, inducing, likelihood)
    model.initialize(**{"likelihood.noise": 0.1, "covar_module.base_kernel.outputscale": 1.0})
    model.initialize(**{"covar_module.base_kernel.base_kernel.lengthscale": 1.0})
    evidence = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    descent = torch.optim.LBFGS(model.parameters(), max_iter=steps, line_search_fn="strong_wolfe")
    def loss():
        descent.zero_grad()
        value = -evidence(model(x), y)
        value.backward()
        return value
    model.train()
    descent.step(loss)
    model.eval()
    def predict(at):
        with torch.no_grad():
            return model(torch.from_numpy(at)).mean.numpy()
    predict(inducing.detach().numpy())
    return predict
"""

RUN = """
import sys, time
import numpy as np
given = np.load(sys.argv[1])
x, y = given["x"], given["y"]
inducing = x[np.random.default_rng(0).choice(len(x), int(given["m"]), replace=False)]
start, cpu = time.perf_counter(), time.process_time()
predict = fitted(x, y, inducing.copy(), int(given["steps"]))
seconds = time.perf_counter() - start, time.process_time() - cpu
np.savez(sys.argv[2], mean=predict(given["at"]), seconds=seconds, version=version)
"""


def theirs(python, given):
    """What the peer predicts and how long it took; nothing if that interpreter has none."""
    threads = available_cpus()
    for package, name, code in (("gpytorch", "GPyTorch", GPYTORCH), ("gpflow", "GPflow", GPFLOW)):
        if subprocess.run([python, "-c", f"import {package}"], capture_output=True).returncode:
            continue
        with tempfile.TemporaryDirectory() as folder:
            asked = Path(folder, "asked.npz")
            answer = Path(folder, "answer.npz")
            np.savez(asked, **given)
            code = code.replace("THREADS", str(threads)) + RUN
            subprocess.run([python, "-W", "ignore", "-c", code, asked, answer], check=True)
            found = dict(np.load(answer))
        return {f"SGPR, {name} {found.pop('version')}": found}
    print(
        f"  {python} has neither GPyTorch nor GPflow: ours alone. Install one "
        "anywhere and name it: --peer PYTHON"
    )
    return {}


def compare(python, n, m, d, steps):
    x, _, y = surface(n, d, 1)
    at, truth, seen = surface(10_000, d, 2)
    print(
        f"n = {n:,}, {d} input{'s' * (d > 1)}, m = {m}; ours at ε = 10⁶, SGPR "
        f"with up to {steps} steps of L-BFGS",
        flush=True,
    )
    found = theirs(python, {"x": x, "y": y, "at": at, "m": m, "steps": steps})
    bounds = Bounds(x=[(-1, 1)] * d, y=(-4, 4))
    for name, kernel in {"ours, RBF": RBF([1.0] * d), "ours, default": None}.items():
        model = GPRegressor(kernel, basis=m, bounds=bounds, epsilon=1e6, delta=1e-8)
        found[name] = {
            "seconds": timed(lambda model=model: model.fit(x, y)),
            "mean": model.predict(at),
        }
    errors = {}
    for name, one in found.items():
        errors[name], function = (
            math.sqrt(np.mean((one["mean"] - target) ** 2)) for target in (seen, truth)
        )
        wall, cpu = one["seconds"]
        print(
            f"  {name:22s} {wall:7.2f} s   {cpu:7.2f} s of CPU   RMSE {errors[name]:.5f} (to the "
            f"function {function:.5f})"
        )
    peer, *own = errors.values()
    if len(own) == 2:
        same, default = (error / peer for error in own)
        print(
            f"  RMSE ours / theirs = {same:.4f} with the same kernel, {default:.4f} with nothing "
            "given (wanted: below 1.01)"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument(
        "--peer",
        default=sys.executable,
        metavar="PYTHON",
        help="an interpreter that has GPyTorch or GPflow",
    )
    given = parser.parse_args()
    for d in (1,) if given.quick else (1, 2):
        compare(given.peer, *((2_000, 30, d, 5) if given.quick else (100_000, 100, d, 100)))


if __name__ == "__main__":
    main()
