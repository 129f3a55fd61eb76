"""Log densities that are no numbers: +inf is an error that shows the point, NaN and -inf are counted apart and told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

import pathtemp as pt
from pathtemp.baselines.ladder import _AsItIs
from pathtemp.engines.default.chains import Chains
from pathtemp.engines.met import Place, Watch, target_at, watch_of
from pathtemp.errors import InfiniteDensity
from pathtemp.kernels import hmc
from pathtemp.kernels.joint_nuts import spent_by
from pathtemp.kernels.rejected import (
    FIELD,
    GRADIENT,
    ZERO,
    Rejected,
    kinds,
    point_of,
    rejected_at,
    rejected_end,
)
from pathtemp.kernels.rejected import NAN as NAN_CODE
from pathtemp.model import inputs
from pathtemp.model.evaluate import energies_of
from pathtemp.model.model import Model
from pathtemp.model.model import model as join
from pathtemp.modes.find import base_stream, find_modes
from pathtemp.modes.limits import Limits
from pathtemp.modes.search import Search
from pathtemp.paths.geometric import GeometricPath
from pathtemp.result.run import NOWHERE, Rejections
from pathtemp.settings import LADDER, PAPER, Settings
from pathtemp.verdict.densities import check_gradient, check_nan

SMALL: dict[str, Any] = {
    "settings": Settings(chains=16, iterations=16),
    "draws": 8,
    "modes": "off",
    "budget": 18_000,
    "progress": False,
}
CENTRE = jnp.array([5.0, 5.0])


def normal(x: jax.Array) -> jax.Array:
    return -0.5 * jnp.sum((x - CENTRE) ** 2)


def in_hole(x: jax.Array) -> jax.Array:
    """A disc a standard deviation from the centre of the target, where no draw of the base comes."""
    return jnp.sum((x - CENTRE - 1.0) ** 2) < 1.0


def with_hole(value: float) -> Model:
    """No density far to one side, and ``value`` in the hole."""

    def target(x: jax.Array) -> jax.Array:
        return jnp.where(in_hole(x), value, jnp.where(x[1] > 7.0, -jnp.inf, normal(x)))

    return join(target, pt.normal(jnp.zeros(2), 1.0), name="with a hole")


INFINITE, NAN = with_hole(float("inf")), with_hole(float("nan"))


def where(met: pytest.ExceptionInfo[InfiniteDensity]) -> np.ndarray:
    assert met.value.values[1] == np.inf
    return met.value.theta


def test_kinds_are_told_apart_and_add_up() -> None:
    values = jnp.array([[0.0, 1.0], [0.0, -jnp.inf], [jnp.nan, 0.0], [-jnp.inf, jnp.nan], [0.0, 1e31], [0.0, -1e300]])
    theta = jnp.arange(12.0).reshape(6, 2)
    met = rejected_at(values, theta)
    assert tuple(map(int, kinds(met.code))) == (1, 2, 0, 1)
    np.testing.assert_array_equal(met.point, [8.0, 9.0])
    assert tuple(map(int, kinds(1000 * met.code))) == (1000, 2000, 0, 1000)
    both = Rejected(*(jnp.stack(parts) for parts in zip(rejected_at(values[:4], theta[:4]), met, strict=True)))
    np.testing.assert_array_equal(point_of(both), [8.0, 9.0])


def test_plus_infinity_at_the_start_is_told_by_name() -> None:
    base = {"tau": dist.HalfNormal(2.0), "b": pt.normal(0.0, 1.0, shape=(2,))}
    with pytest.raises(pt.InputError, match=r"^target: the log density is \+inf at b = \[.*\], tau = [1-9]") as met:
        pt.temper(target=lambda v: jnp.where(v["tau"] > 1.0, jnp.inf, -v["tau"]), base=base, **SMALL)
    assert "must be finite, or -inf where it is zero" in str(met.value)


def test_plus_infinity_of_the_base_is_told() -> None:
    base = pt.function_base(lambda x: jnp.where(x[0] > 0.5, jnp.inf, -0.5 * x @ x), dim=2)
    with pytest.raises(InfiniteDensity, match=r"^base: the log density is \+inf at theta = \["):
        pt.temper(target=normal, base=base, **SMALL)


def test_plus_infinity_in_the_search_is_told() -> None:
    search = Search(GeometricPath(INFINITE.log_base, INFINITE.log_target), scale=np.ones(2), seed=0)
    with pytest.raises(InfiniteDensity, match=r"\+inf at the unconstrained point \(6, 6\)"):
        search.log_target(np.array([[0.0, 0.0], [6.0, 6.0]]))


def test_plus_infinity_where_numbers_end_does_not_stop_the_search() -> None:
    """Points that pathtemp makes up, far starts and planted modes, may lie where a density overflows."""

    def overflows(x: jax.Array) -> jax.Array:
        return jnp.where(jnp.abs(x[0]) > 30.0, jnp.inf, jnp.logaddexp(normal(x - 2.0), normal(x + 2.0)))

    model = join(overflows, pt.normal(jnp.zeros(2), 4.0), name="overflows")
    search = Search(GeometricPath(model.log_base, model.log_target), scale=np.full(2, 4.0), seed=0)
    assert model.sample_base is not None
    rng, draws = np.random.default_rng(0), base_stream(model.sample_base, 0)
    find_modes(search, draws, (np.ones(64), draws(64)), Limits(5e4, 2048, slopes=2048), rng=rng)
    assert len(search.modes) == 2
    assert search.power is not None
    far = np.array([[0.0, 0.0], [40.0, 0.0]])
    assert np.isfinite(search.log_target_anywhere(far)).tolist() == [True, False]
    with pytest.raises(InfiniteDensity):
        search.scan(far, gradients=2, drawn=2)
    assert np.isfinite(search.scan(far, gradients=2, drawn=1).log_q).tolist() == [True, False]
    assert np.isfinite(search.scan(far, gradients=0, drawn=1).log_q).tolist() == [True, False]


def unlooked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the checks beyond the draws of the base."""
    monkeypatch.setattr(inputs, "_check_support", lambda theta, path: None)


def test_plus_infinity_in_the_annealing_pass_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    unlooked(monkeypatch)
    monkeypatch.setattr(Chains, "round", lambda self: pytest.fail("it came to the rounds"))
    with pytest.raises(InfiniteDensity, match=r"\+inf at theta = \[") as met:
        pt.temper(INFINITE, **SMALL)
    assert in_hole(jnp.asarray(where(met)))


def test_plus_infinity_in_the_rounds_is_told_and_the_rounds_before_are_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    unlooked(monkeypatch)
    met_by_engine = Chains._met

    def from_the_third_round(self: Chains, rejected: Rejected, *how: Any) -> None:
        early = rejected._replace(code=np.asarray(rejected.code) % FIELD**3)  # type: ignore[arg-type]
        met_by_engine(self, rejected if self.rounds >= 3 else early, *how)

    monkeypatch.setattr(Chains, "_met", from_the_third_round)
    place = tmp_path / "run.nc"
    with pytest.raises(InfiniteDensity, match=r"pt\.resume goes on from the rounds before once it is mended") as met:
        pt.temper(INFINITE, checkpoint=place, **SMALL)
    assert in_hole(jnp.asarray(where(met)))
    fit = pt.resume(place, NAN, progress=False)
    assert len(fit.history) > 4


def test_what_only_one_program_rounds_to_infinity_is_no_error() -> None:
    """Log densities of -1e28 are so coarse that a sum of exponentials of them may overflow in one program alone."""
    met = Rejected(np.array([[0, FIELD**3], [ZERO, 0]]), np.zeros((2, 1)))  # type: ignore[arg-type]
    finite, infinite = (Watch(NAN, lambda x, y=y: Place(x, np.array([-1.0, y]))) for y in (-1e28, 1e31))
    assert finite.met(met, None, 4) == Rejections(1, 1, 4)
    with pytest.raises(InfiniteDensity):
        infinite.met(met, None, 4)


def test_infinity_where_numbers_end_is_a_rejection() -> None:
    """InverseGamma(3, 20) as -20/v - 4 log v, computed with v^2, which is 0 at v = 1e-178."""

    def prior(x: jax.Array) -> jax.Array:
        v = jnp.exp(x[0])
        return 3.0 * jnp.log(1 / v) - 20.0 / v - jnp.log(v / (1 / v)) - x[0]

    def spike(x: jax.Array) -> jax.Array:
        """An infinite density at 700, in a mode far from the origin, whose tail is all that is seen from there."""
        return jnp.where(x[0] > 700.0, jnp.inf, -0.5 * jnp.sum((x - 695.0) ** 2))

    def watch(log_density: Any) -> Watch:
        return Watch(NAN, lambda x: Place(x, np.asarray(jax.jit(log_density)(jnp.asarray(x)))[None]))

    assert prior(jnp.array([-420.0])) == np.inf
    met = Rejected(np.array([[FIELD**3]]), np.array([[-420.0]]))  # type: ignore[arg-type]
    assert watch(prior).met(met, None, 4) == Rejections(0, 1, 4)
    for infinite in (lambda x: -prior(x), lambda x: prior(x) + jnp.where(x[0] < -3.0, jnp.inf, 0.0)):
        with pytest.raises(InfiniteDensity):
            watch(infinite).met(met, None, 4)
    with pytest.raises(InfiniteDensity):
        watch(spike).met(Rejected(np.array([[FIELD**3]]), np.array([[701.0]])), None, 4)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def holey() -> pt.Fit:
    with pytest.MonkeyPatch.context() as patch:
        unlooked(patch)
        return pt.temper(NAN, **SMALL)


def test_nan_is_counted_apart_and_told(holey: pt.Fit) -> None:
    """A quarter of the target lies in the hole, so that far more than one point in a thousand does."""
    rejected = holey.diagnostics.rejected
    assert rejected.nan > 0.001 * rejected.evaluations
    low, high = rejected.nan_lam
    assert 0.0 <= low < 1.0 == high
    assert not holey.converged
    told = [message for message in holey.warnings if message.startswith("The log density was NaN at")]
    assert len(told) == 1
    assert f"{rejected.nan:,} of {rejected.evaluations:,} points" in told[0]


def test_both_kinds_are_in_the_summary(holey: pt.Fit) -> None:
    """Beyond two standard deviations there is no density: some points in a hundred, and none of them NaN."""
    rejected = holey.diagnostics.rejected
    assert rejected.zero > 0
    assert holey.diagnostics.rejections == rejected.zero + rejected.nan < rejected.evaluations
    shown = f"points without density {rejected.total:,} of {rejected.evaluations:,}"
    nan = f"NaN at {rejected.nan:,} of them, {rejected.where_nan}"
    assert f"{shown}; {nan}" in " ".join(str(holey.summary(rows=0)).split())


def test_no_draw_lies_where_there_is_no_density(holey: pt.Fit) -> None:
    draws = holey.posterior["theta"].values.reshape(-1, 2)
    assert len(draws)
    assert not np.any(jax.vmap(in_hole)(draws))
    assert np.all(draws[:, 1] <= 7.0)


def test_what_was_met_is_kept_in_files(holey: pt.Fit, tmp_path: Path) -> None:
    holey.save(tmp_path / "fit.nc")
    assert pt.load(tmp_path / "fit.nc").diagnostics.rejected == holey.diagnostics.rejected


def test_a_stray_nan_is_let_pass() -> None:
    assert check_nan(Rejections(0, 1, 1000, (0.0, 0.0))).passed
    failed = check_nan(Rejections(0, 2, 1000, (0.2, 0.25)))
    assert not failed.passed
    assert "at lam between 0.2 and 0.25" in failed.message


def test_a_stray_nan_gradient_is_let_pass() -> None:
    assert check_gradient(Rejections(evaluations=1000, gradient=1)).passed
    failed = check_gradient(Rejections(evaluations=1000, gradient=2, gradient_at="x = 1 (log density -2)"))
    assert not failed.passed
    assert "NaN where the log density is finite, on 2 trajectories in 1,000 evaluations, for instance at x = 1" in (
        failed.message
    )


def without_gradient(x: jax.Array, bad: jax.Array) -> jax.Array:
    """Zero, with a gradient that is NaN where ``bad``."""
    there = jnp.where(bad, 0.0, 1.0)
    return jnp.sum(jnp.sqrt(there * jnp.exp(0.0 * x)) - there)


def test_a_point_that_was_met_is_looked_at_inside_of_a_program() -> None:
    """Outside of one NumPyro refuses values that no distribution has, which chains may well come to."""

    def refused(x: jax.Array) -> jax.Array:
        if not isinstance(x, jax.core.Tracer):
            raise ValueError("Normal distribution got invalid scale parameter.")
        return -0.5 * jnp.sum(x**2)

    model = join(refused, pt.normal(0.0, 1.0, shape=(2,)))
    codes, points = np.array([[GRADIENT, 0]]), np.array([[3.0, 4.0]])
    for watch in (watch_of(model), Watch(model, lambda x: target_at(model, x))):
        met = watch.met(Rejected(codes, points), np.array([[0.5, 1.0]]), 1000)  # type: ignore[arg-type]
        assert "log density -12.5" in met.gradient_at


@pytest.mark.parametrize("value", [0.0, float("nan"), float("-inf")])
def test_a_nan_gradient_is_told_from_a_density_that_is_none(value: float) -> None:
    """The trajectory ends in NaN all the same; what the density is where the gradient was none decides."""

    def log_density(x: jax.Array) -> jax.Array:
        bad = x[0] > 1.0
        return jnp.where(bad, value, 0.0) + without_gradient(x, bad)

    momentum, step = jnp.array([2.0, 0.0]), jnp.asarray(1.0)
    end = hmc.propose(momentum, jnp.array([0.5, 0.0]), _AsItIs(), jax.grad(log_density), step, jnp.asarray(2))
    rejected = rejected_end(log_density(end.theta)[None], end.theta, end.no_gradient)
    assert int(rejected.code) == GRADIENT
    np.testing.assert_allclose(rejected.point, [1.5, 0.0])
    codes = np.array([[GRADIENT, 0]])
    watch = Watch(NAN, lambda x: Place(x, np.asarray(log_density(jnp.asarray(x)))[None]))
    met = watch.met(Rejected(codes, rejected.point[None]), np.array([[0.5, 1.0]]), 2)  # type: ignore[arg-type]
    kind = {0.0: met.gradient, float("-inf"): met.zero}.get(value, met.nan)
    assert (kind, met.total) == (1, 1)
    assert bool(met.gradient_at) == (value == 0.0)
    assert {0.0: NOWHERE, float("-inf"): met.zero_lam}.get(value, met.nan_lam) in (NOWHERE, (0.5, 0.5))


def test_where_no_gradient_is_a_number_there_is_a_sentence() -> None:
    def target(x: jax.Array) -> jax.Array:
        return normal(x) + without_gradient(x, x[0] < 1e9)

    with pytest.raises(pt.InputError, match=r"^model: the gradient .* is NaN where the density is finite"):
        pt.temper(target=target, base=pt.normal(jnp.zeros(2), 1.0), **SMALL)


def end_of(position: list[float], log_density: float) -> Any:
    return SimpleNamespace(position=jnp.array(position), logdensity=jnp.asarray(log_density))


@pytest.mark.parametrize(
    ("position", "log_density", "code"),
    [
        ([0.0, 0.0, 0.0], -1.0, 0),
        ([6.0, 6.0, 0.0], -np.inf, NAN_CODE),
        ([0.0, 8.0, 0.0], -np.inf, ZERO),
        ([np.nan, 0.0, 0.0], np.nan, GRADIENT),
        ([0.0, 0.0, 1e300], -np.inf, ZERO),
    ],
)
def test_what_ends_a_trajectory_of_nuts_is_told_by_kind(position: list[float], log_density: float, code: int) -> None:
    info = SimpleNamespace(
        trajectory_leftmost_state=end_of([0.0, 0.0, 0.0], -1.0),
        trajectory_rightmost_state=end_of(position, log_density),
        num_integration_steps=jnp.asarray(3),
    )
    values = GeometricPath(NAN.log_base, NAN.log_target).values
    steps, found, _ = spent_by(info, lambda x: values(x[:-1]))
    assert (int(steps), int(found)) == (3, code)


ALONG: dict[str, Any] = {"settings": Settings(chains=8, iterations=8), "budget": 18000, "progress": False}


def test_plus_infinity_along_a_path_is_told_with_its_lam() -> None:
    def log_q(theta: jax.Array, lam: jax.Array) -> jax.Array:
        return jnp.where(theta[0] > 4.0, jnp.inf, -0.5 * jnp.sum((theta - 4.0 * lam) ** 2))

    with pytest.raises(InfiniteDensity, match=r"^log_q: the log density is \+inf at theta = \[.*\], lam = 0\.") as met:
        pt.path_sample(log_q, 2, **ALONG)
    assert met.value.theta[0] > 4.0


def test_no_density_at_any_start_of_a_path_is_told() -> None:
    with pytest.raises(pt.InputError, match=r"^log_q: it is NaN at all 8 starts"):
        pt.path_sample(lambda theta, lam: jnp.nan * jnp.sum(theta), 2, **ALONG)


def test_plus_infinity_along_a_margin_is_told_by_name() -> None:
    base = {"y": pt.normal(0.0, 2.0), "x": pt.normal(-3.0, 0.1, shape=(2,))}

    def target(p: Any) -> jax.Array:
        plain = -0.5 * p["y"] ** 2 - 0.5 * jnp.sum(p["x"] ** 2)
        return jnp.where(p["x"][0] > 0.0, jnp.inf, plain)

    with pytest.raises(InfiniteDensity, match=r"^target: the log density is \+inf at x = \[.*\], y = "):
        pt.divide_and_conquer(join(target, base), margin="y", **ALONG)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["path", "margin", "paper", "paper's margin", "ladder"])
def test_every_engine_counts_by_kind_and_place(engine: str) -> None:
    """A disc of NaN and one of -inf, each with some parts in a hundred of the mass: far more than one in a thousand."""
    base = {"y": pt.normal(0.0, 2.0), "x": pt.normal(0.0, 1.0, shape=(1,))}

    def density(x: jax.Array, y: jax.Array) -> jax.Array:
        near, far = (jnp.sum((jnp.stack([x, y]) - at) ** 2) < 0.25 for at in (jnp.array([0.7, 0.7]), -jnp.ones(2)))
        return jnp.where(near, jnp.nan, jnp.where(far, -jnp.inf, -0.5 * x**2 - 0.5 * y**2))

    model = join(lambda p: density(p["x"][0], p["y"]), base)
    paper = PAPER.replace(draws=800, adaptations=2, stop=False, max_depth=5)
    made: dict[str, Callable[[], pt.Fit]] = {
        "path": lambda: pt.path_sample(lambda theta, lam: density(theta[0], theta[1] - lam), 2, **ALONG),
        "margin": lambda: pt.divide_and_conquer(model, margin="y", **ALONG),
        "paper": lambda: pt.temper(model, settings=paper, progress=False),
        "paper's margin": lambda: pt.divide_and_conquer(model, margin="y", settings=paper, progress=False),
        "ladder": lambda: pt.baselines.discrete_tempering(model, settings=LADDER.replace(draws=100, adaptations=2)),
    }
    fit = made[engine]()
    rejected = fit.diagnostics.rejected
    assert min(rejected.nan, rejected.zero) > 0.001 * rejected.evaluations
    assert rejected.nan_lam[0] < rejected.nan_lam[1]
    assert rejected.zero_lam[0] < rejected.zero_lam[1]
    assert any(message.startswith("The log density was NaN at") for message in fit.warnings)
    draws = fit.posterior.to_dataarray().values if engine == "path" else None
    assert draws is None or np.isfinite(draws).all()


def test_energies_of_points_hold_no_nan() -> None:
    path = GeometricPath(NAN.log_base, NAN.log_target)
    energies = energies_of(path, np.array([[6.0, 6.0], [0.0, 0.0]]))
    assert np.isneginf(energies[0, 1])
    assert np.isfinite(energies[1]).all()
