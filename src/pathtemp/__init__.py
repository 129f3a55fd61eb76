"""pathtemp: draws and normalising constants of metastable posteriors by adaptive path sampling."""

import jax

# Densities, weights and log normalising constants need float64 throughout.
jax.config.update("jax_enable_x64", True)

from pathtemp import estimators, settings, testing, transforms  # noqa: E402
from pathtemp.bases import Base, function_base, normal  # noqa: E402
from pathtemp.errors import InputError, MissingExtraError  # noqa: E402
from pathtemp.evidence import bayes_factor, compare  # noqa: E402
from pathtemp.fit import Fit  # noqa: E402
from pathtemp.model import Model, model  # noqa: E402
from pathtemp.storage import load  # noqa: E402
from pathtemp.temper import temper  # noqa: E402

__all__ = [
    "Base",
    "Fit",
    "InputError",
    "MissingExtraError",
    "Model",
    "bayes_factor",
    "compare",
    "estimators",
    "function_base",
    "load",
    "model",
    "normal",
    "settings",
    "temper",
    "testing",
    "transforms",
]
