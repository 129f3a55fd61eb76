"""Models as their own languages have them, given straight to what takes a model."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("numpyro", reason="NumPyro is not installed")
pytest.importorskip("pymc", reason="PyMC is not installed")

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pymc as pm
from synthetic import cauchy_fit

import pathtemp as pt
from pathtemp import seeds
from pathtemp.api import compare as comparing
from pathtemp.api import divide
from pathtemp.frontends import stan
from pathtemp.model.model import Model

Y = np.array([0.3, -1.2, 2.2])


def pymc_model() -> Any:
    with pm.Model() as model:
        tau = pm.HalfNormal("tau", 2.0)
        pm.Normal("y", pm.Normal("theta", 0.0, tau, shape=3), 1.0, observed=Y)
    return model


def numpyro_model(y: Any, scale: float = 2.0) -> None:
    tau = numpyro.sample("tau", dist.HalfNormal(scale))
    with numpyro.plate("i", len(y)):
        theta = numpyro.sample("theta", dist.Normal(0.0, tau))
        numpyro.sample("y", dist.Normal(theta, 1.0), obs=y)


@pytest.fixture
def met(monkeypatch: pytest.MonkeyPatch) -> list[Model]:
    """The models that come as far as sampling, which does not begin."""
    found: list[Model] = []

    def stop(model: Model, *_: Any) -> None:
        found.append(model)
        raise StopIteration

    monkeypatch.setattr(divide, "starts_of", stop)
    return found


def density(model: Model) -> float:
    return float(model.log_target(jnp.linspace(-0.5, 0.7, model.dim)))


@pytest.mark.slow
def test_a_margin_of_a_pymc_model(met: list[Model]) -> None:
    source = pymc_model()
    with pytest.raises(StopIteration):
        pt.divide_and_conquer(source, margin="tau", progress=False)
    assert density(met[0]) == density(pt.from_pymc(source))
    with pytest.raises(StopIteration):
        pt.diagnose_margin(
            cauchy_fit().posterior.rename(theta="tau").isel(theta_dim_0=0, missing_dims="ignore"), source, "tau"
        )


@pytest.mark.slow
def test_a_margin_of_a_numpyro_function_with_its_arguments(met: list[Model]) -> None:
    for arguments, options in (((Y,), {}), ((), {"y": Y}), ((Y,), {"scale": 3.0})):
        with pytest.raises(StopIteration):
            pt.divide_and_conquer(numpyro_model, *arguments, margin="tau", progress=False, **options)
        assert density(met[-1]) == density(pt.from_numpyro(numpyro_model, *arguments, **options))


def test_a_margin_of_a_stan_program_with_its_data(met: list[Model], monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {}

    def opened(program: str, **options: Any) -> Model:
        given.update(options, program=program)
        return pt.from_pymc(pymc_model())

    monkeypatch.setattr(stan, "from_stan", opened)
    with pytest.raises(StopIteration):
        pt.divide_and_conquer("m.stan", data={"N": 3}, margin="tau", seed=4, progress=False)
    assert given == {"program": "m.stan", "data": {"N": 3}, "base": None, "seed": seeds.seed_word(4), "progress": False}


def test_models_are_compared_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {}

    def tempered(model: Model, *, seed: int, **how: Any) -> pt.Fit:
        found[seed] = density(model), how
        raise StopIteration

    monkeypatch.setattr(comparing, "temper", tempered)
    with pytest.raises(StopIteration):
        pt.compare({"a": pymc_model(), "b": cauchy_fit()}, budget=1e4, seed=7)
    assert found == {seeds.seed_word(7): (density(pt.from_pymc(pymc_model())), {"budget": 1e4})}
    with pytest.raises(pt.InputError, match=r"^a: expected a model, .* a NumPyro model goes to pt.from_numpyro"):
        pt.compare({"a": numpyro_model, "b": cauchy_fit()})


WRONG_FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...], str]] = {
    "compiled": (jax.jit(numpyro_model), (Y,), "from_numpyro: numpyro_model is compiled by jax.jit"),
    "seeded": (numpyro.handlers.seed(numpyro_model, 0), (Y,), "from_numpyro: .* is inside handlers.seed"),
    "a list": (numpyro_model, (list(Y),), "data: site 'y' observes a list"),
    "NumPy inside": (
        lambda y: numpyro.sample("y", dist.Normal(np.exp(numpyro.sample("x", dist.Normal(0.0, 1.0))), 1.0), obs=y),
        (Y,),
        "from_numpyro: <lambda> takes a site out of JAX",
    ),
    "discrete alone": (
        lambda y: numpyro.sample("y", dist.Normal(numpyro.sample("k", dist.Poisson(3.0)), 1.0), obs=y),
        (Y,),
        "from_numpyro: site 'k' is a Poisson",
    ),
}


@pytest.mark.parametrize("kind", WRONG_FUNCTIONS)
def test_functions_that_cannot_work_are_told_why(kind: str) -> None:
    function, arguments, what = WRONG_FUNCTIONS[kind]
    with pytest.raises(pt.InputError, match=f"^{what}") as refused:
        pt.temper(function, *arguments, progress=False)
    assert len(str(refused.value)) <= 200


@pytest.mark.parametrize(("name", "what"), [("num_samples", "draws= is what"), ("num_warmup", "its own warm-up")])
def test_arguments_of_other_samplers_are_told_beside_a_function_too(name: str, what: str) -> None:
    with pytest.raises(pt.InputError, match=rf"^{name}: there is no such argument; .*{what}"):
        pt.temper(numpyro_model, Y, **{name: 100})


def test_a_margin_of_a_log_density(met: list[Model]) -> None:
    base = {"tau": dist.HalfNormal(2.0), "theta": dist.Normal(0.0, 3.0)}

    def target(v: Any) -> Any:
        return dist.HalfNormal(2.0).log_prob(v["tau"]) + dist.Normal(0.0, v["tau"]).log_prob(v["theta"])

    with pytest.raises(StopIteration):
        pt.divide_and_conquer(target=target, base=base, margin="tau", progress=False)
    assert set(met[0].layout.shapes) == {"tau", "theta"}


def test_data_may_follow_a_stan_program(monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(program: str, **options: Any) -> Model:
        raise InterruptedError(program, options["data"])

    monkeypatch.setattr(stan, "from_stan", opened)
    with pytest.raises(InterruptedError) as met:
        pt.temper("m.stan", {"N": 3})
    assert met.value.args == ("m.stan", {"N": 3})
