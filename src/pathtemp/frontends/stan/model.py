"""A Stan program as a model: both densities, the layout, and draws by Stan's names."""

from __future__ import annotations

import logging
import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from pathtemp._types import FloatArray, LogDensity, Sampler
from pathtemp.errors import InputError
from pathtemp.frontends.stan.bridge import StanDensity
from pathtemp.frontends.stan.data import Data, read_data
from pathtemp.frontends.stan.impropriety import improper_parameters
from pathtemp.frontends.stan.layout import stan_layout
from pathtemp.frontends.stan.library import Instance
from pathtemp.frontends.stan.names import variables
from pathtemp.frontends.stan.opening import Opened, compile_programs, open_program
from pathtemp.frontends.stan.program import ALTERNATIVE
from pathtemp.frontends.stan.python_base import python_base
from pathtemp.frontends.stan.recipe import stan_recipe
from pathtemp.frontends.stan.sampler import ExactDraws, why_not
from pathtemp.model.bases import Automatic, is_automatic
from pathtemp.model.model import Model

log = logging.getLogger("pathtemp.stan")


@dataclass(frozen=True)
class StanDraws:
    """Constrained draws by Stan's names, transformed parameters and generated quantities with them.

    The random numbers of the generated quantities depend on the seed and on the draws, so the same draws
    always have the same. ``generated=False`` leaves them out.
    """

    instance: Instance
    seed: int = 0
    generated: bool = True

    def __call__(self, flat: FloatArray) -> dict[str, FloatArray]:
        """``(n, dim) -> {name: (n, ...)}``."""
        rows = np.ascontiguousarray(flat, dtype=np.float64)
        seed = zlib.crc32(rows.tobytes(), self.seed % 2**32)
        values, failures = self.instance.constrain(rows, transformed=True, generated=self.generated, seed=seed)
        if failures:
            log.warning(
                "Stan could not write %d of %d draws, which are NaN: %s",
                len(failures),
                len(rows),
                failures[0],
            )
        names = self.instance.names(transformed=True, generated=self.generated)
        return {v.name: v.take(values) for v in variables(names)}


def from_stan(
    program: Any,
    base_program: Any = None,
    *,
    data: Data = None,
    base: Any = None,
    include_paths: Sequence[str | os.PathLike[str]] = (),
    seed: int = 0,
    name: str | None = None,
    progress: bool = True,
) -> Model:
    """A model from a Stan program: its model block is the target, its ``alternative model`` block the base.

    ::

        fit = pt.temper(pt.from_stan("cauchy.stan", {"y": 10.0}), seed=1)

    Parameters
    ----------
    program
        Path of a Stan program, or its text; or something already compiled: a ``bridgestan.StanModel`` or the
        path of a shared library that BridgeStan built.
    base_program
        Another program, in any of these forms, with the same parameters, whose model is the base. Data may
        stand here instead: ``from_stan("model.stan", {"N": 3})``.
    data
        A dict of numbers, lists and NumPy arrays, or a JSON file. Entries that a program does not declare are
        ignored.
    base
        The base in Python, in place of an alternative block: a distribution over the flat unconstrained
        vector (``pt.normal(0, 5, shape=(d,))``), or a dict of NumPyro distributions by parameter on the
        constrained scale. "auto", or no base at all: ``pt.temper`` builds a wide one from the modes that it finds,
        with a warning how far it looked.
    include_paths
        Where ``#include`` looks, after the folder of the program.
    seed
        Of random numbers in transformed data and generated quantities.
    name
        What summaries call the model; by default the name of the file.
    progress
        Say on standard error when something is being compiled.
    """
    _need_cpu()
    if data is None and _is_data(base_program):
        data, base_program = base_program, None
    if base is not None and base_program is not None:
        raise InputError("base: give either base or base_program, not both")
    given = [item for item in (program, base_program) if item is not None]
    values = read_data(data)
    opened = compile_programs([open_program(item, values, include_paths) for item in given], progress=progress)
    target = opened[0].instance(seed=seed)
    model_name = name or opened[0].name
    if target.dim == 0:
        raise InputError(f"program: {model_name} has no parameters, so there is nothing to sample")
    log_target = _density(target, f"{model_name} (target)")
    automatic = is_automatic(base)
    sample_base: Sampler | None
    log_base: LogDensity
    if base is not None and not automatic:
        log_base, sample_base = python_base(base, target)
    elif base_program is not None:
        psi = opened[1].instance(seed=seed)
        _same_parameters(target, psi)
        _require_proper(psi, opened[1], "model")
        log_base = _density(psi, f"{opened[1].name} (base)")
        sample_base = _exact_draws(opened[1], log_base, seed)
    elif opened[0].has_alternative and not automatic:
        psi = opened[0].instance(seed=seed, which=0)
        _require_proper(psi, opened[0], ALTERNATIVE)
        log_base = _density(psi, f"{model_name} (alternative model)")
        sample_base = _exact_draws(opened[0], log_base, seed)
    else:
        log_base, sample_base = Automatic(), None
    return Model(
        log_base,
        log_target,
        stan_layout(target),
        sample_base,
        constrain_draws=StanDraws(target, seed),
        constrain_base_draws=StanDraws(target, seed, generated=False),  # of the target alone
        name=model_name,
        recipe=stan_recipe(opened, base=base, seed=seed, name=model_name),
    )


_DENSITIES: dict[int, StanDensity] = {}


def _density(instance: Instance, label: str) -> StanDensity:
    """One density per model of a library, however often it is asked for."""
    if instance.pointer not in _DENSITIES:
        _DENSITIES[instance.pointer] = StanDensity(instance, label=label)
    return _DENSITIES[instance.pointer]


_SAMPLERS: dict[int, ExactDraws | None] = {}


def _exact_draws(opened: Opened, density: StanDensity, seed: int) -> ExactDraws | None:
    """Exact draws of a base whose block is a recipe for them; None where it is not, or where they cost too much."""
    base = density.instance
    if base.pointer not in _SAMPLERS:
        forward = opened.forward_instance(seed=seed)
        sampler = None
        if forward is not None:
            sampler = ExactDraws(forward, base)
            reason = why_not(sampler, density)
            if reason:
                log.info("%s: no exact draws, for %s", density.label, reason)
                sampler = None
        _SAMPLERS[base.pointer] = sampler
    return _SAMPLERS[base.pointer]


def _same_parameters(target: Instance, base: Instance) -> None:
    if target.unconstrained_names != base.unconstrained_names or target.names() != base.names():
        here, there = ({v.name: v.shape for v in variables(i.names())} for i in (target, base))
        raise InputError(f"base_program: its parameters are {there}, and those of the program {here}; they must agree")
    points = np.random.default_rng(0).uniform(-1.5, 1.5, (3, target.dim))
    (ours, _), (theirs, _) = target.constrain(points), base.constrain(points)
    if not np.allclose(ours, theirs, rtol=1e-12, equal_nan=True):
        column = int(np.argmax(np.any(ours != theirs, axis=0)))
        raise InputError(f"base_program: {target.names()[column]!r} has other constraints there than in the program")


def _require_proper(base: Instance, opened: Opened, block: str) -> None:
    names = improper_parameters(base)
    if not names:
        return
    program = opened.program
    where = opened.name
    if program is not None and block in program.blocks:
        where = str(program.source.place_at(program.blocks[block].head))
    raise InputError(
        f"{where}: the {block} block says nothing of {', '.join(map(repr, names))}, so the base is improper; "
        f"give each a distribution there, such as {names[0]} ~ normal(0, 1);"
    )


def _is_data(value: Any) -> bool:
    return isinstance(value, Mapping) or (isinstance(value, str | os.PathLike) and str(value).endswith(".json"))


def _need_cpu() -> None:
    device: Any = getattr(jax.config, "jax_default_device", None)
    platform = getattr(device, "platform", device) or jax.default_backend()
    if platform != "cpu":
        raise InputError(
            f"program: Stan runs on the CPU, and JAX would use the {platform}; start with JAX_PLATFORMS=cpu"
        )
