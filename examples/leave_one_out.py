"""Leave-one-out predictive densities by path sampling (the use named in the paper's section 1).

For each observation i the path q(theta, lam) = p(theta) prod_(j != i) p(y_j | theta) p(y_i | theta)^lam goes from the
posterior without y_i (lam = 0) to the posterior with it (lam = 1), and log z(1) - log z(0) = log p(y_i | y_-i). The
observation left out is an argument of the density, so that all n paths share one compiled program.

    python examples/leave_one_out.py
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy import stats

import pathtemp as pt

PRIOR_SCALE, NOISE = 5.0, 1.0


def log_q(beta: Array, lam: Array, x: Array, y: Array, left_out: Array) -> Array:
    """Linear regression with known noise; the likelihood of one observation has power lam."""
    power = jnp.where(jnp.arange(len(y)) == left_out, lam, 1.0)
    log_likelihood = -0.5 * ((y - x @ beta) / NOISE) ** 2 - jnp.log(NOISE) - 0.5 * jnp.log(2 * jnp.pi)
    return -0.5 * jnp.sum((beta / PRIOR_SCALE) ** 2) + power @ log_likelihood


def exact(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Log p(y_i | y_-i) in closed form."""
    out = []
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        precision = np.eye(x.shape[1]) / PRIOR_SCALE**2 + x[rest].T @ x[rest] / NOISE**2
        mean = np.linalg.solve(precision, x[rest].T @ y[rest] / NOISE**2)
        variance = NOISE**2 + x[i] @ np.linalg.solve(precision, x[i])
        out.append(stats.norm.logpdf(y[i], x[i] @ mean, np.sqrt(variance)))
    return np.array(out)


def data(n: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """A line with one outlier."""
    rng = np.random.default_rng(3)
    x = np.column_stack([np.ones(n), np.linspace(-1.0, 1.0, n)])
    y = x @ np.array([1.0, 2.0]) + NOISE * rng.normal(size=n)
    y[-1] += 5.0
    return x, y


def leave_one_out(x: np.ndarray, y: np.ndarray, *, budget: float = 80_000) -> list[pt.Fit]:
    """One fit for each observation."""
    return [
        pt.path_sample(log_q, x.shape[1], (0.0, 1.0), args=(x, y, i), budget=budget, seed=i, progress=False)
        for i in range(len(y))
    ]


def main() -> None:
    """Print every estimate beside the exact value."""
    x, y = data()
    truth = exact(x, y)
    print(" i   log p(y_i | y_-i)      exact     z   converged")
    for i, (fit, value) in enumerate(zip(leave_one_out(x, y), truth, strict=True)):
        estimate, se = fit.log_marginal_likelihood
        print(f"{i:2d}   {estimate:8.4f} ± {se:.4f}   {value:8.4f}  {(estimate - value) / se:+.1f}   {fit.converged}")


if __name__ == "__main__":
    main()
