"""A Stan model is made again from plain values, and a run goes on from its checkpoint alone."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from stan_programs import load, path

import pathtemp as pt
from pathtemp.frontends.stan.recipe import from_recipe
from pathtemp.io import writer
from pathtemp.io.codec import decode, encode
from pathtemp.model.bases import Automatic, function_base
from pathtemp.model.model import Model
from pathtemp.settings import Settings

dist = pytest.importorskip("numpyro.distributions")
pytestmark = pytest.mark.usefixtures("compiled")


def made_again(model: Model) -> Model:
    """The model after a way through a file."""
    return from_recipe(decode(*encode(model.recipe)), progress=False)


def assert_same(model: Model, again: Model) -> None:
    points = np.random.default_rng(0).normal(size=(3, model.dim))
    for x in points:
        assert float(model.log_target(x)) == float(again.log_target(x))
        assert float(model.log_base(x)) == float(again.log_base(x))
    assert (model.sample_base is None) == (again.sample_base is None)
    assert model.name == again.name
    for name, values in model.draws(points).items():
        np.testing.assert_array_equal(values, again.draws(points)[name])


BY_NAME = {
    "theta": dist.Normal(0.0, 5.0).expand([8]).to_event(1),
    "mu": dist.Normal(0.1, 5.0),
    "tau": dist.HalfCauchy(5.0),
}


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("cauchy", {}),
        ("cauchy", {"data": {"y": np.float64(0.1) + 0.2}}),
        ("eight_schools", {"seed": 7}),  # of which the generated quantities know
        pytest.param("nasty", {}, marks=pytest.mark.stan_full),
        ("eight_schools", {"base": BY_NAME}),
        ("eight_schools", {"base": pt.normal(np.linspace(0.0, 1.0, 10), 3.0)}),
        pytest.param("typed_base", {"base_program": path("typed_base")}, marks=pytest.mark.stan_full),
    ],
)
def test_programs_data_and_bases_survive_a_file(name: str, options: dict[str, Any]) -> None:
    model = load(name, **options)
    assert_same(model, made_again(model))


def test_an_automatic_base_stays_automatic() -> None:
    assert isinstance(made_again(load("cauchy", base="auto")).log_base, Automatic)


@pytest.mark.parametrize(
    "base",
    [
        function_base(lambda x: -jnp.sum(x**2), dim=10),
        dist.MultivariateNormal(np.zeros(10), np.eye(10)),
        {**BY_NAME, "tau": dist.LeftTruncatedDistribution(dist.Normal(0.0, 5.0), 0.0)},
    ],
)
def test_what_is_more_than_plain_values_is_not_kept(base: Any) -> None:
    assert load("eight_schools", base=base).recipe is None


def test_a_file_cannot_name_anything_but_a_distribution() -> None:
    recipe = load("eight_schools", base=BY_NAME).recipe
    assert recipe is not None
    recipe["base"]["parts"]["mu"]["name"] = "constraints"
    with pytest.raises(pt.InputError, match="no distribution of NumPyro"):
        from_recipe(recipe, progress=False)


@pytest.mark.stan_full
def test_a_run_goes_on_from_its_checkpoint_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, early, written = tmp_path / "run.nc", tmp_path / "early.nc", []
    write = writer.write

    def and_copy(place: Path, record: Any) -> None:
        write(place, record)
        written.append(place)
        if len(written) == 4:
            shutil.copy(place, early)

    monkeypatch.setattr(writer, "write", and_copy)
    options: dict[str, Any] = {"settings": Settings(chains=8, iterations=8, anneal_moves=2), "budget": 9000, "seed": 3}
    fit = pt.temper(load("cauchy"), checkpoint=place, progress=False, **options)
    assert len(written) > 4  # the copy is of a run that went on
    again = pt.resume(early, progress=False)
    assert again.posterior.equals(fit.posterior)
    assert again.log_z.mean.tobytes() == fit.log_z.mean.tobytes()
    assert again.extend(budget=1500).counts.gradients > fit.counts.gradients

    plain = tmp_path / "plain.nc"
    base = function_base(lambda x: -0.5 * jnp.sum(x**2) / 25.0, dim=1)
    pt.temper(load("cauchy", base=base), checkpoint=plain, progress=False, **options)
    with pytest.raises(pt.InputError, match="holds no model"):
        pt.resume(plain)
