"""A compiled Stan program with its data: BridgeStan's C functions, called from Python."""

from __future__ import annotations

import ctypes
import functools
import itertools
import logging
import os
import re
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pathtemp._types import FloatArray
from pathtemp.errors import InputError, MissingExtraError
from pathtemp.frontends.stan.source import Source, masked

log = logging.getLogger("pathtemp.stan")
_DOUBLES = ctypes.POINTER(ctypes.c_double)
_MESSAGE = ctypes.POINTER(ctypes.c_void_p)
_PRINT = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int)
_MASS = re.compile(r"\)\s*T\s*\[|[-/]=?\s*(?:[\w.]+\s*\*\s*)?(?:\w+_l?c?cdf|log1m_exp|log1m|log_diff_exp)\s*\(")
"""Where a program divides by a mass: truncated distributions, and those that it truncates by hand."""


def divides_by_a_mass(text: str) -> bool:
    """Whether a program, its comments and strings masked, divides by a mass, which Stan may round to zero.

    >>> divides_by_a_mass("y ~ normal(mu, 1) T[low, ];"), divides_by_a_mass("target += -n * normal_lccdf(low | mu, 1);")
    (True, True)
    >>> divides_by_a_mass("target += log_mix(p, a, b) + log1m(p) + normal_lccdf(censored | mu, 1);")
    False
    """
    return _MASS.search(text) is not None


_SIGNATURES: dict[str, tuple[Any, Sequence[Any]]] = {
    "bs_model_construct": (ctypes.c_void_p, (ctypes.c_char_p, ctypes.c_uint, _MESSAGE)),
    "bs_model_destruct": (None, (ctypes.c_void_p,)),
    "bs_free_error_msg": (None, (ctypes.c_void_p,)),
    "bs_model_info": (ctypes.c_char_p, (ctypes.c_void_p,)),
    "bs_param_names": (ctypes.c_char_p, (ctypes.c_void_p, ctypes.c_bool, ctypes.c_bool)),
    "bs_param_unc_names": (ctypes.c_char_p, (ctypes.c_void_p,)),
    "bs_param_unc_num": (ctypes.c_int, (ctypes.c_void_p,)),
    "bs_param_constrain": (
        ctypes.c_int,
        (ctypes.c_void_p, ctypes.c_bool, ctypes.c_bool, _DOUBLES, _DOUBLES, ctypes.c_void_p, _MESSAGE),
    ),
    "bs_param_unconstrain": (ctypes.c_int, (ctypes.c_void_p, _DOUBLES, _DOUBLES, _MESSAGE)),
    "bs_log_density": (
        ctypes.c_int,
        (ctypes.c_void_p, ctypes.c_bool, ctypes.c_bool, _DOUBLES, _DOUBLES, _MESSAGE),
    ),
    "bs_log_density_gradient": (
        ctypes.c_int,
        (ctypes.c_void_p, ctypes.c_bool, ctypes.c_bool, _DOUBLES, _DOUBLES, _DOUBLES, _MESSAGE),
    ),
    "bs_rng_construct": (ctypes.c_void_p, (ctypes.c_uint, _MESSAGE)),
    "bs_rng_destruct": (None, (ctypes.c_void_p,)),
}


def _log_print(text: int, size: int) -> None:
    """Show what a program printed."""
    log.warning("Stan prints (once; more is not shown): %s", ctypes.string_at(text, size).decode(errors="replace"))


_NOTE_PRINT = _PRINT(_log_print)


class StanError(RuntimeError):
    """What a compiled Stan program said when it threw."""


class Instance:
    """A compiled program with its data, freed with this object: densities that XLA may call hold it.

    Parameters
    ----------
    path
        The shared library.
    data
        JSON text.
    seed
        Of the random numbers in the transformed data block.
    source
        What the program was compiled from, so that messages name the user's lines; None where that is not
        known.
    owner
        A ``bridgestan.StanModel`` to use, in place of a model of our own; it is kept alive.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        data: str = "{}",
        *,
        seed: int = 0,
        source: Source | None = None,
        owner: Any = None,
    ) -> None:
        self.path = Path(path)
        self.source = source
        self._library = _load(str(self.path))
        self._owner = owner
        self.pointer = self._construct(data, seed) if owner is None else int(owner.model)
        if owner is None:
            weakref.finalize(self, self._library.bs_model_destruct, self.pointer).atexit = False
        # What is known of exact draws of the program, once somebody has asked.
        self.draws: Any = None
        self.dim = int(self._library.bs_param_unc_num(self.pointer))
        self.unconstrained_names = _split(self._library.bs_param_unc_names(self.pointer))
        info = self._library.bs_model_info(self.pointer).decode()
        self.threadsafe = "STAN_THREADS=true" in info
        # Stan rounds the mass beyond 8 standard deviations of a normal to 0, and a density divided by it is +inf there.
        self.divides = source is not None and divides_by_a_mass(masked(source.text))

    def names(self, *, transformed: bool = False, generated: bool = False) -> list[str]:
        """Names of the constrained values, in order."""
        return _split(self._library.bs_param_names(self.pointer, transformed, generated))

    def address(self, function: str) -> int:
        """Address of a function of the library."""
        return int(ctypes.cast(getattr(self._library, function), ctypes.c_void_p).value or 0)

    def log_density(self, theta: FloatArray, *, jacobian: bool = True) -> float:
        """Log density of one unconstrained point, constants kept; StanError where the program rejects it."""
        value = ctypes.c_double()
        x = np.ascontiguousarray(theta, dtype=np.float64)
        self._call(self._library.bs_log_density, self.pointer, False, jacobian, _doubles(x), ctypes.byref(value))
        return value.value

    def gradient(self, theta: FloatArray, *, jacobian: bool = True) -> tuple[float, FloatArray]:
        """Log density and its gradient."""
        value = ctypes.c_double()
        x, gradient = np.ascontiguousarray(theta, dtype=np.float64), np.empty(self.dim)
        self._call(
            self._library.bs_log_density_gradient,
            self.pointer,
            False,
            jacobian,
            _doubles(x),
            ctypes.byref(value),
            _doubles(gradient),
        )
        return value.value, gradient

    def constrain(
        self, theta: FloatArray, *, transformed: bool = False, generated: bool = False, seed: int = 0
    ) -> tuple[FloatArray, list[str]]:
        """Constrained values ``(n, dim) -> (n, width)``, and the messages of the rows that failed (NaN)."""
        width = len(self.names(transformed=transformed, generated=generated))
        rows = np.ascontiguousarray(theta, dtype=np.float64)
        out, failures = np.empty((len(rows), width)), []
        rng = self._library.bs_rng_construct(seed % 2**32, None)
        function = self._library.bs_param_constrain
        try:
            for row, values in zip(rows, out, strict=True):
                try:
                    self._call(function, self.pointer, transformed, generated, _doubles(row), _doubles(values), rng)
                except StanError as error:
                    values[:] = np.nan
                    failures.append(str(error))
        finally:
            self._library.bs_rng_destruct(rng)
        return out, failures

    def unconstrain(self, values: FloatArray) -> FloatArray:
        """Unconstrained point of constrained parameters in Stan's order; InputError where one breaks its constraint."""
        out, row = np.empty(self.dim), np.ascontiguousarray(values, dtype=np.float64)
        try:
            self._call(self._library.bs_param_unconstrain, self.pointer, _doubles(row), _doubles(out))
        except StanError as error:
            # Stan names its own function and the place of the declaration; the value and its bound are what helps.
            said = re.sub(r"^(Exception: )?(\w+_free: )?| \(in '.*$", "", " ".join(str(error).split()))
            raise InputError(f"init: a value lies outside the range of its parameter ({said[:120]})") from None
        return out

    def translate(self, message: str) -> str:
        """A message with the user's file and line."""
        return message if self.source is None else self.source.translate(message)

    def _construct(self, data: str, seed: int) -> int:
        error = ctypes.c_void_p()
        pointer = self._library.bs_model_construct(data.encode(), seed % 2**32, ctypes.byref(error))
        if not pointer:
            raise StanError(self._take_message(error))
        return int(pointer)

    def _call(self, function: Callable[..., int], *arguments: Any) -> None:
        error = ctypes.c_void_p()
        if function(*arguments, ctypes.byref(error)) != 0:
            raise StanError(self._take_message(error))

    def _take_message(self, error: ctypes.c_void_p) -> str:
        if not error.value:
            return "unknown error"
        message = ctypes.string_at(error.value).decode(errors="replace").strip()
        self._library.bs_free_error_msg(error)
        return self.translate(message)


@functools.cache
def _load(path: str) -> ctypes.CDLL:
    _load_tbb()
    try:
        library = ctypes.CDLL(path)
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
        if hasattr(library, "bs_draw"):  # built here, so that it calls back once
            library.bs_set_print_callback(_NOTE_PRINT, None)
    except OSError as error:
        if "static TLS" in str(error):
            raise InputError(
                "program: this process has loaded as many Stan programs as it can, about 50; start a new one"
            ) from None
        raise InputError(f"program: cannot load the shared library {path!r} ({error})") from None
    except AttributeError as error:
        raise InputError(
            f"program: {path!r} is not a Stan program that BridgeStan or pathtemp built ({error})"
        ) from None
    return library


def _load_tbb() -> None:
    """Load httpstan's TBB first, so that a cached program finds it wherever the environment has moved."""
    from pathtemp.frontends.stan.toolchain import find_stan

    try:
        folder = find_stan().libraries
    except (InputError, MissingExtraError):
        return  # a library built elsewhere brings its own
    for library in itertools.chain(folder.glob("libtbb.so.*"), folder.glob("libtbb*.dylib")):
        ctypes.CDLL(str(library))


def _split(names: bytes) -> list[str]:
    return names.decode().split(",") if names else []


def _doubles(array: FloatArray) -> Any:
    return array.ctypes.data_as(_DOUBLES)
