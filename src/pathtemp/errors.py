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


class ProgramFailed(SamplingError):
    """A compiled program failed: a function of the user's raised in it, or the machine had no room for it.

    Parameters
    ----------
    reason
        The last line of what was said.
    name
        Of the model.
    more
        A further half sentence.
    """

    def __init__(self, reason: str, name: str = "model", more: str = "") -> None:
        self.reason, self._words = reason, (name, more)
        super().__init__(f"{name}: the run ended, as the model or what was compiled of it failed ({reason}){more}")

    def __reduce__(self) -> tuple[Any, ...]:
        """Made again from what it was made of, in another process."""
        return type(self), (self.reason, *self._words)


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
    lam
        Where on the path, for a log density that is a function of it: ``log_q`` of ``pt.path_sample``.
    """

    def __init__(
        self, theta: FloatArray, values: FloatArray, point: str = "", more: str = "", lam: float | None = None
    ) -> None:
        self.theta, self.values, self.lam = theta, values, lam
        self._words = point, more
        base, target = (-math.inf if math.isnan(x) else float(x) for x in values)
        shown = ", ".join(f"{x:.4g}" for x in theta[:6]) + (", ..." if len(theta) > 6 else "")
        highest = max(base, target)
        name, at = "base" if base >= target else "target", point or f"the unconstrained point ({shown})"
        name = name if lam is None else "log_q"
        if math.isinf(highest):
            said = f"{name}: the log density is +inf at {at}; it must be finite, or -inf where it is zero{more}"
        else:
            said = (
                f"{name}: it cannot be normalised, or holds a huge constant: the log density is {highest:.3g} at {at}; "
                f"it must fall off in every direction, and be below 1e+20 in size{more}"
            )
        super().__init__(said)

    def __reduce__(self) -> tuple[Any, ...]:
        """Made again from what it was made of, in another process."""
        return type(self), (self.theta, self.values, *self._words, self.lam)


class MissingExtraError(ImportError):
    """An optional dependency is needed; the message says what to install."""

    def __init__(self, package: str, extra: str) -> None:
        self._needed = package, extra
        super().__init__(f"{package} is not installed; run: pip install 'pathtemp[{extra}]'")

    def __reduce__(self) -> tuple[Any, ...]:
        """Made again from what it was made of, in another process."""
        return type(self), self._needed
