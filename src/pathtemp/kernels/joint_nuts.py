"""NUTS on (theta, a) together, the paper's sampler (section 2.1, Step 1; section 2.2).

The chain lives on R^(dim + 1): theta, then b = logit(a / 2), so that a stays inside (0, 2).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from pathtemp._types import Array, Key
from pathtemp.errors import MissingExtraError
from pathtemp.paths.geometric import GeometricPath, delta, log_density
from pathtemp.paths.links import CubicLink
from pathtemp.paths.pseudoprior import PseudoPrior

try:
    import blackjax
except ImportError:
    raise MissingExtraError("blackjax", "paper") from None

LINK = CubicLink()

JointLogDensity = Callable[[Array, PseudoPrior], Array]
"""Log density of a position (dim + 1,) given log c, an argument so that a new c needs no new compilation."""


class Draws(NamedTuple):
    """What one chain did: n warm-up transitions, then n that are kept.

    Parameters
    ----------
    theta, a, lam, delta
        The kept draws, shapes (n, dim) and (n,); delta = log q - log psi.
    acceptance
        NUTS acceptance statistic of the kept transitions, shape (n,).
    gradients
        Gradient evaluations, warm-up included.
    rejections
        Trajectories, warm-up included, that ended where the joint density is zero or NaN.
    """

    theta: Array
    a: Array
    lam: Array
    delta: Array
    acceptance: Array
    gradients: Array
    rejections: Array


def position_of(theta: Array, a: Array) -> Array:
    """The point of R^(dim + 1) of (theta, a), a in (0, 2).

    >>> position_of(jnp.array([3.0]), jnp.asarray(1.0)).tolist()
    [3.0, 0.0]
    """
    return jnp.append(theta, jnp.log(a) - jnp.log(2.0 - a))


def split(position: Array) -> tuple[Array, Array]:
    """(theta, a) of a point of R^(dim + 1).

    >>> theta, a = split(jnp.array([3.0, 0.0]))
    >>> theta.tolist(), float(a)
    ([3.0], 1.0)
    """
    return position[:-1], 2.0 * jax.nn.sigmoid(position[-1])


def log_jacobian(b: Array) -> Array:
    """Log of da/db for a = 2 / (1 + exp(-b)), which makes a flat density of a flat."""
    return jnp.log(2.0) + jax.nn.log_sigmoid(b) + jax.nn.log_sigmoid(-b)


def joint_log_density(path: GeometricPath, link: CubicLink = LINK) -> JointLogDensity:
    """Log of psi^(1 - lam) q^lam / c(lam), lam = f(a), on R^(dim + 1) (eq. joint_sample, section 2.2)."""
    tempered = _tempered(path)

    def joint(position: Array, log_c: PseudoPrior) -> Array:
        theta, a = split(position)
        lam = link(a)
        return tempered(theta, lam) - log_c(lam) + log_jacobian(position[-1])

    return joint


def _tempered(path: GeometricPath) -> Callable[[Array, Array], Array]:
    """Log density of the path, with a gradient that is right where one end has no density or a NaN gradient.

    Automatic differentiation would give 0 * inf = NaN there: at lam = 0 and lam = 1 the density of weight
    zero must not count, and its difference to the other has no effect on a, because f'(a) = 0.
    """

    @jax.custom_vjp
    def tempered(theta: Array, lam: Array) -> Array:
        return log_density(path.energies(theta), lam)

    def forward(theta: Array, lam: Array) -> tuple[Array, tuple[Array, Array]]:
        (base, d_base), (target, d_target) = (
            jax.value_and_grad(end)(theta) for end in (path.log_base, path.log_target)
        )
        energies = jnp.stack([base, target])
        energies = jnp.where(jnp.isnan(energies) | (energies == jnp.inf), -jnp.inf, energies)
        d_theta = jnp.where(lam < 1, (1 - lam) * d_base, 0.0) + jnp.where(lam > 0, lam * d_target, 0.0)
        d_lam = jnp.where((lam > 0) & (lam < 1), energies[1] - energies[0], 0.0)
        return log_density(energies, lam), (d_theta, d_lam)

    def backward(gradient: tuple[Array, Array], cotangent: Array) -> tuple[Array, Array]:
        return cotangent * gradient[0], cotangent * gradient[1]

    tempered.defvjp(forward, backward)
    return tempered


def transition(
    joint: JointLogDensity, log_c: PseudoPrior, *, step_size: Array, inverse_mass: Array, max_depth: int = 10
) -> Callable[[Key, Any], tuple[Any, Any]]:
    """One NUTS transition that leaves the joint law invariant: ``(key, state) -> (state, info)`` of blackjax.

    Parameters
    ----------
    joint, log_c
        The joint log density and its pseudo-prior.
    step_size, inverse_mass
        Leapfrog step, and the diagonal of the inverse mass matrix, shape (dim + 1,).
    max_depth
        Largest tree depth: at most 2^max_depth - 1 leapfrogs.
    """
    kernel = blackjax.nuts.build_kernel()

    def step(key: Key, state: Any) -> tuple[Any, Any]:
        moved: tuple[Any, Any] = kernel(key, state, lambda x: joint(x, log_c), step_size, inverse_mass, max_depth)
        return moved

    return step


def run_chain(
    key: Key,
    start: Array,
    log_c: PseudoPrior,
    *,
    path: GeometricPath,
    draws: int,
    max_depth: int = 10,
    link: CubicLink = LINK,
) -> Draws:
    """One chain: ``draws`` transitions of Stan's window adaptation, then ``draws`` that are kept.

    Parameters
    ----------
    start
        Where the chain starts, shape (dim + 1,), see :func:`position_of`.
    log_c
        The pseudo-prior, a pytree.
    draws
        Transitions kept; as many are warm-up.
    link
        lam = f(a).

    >>> from pathtemp.paths.pseudoprior import PiecewiseLinear
    >>> path = GeometricPath(lambda x: -0.5 * x @ x, lambda x: -0.5 * (x - 1) @ (x - 1))
    >>> log_c = PiecewiseLinear.fit([0.0, 1.0], [0.0, 0.0])
    >>> chain = run_chain(jax.random.key(0), jnp.zeros(3), log_c, path=path, draws=5)
    >>> chain.theta.shape, chain.a.shape
    ((5, 2), (5,))
    """
    joint = joint_log_density(path, link)
    warm_key, sample_key = jax.random.split(key)
    warm_up = blackjax.window_adaptation(
        blackjax.nuts,
        lambda x: joint(x, log_c),
        adaptation_info_fn=lambda _state, info, _adaptation: spent_by(info),
        max_num_doublings=max_depth,
    )
    (state, tuned), warm_spent = warm_up.run(warm_key, start, draws)
    step = transition(
        joint,
        log_c,
        step_size=tuned["step_size"],
        inverse_mass=tuned["inverse_mass_matrix"],
        max_depth=max_depth,
    )

    def keep(state: Any, key: Key) -> tuple[Any, Any]:
        state, info = step(key, state)
        return state, (state.position, info.acceptance_rate, spent_by(info))

    _, (positions, acceptance, spent) = jax.lax.scan(keep, state, jax.random.split(sample_key, draws))
    theta, a = jax.vmap(split)(positions)
    return Draws(
        theta,
        a,
        link(a),
        delta(jax.lax.map(path.energies, theta)),
        acceptance,
        1 + warm_spent[0].sum() + spent[0].sum(),
        warm_spent[1].sum() + spent[1].sum(),
    )


def spent_by(info: Any) -> tuple[Array, Array]:
    """Leapfrogs of a transition, and whether it met zero density: such a point ends its trajectory."""
    ends = jnp.stack([info.trajectory_leftmost_state.logdensity, info.trajectory_rightmost_state.logdensity])
    return info.num_integration_steps, jnp.any(~jnp.isfinite(ends))
