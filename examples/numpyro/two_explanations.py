"""A wave sampled nearly once a period: a slow one and a fast one explain the data almost as well.

Given the frequency the amplitudes are conjugate, so quadrature over one dimension gives the exact evidence and the
exact probability of each explanation.

Run: python examples/numpyro/two_explanations.py
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from scipy import stats
from scipy.special import logsumexp

import pathtemp as pt

RNG = np.random.default_rng(5)
TIME = np.arange(12) + RNG.normal(scale=0.04, size=12)
NOISE = 0.6
Y = 1.2 * np.sin(1.1 * TIME + 0.4) + NOISE * RNG.normal(size=12)
HALF = np.pi
"""The frequency that separates the slow explanation from the fast one."""


def wave(time: np.ndarray, y: np.ndarray) -> None:
    """A sine and a cosine of one frequency, anywhere below two pi a unit of time."""
    frequency = numpyro.sample("frequency", dist.Uniform(0.0, 2 * np.pi))
    amplitude = numpyro.sample("amplitude", dist.Normal(0.0, 1.0).expand([2]).to_event(1))
    phase = frequency * time
    signal = numpyro.deterministic("signal", amplitude[0] * jnp.sin(phase) + amplitude[1] * jnp.cos(phase))
    with numpyro.plate("time", len(time)):
        numpyro.sample("y", dist.Normal(signal, NOISE), obs=y)


def exact() -> tuple[float, float]:
    """Log evidence, and the probability of the slow explanation."""
    grid = (np.arange(4000) + 0.5) * 2 * np.pi / 4000
    waves = np.stack([np.sin(np.outer(grid, TIME)), np.cos(np.outer(grid, TIME))], axis=-1)
    cov = waves @ waves.transpose(0, 2, 1) + NOISE**2 * np.eye(len(TIME))
    log_like = np.array([stats.multivariate_normal(np.zeros(len(TIME)), c).logpdf(Y) for c in cov])
    total = logsumexp(log_like)
    return float(total - np.log(len(grid))), float(np.exp(logsumexp(log_like[grid < HALF]) - total))


def main(budget: float | None = None) -> pt.Fit:
    """Print the evidence and the probability of the slow explanation."""
    fit = pt.temper(pt.from_numpyro(wave, TIME, Y), budget=budget, seed=1, progress=False)
    slow = (fit.posterior["frequency"] < HALF).mean("draw").values
    log_evidence, share = exact()
    value, se = fit.log_marginal_likelihood
    print(f"log evidence {value:.3f} +- {se:.3f}, exact {log_evidence:.3f}")
    print(f"probability of the slow wave {slow.mean():.3f}, exact {share:.3f}")
    return fit


if __name__ == "__main__":
    main()
