"""Isolated modes beside a ridge: they are looked for, they get a leg of the base, and a run that lacks one says so."""

from __future__ import annotations

from dataclasses import replace

import jax.numpy as jnp
import numpy as np

from pathtemp.model.bases import normal
from pathtemp.model.model import model as join
from pathtemp.modes import choose
from pathtemp.modes.beside import beside, left_out, search_beside
from pathtemp.modes.find import base_stream
from pathtemp.modes.local import from_covariance
from pathtemp.modes.mode import Mode
from pathtemp.modes.search import Search
from pathtemp.paths.geometric import GeometricPath
from pathtemp.verdict.modes import check_apart

PLACE, WIDTH = np.array([6.0, 6.0, 5.0]), 0.3


def ring_and_mode(x):
    """A ring of radius 4 with 60% of the mass, and a mode whose basin has one in sixty of the draws of normal(0, 4)."""
    ring = -0.5 * ((jnp.sqrt(x[0] ** 2 + x[1] ** 2 + 1e-300) - 4.0) / 0.3) ** 2 - 0.5 * x[2] ** 2
    volume = np.log(2.0 * np.pi * 4.0 * 0.3 * 2.0 * np.pi)
    mode = -0.5 * jnp.sum(((x - PLACE) / WIDTH) ** 2) - 3.0 * np.log(WIDTH * np.sqrt(2.0 * np.pi))
    return jnp.logaddexp(np.log(0.6) + ring - volume, np.log(0.4) + mode)


def searched(starts: int) -> Search:
    """A search that has made 64 starts, by which it tells what there is, and then so many beside the ridge."""
    model = join(target=ring_and_mode, base=normal(0.0, 4.0, shape=(3,)))
    draw = base_stream(model.sample_base, 0)
    search = Search(GeometricPath(model.log_base, model.log_target), scale=np.full(3, 4.0), seed=0)
    search.climb(draw(64), found_by="base", random=True, most_gradients=np.inf)
    search.isolate()
    search_beside(search, draw, most=starts)
    search.refine()
    search.annealed = float(np.log(0.6))
    return search


def test_a_mode_beside_a_ring_is_found_weighed_and_given_a_leg() -> None:
    """One start in sixty leads to it, so that 1024 of them all miss it once in e^17 runs."""
    search = searched(1024)
    assert search.base_starts == 64 + 1024
    assert search.ridges
    (k,) = beside(search, search.annealed)
    np.testing.assert_allclose(search.modes[k].law.centre, PLACE, atol=0.15)
    # By some hundred effective draws at the least: a tenth.
    assert abs(search.modes[k].log_mass - np.log(0.4)) < 0.5
    assert choose.legs(search) == [k]
    assert choose.safety(search) == choose.WITH_RIDGE


def test_draws_that_lack_a_mode_beside_a_ridge_do_not_pass() -> None:
    path = GeometricPath(lambda x: -0.5 * x @ x, lambda x: -0.5 * x @ x)
    search, flat = Search(path, scale=np.ones(2), seed=0), from_covariance(np.zeros(2), np.eye(2), 0.0)
    search.modes = [Mode(replace(flat, flat=True), 50.0, "base", 9) for _ in range(3)]
    narrow = from_covariance(np.full(2, 9.0), 0.01 * np.eye(2), 0.0)
    search.modes.append(Mode(narrow, np.log(0.4), "base", 1, refined=True))
    rng = np.random.default_rng(0)
    ring, inside = rng.normal(size=(600, 2)), narrow.spread_out(rng.normal(size=(400, 2)))
    (share,) = left_out(search, 0.0, ring)
    assert share == np.exp(np.log(0.4) - np.logaddexp(np.log(0.4), 0.0))
    assert not check_apart(left_out(search, 0.0, ring)).passed
    assert check_apart(left_out(search, 0.0, np.concatenate([ring, inside]))).passed
    # A mode of next to no mass beside all the rest, and one whose mass was not measured, say nothing.
    assert check_apart(left_out(search, 9.0, ring)).passed
    search.modes[3] = replace(search.modes[3], log_mass=narrow.log_evidence)
    assert check_apart(left_out(search, -9.0, ring)).passed


def test_no_further_start_is_made_where_none_arrives() -> None:
    """A density that rises without end: each ascent takes all its steps, and ends nowhere."""
    model = join(target=lambda x: 0.1 * jnp.sum(x), base=normal(0.0, 4.0, shape=(3,)))
    draw = base_stream(model.sample_base, 0)
    search = Search(GeometricPath(model.log_base, model.log_target), scale=np.full(3, 4.0), seed=0)
    search.climb(draw(32), found_by="base", random=True, most_gradients=np.inf)
    assert search.ridges
    before = search.counts
    search_beside(search, draw, most=4096)
    assert search.counts == before
