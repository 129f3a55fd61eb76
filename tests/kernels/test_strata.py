"""Bins of a and their strata at the base: the comparison is fair for every lattice, and for eight free of counting."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pathtemp.kernels import lam_given_theta, strata
from pathtemp.paths.links import fold

CELLS = 20


def bin_of(a: np.ndarray, cells: int = CELLS) -> np.ndarray:
    return np.asarray(jax.jit(jax.vmap(lambda x: strata.bin_of(x, cells)))(a.ravel())).reshape(a.shape)


@pytest.mark.parametrize("cells", [3, 5, 20, 60, 64, 240])
def test_bins_follow_the_folded_circle(cells: int) -> None:
    a = np.linspace(0.0, 2.0, 40_000, endpoint=False) + 1e-6
    index = bin_of(a, cells)
    order = np.argsort(np.asarray(fold(a)), kind="stable")
    assert np.all(np.diff(index[order]) >= 0)
    share = np.bincount(index, minlength=strata.count_bins(cells)) / len(a)
    parts = strata.strata(cells)
    coarse = np.concatenate([[share[:parts].sum()], share[parts:]])
    np.testing.assert_allclose(coarse, lam_given_theta.bins(cells), atol=3e-4)
    np.testing.assert_allclose(share[:parts], share[0], atol=3e-4)


@pytest.mark.parametrize("points", [8, 16, 24])
def test_a_cell_and_its_stratum_are_met_by_the_same_lattices(points: int) -> None:
    first = np.random.default_rng(1).uniform(0.0, 2.0, size=(4000, 1))
    lattice = (first + 2.0 / points * np.arange(points)) % 2.0
    count = np.array([np.bincount(row, minlength=strata.count_bins(CELLS)) for row in bin_of(lattice)])
    base = strata.compared_with(count, CELLS)
    parts = strata.strata(CELLS)
    np.testing.assert_array_equal(count[:, parts:-1], base[:, parts:-1])
    np.testing.assert_array_equal(count[:, -1], 2 * base[:, -1])


@pytest.mark.parametrize("cells", [120, 480])
def test_narrow_cells_share_a_stratum_that_is_met_whenever_they_are(cells: int) -> None:
    first = np.random.default_rng(1).uniform(0.0, 2.0, size=(2000, 1))
    lattice = (first + 0.25 * np.arange(8)) % 2.0
    count = np.array([np.bincount(row, minlength=strata.count_bins(cells)) for row in bin_of(lattice, cells)])
    base = strata.compared_with(count, cells)
    assert strata.strata(cells) == 12
    assert np.all(base[count > 0] > 0)


def test_a_wrong_stratum_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    right = strata.stratum_of_cell
    monkeypatch.setattr(strata, "stratum_of_cell", lambda cells: np.roll(right(cells), 1))
    with pytest.raises(AssertionError):
        test_a_cell_and_its_stratum_are_met_by_the_same_lattices(8)


@pytest.mark.parametrize("cells", [3, 4, 20, 64, 240])
def test_a_uniform_law_of_a_compares_as_the_widths_do(cells: int) -> None:
    """For any number of cells: also where strata and cells do not have the same width."""
    uniform = strata.cut(jnp.asarray(lam_given_theta.bins(cells)), cells)
    assert uniform.shape == (strata.count_bins(cells),)
    above = slice(strata.strata(cells), None)
    ratio = np.asarray(uniform)[above] / np.asarray(strata.compared_with(uniform, cells))[above]
    np.testing.assert_allclose(ratio, strata.relative_width(cells), rtol=1e-12)


def test_host_and_device_agree() -> None:
    x = np.random.default_rng(2).uniform(size=(3, strata.count_bins(CELLS)))
    np.testing.assert_allclose(strata.compared_with(x, CELLS), strata.compared_with(jnp.asarray(x), CELLS), rtol=1e-15)
    assert isinstance(strata.compared_with(x, CELLS), np.ndarray)
