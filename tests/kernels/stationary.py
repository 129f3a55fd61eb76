"""Exact joint laws of (theta, a), and tests of whether a transition leaves them as they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.interpolate import CubicSpline
from scipy.special import logsumexp

from pathtemp._types import Array, FloatArray, Key
from pathtemp.kernels.lam_given_theta import PseudoPrior
from pathtemp.kernels.transport import Transport
from pathtemp.model.layout import Layout
from pathtemp.model.model import Model
from pathtemp.modes.local import from_covariance
from pathtemp.modes.mixture_base import mixture_base
from pathtemp.paths.geometric import GeometricPath
from pathtemp.paths.links import BASE_END, TARGET_START, MetricLink
from pathtemp.testing import Problem, beta_binomial, gaussian_mixture
from pathtemp.testing.calibration import FALSE_ALARM

CHAINS = 20_000
QUICK: dict[str, Any] = {"xla_backend_optimization_level": 0}
"""Compiler options for a function that runs a few times only."""

ACCEPTED = FALSE_ALARM
"""Smallest p-value, over all tests of one transition together, of a kernel that is right."""

REFUSED = FALSE_ALARM
"""Largest p-value of one that is wrong on purpose. Those here have 1e-18 and less at the seeds tried."""

Plant = Callable[[pytest.MonkeyPatch, Array], None]
"""A bug to be planted in the functions of a kernel; the traced number says whether it is switched on."""


def with_bugs(function: Callable[..., Any], plants: Sequence[Plant]) -> Callable[..., Any]:
    """The function with one argument more, before the others: which of the planted bugs is switched on.

    So one compiled program holds a kernel with each of its bugs. A bug is planted while the program is traced.
    """

    def planted(bug: Array, *arguments: Any) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            for number, plant in enumerate(plants):
                plant(patch, bug == number)
            return function(*arguments)

    return planted


def _mixture() -> Problem:
    """Two unequal modes that overlap enough for a to reach both."""
    return gaussian_mixture([0.3, 0.7], [[-2.5], [1.5]], scales=[0.5, 1.0], base_scale=3.0)


def _correlated() -> Problem:
    """Three dimensions, normal at every lam, base and target correlated in different ways and off centre."""
    lower = np.array([[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [-0.3, 0.2, 1.5]])
    upper = np.array([[0.5, -0.3, 0.2], [0.0, 0.9, 0.4], [0.0, 0.0, 0.4]])
    covariances = [lower @ lower.T, upper @ upper.T]
    precisions = [np.linalg.inv(c) for c in covariances]
    centres = [np.array([0.2, 0.0, -0.4]), np.array([1.2, -0.7, 0.5])]
    height = -0.8
    constants = [
        -0.5 * (3 * np.log(2 * np.pi) + np.linalg.slogdet(covariances[0])[1]),
        height - 0.5 * (3 * np.log(2 * np.pi) + np.linalg.slogdet(covariances[1])[1]),
    ]

    def log_normal(end: int) -> Callable[[Array], Array]:
        return lambda x: constants[end] - 0.5 * (x - centres[end]) @ precisions[end] @ (x - centres[end])

    def at(lam: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Precision (n, 3, 3), shift (n, 3) and constant (n,) of exp(-x'Px/2 + x'b + k) at lam."""
        l = np.asarray(lam, float)
        weights = [1.0 - l, l]
        precision = sum(w[..., None, None] * p for w, p in zip(weights, precisions, strict=True))
        shift = sum(w[..., None] * (p @ c) for w, p, c in zip(weights, precisions, centres, strict=True))
        constant = sum(
            w * (k - 0.5 * c @ p @ c) for w, k, p, c in zip(weights, constants, precisions, centres, strict=True)
        )
        return np.asarray(precision), np.asarray(shift), np.asarray(constant)

    def log_z(lam: FloatArray) -> FloatArray:
        precision, shift, constant = at(lam)
        mean = np.linalg.solve(precision, shift[..., None])[..., 0]
        log_det = np.linalg.slogdet(precision)[1]
        return np.asarray(constant + 0.5 * np.sum(shift * mean, axis=-1) + 1.5 * np.log(2 * np.pi) - 0.5 * log_det)

    def sample_at(rng: np.random.Generator, lam: FloatArray) -> FloatArray:
        precision, shift, _ = at(lam)
        covariance = np.linalg.inv(precision)
        noise = np.linalg.cholesky(covariance) @ rng.standard_normal((len(lam), 3, 1))
        return np.asarray((covariance @ shift[..., None] + noise)[..., 0])

    def sample_base(key: Key) -> Array:
        return centres[0] + lower @ jax.random.normal(key, (3,))

    model = Model(log_normal(0), log_normal(1), Layout({"theta": (3,)}), sample_base, name="correlated")
    return Problem(name="correlated", model=model, log_z=log_z, sample_at=sample_at)


def _legs() -> Problem:
    """Two dimensions; the base is a mixture of two laws, one heavy-tailed, that overlap, and of a wide normal."""
    target = gaussian_mixture(
        [0.35, 0.65], [[-1.0, 0.3], [1.2, -0.4]], covariances=[[[0.5, 0.3], [0.3, 0.4]], [[0.8, -0.2], [-0.2, 0.3]]]
    )
    laws = [
        from_covariance(np.array([-0.7, 0.0]), np.array([[0.9, 0.5], [0.5, 0.7]]), 0.0),
        replace(from_covariance(np.array([0.9, -0.2]), np.array([[0.6, 0.1], [0.1, 0.5]]), 0.0), heavy=True),
    ]

    def log_user(x: Array) -> Array:
        return jnp.asarray(-0.5 * jnp.sum(x**2) / 9.0 - np.log(9.0 * 2.0 * np.pi))

    def sample_user(key: Key) -> Array:
        return 3.0 * jax.random.normal(key, (2,))

    base, sample_base = mixture_base(laws, np.array([0.3, 0.7]), log_user, sample_user)
    path = GeometricPath(base, target.model.log_target)
    energies = jax.jit(jax.vmap(path.energies), compiler_options=QUICK)
    # The trapezoid is exact for what falls off so fast.
    line = np.linspace(-16.0, 16.0, 401)
    grid = np.asarray(energies(np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)))
    lams = np.linspace(0.0, 1.0, 65)
    log_cell = 2.0 * np.log(line[1] - line[0])
    curve = CubicSpline(lams, [logsumexp((1 - l) * grid[:, 0] + l * grid[:, 1]) + log_cell for l in lams])
    highest = float(np.max(grid[:, 1] - grid[:, 0])) + 0.01

    def propose(key: Key) -> tuple[Array, Array]:
        theta = sample_base(key)
        return theta, path.energies(theta)

    draw = jax.jit(
        lambda seed: jax.vmap(propose)(jax.random.split(jax.random.key(seed), 2**16)), compiler_options=QUICK
    )

    def sample_at(rng: np.random.Generator, lam: FloatArray) -> FloatArray:
        """Rejection from the base, by the bound of the ratio of target and base; as many tries as proposals allow."""
        out, left = np.empty((len(lam), 2)), np.arange(len(lam))
        while len(left):
            theta, values = jax.device_get(draw(np.uint32(rng.integers(2**31))))
            tries = len(theta) // len(left)
            theta = theta[: tries * len(left)].reshape(tries, len(left), 2)
            rise = (values[:, 1] - values[:, 0] - highest)[: tries * len(left)].reshape(tries, -1)
            kept = np.log(rng.uniform(size=rise.shape)) < lam[left] * rise
            found = kept.any(axis=0)
            first = np.argmax(kept, axis=0)[found]
            out[left[found]] = theta[first, np.flatnonzero(found)]
            left = left[~found]
        return out

    model = Model(base, target.model.log_target, Layout({"theta": (2,)}), sample_base, name="legs")
    return Problem(name="legs", model=model, log_z=lambda lam: np.asarray(curve(lam)), sample_at=sample_at)


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "mixture": cache(_mixture),
    "beta_binomial": cache(lambda: beta_binomial("easy")),
    "correlated": cache(_correlated),
    "legs": cache(_legs),
}


SLOW = ("beta_binomial", "legs")
"""Problems whose programs most kernels leave to the slow tier: they show nothing that the others do not."""

FEW_FAST: list[Any] = [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in sorted(PROBLEMS)]


@dataclass(frozen=True, eq=False)
class Law:
    """The law of (theta, a) with density q(theta, lam(a)) / c(a) on the circle, c a curve that is not z."""

    problem: Problem
    link: MetricLink
    prior: PseudoPrior

    @property
    def path(self) -> GeometricPath:
        return GeometricPath(self.problem.model.log_base, self.problem.model.log_target)

    @cached_property
    def _table(self) -> tuple[FloatArray, FloatArray]:
        """Folded a and its exact distribution function, fine between the atoms."""
        s = np.linspace(0.0, 1.0, 200 * self.link.cells + 1)
        positions = np.linspace(0.0, 1.0, self.link.cells + 1)
        lam = np.interp(s, positions, self.link.nodes)
        log_c = np.interp(s, positions, self.prior.log_c)
        assert self.problem.log_z is not None
        density = np.exp(self.problem.log_z(lam) - log_c)
        inside = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]) * np.diff(s))])
        below = BASE_END * np.exp(-float(self.prior.at_base))
        above = (1.0 - TARGET_START) * density[-1]
        mass = np.concatenate([[0.0], below + (TARGET_START - BASE_END) * inside, [0.0]])
        mass[-1] = mass[-2] + above
        return np.concatenate([[0.0], BASE_END + (TARGET_START - BASE_END) * s, [1.0]]), mass / mass[-1]

    def draw(self, rng: np.random.Generator, count: int) -> tuple[FloatArray, FloatArray]:
        """Exact draws theta (n, dim) and a (n,)."""
        r = np.interp(rng.uniform(size=count), *reversed(self._table))
        a = np.where(rng.uniform(size=count) < 0.5, r, 2.0 - r)
        assert self.problem.sample_at is not None
        return self.problem.sample_at(rng, self.lam(a)), a

    def lam(self, a: FloatArray) -> FloatArray:
        s = np.clip((1.0 - np.abs(1.0 - a) - BASE_END) / (TARGET_START - BASE_END), 0.0, 1.0)
        return np.interp(s, np.linspace(0.0, 1.0, self.link.cells + 1), self.link.nodes)

    def uniform(self, a: FloatArray) -> FloatArray:
        """Distribution function of a on the circle: uniform when a has the law."""
        below = 0.5 * np.interp(1.0 - np.abs(1.0 - a), *self._table)
        return np.where(a <= 1.0, below, 1.0 - below)


@cache
def exact_draws(law: Law, seed: int) -> tuple[FloatArray, FloatArray]:
    """Exact draws of (theta, a), made once."""
    return law.draw(np.random.default_rng(seed), CHAINS)


@cache
def law(name: str, *, cells: int = 16) -> Law:
    """A law whose log c is off log z by a smooth curve, at uneven nodes, and by a jump at the base's atom."""
    problem = PROBLEMS[name]()
    positions = np.linspace(0.0, 1.0, cells + 1)
    nodes = 0.25 * positions + 0.75 * positions**3
    assert problem.log_z is not None
    log_c = problem.log_z(nodes) + 0.9 * np.sin(4.0 * positions) - 0.5 * positions
    return Law(problem, MetricLink(jnp.asarray(nodes)), PseudoPrior(jnp.asarray(log_c), jnp.asarray(0.8)))


def rough_transport(dim: int, *, full: bool, positions: int = 5, seed: int = 0, size: float = 1.0) -> Transport:
    """A transport that fits nothing: random location, scale and mixing of coordinates at every position.

    It is a part of the kernel under test, and so the same whatever ``PATHTEMP_TEST_SEED`` is.
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    location = 0.5 * size * rng.normal(size=(positions, dim))
    log_scale = 0.5 * size * rng.normal(size=(positions, dim))
    if full:
        factor = np.tril(0.5 * size * rng.normal(size=(positions, dim, dim)), -1)
        factor += np.exp(0.3 * size * rng.normal(size=(positions, dim)))[:, :, None] * np.eye(dim)
        return Transport(jnp.asarray(location), jnp.asarray(log_scale), factor=jnp.asarray(factor))
    rank = max(1, dim - 1)
    basis = np.linalg.qr(rng.normal(size=(dim, rank)))[0]
    gain = np.exp(0.5 * size * rng.normal(size=(positions, rank))) - 1.0
    return Transport(jnp.asarray(location), jnp.asarray(log_scale), basis=jnp.asarray(basis), gain=jnp.asarray(gain))


def _features(theta: FloatArray, a: FloatArray, lam: FloatArray, centre: FloatArray, spread: FloatArray) -> FloatArray:
    """Bounded functions of (theta, a), one a column, whose means a change of the law would move."""
    x = np.clip((theta - centre) / spread, -5.0, 5.0)
    columns = [lam <= 0, lam >= 1, lam, lam**2, *(f(k * np.pi * a) for k in (1, 2, 3) for f in (np.cos, np.sin))]
    for j in range(x.shape[1]):
        columns += [x[:, j], x[:, j] ** 2, x[:, j] * lam, x[:, j] ** 2 * lam, x[:, j] > 0, np.abs(x[:, j]) > 1]
        columns += [x[:, j] * (lam <= 0), x[:, j] ** 2 * (lam <= 0), x[:, j] * (lam >= 1), x[:, j] ** 2 * (lam >= 1)]
        columns += [x[:, j] * x[:, i] for i in range(j)]
    return np.column_stack([np.asarray(c, float) for c in columns])


def worst_p_value(
    law: Law,
    start: tuple[FloatArray, FloatArray],
    end: tuple[FloatArray, FloatArray],
) -> float:
    """Smallest p-value, times their number, of tests that ``end`` has the law from which ``start`` was drawn.

    Means of functions of (theta, a), each against its own start, which removes most of the noise; the distribution of
    a against the exact one, in bins and by its largest distance; theta at the base, inside and at the target against
    independent exact draws.
    """
    if not all(np.isfinite(x).all() for x in end):
        return 0.0
    (theta, a), (old_theta, old_a) = end, start
    lam, old_lam = law.lam(a), law.lam(old_a)
    centre, spread = np.median(old_theta, axis=0), old_theta.std(axis=0)
    change = _features(theta, a, lam, centre, spread) - _features(old_theta, old_a, old_lam, centre, spread)
    error = change.std(axis=0) / np.sqrt(len(a))
    z = change.mean(axis=0) / np.where(error > 0, error, 1.0)
    tests = list(2.0 * stats.norm.sf(np.abs(z)))
    u = law.uniform(a)
    tests.append(stats.chisquare(np.histogram(u, bins=40, range=(0.0, 1.0))[0]).pvalue)
    tests.append(stats.kstest(u, "uniform", method="asymp").pvalue)
    fresh_theta, fresh_a = exact_draws(law, 99)
    fresh_lam = law.lam(fresh_a)
    for here, there in ((lam <= 0, fresh_lam <= 0), (lam >= 1, fresh_lam >= 1), (_inside(lam), _inside(fresh_lam))):
        tests += [
            stats.ks_2samp(theta[here, j], fresh_theta[there, j], method="asymp").pvalue for j in range(theta.shape[1])
        ]
    return float(min(tests)) * len(tests)


def uniforms_p_value(uniforms: FloatArray) -> float:
    """Smallest p-value, times their number, of tests that the columns (n, k) are independent uniforms.

    The Rosenblatt transform of draws is so exactly when they have the law. Plain and folded margins, pairs of columns,
    and each column against the distance of the first from its middle.
    """
    if not np.isfinite(uniforms).all():
        return 0.0
    columns = uniforms.T
    tests = [stats.kstest(u, "uniform", method="asymp").pvalue for u in (*columns, *abs(2 * columns - 1))]
    tests += [stats.spearmanr(columns[i], columns[j]).pvalue for i in range(len(columns)) for j in range(i)]
    away = abs(columns[0] - 0.5)
    tests += [stats.spearmanr(away, f).pvalue for u in columns[1:] for f in (u, abs(u - 0.5))]
    return float(min(tests)) * len(tests)


def _inside(lam: FloatArray) -> FloatArray:
    return (lam > 0) & (lam < 1)
