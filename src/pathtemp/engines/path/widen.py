"""How far the interval of a margin has to reach."""

from __future__ import annotations

import numpy as np

from pathtemp._types import FloatArray

TAIL = 1e-8
"""Mass beyond an end of the interval that is left out: a hundredth of the smallest quantile that is promised."""

LEAST, MOST = 0.05, 0.25
"""Smallest and largest widening of one end in one round, as shares of the width: the transport is continued there, and
in the neck of a funnel a small error of it grows with every step."""

LOUDEST = 2.0
"""Noise of the gradients over the last eighth of the path, in nats, above which the transport there has yet to be
learned, and no step further is taken."""


def tail_masses(low: float, high: float, log_p: FloatArray) -> tuple[tuple[float, float], tuple[float, float]]:
    """Log of the mass beyond either end, relative to that inside, and the rates at which log p falls there.

    log p at equispaced nodes from ``low`` to ``high`` is continued as it falls over its last sixteenth.

    >>> x = np.linspace(0.0, 20.0, 129)
    >>> masses, rates = tail_masses(0.0, 20.0, -x)
    >>> round(masses[1]), round(rates[1], 6)
    (-20, 1.0)
    """
    step = (high - low) / (len(log_p) - 1)
    near = max(1, len(log_p) // 16)
    rates = (log_p[near] - log_p[0]) / (near * step), (log_p[-1 - near] - log_p[-1]) / (near * step)
    top = float(log_p.max())
    inside = top + np.log(np.sum(np.exp(log_p - top)) * step)
    masses = tuple(
        float(end - inside - np.log(rate)) if rate > 0 else float("inf")
        for end, rate in zip((log_p[0], log_p[-1]), rates, strict=True)
    )
    return (masses[0], masses[1]), (float(rates[0]), float(rates[1]))


def shares(masses: tuple[float, float]) -> tuple[float, float]:
    """Masses beyond the ends, relative to that inside, from their logs; one at most.

    >>> shares((-700.0, float("inf")))[1]
    1.0
    """
    return float(np.exp(min(masses[0], 0.0))), float(np.exp(min(masses[1], 0.0)))


def wanted_interval(
    low: float, high: float, log_p: FloatArray, noise: tuple[float, float] = (0.0, 0.0)
) -> tuple[float, float] | None:
    """An interval nearer to holding the tails of ``log_p``; None where this one holds them.

    ``noise`` is that of the gradients at either end, see ``LOUDEST``: a loud end stays where it is.

    >>> wanted_interval(-30.0, 30.0, -0.5 * np.linspace(-30.0, 30.0, 129) ** 2) is None
    True
    >>> wanted_interval(-3.0, 30.0, -0.5 * np.linspace(-3.0, 30.0, 129) ** 2)[0] < -5.0
    True
    """
    masses, rates = tail_masses(low, high, log_p)
    width = high - low
    moves = []
    for mass, rate, loud in zip(masses, rates, noise, strict=True):
        excess = mass - np.log(TAIL)
        # Most tails fall faster and faster, so that the line through the end asks for enough.
        needed = excess / rate if rate > 0 else MOST * width
        moves.append(float(np.clip(needed, LEAST * width, MOST * width)) if excess > 0 else 0.0)
        if loud > LOUDEST:
            moves[-1] *= 1e-9
    return (low - moves[0], high + moves[1]) if any(moves) else None


def edge_noise(s: FloatArray, u: FloatArray) -> tuple[float, float]:
    """Noise over the first and the last eighth of the path, in nats, of gradients u at positions s; infinite unseen.

    >>> edge_noise(np.linspace(0.0, 1.0, 800), np.zeros(800))
    (0.0, 0.0)
    """
    found = []
    for here in (s < 0.125, s > 0.875):
        x, y = s[here & np.isfinite(u)], u[here & np.isfinite(u)]
        residual = off_line(x, y) if len(y) >= 8 else np.array([np.inf])
        found.append(float(0.125 * np.sqrt(np.mean(residual**2))))
    return found[0], found[1]


def off_line(x: FloatArray, y: FloatArray) -> FloatArray:
    """Residuals of y from its least-squares line over x; from its mean where x does not vary."""
    dx, dy = x - x.mean(), y - y.mean()
    return np.asarray(dy - dx * (dx @ dy) / max(float(dx @ dx), 1e-300))
