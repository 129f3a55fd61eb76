"""Functions of many points: the same whether they go through a program one block at a time or many at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pathtemp.model import blocks, evaluate
from pathtemp.model.blocks import in_blocks
from pathtemp.testing import mixture_1d


def scaled(factor: float) -> Any:
    return lambda shared, x, y: (shared + factor * x * y, x - y)


@pytest.mark.parametrize("count", [1, 4, 8, 9, 21])
def test_rows_come_back_in_order_and_none_is_made_up(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "TOGETHER", 2)
    x, y = np.arange(2.0 * count).reshape(count, 2), np.linspace(1.0, 2.0, count)[:, None]
    product, difference = in_blocks(scaled, (3.0,), np.asarray(0.5), (x, y), block=4)
    np.testing.assert_allclose(product, 0.5 + 3.0 * x * y, rtol=1e-14)
    np.testing.assert_allclose(difference, x - y, rtol=1e-14)


def test_draws_of_the_base_do_not_depend_on_how_many_blocks_go_together(monkeypatch: pytest.MonkeyPatch) -> None:
    sample = mixture_1d().model.sample_base
    assert sample is not None
    how = {"seed": 1, "stream": 2, "count": 5 * evaluate.BLOCK - 7}
    one_by_one = evaluate.exact_draws(sample, **how)
    monkeypatch.setattr(blocks, "TOGETHER", 2)
    np.testing.assert_allclose(evaluate.exact_draws(sample, **how), one_by_one, rtol=1e-12)
    assert len(np.unique(one_by_one)) == len(one_by_one)
