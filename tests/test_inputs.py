"""Bad input is refused before any sampling, each time in one sentence that names the argument."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

import pathtemp as pt
from pathtemp.api.divide import _starts as divide_starts
from pathtemp.engines.default.chains import Chains
from pathtemp.errors import InfiniteDensity, InputError
from pathtemp.model.bases import Automatic
from pathtemp.model.inputs import check_model, check_repeatable, starts
from pathtemp.model.layout import Layout
from pathtemp.model.model import Model
from pathtemp.model.model import model as join
from pathtemp.model.transforms import Positive
from pathtemp.settings import Settings
from pathtemp.testing import ALL, uniform_supports
from pathtemp.testing.calibration import assert_close
from pathtemp.verdict.densities import check_normalisable

BASE = pt.normal(0.0, 2.0, shape=(2,))


def good(x: jax.Array) -> jax.Array:
    return -0.5 * jnp.sum((x - 1.0) ** 2)


@pytest.fixture(autouse=True)
def no_sampling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is refused must be refused before the first move."""

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("sampling began")

    monkeypatch.setattr(Chains, "anneal", fail)
    monkeypatch.setattr(Chains, "round", fail)


def refused(what: str, **arguments: Any) -> str:
    """The one sentence with which ``temper`` refuses the arguments; it must match ``what``."""
    with pytest.raises(InputError, match=what) as caught:
        pt.temper(**{"progress": False, "chains": 16, "budget": 1e5} | arguments)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 300
    return message


BAD_TARGETS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a vector": (lambda x: -0.5 * x**2, r"target: .*shape \(2,\)"),
    "one in brackets": (lambda x: jnp.atleast_1d(good(x)), r"target: .*shape \(1,\)"),
    "float32": (lambda x: good(x).astype(jnp.float32), "target: .*float32"),
    "an integer": (lambda x: jnp.sum(x > 0), "target: .*int"),
    "nothing": (lambda x: None, "target: "),
    "a tuple": (lambda x: (good(x), 0.0), "target: "),
    "wrong shape inside": (lambda x: good(x) + x[0] * jnp.sum(x @ jnp.ones((3, 1))), "target: .*fails"),
    "raises": (lambda x: x["mu"], "target: .*fails"),
    "numpy inside": (lambda x: float(np.sum(np.asarray(x))), "target: .*fails"),
    "NaN everywhere": (lambda x: good(x) * jnp.nan, "target: .*NaN at all 16 .*look for NaN"),
    "no density": (lambda x: jnp.where(x[0] > 1e6, 0.0, -jnp.inf), "target: .*at all 16 .*choose a base"),
}


@pytest.mark.parametrize("kind", sorted(BAD_TARGETS))
def test_bad_targets(kind: str) -> None:
    target, what = BAD_TARGETS[kind]
    refused(what, target=target, base=BASE)


BAD_BASES: dict[str, tuple[Callable[[], Any], str]] = {
    "flat": (lambda: pt.function_base(lambda x: 0.0 * x[0], dim=2), r"base: .*does not fall off in theta\[0\]"),
    "flat in one": (
        lambda: pt.function_base(lambda x: -(x[0] ** 2), dim=2),
        r"base: .*does not fall off in theta\[1\]",
    ),
    "falls to one side": (
        lambda: pt.function_base(lambda x: -x[0] - 0.5 * x[1] ** 2, dim=2),
        r"base: .*does not fall off in theta\[0\]",
    ),
    "flat positive": (
        lambda: pt.function_base(lambda v: jnp.zeros(()), shapes={"tau": ()}, transforms={"tau": Positive()}),
        "base: .*does not fall off in tau",
    ),
    "NaN": (lambda: pt.function_base(lambda x: jnp.nan * x[0], dim=2), "base: .*-inf or NaN at all"),
    "float32": (lambda: pt.function_base(lambda x: (-x @ x).astype(jnp.float32), dim=2), "base: .*float32"),
    "a vector": (lambda: pt.function_base(lambda x: -(x**2), dim=2), r"base: .*shape \(2,\)"),
    "draws outside": (
        lambda: pt.function_base(
            lambda x: jnp.where(jnp.all(jnp.abs(x) < 1), -jnp.log(4.0), -jnp.inf),
            sample=lambda key: jax.random.normal(key, (2,)),
            dim=2,
        ),
        "base: log_prob is -inf or NaN at",
    ),
    "draws of another size": (
        lambda: pt.function_base(lambda x: -x @ x, sample=lambda key: jax.random.normal(key, (3,)), dim=2),
        r"base: .*\(3,\)",
    ),
    "draws not finite": (
        lambda: pt.function_base(lambda x: -x @ x, sample=lambda key: jnp.full(2, jnp.nan), dim=2),
        "base: .*not finite",
    ),
    "discrete": (lambda: dist.Poisson(2.0), "base: .*discrete"),
    "no log_prob": (lambda: "normal", "base: .*no log_prob"),
    "a function": (lambda: lambda x: -x @ x, "base: .*function_base"),
    "empty": (lambda: {}, "base: .*empty"),
    "nothing in it": (lambda: pt.normal(0.0, 1.0, shape=(0,)), "base: .*no parameters"),
}


@pytest.mark.parametrize("kind", sorted(BAD_BASES))
def test_bad_bases(kind: str) -> None:
    make, what = BAD_BASES[kind]
    refused(what, target=lambda x: jnp.zeros(()) if isinstance(x, dict) else good(jnp.asarray(x)), base=make())


def test_support_outside_the_base() -> None:
    refused("target: it has density where the base has none", model=uniform_supports(reverse=True).model)
    narrow = {"x": dist.Uniform(0.0, 1.0)}
    # Through a transform nothing is outside: the target on (0, 1) alone is a fair problem.
    theta = starts(join(lambda v: -v["x"], narrow), count=16, seed=0)
    check_model(join(lambda v: -v["x"], narrow), theta)


def test_target_of_another_shape_than_the_base() -> None:
    message = refused("target: .*fails", target=lambda x: good(x) + x @ jnp.ones(3), base=BASE)
    assert "2 parameters" in message


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ({"target": good}, "base: target= alone .*give dim=, or a base"),
        ({"base": BASE}, "target= with base="),
        ({}, "target= with base="),
        ({"model": ALL["cauchy_pair"]().model, "target": good}, "not both"),
        ({"model": ALL["cauchy_pair"]().model, "base": BASE}, "not both"),
        ({"model": good}, "model: as a NumPyro model, good was given other arguments"),
        ({"target": 3.0, "base": BASE}, "target: expected a function"),
        ({"target": good, "base": BASE, "draws": 0}, "draws: "),
        ({"target": good, "base": BASE, "draws": -3}, "draws: "),
        ({"target": good, "base": BASE, "budget": 0}, "budget: "),
        ({"target": good, "base": BASE, "budget": -1.0}, "budget: "),
        ({"target": good, "base": BASE, "budget": float("nan")}, "budget: "),
        ({"target": good, "base": BASE, "budget": 100}, "budget: 100 .*too few for 16 chains; give"),
        ({"target": good, "base": BASE, "chains": 0}, "chains"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], what: str) -> None:
    refused(what, **arguments)


@pytest.mark.parametrize(
    "change",
    [
        {"chains": 0},
        {"iterations": 0},
        {"iterations": 30},
        {"leapfrogs": 0},
        {"orbit": 1},
        {"acceptance": 1.0},
        {"anneal_ess": 0.0},
        {"adapt_share": 1.5},
    ],
)
def test_bad_settings(change: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(change))):
        Settings(**change)


def test_the_smallest_budget_named_is_enough() -> None:
    message = refused("budget: ", target=good, base=BASE, budget=100)
    least = float(message.split("give ")[1].split(" ")[0])
    with pytest.raises(AssertionError, match="sampling began"):
        pt.temper(target=good, base=BASE, chains=16, budget=least, progress=False)


def quick_first(names: Iterable[str], quick: set[str]) -> list[Any]:
    """The names, all but the quick ones slow: each has its own programs to compile."""
    return [pytest.param(x, marks=[] if x in quick else [pytest.mark.slow]) for x in sorted(names)]


@pytest.mark.parametrize(
    "name", quick_first(set(ALL) - {"uniform_supports_reverse"}, {"cauchy_pair", "uniform_supports", "funnel"})
)
def test_every_problem_with_an_answer_is_let_through(name: str) -> None:
    model = ALL[name]().model
    theta = starts(model, count=64, seed=0)
    energies = check_model(model, theta)
    assert energies.shape == (64, 2)
    assert np.isfinite(energies[:, 0]).all()


PROPER: dict[str, Any] = {
    "cauchy": dist.Cauchy(0.0, 3.0),
    "heavy": dist.StudentT(0.7, jnp.zeros(3), 10.0).to_event(1),
    "far": pt.normal(1e6, 1e-3, shape=(2,)),
    "wide": pt.normal(0.0, 1e8, shape=(2,)),
    "horseshoe": {"tau": dist.HalfCauchy(1.0), "lam": dist.HalfCauchy(1.0).expand([4]).to_event(1)},
    "gamma": dist.Gamma(0.1, 0.1),
    "beta": dist.Beta(0.05, 0.05),
    "simplex": dist.Dirichlet(jnp.array([4.0, 1.0, 0.3])),
    "function": pt.function_base(lambda x: -0.5 * jnp.sum((x / 50.0) ** 2), dim=3),
    "function with a bound": pt.function_base(lambda x: jnp.where(x[0] > 0, -x[0], -jnp.inf), dim=1),
    "function with a NaN side": pt.function_base(lambda x: jnp.log(x[0]) - x[0], dim=1),
}


@pytest.mark.parametrize(
    "kind",
    quick_first(PROPER, {"cauchy", "far", "wide", "function", "function with a bound", "function with a NaN side"}),
)
def test_proper_bases_are_let_through(kind: str) -> None:
    model = join(lambda v: jnp.zeros(()), PROPER[kind])
    # A likelihood of one, times the base itself.
    whole = Model(model.log_base, model.log_base, model.layout, model.sample_base)
    check_model(whole, starts(whole, count=64, seed=0))


def test_a_base_that_is_to_be_found_is_none() -> None:
    model = Model(Automatic(), lambda x: -jnp.sum(x**2), Layout({"x": (2,)}))
    theta = starts(model, count=8, seed=0)
    with pytest.raises(InputError, match=r"only pt\.temper finds by itself"):
        check_model(model, theta)
    assert divide_starts(model, 8, 0).shape == (8, 2)  # along a margin a base only starts the chains


def test_starts_are_base_draws_and_depend_on_the_seed() -> None:
    model = join(good, pt.normal(100.0, 1.0, shape=(2,)))
    one, two, again = (starts(model, count=32, seed=seed) for seed in (1, 2, 1))
    np.testing.assert_array_equal(one, again)
    assert np.all(one != two)
    assert np.all(np.abs(one - 100.0) < 6.0)


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e-61, 1e61, 1e150, 1e300])
def test_scales_beyond_reason_are_refused(scale: float) -> None:
    """Whatever becomes of their squares; the same on a scale of one is let through."""
    narrow = pt.normal(jnp.zeros(2), jnp.array([1.0, scale]))
    refused(r"base: its draws of theta\[1\] .*rescale the parameters", target=good, base=narrow)


@pytest.mark.parametrize("size", [-1e300, -1e61])
def test_log_densities_beyond_reason_are_refused(size: float) -> None:
    refused("target: .* at best among the starts; rescale it", target=lambda x: good(x) + size, base=BASE)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-50, 1e50])
def test_extreme_scales_within_reason_work(scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    fit = pt.temper(
        target=lambda x: -0.5 * jnp.sum((x / scale - 1.0) ** 2),
        base=pt.normal(0.0, 3.0 * scale, shape=(2,)),
        budget=60_000,
        chains=16,
        progress=False,
    )
    value, se = fit.log_marginal_likelihood
    assert_close(value, float(np.log(2 * np.pi) + 2 * np.log(scale)), se)


def test_a_density_that_is_random_is_told() -> None:
    with pytest.raises(pt.InputError, match=r"^target: the log density gave different numbers at the same point"):
        check_repeatable("target", np.array([-2.0, -1.0]), np.array([-2.0, -1.5]))


def test_a_target_that_does_not_fall_off_is_called_so() -> None:
    assert check_normalisable(1.0, "x").passed
    assert check_normalisable(0.0, "x[1]").message.startswith("The target cannot be normalised")


def test_a_density_that_grows_beyond_all_numbers_is_called_so() -> None:
    said = str(InfiniteDensity(np.array([1e35]), np.array([-1.0, 1e70])))
    assert said.startswith("target: it cannot be normalised, or holds a huge constant")
