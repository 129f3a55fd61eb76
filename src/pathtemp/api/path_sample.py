"""Path sampling along any smooth q(theta, lam) (section 2.1): log z(lam), and draws at both ends of the path."""

from __future__ import annotations

import os
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from pathtemp._types import FloatArray
from pathtemp.api.arguments import (
    a_kind_of,
    finite_array,
    interval_of,
    kind_name,
    positive_number,
    shown,
    text,
    whole_number,
)
from pathtemp.api.cores import kept_to_cores
from pathtemp.engines.driver import carry_out, new_checkpoint
from pathtemp.engines.path.chains import check_budget
from pathtemp.engines.path.function import MARGINALS, FunctionEngine, price_of
from pathtemp.engines.path.plans import PathPlan
from pathtemp.engines.progress import Progress, display
from pathtemp.errors import InputError
from pathtemp.kernels.compilation import use_compilation_cache
from pathtemp.model.inputs import why
from pathtemp.model.kinds import kind_of
from pathtemp.model.traced import traced_shape
from pathtemp.paths.function import LogPath
from pathtemp.result.fit import Fit
from pathtemp.seeds import Stream, rng, seed_word
from pathtemp.settings import DEFAULT, Settings

BUDGET = 200_000.0
"""Gradient equivalents where the user does not say."""


@kept_to_cores
def path_sample(
    log_q: LogPath,
    dim: int,
    interval: tuple[float, float] = (0.0, 1.0),
    *,
    args: tuple[Any, ...] = (),
    starts: ArrayLike | None = None,
    target_marginal: Literal["uniform", "min-variance", "constant-kl"] = "uniform",
    budget: float = BUDGET,
    chains: int | None = None,
    seed: int = 0,
    settings: Settings = DEFAULT,
    cores: int | None = None,
    progress: bool | Progress = True,
    checkpoint: str | os.PathLike[str] | None = None,
    name: str = "path",
) -> Fit:
    """Sample jointly along a path of densities and estimate its normalising constant as a function of lam.

    Parameters
    ----------
    log_q
        Log density, not necessarily normalised, of one point at one lam, traceable by JAX and smooth in both:
        ``(theta (dim,), lam (), *args) -> ()``. Theta is on the whole of R^dim.
    dim
        Dimension of theta.
    interval
        Where lam runs; log z is relative to its lower end.
    args
        Arrays handed to ``log_q``: other values of the same shapes compile nothing anew.
    starts
        Points (n, dim) from which the chains begin; standard normals where None.
    target_marginal
        How densely to sample along lam: ``"uniform"``; ``"min-variance"``, proportional to the root of E U^2, which
        minimises the variance of log z; ``"constant-kl"``, proportional to the standard deviation of dlog q/dlam, so
        that the densities change equally fast (appendix A). The last two are half uniform.
    budget
        Gradient equivalents to spend, over all chains and everything included: gradients, and densities at their price,
        see ``settings.density_price``.
    chains, seed, settings, cores, progress, checkpoint
        As for :func:`pathtemp.temper`; ``pt.resume(path, log_q=..., args=...)`` goes on from a checkpoint.
    name
        What summaries call it.

    Returns
    -------
    A fit whose ``log_z`` is the curve over the interval, ``posterior`` and ``base`` draws at its upper and lower end.

    >>> import pathtemp as pt
    >>> def log_q(theta, lam):  # a normal whose scale goes from 1 to e
    ...     return -0.5 * jnp.sum(theta**2) * jnp.exp(-2 * lam)
    >>> fit = pt.path_sample(log_q, 3, (0.0, 1.0), budget=120_000, progress=False)
    >>> bool(abs(fit.log_z(1.0) - 3.0) < 6 * fit.log_z.stderr[-1] < 0.1)  # log z = 3 lam
    True
    """
    a_kind_of("settings", settings, Settings, "pt.settings.DEFAULT or a copy (the paper's engine has no such path)")
    budget = positive_number("budget", budget, "number of gradient equivalents")
    text("name", name)
    settings = settings if chains is None else settings.replace(chains=chains)
    if settings.chains < 2:
        raise InputError("chains: two at least are needed along a path, as its errors come from comparing chains")
    check_path(log_q, dim, interval, args, target_marginal)
    check_budget(budget, dim, settings, settled=False)
    args = tuple(jax.tree.map(jnp.asarray, args))
    seed = seed_word(seed)
    interval = float(interval[0]), float(interval[1])
    theta = _begin(starts, dim, settings.chains, seed)
    told = display(progress)
    place = None if checkpoint is None else new_checkpoint(checkpoint)
    use_compilation_cache()
    settings = settings.replace(density_price=price_of(log_q, args, settings, theta, interval))
    check_budget(budget, dim, settings, settled=True)
    plan = PathPlan(seed, settings, dim, interval, target_marginal, float(budget), name)
    engine = FunctionEngine(log_q, args, plan, starts=theta)
    return carry_out(engine, plan, engine.model, told, place)


def check_path(log_q: Any, dim: int, interval: Any, args: tuple[Any, ...], target_marginal: str) -> None:
    """Raise where the arguments of :func:`path_sample` make no path."""
    if not callable(log_q):
        elsewhere = "; a model goes to pt.temper" if kind_of(log_q) else ""
        raise InputError(f"log_q: expected a function of (theta, lam), got {kind_name(log_q)}{elsewhere}")
    whole_number("dim", dim, least=1)
    interval_of("interval", interval)
    a_kind_of("args", args, tuple, "a tuple of arrays, such as (y,)")
    if not isinstance(target_marginal, str) or target_marginal not in MARGINALS:
        raise InputError(f"target_marginal: expected one of {', '.join(MARGINALS)}, got {shown(target_marginal)}")
    point = jax.ShapeDtypeStruct((dim,), jnp.float64)
    try:
        out = traced_shape("log_q", log_q, point, jax.ShapeDtypeStruct((), jnp.float64), *args)
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"log_q: it fails on a point with {dim} coordinates ({why(error)})") from error
    if getattr(out, "shape", None) != () or out.dtype != jnp.float64:
        raise InputError("log_q: it must return one float64 number (sum over data; make data after importing pathtemp)")


def _begin(starts: ArrayLike | None, dim: int, chains: int, seed: int) -> FloatArray:
    if starts is None:
        return rng(Stream.STARTS, seed).normal(size=(chains, dim))
    points = finite_array("starts", starts)
    if points.ndim != 2 or points.shape[1] != dim or len(points) == 0 or not np.isfinite(points).all():
        raise InputError(f"starts: expected finite points of shape (n, {dim}), and it has shape {points.shape}")
    return np.asarray(points[np.arange(chains) % len(points)])
