"""pathtemp: draws and normalising constants of metastable posteriors by adaptive path sampling."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

# Densities, weights and log normalising constants need float64 throughout. JAX reads the variable when it is imported,
# which is left until it is needed, so that `pathtemp --help` answers at once.
if "jax" in sys.modules:
    sys.modules["jax"].config.update("jax_enable_x64", True)
else:
    os.environ["JAX_ENABLE_X64"] = "1"

if TYPE_CHECKING:
    __version__: str
    from pathtemp import baselines, estimators, plots, settings, testing
    from pathtemp.api.compare import bayes_factor, compare
    from pathtemp.api.diagnose_margin import diagnose_margin
    from pathtemp.api.divide import divide_and_conquer
    from pathtemp.api.path_sample import path_sample
    from pathtemp.api.resume import resume
    from pathtemp.api.temper import temper
    from pathtemp.errors import InputError, MissingExtraError, SamplingError
    from pathtemp.frontends.numpyro import from_numpyro
    from pathtemp.frontends.pymc import from_pymc
    from pathtemp.frontends.stan import from_stan
    from pathtemp.io.storage import load
    from pathtemp.model import transforms
    from pathtemp.model.bases import Base, function_base, normal
    from pathtemp.model.model import Model, bridge
    from pathtemp.paths.margin import Margin
    from pathtemp.result.fit import Fit
    from pathtemp.result.margin_fit import MarginFit

_MODULES = {
    **{name: name for name in ("baselines", "estimators", "plots", "settings", "stan", "testing")},
    "transforms": "model.transforms",
}
_HOMES = {
    "Base": "model.bases",
    "function_base": "model.bases",
    "normal": "model.bases",
    "resume": "api.resume",
    "divide_and_conquer": "api.divide",
    "InputError": "errors",
    "MissingExtraError": "errors",
    "SamplingError": "errors",
    "bayes_factor": "api.compare",
    "compare": "api.compare",
    "Fit": "result.fit",
    "from_numpyro": "frontends.numpyro",
    "from_pymc": "frontends.pymc",
    "from_stan": "frontends.stan",
    "diagnose_margin": "api.diagnose_margin",
    "MarginFit": "result.margin_fit",
    "Model": "model.model",
    "bridge": "model.model",
    "Margin": "paths.margin",
    "path_sample": "api.path_sample",
    "load": "io.storage",
    "temper": "api.temper",
}


_MEANT = {
    **dict.fromkeys(("sample", "fit", "run", "mcmc", "NUTS"), "pt.temper(model) runs and returns a fit"),
    **dict.fromkeys(("from_jax", "from_function"), "a log density in JAX goes to pt.temper(target=..., base=...)"),
    **dict.fromkeys(("Normal", "Gaussian"), "pt.normal(loc, scale, shape=...) is a base of normals"),
    **dict.fromkeys(("from_cmdstanpy", "from_pystan", "StanModel"), "pt.from_stan takes the program itself"),
    "summary": "fit.summary() is where it is",
}
"""What other libraries call something, and what to type here."""


def __getattr__(name: str) -> Any:
    """Import public names when they are first used, so that ``import pathtemp`` is quick."""
    if name == "__version__":
        return import_module("importlib.metadata").version("pathtemp")
    if name in _MODULES:
        return import_module(f"pathtemp.{_MODULES[name]}")
    if name in _HOMES:
        return getattr(import_module(f"pathtemp.{_HOMES[name]}"), name)
    meant = _MEANT.get(name)
    raise AttributeError(f"module 'pathtemp' has no attribute {name!r}" + (f"; {meant}" if meant else ""))


def __dir__() -> list[str]:
    return sorted([*_MODULES, *_HOMES])


__all__ = [
    "Base",
    "Fit",
    "InputError",
    "Margin",
    "MarginFit",
    "MissingExtraError",
    "Model",
    "SamplingError",
    "baselines",
    "bayes_factor",
    "bridge",
    "compare",
    "diagnose_margin",
    "divide_and_conquer",
    "estimators",
    "from_numpyro",
    "from_pymc",
    "from_stan",
    "function_base",
    "load",
    "normal",
    "path_sample",
    "plots",
    "resume",
    "settings",
    "temper",
    "testing",
    "transforms",
]
