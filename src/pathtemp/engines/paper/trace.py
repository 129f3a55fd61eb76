"""What the chains of the paper's engine did, and what follows: log z, k-hat, and the first guess of c."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import jax.numpy as jnp
import numpy as np
from scipy.special import logsumexp

from pathtemp._types import FloatArray
from pathtemp.estimators.khat import Khat, khat
from pathtemp.estimators.path_sampling import marginal
from pathtemp.estimators.support import path_draws
from pathtemp.io.persistent import storable
from pathtemp.kernels.joint_nuts import Draws
from pathtemp.paths.geometric import LOG_ZERO
from pathtemp.paths.links import CubicLink
from pathtemp.paths.pseudoprior import PseudoPrior
from pathtemp.result.curve import LogZ

LINK = CubicLink()


@storable
@dataclass(frozen=True)
class PaperTrace:
    """Draws of all chains, after warm-up.

    Parameters
    ----------
    theta
        Shape (chain, iteration, dim).
    a, lam, delta
        Shape (chain, iteration); ``a`` in (0, 2), delta = log q - log psi, infinite where one has no density.
    acceptance
        NUTS acceptance statistic, shape (chain, iteration).
    group
        Index of the half of a chain that a draw belongs to, shape (chain, iteration): halves are near enough
        to independent, and give standard errors.
    link
        lam = f(a).
    """

    theta: FloatArray
    a: FloatArray
    lam: FloatArray
    delta: FloatArray
    acceptance: FloatArray
    group: np.ndarray
    link: CubicLink = LINK

    @classmethod
    def of(cls, draws: Draws, link: CubicLink = LINK) -> Self:
        """The trace of one adaptation, from what its chains did."""
        theta, a, lam, delta, acceptance = (np.asarray(x) for x in draws[:5])
        chains, iterations = a.shape
        group = 2 * np.arange(chains)[:, None] + (np.arange(iterations) >= iterations // 2)
        return cls(theta, a, lam, np.where(delta < 0.5 * LOG_ZERO, -np.inf, delta), acceptance, group, link)

    @classmethod
    def join(cls, traces: Sequence[PaperTrace]) -> Self:
        """Put the adaptations after one another: theta given lam has the same law in all of them (Step 4)."""
        arrays = [f.name for f in fields(cls) if f.name != "link"]
        joined: dict[str, Any] = {name: np.concatenate([getattr(t, name) for t in traces], axis=1) for name in arrays}
        return cls(**joined, link=traces[0].link)

    @property
    def folded(self) -> FloatArray:
        """``a`` with a > 1 flipped to 2 - a (Algorithm 1)."""
        return 1.0 - np.abs(1.0 - self.a)

    @property
    def slope(self) -> FloatArray:
        """f'(a) at the folded a; zero in the flat ends."""
        return np.asarray(self.link.derivative(jnp.asarray(self.folded)))

    @property
    def u(self) -> FloatArray:
        """Pointwise gradient U = f'(a) delta at the folded a (section 2.2), zero in the flat ends."""
        slope = self.slope
        return slope * np.where(slope > 0, self.delta, 0.0)

    def at(self, lam: float, most: int | None = None) -> FloatArray:
        """Draws at ``lam`` = 0 or 1, shape (chain, draw, dim): the last of each chain, as many of each.

        >>> lam = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 0.5]])
        >>> PaperTrace(np.ones((2, 3, 1)), lam, lam, lam, lam, lam).at(1.0).shape
        (2, 1, 1)
        """
        visits = self.lam == lam
        count = int(visits.sum(axis=1).min())
        count = count if most is None else min(count, most)
        pairs = zip(self.theta, visits, strict=True)
        return np.stack([theta[here][here.sum() - count :] for theta, here in pairs])


def path_nodes(cells: int, link: CubicLink = LINK) -> tuple[FloatArray, FloatArray]:
    """(a, lam) at ``cells`` + 1 positions equispaced in a from the base to the target: the smoothing grid.

    >>> path_nodes(2)[1]
    array([0. , 0.5, 1. ])
    """
    a = np.linspace(link.a_min, link.a_max, cells + 1)
    lam = np.array(link(jnp.asarray(a)))
    lam[0], lam[-1] = 0.0, 1.0
    return a, lam


def tie(a: FloatArray, u: FloatArray, cells: int, link: CubicLink = LINK) -> tuple[FloatArray, FloatArray]:
    """Average folded ``a`` and gradients ``u`` over each of ``cells`` cells between the flat ends.

    Draws in a cell count as tied (eq. U_gradient). To tie equal ``a`` alone would be biased: a chain that is
    held in a state repeats it, and the average lets the copies count once. It is held longest in the tails,
    where the gradient is largest, so that a few per cent of repeats move log z. In a cell every copy counts.

    >>> tie(np.array([0.2, 0.2, 0.3, 0.9]), np.array([3.0, 3.0, 0.0, 0.0]), 2)[1]
    array([0., 0., 2., 0., 0.])
    """
    low, high = link.a_min, link.a_max
    inner = (a > low) & (a < high)
    cell = np.minimum(((a[inner] - low) / (high - low) * cells).astype(int), cells - 1)
    count = np.bincount(cell, minlength=cells)
    seen = count > 0
    middle_a, middle_u = (np.bincount(cell, x[inner], cells)[seen] / count[seen] for x in (a, u))
    return np.concatenate([[0.0, low], middle_a, [high, 1.0]]), np.concatenate([[0.0, 0.0], middle_u, [0.0, 0.0]])


def integrate(a: FloatArray, u: FloatArray, cells: int, link: CubicLink = LINK) -> FloatArray:
    """Integral of the gradients ``u`` from a_min to each edge of ``cells`` cells in folded ``a``, shape (cells + 1,).

    The rule of eq. path1 for draws that are tied by cells: a cell adds its width times the mean gradient of its draws,
    moved from their mean position to its centre. The trapezoid through the means would be too high where the gradient
    dips within a few cells (by .08 on the hard beta-binomial). A cell without draws takes the line between its
    neighbours.

    >>> a = np.linspace(0.1, 0.8, 1001)
    >>> integrate(a, (a - 0.1) * (0.8 - a), 2).round(4)
    array([0.    , 0.0286, 0.0572])
    """
    positions, means = (x[1:-1] for x in tie(a, u, cells, link))
    low, high = link.a_min, link.a_max
    step = (high - low) / cells
    centres = low + step * (np.arange(cells) + 0.5)
    slope = (means[2:] - means[:-2]) / (positions[2:] - positions[:-2])
    cell = np.minimum(((positions[1:-1] - low) / step).astype(int), cells - 1)
    known = np.concatenate([[low], centres[cell], [high]])
    moved = np.concatenate([[0.0], means[1:-1] + slope * (centres[cell] - positions[1:-1]), [0.0]])
    return np.concatenate([[0.0], np.cumsum(step * np.interp(centres, known, moved))])


def log_z_curve(trace: PaperTrace, cells: int) -> LogZ:
    """Path sampling from all draws of ``trace`` (eq. path1), with standard errors from halves of chains."""
    _, lam = path_nodes(cells, trace.link)
    a, u = trace.folded, trace.u

    def curve(mask: np.ndarray) -> FloatArray:
        return integrate(a[mask], u[mask], cells, trace.link) + _jumps(trace.lam[mask], trace.delta[mask], lam)

    curves = np.array([curve(trace.group == g) for g in np.unique(trace.group)])
    spread = np.std(curves, axis=0, ddof=1) / np.sqrt(len(curves))
    return LogZ(lam, curve(np.ones(trace.a.shape, bool)), spread)


def _jumps(lam: FloatArray, delta: FloatArray, nodes: FloatArray) -> FloatArray:
    """Jumps of log z at the ends, where one end has density and the other none: integrals do not see them."""
    if np.isfinite(delta).all() or not np.isfinite(delta).any():
        return np.zeros(len(nodes))
    return path_draws(lam, delta).add_jumps(nodes, np.zeros(len(nodes)))


def marginal_khat(trace: PaperTrace, log_c: PseudoPrior, cells: int) -> Khat:
    """k-hat of 1/p(a) in one adaptation, p(a) by path sampling (eq. gradient_marginal; Step 4)."""
    a = trace.folded.ravel()
    slope_c = (trace.slope * np.asarray(log_c.derivative(jnp.asarray(trace.lam)))).ravel()
    positions = path_positions(cells, trace.link)
    nodes, excess = tie(a, trace.u.ravel() - slope_c, cells, trace.link)
    log_p = marginal(nodes, excess, np.zeros(len(nodes)), positions).mean
    ratio = -np.interp(a, positions, log_p)
    return khat(ratio, flat=(a <= trace.link.a_min) | (a >= trace.link.a_max))


def path_positions(cells: int, link: CubicLink = LINK) -> FloatArray:
    """Positions in a over the whole path, the flat ends included, at which p(a) is computed."""
    return np.concatenate([[0.0], np.linspace(link.a_min, link.a_max, 10 * cells + 1), [1.0]])


def importance_curve(trace: PaperTrace, lam: FloatArray) -> FloatArray | None:
    """Importance sampling of log z at ``lam`` from the base (section 5.1): the whole curve, not only its end.

    None where no draw of the base has density under the target.
    """
    delta = trace.delta[(trace.lam == 0) & np.isfinite(trace.delta)]
    if delta.size == 0:
        return None
    return np.asarray(logsumexp(lam[:, None] * delta, axis=1) - np.log(delta.size))
