"""A look beyond the ends of an interval, for mass that the interval does not hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import logsumexp

from pathtemp._types import Array, FloatArray
from pathtemp.engines.path.chains import PathChains
from pathtemp.engines.path.transport import NODES, to_z
from pathtemp.kernels.compilation import compiled_once
from pathtemp.kernels.rejected import Rejected, code_of, point_of
from pathtemp.kernels.transport import Transport
from pathtemp.paths.function import FunctionPath
from pathtemp.paths.geometric import as_energies
from pathtemp.result.run import Counts

PLACES = 32
"""Places beyond each end, out to a whole width of the interval."""


def probes_of(chains: int) -> int:
    """Density evaluations of a look beyond both ends."""
    return 2 * chains * (PLACES + 1)


def mass_beyond(chains: PathChains, log_z: FloatArray) -> tuple[float, float, Counts]:
    """Mass along the orbits of the chains continued beyond the ends, relative to that inside; where, and the cost.

    ``log_z`` at the nodes of log c. The transport is continued by its trend, so that this is a rough look; it shows
    a second mode of the margin whose other parameters are not elsewhere altogether.
    """
    width = chains.high - chains.low
    theta, s = np.asarray(chains.state.theta), np.asarray(chains.parameters.position(chains.state.a))
    z = to_z(chains.parameters.transport, s, theta, np.zeros_like(theta))[0]
    inside = logsumexp(log_z) + np.log(width / (len(log_z) - 1))
    worst, where, counts = -np.inf, chains.low, Counts()
    for start, at_edge, edge in ((chains.low - width, PLACES, log_z[0]), (chains.high, 0, log_z[-1])):
        lam = np.linspace(start, start + width, PLACES + 1)
        transport = chains.learned.at(np.linspace(start, start + width, NODES)).transport()
        arguments = (transport, lam, np.linspace(0.0, 1.0, PLACES + 1), z, chains.args)
        on_device, rejected = compiled_once(_along, (chains.path,), arguments)[0](*arguments)
        log_q = np.asarray(on_device)
        chains.watch.met(rejected, None, log_q.size)
        counts = counts + Counts(0, log_q.size)
        # The ratio of the densities at two places of one orbit, averaged over the law at the first, is that of the z's.
        here = log_q[:, [at_edge]]
        rise = np.where(np.isfinite(here), log_q - np.where(np.isfinite(here), here, 0.0), -np.inf)
        curve = edge + logsumexp(rise, axis=0) - np.log(len(z))
        # A rise that single orbits alone make is the tail of an importance ratio, not mass.
        typical = edge + np.median(rise, axis=0)
        mass = float(logsumexp(np.minimum(curve, typical + 5.0)) + np.log(width / PLACES) - inside)
        if mass > worst:
            worst, where = mass, float(lam[int(np.argmax(np.minimum(curve, typical + 5.0)))])
    return float(np.exp(min(worst, 50.0))), where, counts


def _along(path: FunctionPath) -> Callable[..., tuple[Array, Rejected]]:
    def at(transport: Transport, lam: Array, s: Array, z: Array, args: tuple[Array, ...]) -> tuple[Array, Rejected]:
        chart = transport.at(s)
        theta = chart.forward(z)
        value = path.value(theta, lam, args)
        return as_energies(value) + chart.log_det(), Rejected(code_of(value[None]), jnp.append(theta, lam))

    over_places = jax.vmap(at, (None, 0, 0, None, None))

    def over_orbits(*arguments: Any) -> tuple[Array, Rejected]:
        log_q, met = jax.vmap(over_places, (None, None, None, 0, None))(*arguments)
        return log_q, met._replace(point=jax.vmap(point_of)(met))

    return over_orbits
