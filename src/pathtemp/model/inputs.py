"""Checks of a model before any sampling: each failure is one sentence that names the argument."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import jax
import jax.numpy as jnp
import numpy as np

from pathtemp._types import FloatArray, LogDensity
from pathtemp.api.arguments import kind_name
from pathtemp.errors import InfiniteDensity, InputError, ProgramFailed
from pathtemp.io.printable import printable
from pathtemp.model.bases import Automatic
from pathtemp.model.evaluate import BLOCK, energies_of, exact_draws, values_of
from pathtemp.model.model import Model
from pathtemp.model.price import told_if_slow, told_of_waiting
from pathtemp.model.traced import traced_shape
from pathtemp.paths.geometric import GeometricPath
from pathtemp.result.draws import draws_dataset
from pathtemp.seeds import Draws, Stream, probe_key, rng

MOST_NAMES = 6
"""Names, and numbers under each, that a point is told with."""

MOST_REASON = 110
"""Characters of what another library says that are told."""

UNTRACEABLE = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
)
"""What JAX raises where a function asks for the value of what is traced."""

WIDEST = 1e60
"""Largest spread of the starts, and one over the smallest: fourth powers are numbers."""

LARGEST = 1e20
"""Largest log density at the starts: differences of larger ones have no digits left."""

FAR = 1e4
"""How far out, in units of the starts' spread, the base must have begun to fall off like a proper density."""


def why(error: Exception) -> str:
    """Why a function of the user could not be traced, in a few words.

    >>> why(ValueError("no such thing")), why(KeyError("mu"))
    ('ValueError: no such thing', "KeyError: 'mu'")
    """
    if isinstance(error, UNTRACEABLE):
        return "JAX cannot trace it; write it with jax.numpy, and jnp.where for `if`, without float() or NumPy"
    reason = printable(" ".join(str(error).split("\n")[0].split()))
    return f"{type(error).__name__}: {reason[:MOST_REASON]}"


def check_density(name: str, log_prob: LogDensity, dim: int) -> None:
    """Raise unless ``log_prob`` maps a float64 vector (dim,) to a float64 scalar."""
    try:
        out = traced_shape(name, log_prob, jax.ShapeDtypeStruct((dim,), jnp.float64))
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{name}: the log density fails on a point with {dim} parameters ({why(error)})") from error
    if not hasattr(out, "shape"):
        raise InputError(f"{name}: the log density returns {kind_name(out)}; it must return one number")
    if out.shape != ():
        raise InputError(
            f"{name}: the log density returns shape {out.shape}; it must return one number (sum over data)"
        )
    if out.dtype != jnp.float64:
        small = " (make its data after importing pathtemp, or with dtype=float64)" if out.dtype == jnp.float32 else ""
        raise InputError(f"{name}: the log density returns {out.dtype}; it must be computed in float64{small}")


@contextmanager
def naming(model: Model, *, more: str = "") -> Iterator[None]:
    """Let +inf be told with the names and the scale of the model's parameters, and a failure with the model's name."""
    try:
        yield
    except ProgramFailed as failed:
        raise ProgramFailed(failed.reason, printable(model.name), more) from failed.__cause__
    except InfiniteDensity as met:
        words = in_words(model, met.theta, met.lam)
        raise InfiniteDensity(met.theta, met.values, words, more, lam=met.lam) from None


def in_words(model: Model, theta: FloatArray, lam: float | None = None) -> str:
    """A point by the names of its parameters, the first few of them, and its place on the path where that matters."""
    parts = []
    for name, value in list(model.draws(theta[None]).items())[:MOST_NAMES]:
        numbers = [f"{x:.4g}" for x in np.ravel(value)[:MOST_NAMES]]
        inside = ", ".join(numbers) + (", ..." if np.size(value) > MOST_NAMES else "")
        parts.append(f"{printable(name)} = {inside if np.size(value) == 1 else f'[{inside}]'}")
    more = ", ..." if len(model.layout.shapes) > MOST_NAMES else ""
    return ", ".join(parts) + more + ("" if lam is None else f", lam = {lam:.4g}")


def starts(model: Model, *, count: int, seed: int) -> FloatArray:
    """Where the chains start: exact draws of the base, or standard normals where it cannot be sampled."""
    if model.sample_base is None:
        return rng(Stream.STARTS, seed).normal(size=(count, model.dim))
    shape = jax.eval_shape(model.sample_base, probe_key())
    if shape.shape != (model.dim,):
        raise InputError(f"base: a draw has shape {shape.shape}; its density takes {model.dim} parameters")
    theta = exact_draws(model.sample_base, seed=seed, stream=Draws.STARTS, count=count)
    if not np.isfinite(theta).all():
        raise InputError("base: sample gives draws that are not finite")
    _check_scale(model, theta)
    return theta


def _check_scale(model: Model, theta: FloatArray) -> None:
    """Raise where a parameter is of a size whose powers are no numbers."""
    spread = np.median(np.abs(theta - np.median(theta, axis=0)), axis=0)
    beyond = ~((spread > 1 / WIDEST) & (spread < WIDEST))
    if len(theta) > 1 and beyond.any():
        index = int(np.flatnonzero(beyond)[0])
        name = printable(coordinate_name(model, index))
        raise InputError(
            f"base: its draws of {name} have a spread of {spread[index]:.3g}; rescale the parameters, so that it lies "
            f"between {1 / WIDEST:.0e} and {WIDEST:.0e}"
        )


def check_size(name: str, log_density: FloatArray) -> None:
    """Raise where the largest of the finite log densities at the starts is too large or too small to compute with.

    >>> check_size("target", np.array([-3.0, -np.inf]))
    """
    highest = np.max(log_density[np.isfinite(log_density)], initial=-np.inf)
    if np.isfinite(highest) and abs(highest) > LARGEST:
        raise InputError(
            f"{name}: the log density is {highest:.3g} at best among the starts; rescale it, or leave out a constant, "
            f"so that it is below {LARGEST:.0e} in size"
        )


def check_repeatable(name: str, once: FloatArray, again: FloatArray) -> None:
    """Raise where log densities of the same points were not the same twice.

    >>> check_repeatable("target", np.array([-1.0, -np.inf]), np.array([-1.0, -np.inf]))
    """
    differs = ~np.isclose(once, again, rtol=1e-9, atol=1e-9, equal_nan=True)
    if differs.any():
        pair = f"{once[differs][0]:.6g}, then {again[differs][0]:.6g}"
        raise InputError(
            f"{name}: the log density gave different numbers at the same point ({pair}); it must be a function of the "
            "parameters alone, neither random nor changed by having been called"
        )


def check_model(model: Model, theta: FloatArray) -> FloatArray:
    """Evaluate the model at the starts ``theta`` (n, dim); returns their energies (n, 2) or raises."""
    if model.dim < 1:
        raise InputError("base: it has no parameters")
    if isinstance(model.log_base, Automatic):
        raise InputError("base: the model came without one, which only pt.temper finds by itself; give base=")
    check_density("base", model.log_base, model.dim)
    check_density("target", model.log_target, model.dim)
    path = GeometricPath(model.log_base, model.log_target)
    with naming(model):
        return _checked(model, theta, path)


def _checked(model: Model, theta: FloatArray, path: GeometricPath) -> FloatArray:
    with told_of_waiting("target"):
        energies = energies_of(path, theta)
    exact = model.sample_base is not None
    base_ok, target_ok = np.isfinite(energies[:, 0]), np.isfinite(energies[:, 1])
    where = "its own draws" if exact else "standard normal starts"
    if not base_ok.all() and exact:
        raise InputError(f"base: log_prob is -inf or NaN at {np.sum(~base_ok)} of {len(theta)} of {where}")
    if not base_ok.any():
        raise InputError(f"base: the log density is -inf or NaN at all {len(theta)} {where}")
    if not target_ok.any():
        _explain_nan(model, values_of(path, theta)[:, 1])
        raise InputError(
            f"target: the log density is -inf or NaN at all {len(theta)} draws of the base; choose a base that covers "
            "the target, or look for data that the model cannot have"
        )
    check_size("base", energies[:, 0])
    check_size("target", energies[:, 1])
    again = told_if_slow("target", lambda: energies_of(path, theta[:BLOCK]))
    check_repeatable("target", energies[:BLOCK], again)
    # Names, dims and coords that do not fit are found now, not when the draws are there.
    draws_dataset(model, theta[None, np.flatnonzero(target_ok)[:1]])
    if not exact:
        _check_proper(model, theta[base_ok], path)
    _check_support(theta, path)
    return energies


def _explain_nan(model: Model, target: FloatArray) -> None:
    """Raise with the cause where data hold NaN or infinity, or where the density is NaN everywhere."""
    field = nan_in_data(model) or nan_in_data(model, infinite=True)
    if field:
        raise InputError(f"data: {field}, and the log density is -inf or NaN everywhere; leave those out, or mend them")
    if np.isnan(target).all():
        raise InputError(
            f"target: the log density is NaN at all {len(target)} draws of the base; look for NaN in its data, or for "
            "log or sqrt of negative numbers"
        )


def nan_in_data(model: Model, *, infinite: bool = False) -> str:
    """Which of the data hold NaN, or infinite numbers, in words; empty where none does.

    >>> import xarray as xr
    >>> from pathtemp.model.layout import Layout
    >>> data = {"observed_data": xr.Dataset({"y": ("i", [1.0, np.nan])})}
    >>> nan_in_data(Model(jnp.sum, jnp.sum, Layout({"x": (1,)}), data=data))
    "'y' has NaN at 1 of 2 places, the first at 1"
    """
    what = "infinity" if infinite else "NaN"
    for group in model.data.values():
        for name, values in group.data_vars.items():
            numbers = np.asarray(values.values, float)
            missing = np.isinf(numbers) if infinite else np.isnan(numbers)
            if missing.any():
                first = ", ".join(str(int(i) + model.layout.first_index) for i in np.argwhere(missing)[0])
                where = f", the first at {first}" if missing.ndim else ""
                return f"{printable(str(name))!r} has {what} at {missing.sum()} of {missing.size} places{where}"
    return ""


def _check_proper(model: Model, theta: FloatArray, path: GeometricPath) -> None:
    """Raise where the base does not fall off along some ray: its integral is then infinite.

    Along a ray the density of the radius r is psi(r) r^(dim - 1); between two far radii it must fall faster than 1/r.
    """
    centre, spread = np.median(theta, axis=0), theta.std(axis=0) + 1e-3
    probes = rng(Stream.PROBES)
    axes = np.concatenate([np.eye(model.dim), -np.eye(model.dim)])[:512]
    random = probes.normal(size=(64, model.dim))
    rays = np.concatenate([axes, random / np.linalg.norm(random, axis=1, keepdims=True)])
    near, far = centre + FAR * spread * rays, centre + FAR**2 * spread * rays
    # The target, whatever it is so far out, is not asked for.
    base_alone = GeometricPath(path.log_base, path.log_base)
    base_near, base_far = (energies_of(base_alone, x)[:, 0] for x in (near, far))
    with np.errstate(invalid="ignore"):
        fall = base_near - base_far
    # One coordinate at a time integrates over that line; a flat one is improper whatever the others do.
    improper = np.isfinite(base_far) & (fall < 0.5 * np.log(FAR))
    if improper[: len(axes)].any():
        index = int(np.flatnonzero(improper[: len(axes)])[0]) % model.dim
        raise InputError(
            f"base: its density does not fall off in {coordinate_name(model, index)}, so it cannot be normalised; "
            "give every parameter a proper distribution"
        )
    if improper.any():
        raise InputError("base: its density does not fall off in some direction, so it cannot be normalised")


def _check_support(theta: FloatArray, path: GeometricPath) -> None:
    """Raise where the target has density and the base has none, up to three times as far out as the starts."""
    centre = theta.mean(axis=0)
    wide = np.concatenate([centre + factor * (theta - centre) for factor in (1.5, 3.0)])
    base, target = energies_of(path, wide).T
    outside = (base == -np.inf) & np.isfinite(target)
    if outside.any():
        point = np.array2string(wide[np.flatnonzero(outside)[0]][:4], precision=3)
        raise InputError(
            f"target: it has density where the base has none (for instance at {point}); choose a base that covers it"
        )


def coordinate_name(model: Model, index: int) -> str:
    """Name of one flat coordinate, such as ``theta[3]``."""
    for name, shape in model.layout.shapes.items():
        size = int(np.prod(shape))
        if index < size:
            place = ", ".join(str(i + model.layout.first_index) for i in np.unravel_index(index, shape))
            return name if shape == () else f"{name}[{place}]"
        index -= size
    return f"parameter {index}"
