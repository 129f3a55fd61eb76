"""One way to test a random result: scores of independent runs against their law, at a stated rate of false alarms.

A score is z = (estimate - truth) / reported standard error, one for each independent run. For an estimator that is
right, and whose standard error is right, z has mean 0 and standard deviation 1. No estimator is exactly so, so each
test allows a small bias and a small misfit of the standard error, which it states. Beyond that an alarm is raised with
probability ``FALSE_ALARM`` at most: two thousand such tests are green on any machine and for any seed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from pathtemp._types import FloatArray
from pathtemp.errors import InputError
from pathtemp.seeds import data_rng

FALSE_ALARM = 1e-6
"""Largest probability that a test alarms at a result that is right."""

SPREAD = (0.85, 1.2)
"""Standard deviations of z that a right estimator may have: standard errors are off by so much at most."""

BIAS = 0.2
"""Mean of z, in either direction, that a right estimator may have."""

ENOUGH = 128
"""Scores that show standard errors of half or twice their size, and a bias of one standard error, 998 times in 1000."""


@dataclass(frozen=True)
class Verdict:
    """Whether scores are those of an estimator that is right.

    Parameters
    ----------
    count, mean, spread
        Number of the scores, their mean, and their root mean square.
    p_value
        Probability, at most, of scores as extreme as these from an estimator that is right.
    passed
        Whether that is at least the rate of false alarms.
    message
        What is wrong, in a sentence; empty where nothing is.
    """

    count: int
    mean: float
    spread: float
    p_value: float
    passed: bool
    message: str = ""


def judge_scores(
    z: ArrayLike,
    *,
    df: float = np.inf,
    spread: tuple[float, float] = SPREAD,
    bias: float = BIAS,
    false_alarm: float = FALSE_ALARM,
) -> Verdict:
    """Two-sided verdict on the scores of independent runs: errors too small, errors too large, bias.

    Parameters
    ----------
    z
        (estimate - truth) / standard error, n values of independent runs. Values of one run depend on each other:
        combine them to one first (see :func:`combined`).
    df
        Degrees of freedom of the standard errors, where each rests on few groups: z is then Student-t.
    spread, bias
        What is allowed: the range of the standard deviation of z, and its largest mean.
    false_alarm
        Probability of an alarm, at most, for scores within what is allowed.

    >>> rng = np.random.default_rng(0)
    >>> judge_scores(rng.normal(size=ENOUGH)).passed
    True
    >>> [judge_scores(scale * rng.normal(size=ENOUGH) + shift).passed for scale, shift in ((2, 0), (0.5, 0), (1, 1))]
    [False, False, False]
    """
    scores = np.asarray(z, float).ravel()
    if scores.size == 0:
        raise InputError("z: there are no scores to judge")
    if not np.isfinite(scores).all():
        return Verdict(scores.size, np.nan, np.nan, 0.0, False, "A score is not finite.")
    normal = _normal_scores(scores, df)
    n, (low, high) = normal.size, spread
    mean, size = float(normal.mean()), float(np.sqrt(np.mean(normal**2)))
    tails = {
        "standard errors too small (or runs far off)": stats.ncx2.sf(
            n * (size / high) ** 2, n, max(n * (bias / high) ** 2, 1e-12)
        ),
        "standard errors too large": stats.chi2.cdf(n * (size / low) ** 2, n),
        "a bias": 2.0 * stats.norm.sf((abs(mean) - bias) * np.sqrt(n) / high),
    }
    worst = min(tails, key=lambda name: tails[name])
    p_value = min(1.0, len(tails) * float(tails[worst]))
    passed = p_value >= false_alarm
    message = f"{n} scores with mean {mean:.2f} and root mean square {size:.2f} show {worst} (p = {p_value:.1e})."
    return Verdict(n, mean, size, p_value, passed, "" if passed else message)


def assert_scores(z: ArrayLike, **options: float | tuple[float, float]) -> None:
    """Fail, with what is wrong, unless the scores are those of an estimator that is right; see :func:`judge_scores`.

    >>> assert_scores([0.3, -1.2, 0.8])
    """
    verdict = judge_scores(z, **options)  # type: ignore[arg-type]
    if not verdict.passed:
        raise AssertionError(verdict.message)


def power(
    count: int,
    *,
    sd: float = 1.0,
    mean: float = 0.0,
    spread: tuple[float, float] = SPREAD,
    bias: float = BIAS,
    false_alarm: float = FALSE_ALARM,
    trials: int = 200,
) -> float:
    """Probability that :func:`judge_scores` alarms at ``count`` normal scores of this standard deviation and mean.

    >>> power(ENOUGH, sd=2.0) > 0.9, power(ENOUGH, sd=0.5) > 0.9, power(ENOUGH, mean=1.0) > 0.9
    (True, True, True)
    """
    rng = data_rng(0)
    z = mean + sd * rng.standard_normal((trials, count))
    alarms = [not judge_scores(row, spread=spread, bias=bias, false_alarm=false_alarm).passed for row in z]
    return float(np.mean(alarms))


def assert_close(
    value: ArrayLike, exact: ArrayLike, se: ArrayLike, *, df: float = np.inf, false_alarm: float = FALSE_ALARM
) -> None:
    """Fail unless each value lies as near the exact one as its standard error allows, in a single run.

    The distance allowed is the quantile of Student's t (normal by default) at which all values together alarm with
    probability ``false_alarm``, of a standard error that is too small by the factor allowed, and a bias besides:
    6.1 standard errors for one value. It shows gross mistakes; whether the errors are honest takes
    :func:`judge_scores` on many runs.

    >>> assert_close(1.3, 1.0, 0.1)
    >>> assert_close([1.0, 2.0], [1.0, 1.0], 0.1)
    Traceback (most recent call last):
        ...
    AssertionError: 2 is 10 standard errors (0.1) from 1; ... are allowed.
    """
    found, truth, error = np.broadcast_arrays(*(np.atleast_1d(np.asarray(x, float)) for x in (value, exact, se)))
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(found == truth, 0.0, np.abs(found - truth) / error)
    most = BIAS + SPREAD[1] * stats.t.isf(0.5 * false_alarm / z.size, df)
    bad = np.flatnonzero(~(z.ravel() <= most) | ~np.isfinite(error.ravel()))
    if bad.size:
        i = bad[np.argmax(np.nan_to_num(z.ravel()[bad], nan=np.inf))]
        raise AssertionError(
            f"{found.ravel()[i]:.6g} is {z.ravel()[i]:.3g} standard errors ({error.ravel()[i]:.3g}) from "
            f"{truth.ravel()[i]:.6g}; {most:.3g} are allowed."
        )


def assert_rate(
    successes: int,
    trials: int,
    *,
    at_least: float = 0.0,
    at_most: float = 1.0,
    false_alarm: float = FALSE_ALARM,
) -> None:
    """Fail where so many successes contradict a true rate between ``at_least`` and ``at_most`` (binomial tails).

    >>> assert_rate(17, 20, at_least=0.95)
    >>> assert_rate(9, 20, at_least=0.95)
    Traceback (most recent call last):
        ...
    AssertionError: 9 of 20 contradict a rate of at least 0.95 (p = ...).
    """
    for words, p_value in (
        (f"at least {at_least:g}", stats.binom.cdf(successes, trials, at_least) if at_least > 0 else 1.0),
        (f"at most {at_most:g}", stats.binom.sf(successes - 1, trials, at_most) if at_most < 1 else 1.0),
    ):
        if p_value < 0.5 * false_alarm:
            raise AssertionError(f"{successes} of {trials} contradict a rate of {words} (p = {p_value:.1e}).")


def combined(z: ArrayLike) -> FloatArray:
    """One score for each run from several dependent ones, shape (runs, quantities) -> (runs,).

    The quantities of a run are averaged and divided by the standard deviation that the average has for scores of unit
    variance with the correlation seen over all runs. So a bias that the quantities share, and standard errors that are
    wrong in all of them, show; the correlation alone does not.

    >>> z = np.random.default_rng(0).normal(size=(200, 1)) * np.ones(3)  # three quantities that say the same
    >>> bool(np.allclose(combined(z), z[:, 0]))
    True
    """
    scores = np.asarray(z, float)
    runs, count = scores.shape
    if count == 1:
        return scores[:, 0]
    if runs < 2 * count:
        raise InputError(f"z: {runs} runs are too few to know the correlation of {count} quantities")
    correlation = np.corrcoef(scores, rowvar=False)
    return np.asarray(scores.mean(axis=1) / np.sqrt(np.mean(correlation)))


def _normal_scores(z: FloatArray, df: float) -> FloatArray:
    """Student-t scores as normal ones with the same tail probability."""
    if not np.isfinite(df):
        return z
    return np.asarray(np.sign(z) * stats.norm.isf(np.maximum(stats.t.sf(np.abs(z), df), 1e-300)))
