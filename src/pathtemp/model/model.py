"""A model: a base and a target on the same flat vector. Every front end makes one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import xarray as xr

from pathtemp._types import Array, FloatArray, LogDensity, Sampler, Variables
from pathtemp.api.arguments import a_kind_of, kind_name, shown, text, whole_number
from pathtemp.errors import InputError
from pathtemp.io.printable import printable
from pathtemp.model.bases import Automatic, Base, as_base, flat_log_prob, is_automatic
from pathtemp.model.kinds import where_to
from pathtemp.model.layout import Layout

MOST_NAMES = 6
"""Variables that the short form of a model names."""


@dataclass(frozen=True)
class Pointwise:
    """Log likelihood of each observation, which LOO takes.

    Parameters
    ----------
    evaluate
        Host function of constrained draws, ``{name: (n, ...)} -> {observed variable: (n, ...)}``.
    dims, coords
        Named dimensions of the observed variables and their coordinates.
    """

    evaluate: Callable[[Mapping[str, FloatArray]], dict[str, FloatArray]]
    dims: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    coords: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Predictive:
    """New data from the posterior predictive distribution.

    Parameters
    ----------
    draw
        Host function of constrained draws and a seed, ``({name: (n, ...)}, seed) -> {observed variable: (n, ...)}``.
    dims, coords
        Named dimensions of the observed variables and their coordinates.
    """

    draw: Callable[[Mapping[str, FloatArray], int], dict[str, FloatArray]]
    dims: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    coords: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class AboutBase:
    """What the base is.

    Parameters
    ----------
    text
        In words, in several lines; the first says it all.
    evidence
        Whether log z(1) - log z(0) is a log marginal likelihood: the base is the prior, or both densities hold the
        constants of a normalised one.
    prior
        Whether draws of the base are draws of the prior.
    remedy
        What would make it a log marginal likelihood, where it is none.

    >>> AboutBase("the prior", True)
    the prior
    """

    text: str
    evidence: bool
    prior: bool = False
    remedy: str = ""

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__


@dataclass(frozen=True, repr=False)
class Model:
    """What is tempered: log psi (lam = 0) and log q (lam = 1) of one flat unconstrained vector.

    Parameters
    ----------
    log_base, log_target
        Log densities of ``(dim,)``, traceable by JAX, Jacobians and normalising constants included. A base that is
        :class:`pathtemp.model.bases.Automatic` is found by ``pt.temper`` itself.
    layout
        Names, shapes, dims and coords of the variables.
    sample_base
        One exact draw of the base, or None.
    constrain_draws
        Host function ``(n, dim) -> {name: (n, ...)}`` for output; defaults to the layout's own. A front end may add
        transformed parameters, deterministics and generated quantities here.
    name
        What summaries call it.
    pointwise
        Log likelihood of each observation, where the model has any.
    constrain_base_draws
        The same as ``constrain_draws`` for draws of the base, where less is wanted of them, such as no generated
        quantities; defaults to it.
    recipe
        Plain values from which a checkpoint can make the model again, where there are such.
    about
        What a front end says of the base; see :attr:`base`.
    data
        The data that a front end was given, by group of ArviZ: ``observed_data`` and ``constant_data``.
    predictive
        New data at draws of the posterior, where the model can make them.
    unconstrain
        Flat vector of constrained variables by name; defaults to the layout's own.

    >>> import jax.numpy as jnp
    >>> from pathtemp.model.bases import normal
    >>> model(lambda x: -0.5 * jnp.sum(x**2), normal(0.0, 3.0, shape=(2,)))
    <Model 'model': 2 parameters, theta[2]; the base as given, drawn exactly>
    """

    log_base: LogDensity
    log_target: LogDensity
    layout: Layout
    sample_base: Sampler | None = None
    constrain_draws: Callable[[FloatArray], dict[str, FloatArray]] | None = None
    name: str = "model"
    pointwise: Pointwise | None = None
    constrain_base_draws: Callable[[FloatArray], dict[str, FloatArray]] | None = None
    recipe: Mapping[str, Any] | None = None
    about: AboutBase | None = None
    data: Mapping[str, xr.Dataset] = field(default_factory=dict)
    predictive: Predictive | None = None
    unconstrain: Callable[[Variables], Array | FloatArray] | None = None

    def __post_init__(self) -> None:
        for name in ("log_base", "log_target"):
            if not callable(getattr(self, name)):
                wrong = shown(getattr(self, name))
                raise InputError(f"{name}: expected a log density of a flat vector, and it is {wrong}")
        a_kind_of("layout", self.layout, Layout, "a Layout of names and shapes, which pt.from_... and pt.temper make")
        text("name", self.name)

    def __repr__(self) -> str:
        parts = [f"{name}{list(shape) if shape else ''}" for name, shape in self.layout.shapes.items()]
        some = ", ".join(parts[:MOST_NAMES]) + (", ..." if len(parts) > MOST_NAMES else "")
        base = self.base.text.partition("\n")[0]
        return printable(f"<Model {self.name!r}: {self.dim} parameter{'s' * (self.dim != 1)}, {some}; {base}>")

    @property
    def base(self) -> AboutBase:
        """What the base is, in words: ``print(model.base)``."""
        if self.about is not None:
            return self.about
        if isinstance(self.log_base, Automatic):
            return AboutBase("none was given: pt.temper finds one", evidence=False)
        exact = self.sample_base is not None
        return AboutBase(f"the base as given, {'drawn exactly' if exact else 'a density without exact draws'}", exact)

    @property
    def dim(self) -> int:
        """Number of unconstrained parameters."""
        return self.layout.dim

    def draws(self, flat: FloatArray) -> dict[str, FloatArray]:
        """Constrained draws by name: ``(n, dim) -> {name: (n, ...)}``."""
        return (self.constrain_draws or self.layout.constrain_draws)(flat)

    def base_draws(self, flat: FloatArray) -> dict[str, FloatArray]:
        """Constrained draws of the base by name."""
        return (self.constrain_base_draws or self.draws)(flat)


def model(target: Callable[[Any], Array], base: Any, *, name: str = "model") -> Model:
    """Join a target log density and a base into a model.

    ``target`` takes what ``base`` is made of: an array of its shape, or a dict of arrays with its names, on the
    constrained scale. See :func:`pathtemp.temper` for what may be a base.
    """
    if not callable(target):
        raise InputError(f"target: expected a function returning a log density, got {kind_name(target)}")
    psi: Base = as_base(base)
    return Model(psi.log_prob, flat_log_prob(target, psi.layout), psi.layout, psi.sample, name=name)


def bridge(model_a: Model, model_b: Model, *, name: str = "") -> Model:
    """Join two models of the same parameters by one path, from the target of the first to that of the second.

    Tempered, log z(1) - log z(0) is the log of the ratio of their integrals: the log Bayes factor of ``model_b`` over
    ``model_a``, where each target is a likelihood times a normalised prior. The path is short where their posteriors
    are alike. Neither base is needed.

    Parameters
    ----------
    model_a, model_b
        Models with the same names and shapes of parameters, on the same unconstrained scale.
    name
        What summaries call it; made of both names where empty.

    >>> import jax.numpy as jnp
    >>> from pathtemp.model.bases import normal
    >>> wide = normal(0.0, 9.0, shape=(1,))
    >>> joined = bridge(*(model(lambda x, s=s: -0.5 * jnp.sum((x / s) ** 2), wide) for s in (1.0, 2.0)))
    >>> float(joined.log_base(jnp.ones(1))), float(joined.log_target(jnp.ones(1)))
    (-0.5, -0.125)
    """
    for which, given in (("model_a", model_a), ("model_b", model_b)):
        if not isinstance(given, Model):
            kind = type(given).__name__
            raise InputError(f"{which}: expected a model from a front end, got a {kind}{where_to(given)}")
    if dict(model_a.layout.shapes) != dict(model_b.layout.shapes):
        raise InputError(
            f"model_b: its parameters are {_described(model_b)}, and those of model_a {_described(model_a)}; a bridge "
            "needs the same"
        )
    called = name or f"{model_a.name} to {model_b.name}"
    return replace(
        model_b,
        log_base=model_a.log_target,
        sample_base=None,
        name=called,
        recipe=None,
        constrain_base_draws=model_a.constrain_draws,
    )


def _described(given: Model) -> str:
    """Names and shapes of the parameters of a model."""
    return ", ".join(f"{name} {tuple(shape)}" for name, shape in given.layout.shapes.items())


def the_model(
    where: str, whole: Model | None, target: Callable[[Any], Array] | None, base: Any, dim: int | None = None
) -> Model:
    """The model that the user gave to the function called ``where``: whole, as target and base, or as target and dim.

    With ``dim`` the base is automatic.
    """
    if dim is not None:
        if callable(whole) and not isinstance(whole, Model):
            raise InputError("model: a log density goes to target=, as in pt.temper(target=log_density, dim=2)")
        if whole is not None or not (base is None or is_automatic(base)):
            raise InputError("dim: it goes with target= alone, where there is no base; leave it out")
        if target is None:
            raise InputError(f"{where}: dim= needs target=")
        if not callable(target):
            raise InputError(f"target: expected a function returning a log density, and it is {shown(target)}")
        dim = whole_number("dim", dim, least=1)
        return Model(Automatic(), target, Layout({"theta": (dim,)}, {}, True))
    if whole is not None:
        if target is not None or base is not None:
            raise InputError(f"{where}: give either a model, or target= and base=, not both")
        if not isinstance(whole, Model):
            raise InputError(f"model: expected a model from a front end, got {kind_name(whole)}{where_to(whole)}")
        return whole
    if target is None:
        raise InputError(f"{where}: give a model, or target= with base= or dim=")
    if base is None or is_automatic(base):
        raise InputError("base: target= alone does not say how many parameters it takes; give dim=, or a base")
    return model(target, base)
