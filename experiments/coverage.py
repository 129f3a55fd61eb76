"""How often the truth lies within two standard errors of each estimator, on harmonic oscillators and a scale path.

Both are normals of mean zero whose precision grows from 1 to K along the path, so that everything is a function of the
squared radius, which has a chi-squared law: draws and log z are exact, and only the standard errors are at stake.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import jax.numpy as jnp
import numpy as np

from experiments.common import Experiment, Row, Table, Tables, column, distinct, panels, where
from pathtemp import estimators as est
from pathtemp._types import FloatArray
from pathtemp.paths.links import CubicLink

RANGE = (0.88, 0.99)
"""Shares of runs within two standard errors that count as right."""


@dataclass(frozen=True)
class System:
    """Normals in ``dim`` dimensions with the ``precisions`` of a ladder, from 1 to K."""

    dim: int
    precisions: tuple[float, ...]

    @property
    def ladder(self) -> FloatArray:
        """The precisions."""
        return np.array(self.precisions)

    @property
    def lam(self) -> FloatArray:
        """Positions of the ladder along the geometric path."""
        return (self.ladder - 1.0) / self.rise

    @property
    def rise(self) -> float:
        """K - 1: the precision is 1 + rise lam, and delta is -rise / 2 times the squared radius."""
        return self.precisions[-1] - 1.0

    def log_z(self, lam: FloatArray) -> FloatArray:
        """Exact log z(lam) - log z(0)."""
        return np.asarray(-0.5 * self.dim * np.log1p(self.rise * lam))

    def squares(self, rng: np.random.Generator, precision: FloatArray | float, size: int | None = None) -> FloatArray:
        """Exact draws of the squared radius: ``size`` of them, or one for each precision."""
        return np.asarray(rng.chisquare(self.dim, np.shape(precision) if size is None else size) / precision)


SYSTEMS = {
    "oscillators": System(1, (1.0, 2.0, 4.0, 8.0, 16.0)),
    "scale path": System(2, tuple(float(k) for k in np.geomspace(1.0, 10.0, 5))),
}

Case = Callable[[np.random.Generator, System], tuple[est.Estimate, FloatArray]]
"""One estimate and the truth at its positions."""


def by_importance(rng: np.random.Generator, s: System) -> tuple[est.Estimate, FloatArray]:
    """From the first state of the ladder to the second."""
    square = s.squares(rng, 1.0, 400)
    return est.importance(-0.5 * (s.ladder[1] - 1.0) * square), s.log_z(s.lam[:2])


def by_taylor(rng: np.random.Generator, s: System) -> tuple[est.Estimate, FloatArray]:
    """The expansion estimates a slope, so that the truth is the slope's, whatever the step."""
    return est.taylor(-0.5 * s.squares(rng, 1.0, 400), 0.3), np.array([0.0, -0.15 * s.dim])


def by_ladder_importance(rng: np.random.Generator, s: System) -> tuple[est.Estimate, FloatArray]:
    """Along the ladder, 400 draws of each state."""
    ratios = [-0.5 * (there - here) * s.squares(rng, here, 400) for here, there in pairwise(s.ladder)]
    return est.ladder_importance(ratios), s.log_z(s.lam)


def by_bridge(rng: np.random.Generator, s: System) -> tuple[est.Estimate, FloatArray]:
    """Between the ends, with unequal numbers of draws."""
    first, last = s.squares(rng, 1.0, 200), s.squares(rng, s.ladder[-1], 600)
    return est.bridge(-0.5 * s.rise * first, -0.5 * s.rise * last), s.log_z(s.lam[[0, -1]])


def by_multistate_bridge(rng: np.random.Generator, s: System) -> tuple[est.Estimate, FloatArray]:
    """All states at once, with unequal numbers of draws."""
    counts = [300, 20, 100, 50, 200]
    square = np.concatenate([s.squares(rng, k, n) for n, k in zip(counts, s.ladder, strict=True)])
    return est.multistate_bridge(-0.5 * square[:, None] * s.ladder, counts), s.log_z(s.lam)


def by_mbar(rng: np.random.Generator, s: System) -> tuple[est.Estimate, FloatArray]:
    """The same with lam drawn, errors from groups."""
    lam, groups = rng.choice(s.lam, size=800), np.arange(800) % 50
    delta = -0.5 * s.rise * s.squares(rng, 1.0 + s.rise * lam)
    error = est.mbar_se(lam, delta, groups, s.lam)
    return est.Estimate(s.lam, est.mbar(lam, delta, s.lam), error), s.log_z(s.lam)


def _joint(rng: np.random.Generator, s: System, log_c: FloatArray, n: int) -> FloatArray:
    """Joint draws: state k with probability z_k / c_k, theta given k; log q at every state, shape (n, K)."""
    weight = np.exp(s.log_z(s.lam) - log_c)
    state = rng.choice(len(s.ladder), size=n, p=weight / weight.sum())
    return np.asarray(-0.5 * s.squares(rng, s.ladder[state])[:, None] * s.ladder)


def by_rao_blackwell(rng: np.random.Generator, s: System) -> tuple[est.Estimate, FloatArray]:
    """Joint draws under a wrong c."""
    log_c = np.array([0.0, -0.5, 0.3, -1.0, -1.2])
    return est.rao_blackwell(_joint(rng, s, log_c, 500), log_c), s.log_z(s.lam)


def by_rao_blackwell_in_groups(rng: np.random.Generator, s: System) -> tuple[est.Estimate, FloatArray]:
    """Every draw eight times over, as a slow chain would have it: only the groups tell."""
    log_c = np.zeros(len(s.ladder))
    log_q = np.repeat(_joint(rng, s, log_c, 320), 8, axis=0)
    return est.rao_blackwell(log_q, log_c, groups=np.arange(2560) // 8), s.log_z(s.lam)


def by_annealed_importance(rng: np.random.Generator, s: System) -> tuple[est.Estimate, FloatArray]:
    """Half refreshed at each step: invariant for its state, but never in equilibrium with it."""
    x, increments = rng.normal(size=(600, s.dim)), []
    for here, there in pairwise(s.ladder):
        increments.append(-0.5 * (there - here) * np.sum(x**2, axis=1))
        x = 0.5 * x + np.sqrt(0.75 / there) * rng.normal(size=x.shape)
    return est.annealed_importance(np.stack(increments, axis=1)), s.log_z(s.lam)


def by_thermodynamic(rng: np.random.Generator, s: System) -> tuple[est.Estimate, FloatArray]:
    """A ladder of 161 states, ten draws of each."""
    precision = np.geomspace(1.0, s.ladder[-1], 161)
    lam = (precision - 1.0) / s.rise
    found = est.thermodynamic(lam, [-0.5 * s.rise * s.squares(rng, k, 10) for k in precision])
    return est.Estimate(lam[::40], found.mean[::40], found.stderr[::40]), s.log_z(lam[::40])


AT = np.array([0.0, 0.3, 0.45, 0.6, 1.0])
"""Positions in a at which path sampling is looked at."""


def _along(rng: np.random.Generator, s: System) -> tuple[FloatArray, FloatArray]:
    """Uniform a, and the gradient U at exact draws."""
    a = rng.uniform(size=1500)
    lam, slope = _link(a)
    return a, -0.5 * s.rise * slope * s.squares(rng, 1.0 + s.rise * lam)


def _link(a: FloatArray) -> tuple[FloatArray, FloatArray]:
    cubic = CubicLink()
    return np.asarray(cubic(jnp.asarray(a))), np.asarray(cubic.derivative(jnp.asarray(a)))


def by_path_sampling(rng: np.random.Generator, s: System) -> tuple[est.Estimate, FloatArray]:
    """Independent draws along the paper's link."""
    return est.path_sampling(*_along(rng, s), AT), s.log_z(_link(AT)[0])


def by_path_sampling_in_groups(rng: np.random.Generator, s: System) -> tuple[est.Estimate, FloatArray]:
    """The same, errors from groups."""
    return est.path_sampling(*_along(rng, s), AT, groups=np.arange(1500) % 40), s.log_z(_link(AT)[0])


def by_marginal(rng: np.random.Generator, s: System) -> tuple[est.Estimate, FloatArray]:
    """Log p(a) of uniform draws: log c is log z itself, so that it is zero everywhere."""
    a, u = _along(rng, s)
    lam, slope = _link(a)
    expected = -0.5 * s.rise * s.dim * slope / (1.0 + s.rise * lam)
    return est.marginal(a, u, expected, np.linspace(0.0, 1.0, 5)), np.zeros(5)


CASES: dict[str, Case] = {
    "importance": by_importance,
    "taylor": by_taylor,
    "ladder_importance": by_ladder_importance,
    "bridge": by_bridge,
    "multistate_bridge": by_multistate_bridge,
    "mbar": by_mbar,
    "rao_blackwell": by_rao_blackwell,
    "rao_blackwell in groups": by_rao_blackwell_in_groups,
    "annealed_importance": by_annealed_importance,
    "thermodynamic": by_thermodynamic,
    "path_sampling": by_path_sampling,
    "path_sampling in groups": by_path_sampling_in_groups,
    "marginal": by_marginal,
}


def z_scores(case: str, system: str, *, seeds: int) -> FloatArray:
    """Errors over standard errors, shape (seeds, positions); the first position, where log z is zero, is left out."""
    scores = []
    for seed in range(seeds):
        estimate, truth = CASES[case](np.random.default_rng([seed, 2020]), SYSTEMS[system])
        scores.append((estimate.mean - truth)[1:] / estimate.stderr[1:])
    return np.array(scores)


def _work(cell: str, quick: bool) -> list[Row]:
    case, system = cell.split("/")
    seeds = 100 if quick else 2000
    z = z_scores(case, system, seeds=seeds)
    inside = np.mean(np.abs(z) < 2.0, axis=0)
    return [
        {
            "estimator": case,
            "system": system,
            "seeds": seeds,
            "lowest": float(inside.min()),
            "highest": float(inside.max()),
            "at_end": float(inside[-1]),
            "mean_z": float(z[:, -1].mean()),
            "sd_z": float(z[:, -1].std()),
        }
    ]


def _draw(tables: Tables) -> dict[str, Any]:
    rows = tables["errors"]
    figure, axes = panels(1, 2, width=4.2, height=3.4, sharey=True)
    for ax, system in zip(axes[0], distinct(rows, "system"), strict=True):
        here = where(rows, system=system)
        y = np.arange(len(here))[::-1]
        ax.axvspan(*RANGE, color="#EEEEEE")
        ax.hlines(y, column(here, "lowest"), column(here, "highest"), color="#0072B2")
        ax.plot(column(here, "at_end"), y, "o", ms=4, color="#0072B2")
        ax.set(yticks=y, yticklabels=[row["estimator"] for row in here], xlabel="within 2 se", title=system)
    return {"errors": figure}


EXPERIMENT = Experiment(
    "coverage of the standard error of every estimator",
    {"errors": Table(lambda _quick: [f"{case}/{system}" for system in SYSTEMS for case in CASES], _work)},
    _draw,
)
