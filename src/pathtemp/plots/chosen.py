"""Which variables a figure shows where nobody names them: those in which the modes differ."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from pathtemp._types import FloatArray, IntArray
from pathtemp.plots.valley import valley
from pathtemp.result.draws import SAMPLE_DIMS
from pathtemp.result.parameters import parameter_names

if TYPE_CHECKING:
    from pathtemp.result.fit import Fit

ALIKE = 0.98
"""Correlation from which on two scalars are not shown beside each other."""

MOST_COMPARED = 2000
"""Scalars among which the ones that separate the modes are looked for."""


def scalars(dataset: xr.Dataset) -> Iterator[tuple[str, FloatArray]]:
    """Label and (chain, draw) values of every scalar of a Dataset over (chain, draw, ...)."""
    from arviz_base import xarray_var_iter
    from arviz_base.labels import BaseLabeller

    labeller = BaseLabeller()
    for name, sel, isel, values in xarray_var_iter(dataset, skip_dims=set(SAMPLE_DIMS)):
        yield labeller.make_label_flat(name, sel, isel), np.asarray(values, float)


def chosen(fit: Fit, count: int) -> list[str]:
    """Labels of ``count`` scalars to show: those that separate the modes best, else the first of the parameters.

    How well a scalar separates is the spread of its means by mode over its spread within them. Of a run that did not
    look for modes it is told by the draws of the scalar alone: how far two heaps of them, with a valley between, lie
    apart. One that follows from another of those chosen, as the last weight of a mixture does, comes after all others.
    """
    names = parameter_names(fit)
    every = scalars(fit.posterior[names] if names else fit.posterior)
    labels = mode_labels(fit)
    known = labels.max(initial=0) > 0
    if not known and fit.modes is not None:
        return [label for label, _ in islice(every, count)]
    found = [(label, values.ravel()) for label, values in islice(every, MOST_COMPARED)]
    apart = {label: separation(values, labels) if known else valley(values) for label, values in found}
    # A sort that is stable keeps the order of the model where nothing separates.
    ranked = sorted(found, key=lambda pair: -apart[pair[0]])
    kept: list[tuple[str, FloatArray]] = []
    for label, values in ranked:
        if len(kept) < count and not any(_follows(values, other) for _, other in kept):
            kept.append((label, values))
    taken = [label for label, _ in kept]
    return [*taken, *(label for label, _ in ranked if label not in taken)][:count]


def _follows(values: FloatArray, other: FloatArray) -> bool:
    """Whether two scalars say the same: a correlation of size .98 or more."""
    finite = np.isfinite(values) & np.isfinite(other)
    x, y = values[finite], other[finite]
    if x.size < 2 or x.std() == 0 or y.std() == 0:
        return False
    return bool(abs(np.corrcoef(x, y)[0, 1]) >= ALIKE)


def separation(values: FloatArray, labels: IntArray) -> float:
    """Standard deviation of the means of the groups over that within them; 0 where there is one group.

    >>> separation(np.array([0.0, 1.0, 10.0, 11.0]), np.array([0, 0, 1, 1]))
    10.0
    """
    finite = np.isfinite(values)
    groups = [values[finite & (labels == k)] for k in np.unique(labels)]
    groups = [group for group in groups if group.size]
    if len(groups) < 2:
        return 0.0
    size = np.array([group.size for group in groups], float)
    means, within = np.array([g.mean() for g in groups]), np.array([g.var() for g in groups])
    middle = np.average(means, weights=size)
    between = np.average((means - middle) ** 2, weights=size)
    spread = np.average(within, weights=size)
    return float(np.sqrt(between / spread)) if spread > 0 else float(between > 0)


def mode_labels(fit: Fit) -> IntArray:
    """Number of the mode whose centre is nearest to each target draw, in units of the standard deviations within it.

    All zero where the run knows fewer than two modes. Draws come in the order of (chain, draw).
    """
    draws = fit.posterior.sizes["chain"] * fit.posterior.sizes["draw"]
    modes = fit.modes
    if modes is None or len(modes) < 2:
        return np.zeros(draws, np.int64)
    # What follows from the parameters, such as log_lik of every observation, would drown them.
    names = [name for name in parameter_names(fit) if name in modes.centre] or list(modes.centre)
    theta = _columns({name: fit.posterior[name].values.reshape(draws, -1) for name in names})
    centres = _columns({name: np.asarray(modes.centre[name], float).reshape(len(modes), -1) for name in names})
    scale = np.maximum(np.nanstd(theta, axis=0), 1e-300)
    labels = _nearest(theta / scale, centres / scale)
    # The spread of all draws hides modes that are near each other; that around the centres does not.
    residual = theta - centres[labels]
    scale = np.maximum(np.sqrt(np.nanmedian(residual**2, axis=0)), 1e-3 * scale)
    return _nearest(theta / scale, centres / scale)


def _columns(parts: dict[str, FloatArray]) -> FloatArray:
    return np.concatenate([np.nan_to_num(np.asarray(x, float)) for x in parts.values()], axis=1)


def _nearest(points: FloatArray, centres: FloatArray) -> IntArray:
    distance = np.stack([np.sum((points - centre) ** 2, axis=1) for centre in centres])
    return np.asarray(np.argmin(distance, axis=0), np.int64)
