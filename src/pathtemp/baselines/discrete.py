"""Discrete simulated tempering: Gibbs on a ladder, HMC within, and c <- z by visits or Rao-Blackwellised."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pathtemp._types import FloatArray
from pathtemp.arguments import a_kind_of
from pathtemp.baselines.ladder import LadderDraws, LadderState, adaptation, first_state
from pathtemp.baselines.occupancy import occupancy
from pathtemp.baselines.verdict import diagnose
from pathtemp.compilation import compiled_once, use_compilation_cache
from pathtemp.curve import LogZ
from pathtemp.errors import InputError
from pathtemp.estimators.estimate import Estimate
from pathtemp.estimators.rao_blackwell import rao_blackwell
from pathtemp.fit import Fit
from pathtemp.inputs import check_model, starts
from pathtemp.links import CubicLink
from pathtemp.model import Model
from pathtemp.paper_verdict import tours
from pathtemp.paths.geometric import LOG_ZERO, GeometricPath
from pathtemp.run import Counts, RoundRecord, Run
from pathtemp.seeds import seed_word
from pathtemp.settings import LADDER, LadderSettings

Update = Literal["importance", "rao_blackwell"]
UPDATES: tuple[Update, ...] = ("importance", "rao_blackwell")


class Trace(NamedTuple):
    """Kept draws: theta (chain, draw, dim), energies (chain, draw, 2), all else (chain, draw)."""

    theta: FloatArray
    rung: np.ndarray
    lam: FloatArray
    delta: FloatArray
    acceptance: FloatArray
    energies: FloatArray

    @property
    def group(self) -> np.ndarray:
        """Index of the half of a chain that a draw belongs to: halves are near enough to independent."""
        chains, draws = self.rung.shape
        return np.asarray(2 * np.arange(chains)[:, None] + (np.arange(draws) >= draws // 2))


def discrete_tempering(
    model: Model, *, update: Update = "importance", seed: int = 0, settings: LadderSettings = LADDER
) -> Fit:
    """Simulated tempering on a ladder, from a flat guess of log z (methods iii and iv of section 4.1).

    Every draw of the rung given theta is followed by HMC on theta. After each adaptation c is set to the estimate of z
    from its own draws: joint draws under different c cannot be pooled by how often they visit a rung. The chains go on
    where they stopped.

    Parameters
    ----------
    model
        Base and target.
    update
        "importance" estimates Pr(rung) by the share of draws; "rao_blackwell" by its mean given theta (Carlson et al.).
    seed
        The same seed gives the same draws.
    settings
        See :class:`~pathtemp.settings.LadderSettings`.

    Returns
    -------
    A fit whose curve has the rungs as nodes and is a straight line between them. The draws and the curve are those of
    the last adaptation, whose records are in ``fit.history``.

    >>> from pathtemp.testing import gaussian_scale
    >>> small = LADDER.replace(draws=600, moves=4, adaptations=3, ladder=(0.0, 0.3, 1.0))
    >>> fit = discrete_tempering(gaussian_scale(1, precision=4.0).model, update="rao_blackwell", settings=small)
    >>> bool(abs(fit.log_z(1.0) + 0.69) < 0.3), fit.log_z.lam.tolist()
    (True, [0.0, 0.3, 1.0])
    """
    if update not in UPDATES:
        raise InputError(f"update: it must be one of {', '.join(UPDATES)}, and is {update!r}")
    a_kind_of("model", model, Model, "a model from a front end, or a pt.Model")
    a_kind_of("settings", settings, LadderSettings, "pt.settings.LADDER or a copy")
    use_compilation_cache()
    word, begin = seed_word(seed), time.perf_counter()
    ladder = np.array(settings.ladder)
    states = _first_states(model, word, settings)
    path = GeometricPath(model.log_base, model.log_target)
    static = (path, settings.draws, settings.moves, settings.leapfrogs, settings.acceptance)
    log_c: FloatArray = np.zeros(len(ladder))
    program, compiling = compiled_once(adaptation, static, (np.uint32(0), np.uint32(0), states, ladder, log_c))

    history: list[RoundRecord] = []
    counts = Counts(0, settings.chains)
    for index in range(settings.adaptations):
        states, sampled = jax.device_get(program(np.uint32(word), np.uint32(index), states, ladder, log_c))
        gradients = int(np.sum(sampled.gradients))
        counts = counts + Counts(gradients, settings.chains * settings.draws * (settings.moves + 1))
        trace = _kept(sampled, ladder)
        estimates = _estimates(trace, log_c, ladder)
        curve = LogZ(ladder, estimates[update].mean, estimates[update].stderr)
        history.append(_record(trace, curve, counts))
        log_c = curve.mean
    run = Run(
        target=_at(trace, len(ladder) - 1),
        base=_at(trace, 0),
        a=np.array(CubicLink().inverse(jnp.asarray(trace.lam))),
        lam=trace.lam,
        delta=trace.delta,
        theta0=trace.theta[..., 0],
        log_z=curve,
        history=tuple(history),
        diagnostics=diagnose(trace, _at(trace, len(ladder) - 1), ladder, estimates, update=update),
        counts=counts,
        seconds={"compile": compiling, "adapt": time.perf_counter() - begin - compiling},
    )
    named = replace(model, name=f"{model.name} (discrete tempering, {update.replace('_', '-')})")
    return Fit.from_run(run, named, seed=seed, settings=settings)


def _first_states(model: Model, seed: int, settings: LadderSettings) -> LadderState:
    """Chains at starts that have density under the base."""
    theta = starts(model, count=max(settings.chains, 64), seed=seed)
    energies = check_model(model, theta)
    good = theta[np.isfinite(energies[:, 0])]
    chosen = jnp.asarray(good[np.arange(settings.chains) % len(good)])
    states: LadderState = jax.vmap(lambda x: first_state(x, len(settings.ladder)))(chosen)
    return states


def _kept(sampled: LadderDraws, ladder: FloatArray) -> Trace:
    """The second half of the draws."""
    half = sampled.rung.shape[1] // 2
    theta, rung, energies, acceptance, _ = (np.asarray(x)[:, half:] for x in sampled)
    with np.errstate(invalid="ignore"):
        delta = np.maximum(energies[..., 1], LOG_ZERO) - energies[..., 0]
    return Trace(theta, rung, ladder[rung], np.where(delta < 0.5 * LOG_ZERO, -np.inf, delta), acceptance, energies)


def _estimates(trace: Trace, log_c: FloatArray, ladder: FloatArray) -> dict[str, Estimate]:
    """Curves of log z on the ladder by both updates."""
    energies = trace.energies.reshape(-1, 2)
    base, target = energies[:, :1], energies[:, 1:]
    with np.errstate(invalid="ignore"):
        log_q = np.where(ladder < 1, (1 - ladder) * base, 0.0) + np.where(ladder > 0, ladder * target, 0.0)
    group = trace.group.ravel()
    return {
        "importance": occupancy(trace.rung.ravel(), log_c, at=ladder, groups=group),
        "rao_blackwell": rao_blackwell(log_q, log_c, at=ladder, groups=group),
    }


def _record(trace: Trace, curve: LogZ, counts: Counts) -> RoundRecord:
    return RoundRecord(
        phase="adapt",
        gradients=counts.gradients,
        tours=int(tours(trace.lam).sum()),
        log_z=float(curve.mean[-1]),
        log_z_se=float(curve.stderr[-1]),
        khat=float("nan"),
        acceptance=float(trace.acceptance.mean()),
        curve=curve,
    )


def _at(trace: Trace, rung: int) -> FloatArray:
    """Draws at a rung, shape (chain, draw, dim): the last of each chain, as many of each."""
    here = trace.rung == rung
    count = int(here.sum(axis=1).min())
    return np.stack([theta[mask][mask.sum() - count :] for theta, mask in zip(trace.theta, here, strict=True)])
