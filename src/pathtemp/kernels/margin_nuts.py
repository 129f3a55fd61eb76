"""NUTS along a margin with a bias on it, window adaptation included: the kernel of the paper's Algorithm 2."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from pathtemp._types import Array
from pathtemp.errors import MissingExtraError
from pathtemp.io.persistent import storable
from pathtemp.kernels.joint_nuts import spent_by
from pathtemp.paths.margin import MarginLogQ
from pathtemp.paths.pseudoprior import Kernels, PiecewiseLinear
from pathtemp.seeds import round_key

try:
    import blackjax
except ImportError:
    raise MissingExtraError("blackjax", "paper") from None


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Bias:
    """The bias log p_targ(lam) - log p(lam), over t in [0, 1] between ``low`` and ``high``; constant beyond.

    Parameters
    ----------
    low, high
        Ends of the visited part of the margin.
    log_p
        The marginal, smoothed by kernels (eq. kernel).
    log_target
        The marginal that is aimed at.
    """

    low: Array
    high: Array
    log_p: Kernels
    log_target: PiecewiseLinear

    def __call__(self, lam: Array) -> Array:
        """The bias at lam."""
        t = jnp.clip((lam - self.low) / (self.high - self.low), 0.0, 1.0)
        return self.log_target(t) - self.log_p(t)


@storable
class ChainDraws(NamedTuple):
    """Kept draws of a chain: theta (n, dim - 1), lam, U = dlog q/dlam and acceptance (n,).

    With them the gradients spent, and the transitions that met zero density, the warm-up included.
    """

    theta: Array
    lam: Array
    u: Array
    acceptance: Array
    gradients: Array
    rejections: Array


def make_adaptation(
    log_q: MarginLogQ, bounds: tuple[float, float] | None, kept: int, max_depth: int
) -> Callable[[Array, Array, Array, Bias], ChainDraws]:
    """NUTS on the flat vector with the bias, for all chains: ``(seed, adaptation, starts (chains, dim), bias)``."""

    def lam_of(b: Array) -> tuple[Array, Array]:
        """The margin of the sampled coordinate b, and the log Jacobian."""
        if bounds is None:
            return b, jnp.zeros(())
        low, high = bounds
        jacobian = jnp.log(high - low) + jax.nn.log_sigmoid(b) + jax.nn.log_sigmoid(-b)
        return low + (high - low) * jax.nn.sigmoid(b), jacobian

    def chain(key: Array, start: Array, bias: Bias) -> ChainDraws:
        def joint(position: Array) -> Array:
            lam, jacobian = lam_of(position[-1])
            value = log_q(position[:-1], lam) + bias(lam) + jacobian
            return jnp.where(jnp.isnan(value), -jnp.inf, value)

        theta, lam = log_q.coordinates.split(start)
        if bounds is not None:
            share = jnp.clip((lam - bounds[0]) / (bounds[1] - bounds[0]), 0.01, 0.99)
            lam = jnp.log(share) - jnp.log1p(-share)
        warm_key, sample_key = jax.random.split(key)
        warm_up = blackjax.window_adaptation(
            blackjax.nuts,
            joint,
            adaptation_info_fn=lambda _state, info, _adaptation: spent_by(info),
            max_num_doublings=max_depth,
        )
        (state, tuned), warm_spent = warm_up.run(warm_key, jnp.append(theta, lam), kept)
        kernel = blackjax.nuts.build_kernel()

        def keep(state: Any, key: Array) -> tuple[Any, Any]:
            state, info = kernel(key, state, joint, tuned["step_size"], tuned["inverse_mass_matrix"], max_depth)
            return state, (state.position, info.acceptance_rate, spent_by(info))

        _, (position, acceptance, spent) = jax.lax.scan(keep, state, jax.random.split(sample_key, kept))
        at = jax.vmap(lambda b: lam_of(b)[0])(position[:, -1])
        u = jax.vmap(jax.grad(log_q, argnums=1))(position[:, :-1], at)
        gradients, rejections = (warm.sum() + own.sum() for warm, own in zip(warm_spent, spent, strict=True))
        return ChainDraws(position[:, :-1], at, u, acceptance, 1 + kept + gradients, rejections)

    def whole(seed: Array, number: Array, starts: Array, bias: Bias) -> ChainDraws:
        key = round_key(seed, number)
        return jax.vmap(chain, (0, 0, None))(jax.random.split(key, starts.shape[0]), starts, bias)

    return whole
