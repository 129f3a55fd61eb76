"""What is proper of the prior of a NumPyro model that as a whole is not, and what truncation makes of a density."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jax.numpy as jnp

from pathtemp._types import Array, LogDensity

Trace = dict[str, dict[str, Any]]


def improper_sites(latent: Trace) -> dict[str, str]:
    """Latent sites without a proper prior, each with what is wrong with it."""
    from numpyro import distributions as dist

    found: dict[str, str] = {}
    for name, site in latent.items():
        fn = site["fn"]
        while fn is not None and name not in found:
            if isinstance(fn, dist.ImproperUniform):
                found[name] = f"the prior of site {name!r} is improper and cannot be sampled"
            elif isinstance(fn, dist.MaskedDistribution):
                found[name] = f"site {name!r} is masked, which leaves parts of it without a prior"
            fn = getattr(fn, "base_dist", None)
    return found


def with_dependents(
    model: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], names: Iterable[str], among: Iterable[str]
) -> frozenset[str]:
    """Those ``among`` some sites that have one of the names, or whose distributions depend on one that has.

    >>> import numpyro, numpyro.distributions as dist
    >>> def chain():
    ...     a = numpyro.sample("a", dist.Normal(0.0, 1.0))
    ...     b = numpyro.sample("b", dist.Normal(a, 1.0))
    ...     numpyro.sample("c", dist.Normal(b, 1.0))
    >>> sorted(with_dependents(chain, (), {}, ["b"], ["a", "b", "c"]))
    ['b', 'c']
    """
    from numpyro.infer.inspect import get_dependencies

    try:
        upstream: Mapping[str, Any] = get_dependencies(model, args, kwargs)["prior_dependencies"]
    except Exception:  # whatever NumPyro cannot follow, such as some loops: nothing is then known to be apart
        return frozenset(among)
    rest = set(names)
    for name, above in upstream.items():  # in the order of the model
        if not rest.isdisjoint(above):
            rest.add(name)
    return frozenset(name for name in among if name in rest or name not in upstream)


def log_prior_of(sites: Trace, free: Mapping[str, Array]) -> Array:
    """Log prior density of some sites at their values, with the Jacobians at their unconstrained ones."""
    from numpyro.distributions import biject_to

    total = jnp.zeros(())
    for name, site in sites.items():
        jacobian = biject_to(site["fn"].support).log_abs_det_jacobian(free[name], site["value"])
        total += jnp.sum(site["fn"].log_prob(site["value"])) + jnp.sum(jacobian)
    return total


def divides_by_a_mass(trace: Trace) -> bool:
    """Whether a site has a truncated distribution, whose density is divided by the mass that is left."""
    fns = [site["fn"] for site in trace.values() if site["type"] == "sample"]
    while any(fn is not None for fn in fns):
        if any("Truncated" in type(fn).__name__ for fn in fns):
            return True
        fns = [getattr(fn, "base_dist", None) for fn in fns]
    return False


def without_lost_mass(log_density: LogDensity) -> LogDensity:
    """The density, zero where a mass that it is divided by is rounded to zero, which makes it infinite."""

    def finite(x: Array) -> Array:
        value = log_density(x)
        return jnp.where(value == jnp.inf, -jnp.inf, value)

    return finite
