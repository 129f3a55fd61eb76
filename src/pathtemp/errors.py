"""The errors pathtemp raises, each one clear sentence."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathtemp._types import FloatArray


class InputError(ValueError):
    """Something the user gave cannot work; the message names the argument and says what to do."""


class SamplingError(RuntimeError):
    """A run cannot go on; the message says what was met, where, and what to do."""


class InfiniteDensity(InputError):
    """A log density is +inf at a point, where a density can only be finite, or zero with -inf.

    Parameters
    ----------
    theta
        The point, unconstrained, (dim,).
    values
        Log densities of base and target there, (2,).
    point
        The point in words; its unconstrained numbers where nothing is given.
    more
        A further half sentence.
    """

    def __init__(self, theta: FloatArray, values: FloatArray, point: str = "", more: str = "") -> None:
        self.theta, self.values = theta, values
        self._words = point, more
        base, target = (-math.inf if math.isnan(x) else float(x) for x in values)
        shown = ", ".join(f"{x:.4g}" for x in theta[:6]) + (", ..." if len(theta) > 6 else "")
        highest = max(base, target)
        super().__init__(
            f"{'base' if base >= target else 'target'}: the log density is "
            f"{'+inf' if math.isinf(highest) else f'{highest:.3g}, as good as +inf,'} at "
            f"{point or f'the unconstrained point ({shown})'}; it must be finite, or -inf where it is zero{more}"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Made again from what it was made of, in another process."""
        return type(self), (self.theta, self.values, *self._words)


class MissingExtraError(ImportError):
    """An optional dependency is needed; the message says what to install."""

    def __init__(self, package: str, extra: str) -> None:
        self._needed = package, extra
        super().__init__(f"{package} is not installed; run: pip install 'pathtemp[{extra}]'")

    def __reduce__(self) -> tuple[Any, ...]:
        """Made again from what it was made of, in another process."""
        return type(self), self._needed
