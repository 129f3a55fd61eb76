"""Each gate of the paper's verdict opens on a good run and names what is wrong with a bad one."""

from __future__ import annotations

from dataclasses import replace

import jax.numpy as jnp
import numpy as np

from pathtemp.engines.paper.trace import PaperTrace, log_z_curve
from pathtemp.engines.paper.verdict import diagnose
from pathtemp.paths.links import CubicLink
from pathtemp.result.run import Diagnostics, Rejections
from pathtemp.settings import PAPER

RNG = np.random.default_rng(0)
CHAINS, DRAWS = 4, 800


def good_trace() -> PaperTrace:
    """Chains that sweep the circle of a again and again, delta independent of them."""
    sweep = (np.linspace(0.0, 40.0, DRAWS) + RNG.uniform(0.0, 2.0, (CHAINS, 1))) % 2.0
    lam = np.asarray(CubicLink()(jnp.asarray(sweep)))
    group = 2 * np.arange(CHAINS)[:, None] + (np.arange(DRAWS) >= DRAWS // 2)
    theta = RNG.normal(size=(CHAINS, DRAWS, 2))
    return PaperTrace(theta, sweep, lam, RNG.normal(size=lam.shape), np.full(lam.shape, 0.85), group)


GOOD = good_trace()


def verdict(trace: PaperTrace, *, khat: float = 0.2, stop: bool = True) -> Diagnostics:
    settings = PAPER.replace(stop=stop)
    return diagnose([GOOD, trace], log_z_curve(trace, 100), khat, rejections=Rejections(), settings=settings)


def failed(diagnostics: Diagnostics) -> dict[str, str]:
    return {check.name: check.message for check in diagnostics.checks if not check.passed}


def moved(low: float, high: float) -> PaperTrace:
    """The good trace with every a between ``low`` and ``high`` (folded) moved just above."""
    folded = 1.0 - np.abs(1.0 - GOOD.a)
    a = np.where((folded > low) & (folded < high), high, folded)
    return replace(GOOD, a=a, lam=np.asarray(CubicLink()(jnp.asarray(a))))


def test_a_good_run_passes_and_is_described_along_the_path() -> None:
    d = verdict(GOOD)
    assert d.converged, d.warnings
    assert d.tours > 2 * CHAINS * 15
    assert len(d.lam) == len(d.local_length) == len(d.acceptance) == len(d.visits) == 20
    assert abs(d.length - 1.0) < 0.1  # sd(delta) = 1 everywhere
    assert abs(d.rhat - 1.0) < 0.02


def test_khat_alone_neither_passes_nor_hides() -> None:
    assert list(failed(verdict(GOOD, khat=0.9))) == ["k-hat"]
    assert "0.90" in failed(verdict(GOOD, khat=0.9))["k-hat"]
    assert list(failed(verdict(GOOD, khat=float("nan")))) == ["k-hat"]
    assert verdict(GOOD, khat=float("-inf")).converged


def test_a_gap_is_named_with_its_place() -> None:
    message = failed(verdict(moved(0.31, 0.46)))["coverage"]
    assert "lam between 0.216 and 0.5" in message
    at_end = failed(verdict(moved(-0.1, 0.2)))["coverage"]
    assert "lam = 0" in at_end


def test_chains_without_a_round_trip_are_counted() -> None:
    lam = GOOD.lam.copy()
    lam[0, lam[0] == 0] = 0.01
    assert "1 of 4 chains" in failed(verdict(replace(GOOD, lam=lam)))["tours by chain"]
    assert "stop=False" in failed(verdict(replace(GOOD, lam=lam)))["tours by chain"]
    assert f"draws={2 * PAPER.draws}" in failed(verdict(replace(GOOD, lam=lam), stop=False))["tours by chain"]


def test_chains_that_disagree_about_the_target_fail() -> None:
    apart = GOOD.theta + np.where(np.arange(CHAINS) == 0, 6.0, 0.0)[:, None, None]
    names = failed(verdict(replace(GOOD, theta=apart)))
    assert {"R-hat", "ESS"} >= set(names)
    assert "R-hat" in names


def test_poor_acceptance_is_placed_on_the_path() -> None:
    low = np.where((GOOD.lam > 0.4) & (GOOD.lam < 0.6), 0.1, 0.85)
    message = failed(verdict(replace(GOOD, acceptance=low)))["acceptance"]
    assert "10%" in message
    assert "near lam = 0.4" in message or "near lam = 0.5" in message


def test_no_target_draw_at_all() -> None:
    stuck = replace(GOOD, lam=np.minimum(GOOD.lam, 0.99))
    d = diagnose([stuck], log_z_curve(stuck, 100), 0.1, rejections=Rejections(zero=3, evaluations=10), settings=PAPER)
    assert {"coverage", "tours by chain", "R-hat", "ESS"} <= set(failed(d))
    assert "lam = 1" in failed(d)["coverage"]
    assert d.rejections == 3
