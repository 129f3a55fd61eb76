"""Stan log densities as JAX functions: XLA calls the compiled program, with gradients, over a batch."""

from __future__ import annotations

import ctypes
import functools
import logging
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pathtemp._types import Array, FloatArray
from pathtemp.errors import InputError
from pathtemp.frontends.stan.build import bridge_artifact, build
from pathtemp.frontends.stan.library import Instance, StanError
from pathtemp.frontends.stan.release import released_with
from pathtemp.frontends.stan.toolchain import find_compiler

log = logging.getLogger("pathtemp.stan")
FAR_OUT = 1e3
"""Beyond it, on the unconstrained scale, a rejection says nothing of the program and is counted only."""

_RejectionCallback = ctypes.CFUNCTYPE(None, ctypes.c_char_p)


class StanDensity:
    """Log density of a Stan program at a flat unconstrained point, constants and Jacobian kept, less ``log_mass``.

    A function ``(dim,) -> ()`` that JAX can differentiate once, vmap, jit and scan. Where the program rejects
    a point, or gives NaN, the density is -inf and its gradient 0; the first such message is logged, all are
    counted.

    Parameters
    ----------
    instance
        The compiled program with its data.
    label
        What messages call the density.
    log_mass
        A constant that is taken off: log of what a base integrates to.
    """

    def __init__(self, instance: Instance, *, label: str, log_mass: float = 0.0) -> None:
        self.instance, self.label, self.log_mass = instance, label, log_mass
        compiler = find_compiler()
        route = _CallbackRoute(self) if compiler is None else _FfiRoute(self)
        self._route: _Route = route
        self._log_prob = _differentiable(route.value, route.value_and_gradient)

    def __call__(self, x: Array) -> Array:
        """Log density of ``(dim,)``."""
        value = self._log_prob(jnp.asarray(x, dtype=jnp.float64))
        return value - self.log_mass if self.log_mass else value

    @property
    def rejections(self) -> int:
        """Evaluations so far that the program rejected or that gave NaN."""
        return self._route.rejections

    @property
    def number(self) -> int:
        """Number by which XLA knows the density."""
        if not isinstance(self._route, _FfiRoute):
            raise InputError("number: without a C++ compiler XLA knows no Stan density by itself")
        return self._route.number

    def note_rejection(self, message: str) -> None:
        """Show what Stan said of the first rejected point."""
        said = " ".join(self.instance.translate(message).split())
        log.warning("%s: Stan rejected a point (density 0; further ones are counted, not shown): %s", self.label, said)


ON_EDGE = "a value was rounded to the edge of its range, where the log density is infinite"
ROUNDED = "the log density is +inf, as where a mass that it divides by is rounded to 0"


@dataclass(frozen=True)
class PartDensity:
    """A density of some coordinates: the rest, which enter by their Jacobian alone, are zero, where it is zero too."""

    whole: StanDensity
    rest: tuple[int, ...]

    def __call__(self, x: Array) -> Array:
        """Log density of ``(dim,)``."""
        return self.whole(x.at[jnp.array(self.rest)].set(0.0))


def _differentiable(
    value: Callable[[Array], Array], value_and_gradient: Callable[[Array], tuple[Array, Array]]
) -> Callable[[Array], Array]:
    @jax.custom_jvp
    def log_prob(x: Array) -> Array:
        return value(x)

    @log_prob.defjvp
    def log_prob_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
        out, gradient = value_and_gradient(primals[0])
        return out, jnp.sum(gradient * tangents[0], -1)

    return log_prob


class _FfiRoute:
    """XLA calls the program itself; a batch is split over its threads."""

    def __init__(self, density: StanDensity) -> None:
        instance = density.instance
        self._library = loaded_bridge()
        known = weakref.ref(density)

        def note(message: bytes) -> None:
            still = known()
            if still is not None:
                still.note_rejection(message.decode(errors="replace"))

        first = _RejectionCallback(note)
        number = self._library.pathtemp_register(
            instance.pointer,
            instance.address("bs_log_density_gradient"),
            instance.address("bs_log_density"),
            instance.address("bs_free_error_msg"),
            instance.address("bs_param_constrain"),
            instance.address("bs_param_unconstrain"),
            len(instance.names()),
            ctypes.cast(first, ctypes.c_void_p).value,
            True,
            instance.divides,
            instance.threadsafe,
        )
        if number < 0:
            raise InputError("program: this process has made too many Stan densities; start a new one")
        self.number = int(number)
        # Whoever can call it holds the density.
        released_with(density, self._library.pathtemp_release, self.number, first, instance)

    @property
    def rejections(self) -> int:
        return int(self._library.pathtemp_rejections(self.number))

    def value(self, x: Array) -> Array:
        call: Any = jax.ffi.ffi_call("pathtemp_value", _shapes(x)[0], vmap_method="broadcast_all")
        return jnp.asarray(call(x, density=np.int64(self.number)))

    def value_and_gradient(self, x: Array) -> tuple[Array, Array]:
        call: Any = jax.ffi.ffi_call("pathtemp_value_and_gradient", _shapes(x), vmap_method="broadcast_all")
        value, gradient = call(x, density=np.int64(self.number))
        return value, gradient


class _CallbackRoute:
    """Without a compiler for the bridge: XLA calls Python, which calls the program, in about 0.2 ms."""

    def __init__(self, density: StanDensity) -> None:
        log.warning("no C++ compiler: Stan is called through Python, about 0.2 ms a call; with g++ it is under 1 us")
        self._density, self._dim = density, density.instance.dim
        self.rejections, self._told = 0, False

    def value(self, x: Array) -> Array:
        value = jax.pure_callback(lambda z: self._evaluate(z)[0], _shapes(x)[0], x, vmap_method="expand_dims")
        return jnp.asarray(value)

    def value_and_gradient(self, x: Array) -> tuple[Array, Array]:
        value, gradient = jax.pure_callback(self._evaluate, _shapes(x), x, vmap_method="expand_dims")
        return value, gradient

    def _evaluate(self, x: Any) -> tuple[FloatArray, FloatArray]:
        points = np.asarray(x).reshape(-1, self._dim)
        values, gradients = np.full(len(points), -np.inf), np.zeros(points.shape)
        for k in np.flatnonzero(np.isfinite(points).all(axis=1)):
            message = "the log density is NaN"
            try:
                with _ONE_AT_A_TIME:
                    value, gradient = self._density.instance.gradient(points[k])
                    if value == np.inf and (self._density.instance.divides or self._on_edge(points[k])):
                        value, message = np.nan, ROUNDED if self._density.instance.divides else ON_EDGE
            except StanError as error:
                value, message = np.nan, str(error)
            if np.isnan(value):
                self.rejections += 1
                if not self._told and np.abs(points[k]).max() < FAR_OUT:
                    self._told = True
                    self._density.note_rejection(message)
            else:
                values[k], gradients[k] = value, gradient
        return values.reshape(x.shape[:-1]), gradients.reshape(x.shape)

    def _on_edge(self, point: FloatArray) -> bool:
        """Whether a constrained value was rounded to the edge of its range, from which no way leads back."""
        instance = self._density.instance
        try:
            return not np.isfinite(instance.unconstrain(instance.constrain(point[None])[0][0])).all()
        except (InputError, StanError):
            return True


def _shapes(x: Array) -> tuple[Any, Any]:
    """Shapes of the value and of the gradient at ``x``."""
    struct: Any = jax.ShapeDtypeStruct
    return struct(x.shape[:-1], x.dtype), struct(x.shape, x.dtype)


_Route = _FfiRoute | _CallbackRoute
_ONE_AT_A_TIME = threading.Lock()  # a library built without threads has one autodiff tape


@functools.cache
def loaded_bridge() -> ctypes.CDLL:
    """The library between XLA and Stan, registered with JAX."""
    compiler = find_compiler()
    assert compiler is not None
    artifact = bridge_artifact(compiler)
    build([artifact])
    library = ctypes.CDLL(str(artifact.slot.path))
    capsule: Any = jax.ffi.pycapsule
    for name in ("pathtemp_value", "pathtemp_value_and_gradient", "pathtemp_draws"):
        jax.ffi.register_ffi_target(name, capsule(getattr(library, name)), platform="cpu")
    address = ctypes.c_int64
    library.pathtemp_register.argtypes = [address] * 8 + [ctypes.c_bool] * 3
    library.pathtemp_register.restype = ctypes.c_int64
    library.pathtemp_register_sampler.argtypes = [address] * 6 + [ctypes.c_int64] * 2
    library.pathtemp_register_sampler.restype = ctypes.c_int64
    for release in (library.pathtemp_release, library.pathtemp_release_sampler):
        release.argtypes, release.restype = [ctypes.c_int64], ctypes.c_bool
    library.pathtemp_accepted.argtypes = [ctypes.c_int64]
    library.pathtemp_accepted.restype = ctypes.c_double
    library.pathtemp_rejections.argtypes = [ctypes.c_int64]
    library.pathtemp_rejections.restype = ctypes.c_int64
    pointer = ctypes.c_void_p
    library.pathtemp_repeat.argtypes = [ctypes.c_int64] * 3 + [pointer] * 3
    library.pathtemp_repeat.restype = None
    return library
