"""Seeds: any int the user gives, as the 32-bit word that every stream of random numbers starts from."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from pathtemp.errors import InputError


def seed_word(seed: Any) -> int:
    """A word of 32 bits: the seed itself where it fits, and a hash of it where it does not.

    >>> seed_word(7), seed_word(-1) == seed_word(2**32 - 1)
    (7, False)
    """
    try:
        number = operator.index(seed)
    except TypeError:
        raise InputError(f"seed: expected an int, got a {type(seed).__name__}") from None
    if 0 <= number < 2**32:
        return number
    entropy = [int(number < 0), abs(number)]
    return int(np.random.SeedSequence(entropy).generate_state(1)[0])
