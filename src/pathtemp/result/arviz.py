"""A fit as ArviZ has it: groups of a tree, and the object that the installed version of ArviZ takes."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from pathtemp.errors import InputError
from pathtemp.io.escape import escape_names
from pathtemp.result.draws import log_likelihood_dataset
from pathtemp.result.run import Run

if TYPE_CHECKING:
    from pathtemp.result.fit import Fit

LOG_LIK = "log_lik"
"""What Stan programs call the log likelihood of each observation among their generated quantities."""

MOST_TERMS = 2_000_000
"""Log likelihoods, of all draws and observations, that are computed without being asked for: seconds, and 16 MB."""

PATH_DRAWS = "path_draws"
"""Group of the draws of the joint path by name."""

OBSERVED = "observed_data"
"""Group of the data whose likelihood the model has."""


def own_groups(fit: Fit) -> dict[str, xr.Dataset]:
    """What a fit holds, as groups with names that a file can hold; nothing is computed."""
    base = "prior" if fit.base_is_prior else "base"
    groups = {"posterior": fit.posterior, base: fit.base, "sample_stats": fit.sample_stats, "path": fit.path}
    kept = {PATH_DRAWS: fit.path_draws} if fit.path_draws.data_vars else {}
    return {name: escape_names(data) for name, data in {**groups, **kept, **fit.data}.items()}


def tree_of(fit: Fit, log_likelihood: bool | None) -> xr.DataTree:
    """The groups of a fit with its log likelihoods and attributes; None computes those where they are cheap."""
    groups = own_groups(fit)
    terms = _log_likelihood(fit, log_likelihood)
    if terms is not None:
        groups["log_likelihood"] = escape_names(terms)
        # As in every converter of ArviZ: what is a group of its own is no parameter.
        groups["posterior"] = groups["posterior"].drop_vars([name for name in terms if name == LOG_LIK])
    tree = xr.DataTree.from_dict(groups)
    tree.attrs = _attributes(fit)
    return tree


def installed_form(tree: xr.DataTree) -> Any:
    """The tree where ArviZ is 1.0 or later or not installed, and the InferenceData that earlier versions take."""
    try:
        major = int(version("arviz").partition(".")[0])
    except (PackageNotFoundError, ValueError):
        return tree
    if major >= 1:
        return tree
    # Imported here, since it takes seconds and only a user of that version needs it.
    from arviz import InferenceData

    groups: dict[str, Any] = {name: node.to_dataset(inherit=False) for name, node in tree.children.items()}
    return InferenceData(attrs=dict(tree.attrs), **groups)


def sample_stats(run: Run) -> xr.Dataset:
    """Of each target draw what the engine knows, and of each stretch of the path its visits and acceptance."""
    shape = run.target.shape[:2]
    along = run.diagnostics
    return xr.Dataset(
        {
            **{name: (("chain", "draw"), np.asarray(x)) for name, x in run.stats.items()},
            "acceptance": ("lam_bin", along.acceptance),
            "lam_visits": ("lam_bin", along.visits),
        },
        coords={"chain": np.arange(shape[0]), "draw": np.arange(shape[1]), "lam_bin": along.lam},
    )


def _log_likelihood(fit: Fit, wanted: bool | None) -> xr.Dataset | None:
    if wanted is False:
        return None
    if LOG_LIK in fit.posterior:
        return fit.posterior[[LOG_LIK]]
    if wanted:
        if fit.model is None:
            raise InputError(
                "to_arviz: a fit from a file has no model, which log_likelihood needs; give it to pt.load, as model="
            )
        return log_likelihood_dataset(fit.model, fit.posterior)
    if fit.model is None or fit.model.pointwise is None or _terms(fit.data, fit.posterior) > MOST_TERMS:
        return None
    try:
        return log_likelihood_dataset(fit.model, fit.posterior)
    except InputError:  # the likelihood is not one of single observations; nobody asked for it
        return None


def _terms(data: Mapping[str, xr.Dataset], posterior: xr.Dataset) -> int:
    """Log likelihoods of all draws and observations."""
    observations = sum(x.size for x in data[OBSERVED].data_vars.values()) if OBSERVED in data else 0
    return observations * posterior.sizes["chain"] * posterior.sizes["draw"]


def _attributes(fit: Fit) -> dict[str, Any]:
    value, se = fit.log_constant
    name = "log_marginal_likelihood" if fit.is_evidence else "log_constant"
    return {
        "inference_library": "pathtemp",
        "inference_library_version": fit.versions.get("pathtemp", ""),
        "created_at": fit.created_at,
        "model_name": fit.name,
        "seed": fit.seed,
        "converged": int(fit.converged),
        name: value,
        f"{name}_se": se,
        "sampling_time": sum(fit.seconds.values()),
    }
