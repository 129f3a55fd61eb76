"""Stan by the names of the R package pathtemp, for those who port scripts (appendix B of the paper).

The R calls and what they are here::

    file_new <- code_temperature_augmented("cauchy.stan")     code_temperature_augmented("cauchy.stan")
    sampling_model <- stan_model(file_new)                    not needed: programs are compiled when used
    path_sample(sampling_model, data)                         path_sample("cauchy.stan", data)
    extract(fit$fit_main)$theta[lambda == 1]                  fit.in_target["theta"]
    extract(fit$fit_main)$theta[lambda == 0]                  fit.in_prior["theta"]
    g_lambda(fit$path_post_a), fit$path_post_z                g_lambda(fit.path_post_a), fit.path_post_z

New scripts are better served by ``pt.temper(pt.from_stan("cauchy.stan", data))``.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from pathtemp._types import FloatArray
from pathtemp.errors import InputError
from pathtemp.frontends.stan import augment, augmented_data, cache_info, clear_cache, from_stan
from pathtemp.frontends.stan.augment import MARK
from pathtemp.frontends.stan.data import Data
from pathtemp.frontends.stan.source import program_path
from pathtemp.paths.links import A_MAX, A_MIN, CubicLink
from pathtemp.result.fit import Fit
from pathtemp.settings import PAPER

__all__ = [
    "PathSample",
    "augment",
    "augmented_data",
    "cache_info",
    "clear_cache",
    "code_temperature_augmented",
    "from_stan",
    "g_lambda",
    "path_sample",
]


@dataclass(frozen=True)
class PathSample:
    """What ``path_sample`` gives back.

    Parameters
    ----------
    fit
        The fit itself, with everything else that is known of the run.
    """

    fit: Fit

    @property
    def in_target(self) -> dict[str, FloatArray]:
        """Draws of the model block, lambda = 1, over all chains: ``{name: (n, ...)}``."""
        return _stacked(self.fit.posterior)

    @property
    def in_prior(self) -> dict[str, FloatArray]:
        """Draws of the alternative model block, lambda = 0."""
        return _stacked(self.fit.base)

    @property
    def path_post_a(self) -> FloatArray:
        """Positions a, from the base to the target, at which log z is known."""
        return np.asarray(CubicLink().inverse(jnp.asarray(self.fit.log_z.lam)))

    @property
    def path_post_z(self) -> FloatArray:
        """The log normalising constant there."""
        return self.fit.log_z.mean


def _stacked(draws: Any) -> dict[str, FloatArray]:
    return {str(name): x.values.reshape(-1, *x.shape[2:]) for name, x in draws.data_vars.items()}


def g_lambda(a: Any) -> FloatArray:
    """Inverse temperature of ``a`` in [0, 2] (eq. link).

    >>> g_lambda([0.05, 0.45, 1.0]).round(3).tolist()
    [0.0, 0.5, 1.0]
    """
    return np.asarray(CubicLink()(jnp.asarray(a, float)))


def code_temperature_augmented(stan_file: str | os.PathLike[str]) -> Path:
    """Write the augmented program beside the original, as ``<name>_augmented.stan``; returns its path."""
    path = Path(stan_file)
    out = path.with_name(f"{path.stem}_augmented.stan")
    out.write_text(augment(path), encoding="utf-8")
    return out


def path_sample(
    sampling_model: str | os.PathLike[str],
    data_list: Data = None,
    *,
    data: Data = None,
    N_loop: int = PAPER.adaptations,
    iter: int = PAPER.draws,
    max_treedepth: int = PAPER.max_depth,
    K_logit: int = PAPER.kernels,
    K_gaussian: int | None = None,
    N_grid: int = PAPER.grid,
    a_lower: float = A_MIN,
    a_upper: float = A_MAX,
    chains: int = PAPER.chains,
    seed: int = 0,
    progress: bool = True,
) -> PathSample:
    """Adaptive path sampling by the paper's own engine, called as in R.

    Parameters
    ----------
    sampling_model
        The Stan program with its ``alternative model`` block, not the augmented one.
    data_list, data
        Its data, by either name.
    N_loop
        Most adaptations; it stops before them when k-hat falls below .7.
    iter
        Draws of one adaptation over all chains, the discarded half included.
    max_treedepth, K_logit, K_gaussian, N_grid
        Tree depth of NUTS, kernels of each kind, and points at which the curve is smoothed.
    a_lower, a_upper
        The flat ends of the link; only the paper's .1 and .8.
    chains, seed, progress
        What the R package does not have: several chains, a seed for everything, a progress bar.
    """
    from pathtemp.api.temper import temper

    if data_list is not None and data is not None:
        raise InputError("data_list: give either data_list or data, not both")
    if K_gaussian not in (None, K_logit):
        raise InputError(f"K_gaussian: as many Gaussian as logit kernels are used, and K_logit is {K_logit}")
    if (a_lower, a_upper) != (A_MIN, A_MAX):
        raise InputError(f"a_lower: the link has its flat ends at {A_MIN} and {A_MAX}; others are not supported")
    path = program_path(sampling_model)
    text = str(sampling_model) if path is None else path.read_text(encoding="utf-8") if path.is_file() else ""
    if text.startswith(MARK):
        raise InputError("sampling_model: this is the augmented program; give the original one")
    settings = PAPER.replace(
        chains=chains, draws=iter, adaptations=N_loop, kernels=K_logit, grid=N_grid, max_depth=max_treedepth
    )
    model = from_stan(sampling_model, data=data_list if data is None else data, seed=seed, progress=progress)
    return PathSample(temper(model, settings=settings, seed=seed, progress=progress))
