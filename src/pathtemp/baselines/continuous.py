"""Continuous tempering by joint NUTS, as the paper's engine does it, with another way to set log c."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import jax
import numpy as np

from pathtemp import diagnostics as gates
from pathtemp.arguments import a_kind_of
from pathtemp.baselines.verdict import check_precision
from pathtemp.compilation import use_compilation_cache
from pathtemp.curve import LogZ
from pathtemp.fit import Fit
from pathtemp.inputs import check_model, starts
from pathtemp.model import Model
from pathtemp.paper import STARTS, compile_adaptation
from pathtemp.paper_trace import PaperTrace, log_z_curve, marginal_khat
from pathtemp.paper_verdict import diagnose, tours
from pathtemp.pseudoprior import Kernels
from pathtemp.run import Check, Counts, RoundRecord, Run
from pathtemp.seeds import seed_word
from pathtemp.settings import PaperSettings

Estimator = Callable[[Sequence[PaperTrace], Kernels], LogZ]
"""log z from the traces of all adaptations so far, the last of which was drawn under the given log c."""

Prior = Callable[[LogZ | None], Kernels]
"""The next log c given the estimate of log z, None before the first adaptation."""


def check_given(model: Model, settings: PaperSettings) -> None:
    """Raise unless what the user gave is a model and settings of the paper's engine."""
    a_kind_of("model", model, Model, "a model from a front end, or a pt.Model")
    a_kind_of("settings", settings, PaperSettings, "pt.settings.PAPER or a copy")


def continuous_tempering(
    model: Model, estimate: Estimator, prior: Prior, *, method: str, estimator: str, seed: int, settings: PaperSettings
) -> Fit:
    """Sample (theta, a) by joint NUTS, estimate log z, set log c, repeat.

    ``method`` goes into the name of the fit, and ``estimator`` names the estimate of log z in its diagnostics.
    """
    use_compilation_cache()
    word, begin = seed_word(seed), time.perf_counter()
    check_model(model, starts(model, count=64, seed=word))
    adaptation, kept = compile_adaptation(model, settings)
    compiled = time.perf_counter()
    traces: list[PaperTrace] = []
    history: list[RoundRecord] = []
    counts, rejections = Counts(), 0
    log_c = prior(None)
    for index in range(settings.adaptations):
        sampled = adaptation(jax.random.fold_in(jax.random.key(word), index), log_c)
        traces.append(PaperTrace.of(sampled))
        counts = counts + Counts(int(sampled.gradients.sum()), settings.chains * (kept + STARTS))
        rejections += int(sampled.rejections.sum())
        curve = estimate(traces, log_c)
        khat = marginal_khat(traces[-1], log_c, settings.grid).value
        history.append(_record(traces[-1], curve, khat, counts))
        if settings.stop and khat < settings.khat:
            break
        log_c = prior(curve)
    pooled, last = PaperTrace.join(traces), traces[-1]
    checked = diagnose(traces, curve, khat, rejections=rejections, settings=settings)
    ends = {estimator: _end(curve), "path_sampling": _end(log_z_curve(pooled, settings.grid))}
    run = Run(
        target=pooled.at(1.0),
        base=pooled.at(0.0),
        a=last.a,
        lam=last.lam,
        delta=last.delta,
        theta0=last.theta[..., 0],
        log_z=curve,
        history=tuple(history),
        diagnostics=replace(checked, checks=(*checked.checks, *_checks(ends, estimator)), log_z_by_estimator=ends),
        counts=counts,
        seconds={"compile": compiled - begin, "adapt": time.perf_counter() - compiled},
    )
    return Fit.from_run(run, replace(model, name=f"{model.name} ({method})"), seed=seed, settings=settings)


def _end(curve: LogZ) -> tuple[float, float]:
    """Log z(1) and its standard error."""
    return float(curve.mean[-1]), float(curve.stderr[-1])


def _checks(ends: Mapping[str, tuple[float, float]], estimator: str) -> list[Check]:
    """Gates on log z itself, which chains that mix do not yet make exact: it is precise, and path sampling agrees."""
    checks = [check_precision(ends[estimator][1])]
    if estimator != "path_sampling":
        checks.append(gates.check_agreement(ends[estimator], ends["path_sampling"], (estimator, "path sampling")))
    return checks


def _record(trace: PaperTrace, curve: LogZ, khat: float, counts: Counts) -> RoundRecord:
    return RoundRecord(
        phase="adapt",
        gradients=counts.gradients,
        tours=int(np.sum(tours(trace.lam))),
        log_z=float(curve.mean[-1]),
        log_z_se=float(curve.stderr[-1]),
        khat=khat,
        acceptance=float(trace.acceptance.mean()),
        curve=curve,
    )
