"""A Stan program as a model: both densities, the layout, and draws by Stan's names."""

from __future__ import annotations

import logging
import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

import jax
import numpy as np
import xarray as xr

from pathtemp._types import FloatArray, LogDensity, Sampler, Variables
from pathtemp.api.arguments import shown, text, yes_or_no
from pathtemp.errors import InputError
from pathtemp.frontends.stan.bridge import PartDensity, StanDensity
from pathtemp.frontends.stan.data import TABLES, Data, read_data
from pathtemp.frontends.stan.impropriety import does_not_fall_off, improper_parameters, moves_freely
from pathtemp.frontends.stan.layout import stan_layout
from pathtemp.frontends.stan.library import Instance
from pathtemp.frontends.stan.names import variables
from pathtemp.frontends.stan.opening import Opened, Role, check_program, compile_programs, open_program
from pathtemp.frontends.stan.parameters import check_base, check_same
from pathtemp.frontends.stan.prior import described, described_in_part, why_improper
from pathtemp.frontends.stan.program import ALTERNATIVE
from pathtemp.frontends.stan.python_base import python_base
from pathtemp.frontends.stan.recipe import stan_recipe
from pathtemp.frontends.stan.sampler import ExactDraws, log_mass, why_not
from pathtemp.frontends.stan.split import Split
from pathtemp.model.bases import Automatic, ProperPart, as_base, is_automatic
from pathtemp.model.model import AboutBase, Model
from pathtemp.result.draws import data_dataset
from pathtemp.seeds import Stream, rng, seed_word

log = logging.getLogger("pathtemp.stan")

PROPER = "give every parameter a proper prior"
"""What makes log z of a program an evidence."""


@dataclass(frozen=True)
class StanDraws:
    """Constrained draws by Stan's names, transformed parameters and generated quantities with them.

    The random numbers of the generated quantities depend on the seed and on the draws, so the same draws
    always have the same. ``generated=False`` leaves them out. Variables named in ``integers`` are integers.
    """

    instance: Instance
    seed: int = 0
    generated: bool = True
    integers: frozenset[str] = frozenset()

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
        return {v.name: self._typed(v.name, v.take(values)) for v in variables(names)}

    def _typed(self, name: str, values: FloatArray) -> FloatArray:
        # A draw that failed is NaN, which no integer is.
        whole = name in self.integers and np.isfinite(values).all()
        return values.astype(np.int64) if whole else values


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
    """A model from a Stan program: its model block is the target, and its prior, found in that block, the base.

    ::

        fit = pt.temper(pt.from_stan("eight_schools.stan", "eight_schools.json"), seed=1)

    Statements that give parameters a distribution, and those that hold no data, are the prior: ``print(model.base)``
    shows them, and says why where there is no proper one. Where there is, log z(1) - log z(0) is the log marginal
    likelihood. An ``alternative model`` block, ``base`` or ``base_program`` takes its place.

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
        constrained scale. "auto", or a prior that is not proper: ``pt.temper`` builds a wide one from the modes that
        it finds, with a warning how far it looked.
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
    if name is not None:
        text("name", name)
    seed = _checked(program, base_program, include_paths, seed, progress)
    if not (base is None or is_automatic(base)):
        as_base(base)  # raises where it is none, before anything is compiled
    values = read_data(data)
    elsewhere = base_program is not None or not (base is None or is_automatic(base))
    opened = [open_program(program, values, include_paths, Role.TARGET if elsewhere else Role.BOTH)]
    if base_program is not None:
        opened.append(open_program(base_program, values, include_paths, Role.BASE))
    _check_parameters(opened, base)
    opened = compile_programs(opened, progress=progress)
    target = opened[0].instance(seed=seed)
    model_name = name or opened[0].name
    if target.dim == 0:
        raise InputError(f"program: {model_name} has no parameters, so there is nothing to sample")
    found = _find_base(opened, base, model_name, seed)
    return Model(
        found.log_base,
        _density(target, f"{model_name} (target)", found.log_mass),
        stan_layout(target),
        found.sample,
        constrain_draws=StanDraws(target, seed, integers=opened[0].integers),
        constrain_base_draws=StanDraws(target, seed, False, opened[0].integers),  # without what is of the target alone
        name=model_name,
        recipe=stan_recipe(opened, base=base, seed=seed, name=model_name),
        about=found.about,
        data=_data_groups(opened[0]),
        unconstrain=partial(_unconstrain, target),
    )


def _checked(program: Any, base_program: Any, include_paths: Any, seed: Any, progress: Any) -> int:
    """The seed, where it and the other arguments can be used."""
    check_program("program", program)
    if base_program is not None:
        check_program("base_program", base_program)
    if not isinstance(include_paths, list | tuple) or not all(isinstance(x, str | os.PathLike) for x in include_paths):
        raise InputError(f"include_paths: expected a list of folders, and it is {shown(include_paths)}")
    yes_or_no("progress", progress)
    seed_word(seed)
    return int(seed)


def _check_parameters(opened: Sequence[Opened], base: Any) -> None:
    """Raise where the base has other parameters than the program, as far as the texts tell."""
    programs = [item.program for item in opened]
    if programs[0] is None:
        return
    if base is not None and not is_automatic(base):
        check_base(base, programs[0], opened[0].values)
    if len(programs) > 1 and programs[1] is not None:
        check_same(programs[0], programs[1])


def _unconstrain(instance: Instance, values: Variables) -> FloatArray:
    """Flat unconstrained vector of parameters by name; InputError where Stan refuses one."""
    row = np.empty(len(instance.names()))
    for variable in variables(instance.names()):
        value = np.asarray(values[variable.name], dtype=float)
        if value.shape != variable.shape:
            raise InputError(f"init: {variable.name!r} has shape {variable.shape}, and the value {value.shape}")
        row[list(variable.columns)] = value.ravel()
    return instance.unconstrain(row)


def _data_groups(opened: Opened) -> dict[str, xr.Dataset]:
    """The data by group of ArviZ: observed is what the model gives a distribution."""
    parts = {
        "observed_data": {name: x for name, x in opened.values.items() if name in opened.observed},
        "constant_data": {name: x for name, x in opened.values.items() if name not in opened.observed},
    }
    groups = {group: data_dataset(values, first_index=1) for group, values in parts.items()}
    return {group: data for group, data in groups.items() if data.data_vars}


@dataclass(frozen=True)
class _Found:
    """A base: its density and draws, the log mass that was taken off both densities, and what to say of it."""

    log_base: LogDensity
    sample: Sampler | None = None
    log_mass: float = 0.0
    about: AboutBase | None = None


def _find_base(opened: Sequence[Opened], base: Any, name: str, seed: int) -> _Found:
    program, target = opened[0], opened[0].instance(seed=seed)
    if len(opened) > 1:
        psi = opened[1].instance(seed=seed)
        _same_parameters(target, psi)
        _require_proper(psi, opened[1], "model")
        found = _block_base(opened[1], psi, f"{opened[1].name} (base)", seed)
        return replace(found, about=_given(f"the model of {opened[1].name}", found.sample is not None))
    if base is not None and not is_automatic(base):
        log_base, sample = python_base(base, target)
        return _Found(log_base, sample, about=_given("the base as given", sample is not None))
    if program.split is not None:
        prior = _prior_base(program, name, seed)
        return prior if base is None else _as_automatic(prior)
    if not program.has_alternative or base is not None:
        return _Found(Automatic())
    psi = program.instance(seed=seed, which=0)
    _require_proper(psi, program, ALTERNATIVE)
    found = _block_base(program, psi, f"{name} (alternative model)", seed)
    return replace(found, about=_alternative(program, found.sample is not None))


def _given(text: str, exact: bool) -> AboutBase:
    """A base beside the program: the prior inside the model block may have any mass."""
    drawn = "drawn exactly" if exact else "a density without exact draws"
    remedy = "leave the base out, and the prior of the program is the base"
    return AboutBase(f"{text}, {drawn}", evidence=False, remedy=remedy)


def _alternative(program: Opened, exact: bool) -> AboutBase:
    """An alternative model block: where it says what the prior says, constants and all, log z is the evidence."""
    about = _given("the alternative model block", exact)
    if not program.alternative_is_prior:
        return about
    return replace(about, text=about.text.replace("block", "block, which is the prior"), evidence=True, prior=True)


def _block_base(opened: Opened, psi: Instance, label: str, seed: int) -> _Found:
    """A block that the user gave as base; its mass is taken off where it is known, so that a mixture is one."""
    draws = _exact_draws(opened, psi, label, seed)
    if draws.sampler is None and (names := moves_freely(psi)):
        raise InputError(
            f"{opened.name}: the base is improper, for {', '.join(map(repr, names[:5]))} can move together without a "
            "change of its density; give their mean, or one of them, a distribution there"
        )
    log_mass = draws.log_mass if np.isfinite(draws.log_mass) else 0.0
    return _Found(_density(psi, label, log_mass), draws.sampler, log_mass)


def _improper(psi: Instance) -> list[str]:
    """Parameters that make a prior improper, of which no exact draws are known."""
    return improper_parameters(psi) or does_not_fall_off(psi) or moves_freely(psi)


def _prior_base(program: Opened, name: str, seed: int) -> _Found:
    """The prior of a plain program where it is proper, and an automatic base where it is not."""
    split = program.split
    assert split is not None
    if not program.has_alternative:
        return _Found(
            Automatic(), about=AboutBase(described(split, why_not=why_improper(split)), evidence=False, remedy=PROPER)
        )
    psi, label = program.instance(seed=seed, which=0), f"{name} (prior)"
    if split.part is not None and not split.part.kept.issuperset(v.name for v in variables(psi.unconstrained_names)):
        return _prior_in_part(program, split, psi, label, seed)
    split = split.part or split  # with these data, the parameters without a prior have no elements
    draws = _exact_draws(program, psi, label, seed)
    improper = [] if draws.sampler is not None else _improper(psi)
    if improper:
        about = AboutBase(described(split, why_not=why_improper(split, improper)), evidence=False, remedy=PROPER)
        return _Found(Automatic(), about=about)
    about = AboutBase(described(split, exact=draws.sampler is not None), evidence=True, prior=True)
    if draws.sampler is None or np.isfinite(draws.log_mass):
        log_mass = draws.log_mass if draws.sampler is not None else 0.0
        return _Found(_density(psi, label, log_mass), draws.sampler, log_mass, about)
    # Without its mass the prior is no leg of a mixture: it starts the path as a density, at both ends the same.
    return _Found(_density(psi, label, 0.0), None, 0.0, AboutBase(described(split), evidence=True, prior=True))


def _prior_in_part(program: Opened, split: Split, psi: Instance, label: str, seed: int) -> _Found:
    """The proper part of a prior that as a whole is not, and an automatic base for the rest; for all where it fails."""
    assert split.part is not None
    known = variables(psi.unconstrained_names)
    rest = [v for v in known if v.name not in split.part.kept]
    columns = tuple(k for v in rest for k in v.columns)
    draws = _exact_draws(program, psi, label, seed, among=[k for k in range(psi.dim) if k not in columns])
    if draws.sampler is None or not np.isfinite(draws.log_mass):
        about = AboutBase(described(split, why_not=why_improper(split)), evidence=False, remedy=PROPER)
        return _Found(Automatic(), about=about)
    log_prob = PartDensity(_density(psi, label, draws.log_mass), columns)
    part = ProperPart(log_prob, draws.sampler, columns, tuple(v.name for v in rest))
    return _Found(Automatic(part), about=AboutBase(described_in_part(split), evidence=False, remedy=PROPER))


def _as_automatic(prior: _Found) -> _Found:
    """A base that is to be found: it changes where the path starts, not what log z is, if the prior's mass is known."""
    assert prior.about is not None
    if isinstance(prior.log_base, Automatic):
        return replace(prior, log_base=Automatic())
    text = f"one that pt.temper finds, in place of {prior.about.text}"
    known = prior.sample is not None
    remedy = "" if known else "leave base= out, and the prior is the base"
    return _Found(Automatic(), None, prior.log_mass, AboutBase(text, evidence=known, remedy=remedy))


_DENSITIES: WeakValueDictionary[tuple[int, float], StanDensity] = WeakValueDictionary()


def _density(instance: Instance, label: str, log_mass: float) -> StanDensity:
    """One density per model of a library, however often it is asked for, as long as somebody has it."""
    key = (instance.pointer, log_mass)
    found = _DENSITIES.get(key)
    if found is None:
        found = _DENSITIES[key] = StanDensity(instance, label=label, log_mass=log_mass)
    return found


@dataclass(frozen=True)
class _Draws:
    """Exact draws of a base, None where there are none, and the log of its mass, infinite where that is not known."""

    sampler: ExactDraws | None = None
    log_mass: float = np.inf


def _exact_draws(opened: Opened, psi: Instance, label: str, seed: int, among: Sequence[int] | None = None) -> _Draws:
    """Draws of a base whose block is a recipe for them; none where it is not, or where they cost too much.

    ``among`` are the coordinates that are drawn, where not all are.
    """
    if psi.draws is None:
        forward, found = opened.forward_instance(seed=seed), _Draws()
        if forward is not None:
            sampler = ExactDraws(forward, psi)
            reason = why_not(sampler, _density(psi, label, 0.0), among)
            if reason:
                log.info("%s: no exact draws, for %s", label, reason)
            else:
                found = _Draws(sampler, log_mass(sampler))
        psi.draws = found
    return psi.draws  # type: ignore[no-any-return]


def _same_parameters(target: Instance, base: Instance) -> None:
    if target.unconstrained_names != base.unconstrained_names or target.names() != base.names():
        here, there = ({v.name: v.shape for v in variables(i.names())} for i in (target, base))
        raise InputError(f"base_program: its parameters are {there}, and those of the program {here}; they must agree")
    points = rng(Stream.PROBES).uniform(-1.5, 1.5, (3, target.dim))
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
    if isinstance(value, str | os.PathLike):
        return str(value).lower().endswith((".json", *TABLES))
    return isinstance(value, Mapping) or hasattr(value, "columns")


def _need_cpu() -> None:
    device: Any = getattr(jax.config, "jax_default_device", None)
    platform = getattr(device, "platform", device) or jax.default_backend()
    if platform != "cpu":
        raise InputError(
            f"program: Stan runs on the CPU, and JAX would use the {platform}; start with JAX_PLATFORMS=cpu"
        )
