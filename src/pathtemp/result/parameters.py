"""Which variables of the draws are parameters of the model, and which follow from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pathtemp.result.arviz import LOG_LIK

if TYPE_CHECKING:
    from pathtemp.result.fit import Fit


def parameter_names(fit: Fit) -> list[str]:
    """Variables of ``fit.posterior`` that the sampler moves, in the order of the model.

    A fit from a file has no model to ask: there they are the variables that the base has draws of too, which generated
    quantities are not.
    """
    names = [str(name) for name in fit.posterior.data_vars]
    if fit.model is not None:
        # Parameters come first; a name that xarray cannot hold was changed, the order was not.
        return names[: len(fit.model.layout.shapes)]
    return [name for name in names if name in fit.base and name != LOG_LIK]


def derived_names(fit: Fit) -> list[str]:
    """The other variables: transformed parameters, deterministics, generated quantities, ``log_lik`` last."""
    parameters = set(parameter_names(fit))
    names = [str(name) for name in fit.posterior.data_vars if name not in parameters]
    return sorted(names, key=lambda name: name == LOG_LIK)
