"""The whole state of a run as plain records and arrays, and back.

For each class, what is kept of it; the rest is made anew from the model and the plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pathtemp.adapt import Adaptation, AdaptiveRun
from pathtemp.anneal import Level
from pathtemp.checkpoint.plan import AnyRun, MarginPlan, PaperPlan, PathPlan, Plan
from pathtemp.codec import CLASSES as OF_FITS
from pathtemp.engine import Engine
from pathtemp.kernels.kept import Kept
from pathtemp.kernels.lam_given_theta import PseudoPrior
from pathtemp.kernels.rounds import State, TourSums
from pathtemp.kernels.transport import Transport
from pathtemp.kernels.transported_hmc import ChainState, KernelParameters
from pathtemp.kernels.walk import Walker, WalkRecord
from pathtemp.learner import Draws, Pool
from pathtemp.links import CubicLink, MetricLink
from pathtemp.model import Model
from pathtemp.modes.local import Local
from pathtemp.modes.mixture_base import MixtureBase, MixtureSampler
from pathtemp.modes.run import ModesRun
from pathtemp.modes.search import Mode, Search
from pathtemp.paper_trace import PaperTrace
from pathtemp.tours import TargetVisits, TripCounter
from pathtemp.trace import Trace
from pathtemp.walk.learn import Chart
from pathtemp.walk.paper import ChainDraws
from pathtemp.walk.pool import Slopes

CLASSES: dict[str, type] = OF_FITS | {
    cls.__name__: cls
    for cls in (
        *(Adaptation, ChainState, Draws, KernelParameters, Level, Local, MetricLink, Mode, Plan, PseudoPrior),
        *(Kept, State, TourSums, Transport),
        *(Chart, MarginPlan, PathPlan, Slopes, Walker, WalkRecord),
        *(ChainDraws, CubicLink, PaperPlan, PaperTrace),
    )
}
"""What may stand in a checkpoint."""

KEPT: dict[type, tuple[str, ...]] = {
    Engine: (
        *("draws", "must_draw", "counts", "seconds", "rounds", "rejected", "reached", "base_rhat"),
        *("parameters", "state", "pool", "last_level", "length", "cells"),
    ),
    AdaptiveRun: (
        *("history", "trace", "_trips", "_early_visits", "_burnt_in", "_annealed", "_adaptation", "_frozen", "limit"),
    ),
    ModesRun: (
        "hints",
        "about",
        "_rng",
        "_search",
        "_user_path",
        "_user_end",
        "_mixture",
        "_why",
        "_known",
        "_rounds",
        "_restarts",
        "_look_room",
        "_looked_at",
    ),
    Search: ("modes", "starts", "base_starts", "given_up", "scanned", "counts", "scale", "_rng"),
    Trace: ("_records", "visits", "returns", "_acceptance"),
    TripCounter: ("_stage", "trips"),
    TargetVisits: ("_current", "_finished"),
    Pool: ("_levels", "_replaced_by", "_added", "_dropped"),
}
"""Attributes kept of each class."""

MADE_ANEW: dict[type, tuple[str, ...]] = {
    Engine: ("model", "seed", "settings", "path", "full", "leapfrogs", "_start", "_seed", "_round"),
    AdaptiveRun: ("engine", "progress", "after_round"),
    ModesRun: ("_model", "_make", "_progress", "_seed", "_budget", "_run"),
    Search: ("path", "room"),
    Trace: ("_chains",),
    TripCounter: (),
    TargetVisits: (),
    Pool: (),
}
"""Attributes that the model, the plan or a compilation gives again."""

_JAX = (State, KernelParameters)
"""Records whose arrays live on the device."""


def state_of(run: AnyRun) -> dict[str, Any]:
    """The state between two rounds, for :func:`pathtemp.codec.encode` with ``CLASSES``."""
    inner = run._run if isinstance(run, ModesRun) else run
    base = inner.engine.model.log_base
    return {
        "engine": _kept(inner.engine),
        "run": _kept(inner),
        "modes": _kept(run) if isinstance(run, ModesRun) else None,
        "mixture": _mixture(base) if isinstance(base, MixtureBase) else None,
    }


def restore(run: AnyRun, state: Mapping[str, Any]) -> None:
    """Put a run that was just made, see :func:`pathtemp.checkpoint.plan.make_run`, into a kept state."""
    if isinstance(run, ModesRun):
        _fill(run, state["modes"])
        if state["mixture"] is not None:
            engine = run._make(_with_mixture(run._model, state["mixture"]), run.engine._start)
            run._run = AdaptiveRun(engine, run._progress)
        run = run._run
    _fill(run.engine, state["engine"])
    _fill(run, state["run"])


def _kept(thing: Any) -> dict[str, Any]:
    return {name: _plain(getattr(thing, name)) for name in KEPT[type(thing)] if hasattr(thing, name)}


def _plain(value: Any) -> Any:
    if isinstance(value, _JAX):
        return jax.tree.map(np.asarray, value)
    if isinstance(value, np.random.Generator):
        return value.bit_generator.state
    return _kept(value) if type(value) in KEPT else value


def _fill(thing: Any, kept: Mapping[str, Any]) -> None:
    for name in KEPT[type(thing)]:
        if name not in kept:
            continue
        value, now = kept[name], getattr(thing, name, None)
        if isinstance(now, np.random.Generator):
            now.bit_generator.state = value
        elif name == "pool":
            thing.pool = Pool([], replaced_by=0)
            _fill(thing.pool, value)
        elif type(now) in KEPT:
            _fill(now, value)
        else:
            # A copy each, since a round donates them.
            setattr(thing, name, jax.tree.map(jnp.array, value) if isinstance(value, _JAX) else value)


def _mixture(base: MixtureBase) -> dict[str, Any]:
    return {f.name: np.asarray(getattr(base, f.name)) for f in fields(base) if f.name != "user"}


def _with_mixture(model: Model, kept: Mapping[str, Any]) -> Model:
    assert model.sample_base is not None
    base = MixtureBase(**{name: jnp.asarray(x) for name, x in kept.items()}, user=model.log_base)
    return replace(model, log_base=base, sample_base=MixtureSampler(base, model.sample_base))
