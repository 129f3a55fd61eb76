"""Heaps of draws with a valley between, told from single laws of any shape."""

from __future__ import annotations

import numpy as np
import pytest

from pathtemp.plots.valley import valley

MANY = 4000


@pytest.mark.parametrize("law", ["normal", "uniform", "exponential", "cauchy", "lognormal", "beta"])
def test_one_law_has_no_valley(law: str) -> None:
    from scipy import stats

    frozen = {
        "normal": stats.norm(),
        "uniform": stats.uniform(),
        "exponential": stats.expon(),
        "cauchy": stats.cauchy(),
        "lognormal": stats.lognorm(2.0),
        "beta": stats.beta(0.5, 2.0),
    }[law]
    # Quantiles at even steps: the shape alone, without chance.
    assert valley(frozen.ppf((np.arange(MANY) + 0.5) / MANY)) == 0.0


@pytest.mark.parametrize("share", [0.5, 0.2, 0.1])
@pytest.mark.parametrize("distance", [8.0, 30.0])
def test_two_heaps_are_told_with_their_distance(share: float, distance: float) -> None:
    from scipy.special import ndtri

    u, here = ndtri((np.arange(MANY) + 0.5) / MANY), np.arange(MANY) % 100 < 100 * share
    values = u + distance * here
    assert valley(values) == pytest.approx(distance, rel=0.1)
    assert valley(1000.0 - 3.0 * values.reshape(4, -1)) == pytest.approx(valley(values))


def test_of_three_heaps_the_clearest_valley_counts() -> None:
    values = np.concatenate([np.linspace(x - 0.5, x + 0.5, 1000) for x in (-3.0, 1.0, 4.0)])
    assert valley(values) > 5
    assert valley(np.concatenate([values, [np.nan, np.inf]])) > 5


def test_too_few_draws_and_draws_that_stand_still_say_nothing() -> None:
    assert valley(np.repeat([0.0, 1.0], 50)) == valley(np.zeros(1000)) == valley(np.array([])) == 0.0
