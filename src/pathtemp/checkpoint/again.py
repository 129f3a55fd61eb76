"""Runs other than those of the default engine, made again from their plan and what the user gives with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pathtemp.checkpoint.plan import MarginPlan, PaperPlan, PathPlan
from pathtemp.checkpoint.steps import carry_out
from pathtemp.divide import Target, margin_task, starts_of, steps_of
from pathtemp.errors import InputError
from pathtemp.fit import Fit
from pathtemp.model import Model
from pathtemp.paper_steps import PaperSteps
from pathtemp.path_sampling import PathTask, check_path
from pathtemp.paths.function import LogPath
from pathtemp.paths.margin import Margin
from pathtemp.progress import Progress
from pathtemp.walk.steps import WalkSteps


def path_again(
    record: Mapping[str, Any],
    log_q: LogPath | None,
    args: tuple[Any, ...],
    progress: Progress,
    place: Path,
) -> Fit:
    """Go on with a run of :func:`pathtemp.path_sample`."""
    plan: PathPlan = record["plan"]
    if log_q is None:
        raise InputError("resume: the checkpoint is of pt.path_sample and holds no function; give log_q=, and args=")
    check_path(log_q, plan.dim, plan.interval, args, plan.target_marginal)
    arrays = tuple(jax.tree.map(jnp.asarray, args))
    how = (plan.dim, plan.interval, plan.target_marginal, plan.budget, plan.seed, plan.settings, plan.name)
    task = PathTask(log_q, arrays, *how)
    steps = WalkSteps(task, np.empty((0, plan.dim)), progress)
    steps.restore(record["state"])
    return carry_out(steps, plan, task.model, progress, place)


def margin_again(
    record: Mapping[str, Any],
    model: Model,
    margin: Margin | None,
    target_marginal: Callable[..., Any] | None,
    progress: Progress,
    place: Path,
) -> Fit:
    """Go on with a run of :func:`pathtemp.divide_and_conquer`."""
    plan: MarginPlan = record["plan"]
    if (margin is None) != plan.by_name:
        what = f"of {plan.margin!r}, by its name; leave margin= out" if plan.by_name else "of a pt.Margin; give margin="
        raise InputError(f"margin: the checkpoint is {what}")
    if (target_marginal is not None) != (plan.target_marginal == "given"):
        raise InputError(
            "target_marginal: give the function that the run had, and nothing where it had a name; this checkpoint's "
            f"is {plan.target_marginal!r}"
        )
    target: Target = plan.target_marginal if target_marginal is None else target_marginal
    starts = starts_of(model, plan.settings, plan.seed)
    task = margin_task(model, plan, plan.margin if margin is None else margin, target, starts)
    steps = steps_of(task, starts, progress)
    steps.restore(record["state"])
    return carry_out(steps, plan, model, progress, place, extends=isinstance(steps, WalkSteps))


def paper_again(record: Mapping[str, Any], model: Model, progress: Progress, place: Path) -> Fit:
    """Go on with a run of the paper's engine."""
    plan: PaperPlan = record["plan"]
    steps = PaperSteps(model, plan, progress)
    steps.restore(record["state"])
    return carry_out(steps, plan, model, progress, place, extends=False)
