"""Continuous tempering by joint NUTS, as the paper's engine does it, with another way to set log c."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pathtemp.api.arguments import a_kind_of
from pathtemp.baselines.verdict import LARGEST_SE
from pathtemp.engines.driver import carry_out
from pathtemp.engines.paper.engine import NextPrior, PaperEngine, Rule
from pathtemp.engines.paper.plan import PaperPlan
from pathtemp.engines.paper.trace import PaperTrace, log_z_curve
from pathtemp.engines.progress import Silent
from pathtemp.kernels.compilation import use_compilation_cache
from pathtemp.model.inputs import check_model, starts
from pathtemp.model.model import Model
from pathtemp.result.curve import LogZ
from pathtemp.result.fit import Fit
from pathtemp.result.run import Check
from pathtemp.seeds import seed_word
from pathtemp.settings import PaperSettings
from pathtemp.verdict.travel import check_agreement, check_precision


def check_given(model: Model, settings: PaperSettings) -> None:
    """Raise unless what the user gave is a model and settings of the paper's engine."""
    a_kind_of("model", model, Model, "a model from a front end, or a pt.Model")
    a_kind_of("settings", settings, PaperSettings, "pt.settings.PAPER or a copy")


def continuous_tempering(
    model: Model, *, estimate: Rule, prior: NextPrior, named: tuple[str, str], seed: int, settings: PaperSettings
) -> Fit:
    """Sample (theta, a) by joint NUTS, estimate log z, set log c, repeat.

    ``named`` are the method, for the name of the fit, and the estimate of log z, for its diagnostics.
    """
    use_compilation_cache()
    method, estimator = named
    check_model(model, starts(model, count=64, seed=seed_word(seed)))
    plan = PaperPlan(seed, settings)
    engine = PaperEngine(replace(model, name=f"{model.name} ({method})"), plan, estimate=estimate, prior=prior)
    fit = carry_out(engine, plan, model, Silent(), None)
    pooled = log_z_curve(PaperTrace.join(engine.traces), settings.grid)
    ends = {estimator: _end(fit.log_z), "path_sampling": _end(pooled)}
    checks = (*fit.diagnostics.checks, *_checks(ends, estimator))
    return replace(fit, diagnostics=replace(fit.diagnostics, checks=checks, log_z_by_estimator=ends))


def _end(curve: LogZ) -> tuple[float, float]:
    """Log z(1) and its standard error."""
    return float(curve.mean[-1]), float(curve.stderr[-1])


def _checks(ends: Mapping[str, tuple[float, float]], estimator: str) -> list[Check]:
    """Gates on log z itself, which chains that mix do not yet make exact: it is precise, and path sampling agrees."""
    checks = [check_precision(ends[estimator][1], limit=LARGEST_SE)]
    if estimator != "path_sampling":
        checks.append(check_agreement(ends[estimator], ends["path_sampling"], (estimator, "path sampling")))
    return checks
