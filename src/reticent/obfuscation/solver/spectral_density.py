"""Spectral densities of stationary kernels.

May H be hidden behind K (Prop. 1), and what hides it everywhere (Prop. 2). A kernel is a mixture of
waves, K(x, y) = ∫ k(ω) Λ(ω‖x − y‖) dω with k ≥ 0 over radial frequencies ω and Λ the mean of a wave
over all directions (cos, J₀, sin z/z in one, two, three dimensions). H ⪯ K if h ≤ k everywhere, and
G(x, y) = ∫ k²/(k − h)·Λ dω is what M + Σ must exceed to hide H at every input at once.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import gamma, jv
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel, Matern, Product, Sum

from reticent.obfuscation.solver.settings import SOLVER

__all__ = ["check_below", "everywhere"]

Array = NDArray[np.float64]


def spectral_density(kernel: Kernel, w: Array, d: int) -> Array:
    """k(ω), times the surface of the sphere of radius ω: it integrates to K(0)."""
    if type(kernel) is Sum:
        return spectral_density(kernel.k1, w, d) + spectral_density(kernel.k2, w, d)
    if type(kernel) is Product:
        for constant, other in ((kernel.k1, kernel.k2), (kernel.k2, kernel.k1)):
            if type(constant) is ConstantKernel:
                return float(constant.constant_value) * spectral_density(other, w, d)
    if type(kernel) in (RBF, Matern) and np.ndim(kernel.length_scale) == 0:
        z = float(kernel.length_scale) * w
        nu = np.inf
        if type(kernel) is Matern:
            nu = kernel.nu
        with np.errstate(under="ignore"):
            if np.isinf(nu):  # chi distribution with d degrees of freedom
                shape = 2 ** (1 - d / 2) / gamma(d / 2) * z ** (d - 1) * np.exp(-(z**2) / 2)
            else:
                constant = 2 * gamma(nu + d / 2) / (gamma(nu) * gamma(d / 2)) * (2 * nu) ** nu
                shape = constant * z ** (d - 1) * (2 * nu + z**2) ** -(nu + d / 2)
        return np.asarray(shape * float(kernel.length_scale))
    raise ValueError(
        f"the spectrum of {kernel} is not known: take RBF or Matern with one length scale, times a "
        "constant, or sums of these"
    )


def radial_frequencies(kernel: Kernel, d: int) -> tuple[Array, Array]:
    """Nodes and weights over all frequencies that count: Gauss–Legendre on panels of log ω."""
    probe = np.logspace(-8, 12, 2000)
    found = spectral_density(kernel, probe, d) * probe
    counted = probe[found > SOLVER.spectrum_tail * found.max()]
    nodes, weights = np.polynomial.legendre.leggauss(SOLVER.spectrum_nodes)
    edges = np.linspace(np.log(counted[0]) - 1, np.log(counted[-1]) + 1, SOLVER.spectrum_panels + 1)
    width = (edges[1] - edges[0]) / 2
    w = np.exp(edges[:-1, None] + width * (nodes + 1)).ravel()
    return w, np.tile(weights * width, SOLVER.spectrum_panels) * w


def check_below(kernel: Kernel, hidden: Kernel, d: int) -> float:
    """The largest h/k.

    ValueError, naming the frequency, if it passes one: then K − H is no covariance.
    """
    w, _ = radial_frequencies(kernel, d)
    k = spectral_density(kernel, w, d)
    h = spectral_density(hidden, w, d)
    counted = k > 1e-280
    ratio = h[counted] / k[counted]
    worst = int(ratio.argmax())
    if ratio[worst] > 1 + 1e-12:
        raise ValueError(
            f"the spectral condition fails: at frequency {w[counted][worst]:.4g} the spectrum of "
            f"{hidden} is {ratio[worst]:.4g} times that of {kernel}, so that what is to stay "
            "unknown is more than what is unknown at first. Lower its variance, or lengthen its "
            "length scale"
        )
    return float(ratio[worst])


def everywhere(kernel: Kernel, hidden: Kernel, x: Array) -> Array:
    """G(X, X) of Proposition 2."""
    d = x.shape[1]
    worst = check_below(kernel, hidden, d)
    if worst > 1 - SOLVER.spectrum_margin:
        raise ValueError(
            f"the spectrum of {hidden} touches that of {kernel} (ratio {worst:.9g}), where the "
            "integral of Proposition 2 need not exist: lower its variance a little"
        )
    w, weights = radial_frequencies(kernel, d)
    k = spectral_density(kernel, w, d)
    h = spectral_density(hidden, w, d)
    counted = k > 1e-280
    w = w[counted]
    mass = weights[counted] * k[counted] / (1 - h[counted] / k[counted])
    distance, where = np.unique(
        np.linalg.norm(x[:, None] - x, axis=2).round(12), return_inverse=True
    )
    values = np.array([mass @ radial_wave(w * r, d) for r in distance])
    return np.asarray(values[where.reshape(len(x), len(x))])


def radial_wave(z: Array, d: int) -> Array:
    """The mean of cos(ω·x) over directions of ω in d dimensions, at z = |ω||x|."""
    if d == 1:
        return np.cos(z)
    order = d / 2 - 1
    small = z < 1e-6
    z = np.where(small, 1.0, z)
    return np.where(small, 1.0, gamma(d / 2) * (2 / z) ** order * jv(order, z))
