"""Links lam = f(a): how the sampled coordinate ``a`` on the circle [0, 2) maps to the inverse temperature.

Both links are flat at both ends and symmetric, f(a) = f(2 - a), so draws with lam exactly 0 and exactly 1 have positive
probability (the paper's section 2.2).
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from pathtemp._types import Array, FloatArray
from pathtemp.io.persistent import storable

A_MIN, A_MAX = 0.1, 0.8
"""Flat ends of the paper's link."""

BASE_END, TARGET_START = 0.125, 0.75
"""Flat ends of the metric link: one eighth of the circle, and two.

Of eight equispaced points of the circle, wherever the first lies, exactly one has lam = 0 and two have lam = 1. So the
masses at both ends of an orbit can be compared without the noise of counting how many of its points fall there, which
on short paths is most of the error of log z.
"""


def fold(a: Array) -> Array:
    """Flip a > 1 to 2 - a (Algorithm 1)."""
    return 1.0 - jnp.abs(1.0 - a)


def unit(a: Array) -> Array:
    """Position s in [0, 1] of the folded ``a`` between the flat ends of the metric link."""
    return jnp.clip((fold(a) - BASE_END) / (TARGET_START - BASE_END), 0.0, 1.0)


def folded_at(s: FloatArray) -> FloatArray:
    """The folded ``a`` at positions s of the metric link, on the host."""
    return BASE_END + (TARGET_START - BASE_END) * s


def host_unit(folded: FloatArray) -> FloatArray:
    """Positions s in [0, 1] of folded ``a`` on the metric link, on the host.

    >>> host_unit(folded_at(np.array([0.0, 0.3, 1.0]))).round(12).tolist()
    [0.0, 0.3, 1.0]
    """
    return np.clip((folded - BASE_END) / (TARGET_START - BASE_END), 0.0, 1.0)


@storable
@dataclass(frozen=True)
class CubicLink:
    """The paper's link (eq. link): a cubic between the flat ends.

    Parameters
    ----------
    a_min, a_max
        lam = 0 for a folded below ``a_min``, lam = 1 above ``a_max``; 0 < a_min < a_max < 1.

    >>> link = CubicLink()
    >>> [round(float(link(a)), 3) for a in (0.05, 0.45, 1.0, 1.55)]
    [0.0, 0.5, 1.0, 0.5]
    >>> round(float(CubicLink(0.35, 0.65)(0.4)), 3)
    0.074
    """

    a_min: float = A_MIN
    a_max: float = A_MAX

    def __call__(self, a: Array) -> Array:
        """Inverse temperature f(a)."""
        s = self._unit(a)
        return s * s * (3.0 - 2.0 * s)

    def derivative(self, a: Array) -> Array:
        """f'(a), negative on the way back (a > 1)."""
        s = self._unit(a)
        return jnp.sign(1.0 - a) * 6.0 * s * (1.0 - s) / (self.a_max - self.a_min)

    def inverse(self, lam: Array) -> Array:
        """The folded ``a`` in [a_min, a_max] with f(a) = lam (closed form: a cubic with three real roots)."""
        s = 0.5 - jnp.sin(jnp.arcsin(1.0 - 2.0 * jnp.clip(lam, 0.0, 1.0)) / 3.0)
        return self.a_min + (self.a_max - self.a_min) * s

    def _unit(self, a: Array) -> Array:
        """Position s in [0, 1] of the folded ``a`` between the flat ends."""
        return jnp.clip((fold(a) - self.a_min) / (self.a_max - self.a_min), 0.0, 1.0)


@storable
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class MetricLink:
    """A link that is piecewise linear in ``a`` through nodes spaced by thermodynamic length.

    Parameters
    ----------
    nodes
        lam at K + 1 equispaced positions s = 0, 1/K, ..., 1; from 0 to 1, increasing.

    >>> link = MetricLink(jnp.array([0.0, 0.1, 1.0]))
    >>> [round(float(link(a)), 3) for a in (0.125, 0.4375, 0.75, 1.5625)]
    [0.0, 0.1, 1.0, 0.1]
    """

    nodes: Array

    @property
    def cells(self) -> int:
        """Number of cells K."""
        return self.nodes.shape[0] - 1

    def __call__(self, a: Array) -> Array:
        """Inverse temperature f(a)."""
        return self.at(unit(a))

    def at(self, s: Array) -> Array:
        """Lam at position s in [0, 1]."""
        return interpolate(self.nodes, s)

    def derivative(self, a: Array) -> Array:
        """f'(a), the slope of the cell of ``a``; zero in the flat ends."""
        r = fold(a)
        s = unit(a)
        cell = jnp.clip(jnp.floor(s * self.cells).astype(int), 0, self.cells - 1)
        slope = (self.nodes[cell + 1] - self.nodes[cell]) * self.cells / (TARGET_START - BASE_END)
        return jnp.sign(1.0 - a) * jnp.where((r > BASE_END) & (r < TARGET_START), slope, 0.0)

    def position(self, lam: Array) -> Array:
        """The s in [0, 1] with at(s) = lam."""
        return jnp.interp(lam, self.nodes, jnp.linspace(0.0, 1.0, self.cells + 1))

    def inverse(self, lam: Array) -> Array:
        """The folded ``a`` between the flat ends with f(a) = lam."""
        return BASE_END + (TARGET_START - BASE_END) * self.position(lam)

    def host_at(self, s: FloatArray) -> FloatArray:
        """Lam at positions s, on the host."""
        return np.interp(s, np.linspace(0.0, 1.0, self.cells + 1), self.nodes)

    def host_position(self, lam: FloatArray) -> FloatArray:
        """Positions s of lam, on the host."""
        return np.interp(lam, self.nodes, np.linspace(0.0, 1.0, self.cells + 1))


def interpolate(table: Array, s: Array) -> Array:
    """Linear interpolation of ``table`` (B, ...) over B equispaced positions of s in [0, 1]; s is a scalar."""
    x = s * (table.shape[0] - 1)
    j = jnp.clip(jnp.floor(x).astype(int), 0, table.shape[0] - 2)
    f = x - j
    return table[j] * (1.0 - f) + table[j + 1] * f


def thermodynamic_length(lam: FloatArray, sd: FloatArray, at: FloatArray) -> FloatArray:
    """Length of the path up to each of ``at``: the integral of sd(delta | lam) over lam (Gelman and Meng 1998).

    ``sd`` is the standard deviation of dlog q/dlam at ``lam``, interpolated log-linearly in log lam.
    """
    fine = np.unique(np.concatenate([[0.0], np.geomspace(1e-12, 1.0, 1200), np.linspace(0.0, 1.0, 800), lam]))
    mid = 0.5 * (fine[1:] + fine[:-1])
    tiny = 1e-12
    sd_mid = np.exp(np.interp(np.log(mid + tiny), np.log(lam + tiny), np.log(np.maximum(sd, 1e-300))))
    length = np.concatenate([[0.0], np.cumsum(sd_mid * np.diff(fine))])
    return np.interp(at, fine, length)


def metric_nodes(lam: FloatArray, sd: FloatArray, cells: int, *, mix: float = 0.5) -> FloatArray:
    """Nodes of a :class:`MetricLink`: equispaced in ``mix`` parts length and ``1 - mix`` parts the paper's link.

    The share of the paper's link keeps every part of the path within reach where the length is badly estimated.
    """
    fine = np.unique(np.concatenate([[0.0], np.geomspace(1e-12, 1.0, 1200), np.linspace(0.0, 1.0, 800)]))
    length = thermodynamic_length(lam, sd, fine)
    cubic = 0.5 - np.sin(np.arcsin(1.0 - 2.0 * fine) / 3.0)  # the inverse of the paper's link
    share = mix if length[-1] > 0 else 0.0
    t = share * length / max(length[-1], 1e-300) + (1.0 - share) * cubic
    nodes = np.interp(np.linspace(0.0, 1.0, cells + 1), t / t[-1], fine)
    nodes[0], nodes[-1] = 0.0, 1.0
    return nodes
