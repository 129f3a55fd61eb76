"""Laws that bend: an exact density, draws that follow it, fits that find bends, skew and tails, and none by chance."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np

from pathtemp.kernels.spread import on_device
from pathtemp.model.layout import Layout
from pathtemp.model.model import Model
from pathtemp.modes import choose
from pathtemp.modes.adapted import Adapted, adapted_law
from pathtemp.modes.bending import fit_bent, order_of
from pathtemp.modes.bent import BentLaw, latent, latent_of_one, place_one, placed, splines
from pathtemp.modes.bent_base import bent_base, draws_of, log_density_of, log_latent
from pathtemp.modes.search import Search
from pathtemp.paths.geometric import GeometricPath
from pathtemp.testing.calibration import assert_close


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def log_user(x):
    return jnp.sum(-0.5 * (x / 4.0) ** 2 - jnp.log(4.0 * jnp.sqrt(2 * jnp.pi)))


def draw_user(key):
    return 4.0 * jax.random.normal(key, (2,))


def banana(rng: np.random.Generator, count: int) -> np.ndarray:
    """A bend, a scale that changes along it, and a skewed first coordinate."""
    x = np.sinh((np.arcsinh(rng.normal(size=count)) + 0.4) / 0.9)
    return np.stack([x, 0.5 * x**2 + np.exp(0.3 * x) * 0.2 * rng.normal(size=count)], axis=1)


@cache
def bent() -> BentLaw:
    turn = np.array([[0.8, -0.6], [0.6, 0.8]])
    return fit_bent(banana(generator(), 2000) @ turn.T, np.ones(2000), turn)


def test_the_map_leads_back() -> None:
    e = generator(1).normal(size=(50, 2))
    back, log_det = latent(bent(), placed(bent(), e))
    np.testing.assert_allclose(back, e, rtol=1e-8, atol=1e-8)
    # The volume of the map, by differences.
    for k in range(5):
        columns = [(placed(bent(), e[k] + 1e-6 * np.eye(2)) - placed(bent(), e[k] - 1e-6 * np.eye(2))) / 2e-6]
        np.testing.assert_allclose(np.linalg.slogdet(columns[0])[1], -log_det[k], rtol=1e-5, atol=1e-5)


def test_jax_and_numpy_have_the_same_law() -> None:
    theta = 3.0 * generator(2).normal(size=(20, 2))
    e, log_det = latent(bent(), theta)
    law = jax.tree.map(on_device, bent())
    ones, dets = jax.jit(jax.vmap(latent_of_one, (None, 0)))(law, theta)
    np.testing.assert_allclose(ones, e, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(dets, log_det, rtol=1e-9, atol=1e-9)
    small = np.clip(e, -3.0, 3.0)
    back = jax.jit(jax.vmap(place_one, (None, 0)))(law, small)
    np.testing.assert_allclose(back, placed(bent(), small), rtol=1e-9, atol=1e-9)


def test_latent_law_integrates_to_one() -> None:
    """With the exact volume of the map, so does the law in theta."""
    at = np.linspace(-40.0, 40.0, 321)
    e = np.stack(np.meshgrid(at, at, indexing="ij"), axis=-1)
    assert abs(np.sum(np.exp(log_latent(e))) * (at[1] - at[0]) ** 2 - 1.0) < 1e-6


def test_base_is_normalised_and_its_draws_follow_it() -> None:
    density, draw = bent_base(bent(), log_user, draw_user)
    theta = np.asarray(jax.jit(jax.vmap(draw))(jax.random.split(jax.random.key(3), 4000)))
    far = np.array([[1e8, -1e8]])
    values, slopes = jax.jit(jax.vmap(jax.value_and_grad(density)))(np.concatenate([theta, far]))
    of_user = -0.5 * np.sum((theta / 4.0) ** 2, axis=1) - 2.0 * np.log(4.0 * np.sqrt(2 * np.pi))
    # The mean of a normalised density over that of the base is one, where the draws follow the base exactly.
    for log_density in (of_user, log_density_of(bent(), theta)):
        ratio = np.exp(log_density - values[:-1])
        assert_close(ratio.mean(), 1.0, se=ratio.std() / np.sqrt(len(ratio)))
    # Far out the base is the user's, and its gradient a number.
    np.testing.assert_allclose(slopes[-1], -far[0] / 16.0)


def test_splines_hold_parabolas_and_constants() -> None:
    x = np.linspace(-4.0, 5.0, 31)
    b = splines(x, -2.0, 2.0, onwards=True)
    np.testing.assert_allclose(b.sum(axis=-1), 1.0, atol=1e-12)
    for parabola in (x, x**2 - x):
        fitted = np.linalg.lstsq(b, parabola, rcond=None)[0]
        np.testing.assert_allclose(b @ fitted, parabola, atol=1e-9)
    assert np.ptp(splines(x[x > 2.0], -2.0, 2.0, onwards=False), axis=0).max() == 0.0


def test_normal_draws_give_a_normal_law() -> None:
    theta = generator(4).normal(size=(500, 4)) @ np.array([[1.0, 0.8, 0, 0], [0, 1, 0, 0], [0, 0, 2, 0], [0, 0, 0, 1]])
    law = fit_bent(theta, np.ones(500), np.eye(4))
    e, _ = latent(law, theta)
    assert np.abs(np.cov(e.T) - np.eye(4)).max() < 0.35  # 0.35 is five standard errors of a covariance of 500 draws
    log_ratio = log_density_of(law, theta)
    assert np.isfinite(log_ratio).all()


def test_a_coordinate_that_bends_comes_after_the_one_it_bends_with() -> None:
    assert order_of(np.array([[0.0, 3.0], [0.2, 0.0]])) == [1, 0]
    swapped = banana(generator(5), 1000)[:, ::-1]
    assert np.argmax(np.abs(fit_bent(swapped, np.ones(1000), np.eye(2)).frame[:, 0])) == 1


def test_target_draws_lead_to_a_law_near_the_target() -> None:
    rng = generator(6)

    def log_target(x: np.ndarray) -> np.ndarray:
        return -0.5 * x[:, 0] ** 2 - 50.0 * (x[:, 1] - x[:, 0] ** 2) ** 2 - np.log(0.2 * np.pi)

    x = rng.normal(size=64)
    found = adapted_law(np.stack([x, x**2 + 0.1 * rng.normal(size=64)], axis=1), log_target, rng)
    assert found is not None
    theta = draws_of(found.law, 512, rng)
    weight = np.exp(log_target(theta) - log_density_of(found.law, theta))
    share = np.sum(weight) ** 2 / np.sum(weight**2) / 512
    assert share > 0.1
    assert found.missed(theta[rng.choice(512, size=64, p=weight / weight.sum())], log_target) < 0.05
    # The mean weight is the mass, one.
    assert_close(weight.mean(), 1.0, se=weight.std() / np.sqrt(512))


def test_too_few_points_give_no_law() -> None:
    assert adapted_law(np.repeat(np.eye(2), 20, axis=0), lambda x: -np.sum(x**2, axis=1), generator(7)) is None


def test_a_law_of_one_of_two_parts_is_seen_to_miss_the_other() -> None:
    """Its share of effective draws is that of one part, and says nothing of the other; the draws it began with do."""
    rng = generator(8)
    start = 0.02 * rng.normal(size=(64, 3)) + np.sign(rng.normal(size=(64, 1))) * 5.0

    def log_target(x: np.ndarray) -> np.ndarray:
        return np.logaddexp(*(-0.5 * np.sum((x - m) ** 2, axis=1) / 0.02**2 for m in (-5.0, 5.0)))

    one = start[start[:, 0] > 0]
    law = fit_bent(one, np.ones(len(one)), np.eye(3))
    found = Adapted(law, 0.5, 1.5 * np.log(2 * np.pi) + 3.0 * np.log(0.02))
    # Of 64 fair coins fewer than 13 show heads once in a million times.
    assert found.missed(start, log_target) > 0.2
    assert found.missed(one, log_target) < 0.03


def test_points_where_numbers_end_have_no_density_and_no_law_leads_there() -> None:
    """Draws of a law under way may lie where a density is rounded to +inf; it is no error of the model's."""

    def log_prob(x):
        return jnp.where(jnp.abs(x[0]) < 6.0, log_user(x), jnp.inf)

    search = Search(GeometricPath(log_prob, log_prob), scale=np.ones(2), seed=0)
    here, beyond = np.zeros(2), np.array([7.0, 0.0])
    found = search.log_target_anywhere(np.stack([here, beyond]))
    np.testing.assert_allclose(found, [float(log_user(here)), -np.inf])
    assert search.counts.densities == 2
    # Of 4096 draws of a law as wide as this some lie beyond.
    law = fit_bent(3.0 * generator(9).normal(size=(500, 2)), np.ones(500), np.eye(2))
    model = Model(log_user, log_user, Layout({"x": (2,)}))
    assert choose.leads_astray(replace(model, log_base=log_prob), law, generator(10))
    assert not choose.leads_astray(model, law, generator(10))
