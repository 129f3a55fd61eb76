"""Random numbers: any seed the user gives, and every stream that starts from it, NumPy's and JAX's, by name.

No two streams of one run share numbers. Rounds are numbered from zero and use the key of the seed itself, folded with
their number; the other streams of JAX are folded with numbers that no round reaches.
"""

from __future__ import annotations

import operator
from enum import IntEnum
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pathtemp._types import Array, Key
from pathtemp.api.arguments import kind_name
from pathtemp.errors import InputError


class Stream(IntEnum):
    """Streams of NumPy."""

    STARTS = 1
    """Where chains begin, without a base that can be sampled."""
    ANNEAL = 2
    """Resampling between the levels of the annealing pass."""
    LOCAL_LAWS = 3
    """Importance sampling around the modes."""
    MODE_STARTS = 4
    """Choice of the starts of ascents."""
    REFERENCE = 5
    """Starts of the search for a base."""
    FIRST_CHAINS = 6
    """Choice of the particles at which chains begin."""
    PATH_SEARCH = 7
    """Chains of the search along a path that are given up."""
    THINNING = 8
    """Resampling of weighted draws."""
    PROBES = 9
    """Points at which a model, or a program of one, is tried out."""
    TIES = 10
    """Order of what is equal."""
    SKETCH = 11
    """Directions in which a large matrix is looked at."""
    ERRORS = 12
    """Errors of several estimates at once."""
    ISLANDS = 13
    """Seeds of the islands of a run."""


class KeyStream(IntEnum):
    """Streams of JAX beside the rounds."""

    ANNEAL = 2**31
    """Moves of the annealing pass."""
    PREDICTIVE = 2**32 - 6
    """New data at draws of a fit."""
    PROBES = 2**32 - 5
    """Draws by which a base is tried out, whatever the user's seed."""
    EXPLORE = 2**32 - 4
    """Moves of the exploration of a target that came without a base."""
    BRIDGE = 2**32 - 3
    """Draws of the reference of bridge sampling."""
    SEARCH = 2**32 - 2
    """Moves of the search along a path."""
    EXACT = 2**32 - 1
    """Exact draws of a base, see :class:`Draws`."""


class Draws(IntEnum):
    """What exact draws of a base are for: streams within one."""

    STARTS = 1
    """Where chains begin."""
    BASE = 2
    """Draws that the user sees."""
    MODES = 1000
    """The search for modes, which counts on from here."""


def seed_word(seed: Any) -> int:
    """A word of 32 bits: the seed itself where it fits, and a hash of it where it does not.

    >>> seed_word(7), seed_word(-1) == seed_word(2**32 - 1)
    (7, False)
    """
    try:
        number = operator.index(seed)
    except TypeError:
        raise InputError(f"seed: expected an int, got {kind_name(seed)}") from None
    if 0 <= number < 2**32:
        return number
    entropy = [int(number < 0), abs(number)]
    return int(np.random.SeedSequence(entropy).generate_state(1)[0])


def island_word(word: int, island: int) -> int:
    """The word of the seed of an island, numbered from zero: the first has the run's own.

    >>> island_word(7, 0), island_word(7, 1) == island_word(7, 2)
    (7, False)
    """
    return word if island == 0 else int(np.random.SeedSequence([word, Stream.ISLANDS, island]).generate_state(1)[0])


def rng(stream: Stream, word: int = 0) -> np.random.Generator:
    """The generator of a stream; ``word`` is that of the user's seed, where the numbers depend on it.

    >>> one, two = (rng(stream, 7).integers(2**60) for stream in (Stream.STARTS, Stream.ANNEAL))
    >>> bool(one == two)
    False
    """
    return np.random.default_rng([word % 2**32, int(stream)])


def round_key(word: Array, number: Array) -> Key:
    """The key of a round, traceable by JAX."""
    return jax.random.fold_in(jax.random.key(word), number)


def stream_key(word: Array, stream: KeyStream) -> Key:
    """The key of a stream, traceable by JAX."""
    return jax.random.fold_in(jax.random.key(word), jnp.uint32(int(stream)))


def probe_key(number: int = 0) -> Key:
    """One of the keys by which a base is tried out: the same in every run, so that a model is judged alike.

    >>> bool(jnp.all(jax.random.key_data(probe_key(1)) == jax.random.key_data(probe_key(2))))
    False
    """
    return jax.random.fold_in(stream_key(jnp.uint32(0), KeyStream.PROBES), number)


def data_rng(seed: int | list[int]) -> np.random.Generator:
    """The generator of made data: those of a test problem belong to the problem, and to no run."""
    return np.random.default_rng(seed)
