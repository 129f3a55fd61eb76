"""A model: a base and a target on the same flat vector. Every front end makes one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pathtemp._types import Array, FloatArray, LogDensity, Sampler
from pathtemp.arguments import shown, whole_number
from pathtemp.bases import Automatic, Base, as_base, flat_log_prob
from pathtemp.errors import InputError
from pathtemp.layout import Layout


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
class AboutBase:
    """What the base is.

    Parameters
    ----------
    text
        In words, in several lines; the first says it all.
    evidence
        Whether log z(1) - log z(0) is a log marginal likelihood: the base is the prior, or both densities hold the
        constants of a normalised one.

    >>> AboutBase("the prior", True)
    the prior
    """

    text: str
    evidence: bool

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__


@dataclass(frozen=True)
class Model:
    """What is tempered: log psi (lam = 0) and log q (lam = 1) of one flat unconstrained vector.

    Parameters
    ----------
    log_base, log_target
        Log densities of ``(dim,)``, traceable by JAX, Jacobians and normalising constants included. A base that is
        :class:`pathtemp.bases.Automatic` is found by ``pt.temper`` itself.
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
        raise InputError(f"target: expected a function returning a log density, got a {type(target).__name__}")
    psi: Base = as_base(base)
    return Model(psi.log_prob, flat_log_prob(target, psi.layout), psi.layout, psi.sample, name=name)


def the_model(
    where: str, whole: Model | None, target: Callable[[Any], Array] | None, base: Any, dim: int | None = None
) -> Model:
    """The model that the user gave to the function called ``where``: whole, as target and base, or as target and dim.

    With ``dim`` the base is automatic.
    """
    if dim is not None:
        if whole is not None or base is not None:
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
            raise InputError(
                f"model: expected a model from a front end, got a {type(whole).__name__}; "
                "a log density goes to target=, with base="
            )
        return whole
    if target is None or base is None:
        raise InputError(f"{where}: give a model, or both target= and base=")
    return model(target, base)
