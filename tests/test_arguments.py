"""Every argument of every public function, of a wrong type or size: one sentence that begins with its name."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
import numpyro.distributions as dist
import pytest
from synthetic import cauchy_fit, fit_of, odd_model

import pathtemp as pt
from pathtemp.api import divide
from pathtemp.api import path_sample as path_sampling
from pathtemp.api import temper as tempering
from pathtemp.api.given import init_points
from pathtemp.frontends.stan import build as stan_build
from pathtemp.result.marginal import Marginal
from pathtemp.settings import LADDER, LadderSettings, PaperSettings, Settings

mpl.use("Agg")

LONGEST = 200
"""Characters of a sentence."""

NAN, INF = float("nan"), float("inf")
BASE = pt.normal(0.0, 2.0, shape=(2,))
MODEL = odd_model()


def good(x: jax.Array) -> jax.Array:
    return -0.5 * jnp.sum((x - 1.0) ** 2)


def along(theta: jax.Array, lam: jax.Array) -> jax.Array:
    return -0.5 * jnp.sum(theta**2) * jnp.exp(-lam)


def temper(**changes: Any) -> Callable[[], Any]:
    return lambda: pt.temper(**{"target": good, "base": BASE, "progress": False, **changes})


def margin(**changes: Any) -> Callable[[], Any]:
    return lambda: pt.divide_and_conquer(**{"model": MODEL, "margin": "tau", "progress": False, **changes})


def path(**changes: Any) -> Callable[[], Any]:
    return lambda: pt.path_sample(**{"log_q": along, "dim": 2, "progress": False, **changes})


@cache
def marginal() -> Marginal:
    u = np.linspace(-2.0, 2.0, 17)
    log_p = -0.5 * u**2
    return Marginal.of("tau", u, log_p, np.stack([log_p, log_p + 0.01 * u]), np.exp, restricted=False)


Cases = list[tuple[str, Callable[[], Any]]]


def cases(name: str, call: Callable[..., Callable[[], Any]], *values: Any) -> Cases:
    """One wrong value of one argument each."""
    return [(name, call(**{name: value})) for value in values]


MARGIN: dict[str, Any] = {"function": good, "inverse": along, "replaces": "tau", "name": "m"}
BUDGETS = ("30000", "many", NAN, INF, 0, -1, True, [1e5], 1j)
COUNTS = (1.5, 0, -2, "4", True, NAN, [4])
COMMON: dict[str, tuple[Any, ...]] = {
    "budget": BUDGETS,
    "chains": COUNTS,
    "seed": (1.5, "a", NAN, [1]),
    "settings": ("paper", {}, 3, LADDER),
    "progress": (5, "yes", object(), Settings),
    "checkpoint": (3, "nul\0", "lone \ud800", "no/such/folder/run.nc"),
}

RUNS: Cases = [
    *(
        case
        for name, values in COMMON.items()
        for call in (temper, margin, path)
        for case in cases(name, call, *values)
    ),
    *cases("draws", temper, *COUNTS),
    *cases("max_seconds", temper, *BUDGETS),
    ("max_seconds", temper(max_seconds=5, islands=2)),
    *cases("modes", temper, "x", 5, [["a"]], [[1.0]], [[NAN, 1.0]]),
    *[("dim", temper(base=None, dim=dim)) for dim in COUNTS],
    ("target", temper(base=None, dim=2, target=3)),
    *cases("target", temper, 3, "x"),
    ("model", lambda: pt.temper(3)),  # type: ignore[arg-type]
    ("model", lambda: pt.temper(good)),
    *[("model", lambda x=x: pt.temper(x)) for x in ({"a": 1}, np.zeros(3), [MODEL], pt.Model)],
    ("model", lambda: pt.temper(MODEL, 3)),
    ("temper", lambda: pt.temper(good, target=good, base=BASE)),
    ("buget", lambda: pt.temper(MODEL, buget=1000)),
    ("data", lambda: pt.temper(MODEL, data={})),
    ("data", lambda: pt.temper(good, data={"N": 3})),
    ("base", temper(base="auto")),
    ("base", temper(base=None)),
    ("temper", lambda: pt.temper()),
    ("program", lambda: pt.from_stan(None)),
    ("program", lambda: pt.from_stan(good)),
    ("from_pymc", lambda: pt.from_pymc(good)),
    ("from_pymc", lambda: pt.from_pymc("model.stan")),
    ("from_numpyro", lambda: pt.from_numpyro(MODEL)),
    ("from_numpyro", lambda: pt.from_numpyro("model.stan")),
    ("from_numpyro", lambda: pt.from_numpyro(along)),
    *[("log_base", lambda x=x: pt.Model(x, good, MODEL.layout)) for x in (3, None, "x")],
    ("log_target", lambda: pt.Model(good, 4, MODEL.layout)),  # type: ignore[arg-type]
    ("layout", lambda: pt.Model(good, good, 5)),  # type: ignore[arg-type]
    *[
        ("init", lambda x=x: pt.temper(MODEL, init=x))
        for x in (
            *(3, "x", [], [3], {"mu": 0.0}),
            *({"mu": x, "theta": [0.0, 0.0, 0.0], "tau": 1.0} for x in (NAN, "a", [1.0, 2.0])),
            {"mu": 0.0, "theta": [0.0, 0.0, 0.0], "tau": -1.0},
        )
    ],
    ("init", lambda: pt.temper(MODEL, init={"mu": 0.0, "theta": [0.0] * 3, "tau": 1.0}, modes="off")),
    ("init", lambda: pt.temper(MODEL, init={"mu": 0.0, "theta": [0.0] * 3, "tau": 1.0}, settings=pt.settings.PAPER)),
    *cases("model", margin, 3, good, None),
    *cases("margin", margin, 3, [], [3], None),
    *cases("interval", margin, (2.0, 1.0), "ab", (0.1, NAN), 3, (1.0,), (1, 2, 3)),
    *cases("target_marginal", margin, 3, "x", None),
    *cases("chains", margin, 1),
    *cases("log_q", path, 3, None),
    *cases("dim", path, *COUNTS),
    *cases("interval", path, (2.0, 1.0), "ab", (0.0, INF), 3),
    *cases("args", path, [1.0], 3),
    *cases("starts", path, "x", [[1.0]], [[NAN, 1.0]], 3),
    *cases("target_marginal", path, 3, "x", None),
    *cases("chains", path, 1),
    *cases("settings", path, pt.settings.PAPER),
    *[("log_q", path(log_q=x)) for x in (MODEL, "m.stan", good, lambda t, lam: t * lam, lambda t, lam: None)],
    *[("log_q", path(log_q=x)) for x in (lambda t, lam: "x", lambda t, lam: 1 / 0, lambda t, lam: float(t[0]))],
    *[case for call in (temper, margin, path) for case in cases("cores", call, *COUNTS)],
    ("cores", temper(cores=2, client=object())),
    *cases("islands", temper, *COUNTS),
    ("islands", temper(islands=2, settings=pt.settings.PAPER)),
    ("checkpoint", temper(islands=2, checkpoint="run.nc")),
    *cases("client", temper, 3, "tcp://10.0.0.1:8786"),
    *cases("cluster", temper, "slurm", True, 4, ["local"]),
    ("cluster", temper(cluster="local", client=object())),
    *cases("checkpoint", temper, ""),
    ("draws", temper(draws=10**12)),
    *[
        (name, temper(**{name: 1}))
        for name in ("tune", "num_warmup", "num_samples", "iter_sampling", "random_seed", "rng_key", "target_accept")
    ],
    *[(name, temper(**{name: 1})) for name in ("parallel_chains", "progressbar", "initvals", "n_jobs", "temperatures")],
    *[("model", lambda x=x: pt.temper(x)) for x in (cauchy_fit(), cauchy_fit().posterior, np, b"model", 1j)],
    ("model", lambda: pt.temper(MODEL, MODEL)),
    *[("program", lambda x=x: pt.temper(x)) for x in ("", "missing.stan", "/", "model.py", Path("missing.stan"))],
    *cases(
        "base", temper, {}, [BASE], {"a": "x"}, {1: BASE}, (0.0, 1.0), 5.0, np.zeros(2), MODEL, lambda x: x, pt.Base
    ),
    ("target", temper(target=MODEL)),
    *[("model", margin(model=x)) for x in (cauchy_fit(), np.zeros(2), {"a": 1})],
    *[(name, margin(**{name: 3})) for name in ("draws", "modes", "islands", "max_seconds", "buget", "tune")],
    ("data", margin(data={})),
    ("target", margin(target=good)),
    ("base", lambda: pt.divide_and_conquer(target=good, margin="tau")),
    ("model", lambda: pt.divide_and_conquer(margin="tau")),
    ("model", lambda: pt.temper(good, BASE)),
    ("model", lambda: pt.temper(dist.Normal(0.0, 1.0))),
    ("base", margin(base=BASE)),
    ("model", lambda: pt.divide_and_conquer(MODEL, 3, margin="tau")),
    ("chains", lambda: pt.divide_and_conquer(MODEL, margin="tau", chains=1)),
    ("chains", lambda: pt.path_sample(along, 2, chains=1)),
    ("margin", margin(margin=["tau", "tau"])),
    *cases("name", path, 3, None),
]

FITS: Cases = [
    *[("draws", lambda x=x: cauchy_fit().extend(draws=x)) for x in COUNTS],
    *[("budget", lambda x=x: cauchy_fit().extend(budget=x)) for x in BUDGETS],
    ("extend", lambda: cauchy_fit().extend()),
    ("extend", lambda: cauchy_fit().extend(budget=1000)),
    *[("rows", lambda x=x: cauchy_fit().summary(rows=x)) for x in (-1, 2.5, "x")],
    *[("var_names", lambda x=x: cauchy_fit().summary(var_names=x)) for x in ("mu", ["thet"], [3])],
    ("var_names", lambda: cauchy_fit().plot(var_names=["mu"])),
    ("predict", lambda: cauchy_fit().predict()),
    ("program", lambda: pt.divide_and_conquer("model.stan", margin="tau")),
    ("model_a", lambda: pt.bridge("model.stan", MODEL)),  # type: ignore[arg-type]
    *[("lam", lambda x=x: cauchy_fit().log_z(x)) for x in (2.0, -0.1, NAN, "x", [0.5, 2.0], None)],
    *[("lam", lambda x=x: cauchy_fit().log_z.se(x)) for x in (2.0, NAN)],
    ("log_likelihood", lambda: cauchy_fit().to_arviz(log_likelihood="yes")),  # type: ignore[arg-type]
    *[("save", lambda x=x: cauchy_fit().save(x)) for x in (3, None, "nul\0")],
    *[("report", lambda x=x: cauchy_fit().report(x)) for x in (3, None, "nul\0", "no/such/folder/r.html")],
    *[("load", lambda x=x: pt.load(x)) for x in (3, None, "nul\0", "none.nc")],
    *[("resume|checkpoint", lambda x=x: pt.resume(x)) for x in (3, None, "nul\0", "none.nc")],
    ("fit_b", lambda: pt.bayes_factor(cauchy_fit(), 3)),  # type: ignore[arg-type]
    ("fit_a", lambda: pt.bayes_factor("x", cauchy_fit())),  # type: ignore[arg-type]
    ("fits", lambda: pt.compare(3)),  # type: ignore[arg-type]
    ("compare", lambda: pt.compare([cauchy_fit()])),
    ("fits", lambda: pt.compare([cauchy_fit(), cauchy_fit()])),
    ("budget", lambda: pt.compare({"a": cauchy_fit(), "b": cauchy_fit()}, budget=1e4)),
    ("b", lambda: pt.compare({"a": cauchy_fit(), "b": 3})),  # type: ignore[dict-item]
    ("compare", lambda: pt.compare({"a": cauchy_fit()})),
    *[("fits", lambda x=x: pt.compare(x)) for x in (cauchy_fit(), "ab", None, (x for x in ()), [None, cauchy_fit()])],
    *[
        (name, lambda n=name: pt.compare({"a": MODEL, "b": MODEL}, **{n: 3}))
        for name in ("buget", "checkpoint", "init")
    ],
    ("data", lambda: pt.compare({"a": cauchy_fit(), "b": cauchy_fit()}, data={})),
    ("program", lambda: pt.compare({"a": "missing.stan", "b": cauchy_fit()}, data={})),
    *[("a", lambda x=x: pt.compare({"a": x, "b": cauchy_fit()})) for x in (good, None, pt.Fit)],
    *[("resume|checkpoint", lambda x=x: pt.resume(x)) for x in ("", "/etc/hostname")],
    *[("save", lambda x=x: cauchy_fit().save(x)) for x in ("", ".", "no/such/folder/fit.nc")],
    *[("load", lambda x=x: pt.load(x)) for x in ("", ".", "/etc/hostname", "/dev/null")],
    *[("stan_variable", lambda x=x: cauchy_fit().stan_variable(x)) for x in ("nope", 3)],
    ("seed", lambda: fit_of(MODEL).predict(seed="x")),  # type: ignore[arg-type]
    *[
        ("weights|compare", lambda x=x: pt.compare({"a": cauchy_fit(), "b": cauchy_fit()}, weights=x))
        for x in (3, {"a": 1.0}, {"a": "x", "b": 1.0}, {"a": 0.0, "b": 1.0}, {"a": NAN, "b": 1.0})
    ],
    *[("x", lambda f=f, x=x: getattr(marginal(), f)(x)) for f in ("pdf", "cdf", "log_pdf") for x in ("x", NAN, None)],
    *[("p", lambda x=x: marginal().quantile(x)) for x in (0, 1, 2.0, NAN, "x")],
    *[("k", lambda x=x: marginal().moment(x)) for x in (1.5, -1, "x")],
    ("function", lambda: marginal().expectation(3)),  # type: ignore[arg-type]
    ("function", lambda: marginal().expectation(lambda x: 1.0)),  # type: ignore[arg-type, return-value]
]

MADE: Cases = [
    *[("scale", lambda x=x: pt.normal(0.0, x)) for x in (-1.0, 0.0, NAN, INF, "x", None, [1.0, -1.0])],
    *[("loc", lambda x=x: pt.normal(x)) for x in (NAN, "x", None)],
    *[("shape", lambda x=x: pt.normal(0.0, 1.0, shape=x)) for x in (1.5, "x", (1.5,), -1, (2, "x"))],
    *[("log_prob", lambda x=x: pt.function_base(x, dim=2)) for x in (3, None)],
    ("sample", lambda: pt.function_base(good, dim=2, sample=3)),  # type: ignore[arg-type]
    *[("dim", lambda x=x: pt.function_base(good, dim=x)) for x in COUNTS],
    *[("shapes", lambda x=x: pt.function_base(good, shapes=x)) for x in (3, {"a": "x"}, {"a": (1.5,)})],
    ("function_base", lambda: pt.function_base(good)),
    *[(name, lambda n=name, x=x: Settings(**{n: x})) for name in ("chains", "iterations", "orbit") for x in COUNTS],
    *[
        (name, lambda n=name, x=x: Settings(**{n: x}))
        for name in ("acceptance", "adapt_share")
        for x in (0, 1, "x", NAN)
    ],
    *[("normal", lambda x=x: pt.normal(np.zeros(2), **x)) for x in ({"scale": np.ones(3)}, {"shape": (3,)})],
    *[("rhat", lambda x=x: Settings(rhat=x)) for x in (0.5, 1.0, 0, NAN)],
    ("adapt_least", lambda: Settings(adapt_least=0.8, adapt_share=0.2)),
    ("iterations", lambda: Settings(iterations=30)),
    ("function_base", lambda: pt.function_base(good, dim=2, shapes={"a": ()})),
    ("name", lambda: pt.bridge(MODEL, MODEL, name=3)),  # type: ignore[arg-type]
    ("model_a", lambda: pt.bridge(cauchy_fit(), MODEL)),  # type: ignore[arg-type]
    ("base", lambda: pt.from_stan("parameters { real x; } model { x ~ normal(0, 1); }", base=3)),
    ("data", lambda: pt.from_stan("parameters { real x; } model { x ~ normal(0, 1); }", "missing.json")),
    *[("marginal", lambda x=x: Settings(marginal=x)) for x in ("x", 3, None)],
    *[("batch", lambda x=x: Settings(batch=x)) for x in COUNTS],
    *[("log_z_se", lambda x=x: Settings(log_z_se=x)) for x in BUDGETS],
    *[(name, lambda n=name, x=x: PaperSettings(**{n: x})) for name in ("chains", "draws", "grid") for x in COUNTS],
    ("khat", lambda: PaperSettings(khat="x")),  # type: ignore[arg-type]
    ("stop", lambda: PaperSettings(stop=3)),  # type: ignore[arg-type]
    *[(name, lambda n=name, x=x: LadderSettings(**{n: x})) for name in ("chains", "draws", "moves") for x in COUNTS],
    *[("ladder", lambda x=x: LadderSettings(ladder=x)) for x in (3, "x", (0.0,), (0.0, 0.5), (0.0, 0.7, 0.3, 1.0))],
]

PLOTS: Cases = [
    *[("fit", lambda f=f: getattr(pt.plots, f)(3)) for f in ("plot", "log_z", "tours", "pairs", "hardness", "tails")],
    *[("chains", lambda x=x: pt.plots.tours(cauchy_fit(), chains=x)) for x in (0, "x", 1.5)],
    *[("var", lambda x=x: pt.plots.pairs(cauchy_fit(), var=x)) for x in (3, "theta", ("theta",))],
    *[("var", lambda x=x: pt.plots.tails(cauchy_fit(), var=x)) for x in (3, "nope")],
    ("exact", lambda: pt.plots.log_z(cauchy_fit(), exact=3)),  # type: ignore[arg-type]
    ("exact", lambda: pt.plots.history(cauchy_fit(), exact="x")),  # type: ignore[arg-type]
    ("var", lambda: pt.plots.joint_path(cauchy_fit(), var="nope")),
    ("plot", lambda: cauchy_fit().plot(colour="red")),
]

ESTIMATORS: Cases = [
    *[("log_ratio_0", lambda x=x: pt.estimators.bridge(x, [1.0])) for x in ("x", None, [], [NAN], [[1.0], [2.0, 3.0]])],
    ("log_ratio", lambda: pt.estimators.importance("x")),
    ("log_ratio", lambda: pt.estimators.khat("x")),
    ("a", lambda: pt.estimators.path_sampling("x", [1.0])),
    ("u", lambda: pt.estimators.path_sampling([0.5], [1.0, 2.0])),
    ("log_q", lambda: pt.estimators.multistate_bridge("x", [1])),
    *[("draws", lambda x=x: pt.estimators.khat_threshold(x)) for x in (0, "x", 1.5)],
]

BASELINES: Cases = [
    *[
        ("model", lambda f=f: getattr(pt.baselines, f)(3))
        for f in ("discrete_tempering", "empirical_tempering", "nuts")
    ],
    *[("settings", lambda x=x: pt.baselines.discrete_tempering(MODEL, settings=x)) for x in ("x", Settings())],
    *[("settings", lambda x=x: pt.baselines.log_linear_tempering(MODEL, settings=x)) for x in (3, LADDER)],
    *[(name, lambda n=name, x=x: pt.baselines.nuts(MODEL, **{n: x})) for name in ("draws", "chains") for x in COUNTS],
    *[(name, lambda n=name: pt.Margin(**{**MARGIN, n: 3})) for name in ("function", "inverse", "replaces", "name")],
    ("margin", lambda: pt.diagnose_margin(cauchy_fit().posterior, MODEL, 3)),  # type: ignore[arg-type]
]

ALL = [*RUNS, *FITS, *MADE, *PLOTS, *ESTIMATORS, *BASELINES]


@pytest.fixture(autouse=True)
def no_compiling(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whatever is refused must be refused before anything is compiled."""

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("compiling began")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempering, "with_reference", fail)
    monkeypatch.setattr(divide, "starts_of", fail)
    monkeypatch.setattr(path_sampling, "FunctionEngine", fail)
    monkeypatch.setattr(stan_build, "build", fail)


@pytest.mark.parametrize(("name", "call"), ALL, ids=[f"{name}-{number}" for number, (name, _) in enumerate(ALL)])
def test_a_wrong_argument_is_one_sentence(name: str, call: Callable[[], Any]) -> None:
    with pytest.raises(pt.InputError, match=rf"^({name})\b") as refused:
        call()
    message = str(refused.value)
    assert message.isprintable()
    assert len(message) <= LONGEST, message


def test_starts_are_points_on_the_unconstrained_scale() -> None:
    init = {"mu": 0.5, "theta": [0.0, 1.0, 2.0], "tau": 2.0}
    points = init_points([init, init | {"mu": -1.0}], MODEL)
    np.testing.assert_allclose(points, [[m, 0.0, 1.0, 2.0, np.log(2.0)] for m in (0.5, -1.0)])
    np.testing.assert_allclose(init_points(init, MODEL), points[:1])


def test_what_is_right_is_let_through() -> None:
    """The table can fail: the same calls with nothing wrong come as far as compiling."""
    init = {"mu": 0.0, "theta": [0.0, 1.0, 2.0], "tau": 2.0}
    straight = [lambda: pt.temper(MODEL, init=init), lambda: pt.temper(MODEL, init=[init, init], progress=False)]
    for call in (
        *straight,
        temper(),
        margin(),
        path(),
        temper(chains=np.int64(8), budget=np.float32(1e5), draws=jnp.int32(4)),
    ):
        with pytest.raises(AssertionError, match="compiling began"):
            call()
    assert cauchy_fit().log_z(np.array([0.0, 1.0 + 1e-12])).shape == (2,)
    with pytest.warns(UserWarning, match="extrapolated"):
        assert float(marginal().cdf(INF).value) == pytest.approx(1.0, abs=1e-3)
    assert fit_of(MODEL).summary(rows=0)


def test_settings_hold_plain_values_whatever_they_were_given_as() -> None:
    """So that any of them can be written to a file and read again."""
    assert Settings(chains=jnp.int32(8), acceptance=np.float32(0.5)) == Settings(chains=8, acceptance=0.5)  # type: ignore[arg-type]
    assert type(Settings(chains=np.int64(8)).chains) is int
    assert LadderSettings(ladder=np.array([0.0, 0.5, 1.0])).ladder == (0.0, 0.5, 1.0)  # type: ignore[arg-type]
