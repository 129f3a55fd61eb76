"""What the rounds teach: pooled draws, and the kernel parameters fitted to them (Steps 2 and 3 of section 2.1)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from pathtemp._types import FloatArray, HostArray
from pathtemp.engines.default.anneal import Level
from pathtemp.engines.default.transport import fit_transport
from pathtemp.errors import SamplingError
from pathtemp.estimators.mbar import mbar
from pathtemp.io.persistent import persistent, storable
from pathtemp.kernels.lam_given_theta import PseudoPrior
from pathtemp.kernels.rounds import Record
from pathtemp.kernels.spread import on_device
from pathtemp.kernels.transport import Transport
from pathtemp.kernels.transported_hmc import KernelParameters
from pathtemp.paths.geometric import LOG_ZERO
from pathtemp.paths.links import MetricLink, metric_nodes, thermodynamic_length
from pathtemp.seeds import Stream, rng
from pathtemp.settings import Marginal, Settings

POSITIONS = 13
"""Positions s at which transport and step size are tabulated."""

NO_DENSITY = 0.1 * LOG_ZERO
"""Below this, delta stands for a target without density."""

GROUP = 60
"""Draws from which the spread of delta at one lam is learned, at least."""

NO_WEIGHT = 50.0
"""Nats below the others from which a draw has no weight."""

FAR_OUT = 10.0
"""Distance from the quartiles, in units of their own, from which delta is an outlier."""

LEARNED_ROUNDS, LEARNED_ITERATIONS = 3, 96
"""Rounds in which chains move freely before the kernel may be frozen, and iterations that are enough for any target."""

LEARNED_DRAWS, LEARNED_PER_DIM = 40, 6
"""Draws of theta for each position of the transport that are enough: so many, and so many a dimension."""

TINY = float(np.finfo(float).tiny)

MOST_LOG_C = 1e9
"""Largest log c: beyond it, neighbouring floats are further apart than 1e-7."""

MOST_THETAS = 24_000_000
"""Numbers of theta kept for learning the transport (about 200 MB)."""


@storable
@dataclass(frozen=True)
class Draws:
    """Draws of one round: lam and delta, and the thinned theta with its lam."""

    lam: FloatArray
    delta: FloatArray
    theta: FloatArray
    theta_lam: FloatArray


MOST_LEARNED, MOST_THETAS_LEARNED = 131_072, 2048
"""Draws (lam, delta), and theta, of one round or level from which is learned; with more chains, those of some."""


def every(count: int, most: int) -> slice:
    """Evenly spaced numbers below ``count``, ``most`` of them or all.

    >>> every(5, 8), every(100, 8)
    (slice(None, None, 1), slice(None, None, 13))
    """
    return slice(None, None, -(-count // max(most, 1)))


def from_level(level: Level) -> Draws:
    """Draws of one level of the annealing pass."""
    count = len(level.delta)
    delta, theta = level.delta[every(count, MOST_LEARNED)], level.theta[every(count, MOST_THETAS_LEARNED)]
    return Draws(np.full(len(delta), level.lam), delta, theta, np.full(len(theta), level.lam))


def from_record(record: Record, chains: HostArray | None = None) -> Draws:
    """Draws of one round; of some chains alone where a mask (C,) is given."""
    lam, delta, theta, theta_lam = (np.asarray(x) for x in (record.lam, record.delta, record.theta, record.theta_lam))
    if chains is not None:
        mask = np.asarray(chains)
        lam, delta = lam[:, mask], delta[:, mask]
        theta, theta_lam = theta[:, mask[: theta.shape[1]]], theta_lam[:, mask[: theta.shape[1]]]
    some = every(lam.shape[1], MOST_LEARNED // len(lam))
    lam, delta = lam[:, some], delta[:, some]
    return Draws(lam.ravel(), delta.ravel(), theta.reshape(-1, theta.shape[-1]), theta_lam.ravel())


@persistent("_levels", "replaced_by", "_added", "_dropped")
class Pool:
    """Draws of all rounds; the conditionals theta | lam never change, so all may be pooled (section 2.1).

    The oldest are dropped, since they have not reached equilibrium at every lam: the annealing pass as soon as there
    are ``replaced_by`` rounds, then the first rounds themselves. Theta is kept within a fixed memory.
    """

    def __init__(self, levels: Iterable[Draws] = (), *, replaced_by: int = 1) -> None:
        self._levels, self.replaced_by = list(levels), replaced_by
        self._added: list[Draws] = []
        self._dropped = 0

    def add(self, draws: Draws) -> None:
        """Add a round."""
        self._added.append(draws)
        if self._dropped + len(self._added) >= self.replaced_by:
            self._levels = []

    @property
    def _rounds(self) -> list[Draws]:
        return self._levels + self._added

    def trim(self, share: float) -> None:
        """Drop the oldest ``share`` of all rounds ever added."""
        total = self._dropped + len(self._added)
        excess = int(share * total) - self._dropped
        if excess > 0:
            del self._added[:excess]
            self._dropped += excess

    def lam_delta(self) -> tuple[FloatArray, FloatArray]:
        """All (lam, delta), with -inf where the target has no density."""
        lam = np.concatenate([d.lam for d in self._rounds])
        delta = np.concatenate([d.delta for d in self._rounds])
        return lam, np.where(delta < NO_DENSITY, -np.inf, delta)

    def lam_theta(self) -> tuple[FloatArray, FloatArray]:
        """The latest (lam, theta) that fit the memory."""
        width = self._rounds[-1].theta.shape[1]
        kept: list[Draws] = []
        count = 0
        for draws in reversed(self._rounds):
            if kept and (count + len(draws.theta)) * width > MOST_THETAS:
                break
            kept.append(draws)
            count += len(draws.theta)
        return np.concatenate([d.theta_lam for d in kept]), np.concatenate([d.theta for d in kept])


def target_thetas(pool: Pool) -> FloatArray:
    """The theta of the pooled rounds at lam = 1, shape (n, dim)."""
    lam, theta = pool.lam_theta()
    return theta[lam >= 1.0]


def spread_of_delta(lam: FloatArray, delta: FloatArray, *, most: int = 100) -> tuple[FloatArray, FloatArray]:
    """Standard deviation of delta given lam in groups of neighbouring lam, after removing its slope.

    Returns the mean lam of each group and the standard deviation, both of length <= ``most``. The spread is the square
    root of Fisher's information in lam, the speed of the path (constant-KL prior, appendix A). A robust spread
    (interquartile) bounds it where delta is heavy-tailed.
    """
    centres, spreads = [], []
    for x, y in _groups(lam, delta, most):
        middle = x.mean(axis=1)
        t, u = x - middle[:, None], y - y.mean(axis=1, keepdims=True)
        slope = np.where(np.ptp(x, axis=1) > 1e-12, np.sum(t * u, axis=1), 0.0) / np.maximum(np.sum(t**2, axis=1), TINY)
        residual = u - slope[:, None] * t
        low, high = np.quantile(residual, [0.25, 0.75], axis=1)
        robust, spread = (high - low) / 1.349, residual.std(axis=1)
        centres.append(middle)
        spreads.append(np.where(robust > 0, np.minimum(spread, 3.0 * robust), spread))
    return np.concatenate(centres), np.maximum(np.concatenate(spreads), 1e-12)


def size_of_delta(lam: FloatArray, delta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Root mean square of delta given lam in groups of neighbouring lam (min-variance marginal, section 2.2)."""
    centres, spreads = spread_of_delta(lam, delta)
    return centres, np.hypot(np.concatenate([y.mean(axis=1) for _, y in _groups(lam, delta, len(centres))]), spreads)


def _groups(lam: FloatArray, delta: FloatArray, most: int) -> list[tuple[FloatArray, FloatArray]]:
    """Draws (lam, delta) in groups of neighbouring lam, 60 each or more, without what has no weight on the path.

    Groups of one size are the rows of one pair of arrays: of two at most, for sizes differ by one.
    """
    keep = _has_weight(lam, delta)
    # Equal lams are split at random, so that each group of them is like the others.
    order = rng(Stream.TIES).permutation(np.flatnonzero(keep))
    order = order[np.argsort(lam[order], kind="stable")]
    count = int(np.clip(len(order) // GROUP, 1, most))
    size, larger = divmod(len(order), count)
    ends = larger * (size + 1)
    stacks = order[:ends].reshape(larger, size + 1), order[ends:].reshape(count - larger, size)
    return [(lam[rows], without_outliers(delta[rows])) for rows in stacks if rows.size]


def _has_weight(lam: FloatArray, delta: FloatArray) -> HostArray:
    """Which draws have a finite delta, and at lam = 0 one that leaves them a weight at the first lam that is visited.

    Where the base is wide in a log scale, delta of its draws reaches -1e44: they end the path where it begins.
    """
    finite, at_base, above = np.isfinite(delta), lam <= 0, lam[lam > 0]
    if len(above) == 0 or not np.any(finite & at_base):
        return finite
    first = np.sort(above)[min(GROUP, len(above)) - 1]
    highest = np.quantile(delta[finite & at_base], 0.95)
    return np.asarray(finite & ~(at_base & (first * (delta - highest) < -NO_WEIGHT)))


def without_outliers(delta: FloatArray) -> FloatArray:
    """The same rows (..., n), those far outside the quartiles moved in: a few of any size cannot drown the others.

    >>> without_outliers(np.array([0.0, 1.0, 2.0, 3.0, -1e44])).tolist()
    [0.0, 1.0, 2.0, 3.0, -20.0]
    """
    low, high = np.quantile(delta, [0.25, 0.75], axis=-1, keepdims=True)
    reach = FAR_OUT * (high - low)
    return np.where(reach > 0, np.clip(delta, low - reach, high + reach), delta)


def path_length(lam: FloatArray, delta: FloatArray) -> float:
    """Thermodynamic length of the whole path."""
    return float(thermodynamic_length(*spread_of_delta(lam, delta), np.ones(1))[0])


def cells_for(length: float) -> int:
    """Number of cells of the link: under .4 units of length each, 60 to 480 (one compilation for each).

    Multiples of five, so that the base can be cut as finely, see :mod:`pathtemp.kernels.strata`.

    >>> cells_for(2.0), cells_for(30.0), cells_for(1000.0)
    (60, 120, 480)
    """
    return int(60 * 2 ** np.clip(np.ceil(np.log2(max(length, 1.0) / 0.4 / 60)), 0, 3))


def fit_prior(lam: FloatArray, delta: FloatArray, nodes: FloatArray) -> PseudoPrior:
    """The pseudo-prior c <- z (Step 3), by MBAR over the draws."""
    tiny = min(1e-12, 1e-3 * nodes[1])
    grid = np.concatenate([[0.0, tiny], nodes[1:]])
    log_c = mbar(lam, delta, grid)[1:]
    if not np.all(np.abs(log_c) <= MOST_LOG_C):
        raise SamplingError(
            f"log z changes by {np.max(np.abs(log_c)):.2g} along the path, too much for its digits: rescale the log "
            "density, or choose a base nearer to the target"
        )
    return PseudoPrior(on_device(log_c), on_device(0.0))


def nodes_for(lam: FloatArray, delta: FloatArray, *, cells: int, marginal: Marginal) -> FloatArray:
    """Nodes of the link: chains spend equal time between each two, so that they set the marginal of lam."""
    speed = size_of_delta if marginal == "min-variance" else spread_of_delta
    return metric_nodes(*speed(lam, delta), cells, mix={"balanced": 0.5, "uniform": 0.0}.get(marginal, 1.0))


def fit_kernel(
    pool: Pool,
    *,
    cells: int,
    full: bool,
    log_step: FloatArray,
    step_lam: FloatArray,
    marginal: Marginal = "balanced",
) -> KernelParameters:
    """Kernel parameters from the pooled draws.

    ``log_step`` are log step sizes at lam = ``step_lam`` in units of theta (the geometric mean over coordinates), so
    that they keep their meaning when scales are learned anew.
    """
    lam, delta = pool.lam_delta()
    nodes = nodes_for(lam, delta, cells=cells, marginal=marginal)
    prior = fit_prior(lam, delta, nodes)
    theta_lam, theta = pool.lam_theta()
    positions = np.linspace(0.0, 1.0, cells + 1)
    transport = fit_transport(np.interp(theta_lam, nodes, positions), theta, positions=POSITIONS, full=full)
    step_position = np.interp(step_lam, nodes, positions)
    tabulated = np.interp(np.linspace(0.0, 1.0, POSITIONS), step_position, log_step)
    return KernelParameters(
        MetricLink(on_device(nodes)),
        prior,
        transport,
        on_device(tabulated - mean_log_scale(transport)),
        orbit=on_device(True),
        pinned=on_device(False),
        frozen=on_device(False),
    )


def learned(parameters: KernelParameters, settings: Settings, *, rounds: int) -> bool:
    """Whether so many ``rounds`` of free moves have brought the draws that a transport is learned from.

    The maps of legs are not learned, so that a mixture base wants no more than the fewest rounds.
    """
    iterations = rounds * settings.iterations
    draws = iterations // 4 * min(settings.chains, MOST_THETAS_LEARNED)
    wanted = POSITIONS * (LEARNED_DRAWS + LEARNED_PER_DIM * parameters.transport.location.shape[1])
    enough = iterations >= LEARNED_ITERATIONS or draws >= wanted or parameters.leg_step is not None
    return rounds >= LEARNED_ROUNDS and enough


def mean_log_scale(transport: Transport) -> FloatArray:
    """Log |det F| / dim at each position: the log of the geometric mean scale."""
    log_det = np.sum(np.asarray(transport.log_scale), axis=1)
    if transport.factor is not None:
        log_det = log_det + np.sum(np.log(np.diagonal(np.asarray(transport.factor), axis1=1, axis2=2)), axis=1)
    if transport.gain is not None:
        log_det = log_det + np.sum(np.log1p(np.asarray(transport.gain)), axis=1)
    return np.asarray(log_det / transport.location.shape[1])


def with_leg_steps(new: KernelParameters, legs: int, old: KernelParameters | None) -> KernelParameters:
    """Fitted parameters with step sizes in the units of the local maps of ``legs`` legs.

    The local maps stay what they are, so that their steps do; only the last leg goes with the transport, whose scales
    are learned anew. At first all are those that suit a standard normal.
    """
    dim = new.transport.location.shape[1]
    plain = new.log_step + mean_log_scale(new.transport)
    if old is None:
        return replace(
            new, log_step=on_device(np.full(len(plain), -0.25 * np.log(dim))), leg_step=on_device(np.zeros(legs))
        )
    assert old.leg_step is not None
    change = np.mean(mean_log_scale(old.transport) - mean_log_scale(new.transport))
    return replace(new, log_step=plain, leg_step=old.leg_step.at[-1].add(change))


def adapt_legs(leg_step: FloatArray, leg: HostArray, acceptance: HostArray, *, gain: float) -> FloatArray:
    """Move the log step factor of each leg that made moves towards the mean acceptance of all.

    >>> adapt_legs(np.zeros(3), np.array([0, 0, 2]), np.array([1.0, 0.8, 0.6]), gain=1.0).round(2).tolist()
    [0.1, 0.0, -0.2]
    """
    count = np.bincount(np.ravel(leg), minlength=len(leg_step))
    total = np.bincount(np.ravel(leg), np.ravel(acceptance), minlength=len(leg_step))
    mean = np.where(count > 0, total / np.maximum(count, 1), np.mean(acceptance))
    return leg_step + gain * (mean - np.mean(acceptance))


def adapt_step(
    log_step: FloatArray, position: HostArray, acceptance: HostArray, *, target: float, gain: float
) -> FloatArray:
    """Move log step sizes towards the target acceptance at each position (Robbins and Monro), between rounds.

    >>> adapt_step(np.zeros(2), np.array([0.0, 1.0]), np.array([1.0, 0.6]), target=0.8, gain=1.0).round(2).tolist()
    [0.2, -0.2]
    """
    mean, count = along_path(position, acceptance, len(log_step))
    filled = np.interp(np.arange(len(log_step)), np.flatnonzero(count > 0), mean[count > 0])
    return log_step + gain * (filled - target)


def along_path(position: HostArray, value: HostArray, positions: int) -> tuple[FloatArray, FloatArray]:
    """Mean of ``value`` at each of the positions, by linear binning, and the weight each received."""
    x = np.ravel(position) * (positions - 1)
    j = np.clip(np.floor(x).astype(int), 0, positions - 2)
    f, v = x - j, np.ravel(value)
    count = np.bincount(j, 1 - f, positions) + np.bincount(j + 1, f, positions)
    total = np.bincount(j, (1 - f) * v, positions) + np.bincount(j + 1, f * v, positions)
    return total / np.maximum(count, 1e-12), np.asarray(count, float)
