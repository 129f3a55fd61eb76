"""Exact draws of bases that are recipes for draws; and blocks that only look like one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import jax
import numpy as np
import pytest
import scipy.stats as st
from stan_programs import exact_draws, load, opened, path

from pathtemp.frontends.stan import opening
from pathtemp.frontends.stan.build import Compilation, CompileError
from pathtemp.frontends.stan.forward import forward_program, try_forward
from pathtemp.frontends.stan.mass import LOG_MASS
from pathtemp.frontends.stan.opening import compile_programs
from pathtemp.frontends.stan.program import ALTERNATIVE, parse
from pathtemp.frontends.stan.sampler import stein_z
from pathtemp.frontends.stan.source import read_source
from pathtemp.testing.calibration import FALSE_ALARM, assert_close


def program(parameters: str, block: str, transformed: str = "") -> str:
    middle = f"transformed parameters {{ {transformed} }}" if transformed else ""
    first = "functions { real f_lp(real x) { target += x; return x; } } data { int N; vector[N] y; }"
    return f"{first} parameters {{ {parameters} }} {middle} alternative model {{ {block} }}"


def forward(parameters: str, block: str) -> str:
    return forward_program(parse(read_source(program(parameters, block))), ALTERNATIVE).text


@pytest.mark.usefixtures("stanc_available")
@pytest.mark.parametrize(
    ("parameters", "block", "transformed", "reason"),
    [
        ("real x;", "x ~ normal(0, 1); target += -x ^ 2;", "", "a density without a name"),
        ("real x;", "x ~ normal(0, 1); real t = x ^ 2; target += -t;", "", "a density without a name"),
        ("real x;", "x ~ normal(0, 1); if (x > 0) target += -3;", "", "a density without a name"),
        ("real x;", "x ~ normal(0, 1); y ~ normal(x, 1);", "", "y is given a distribution"),
        ("real x;", "x ^ 3 ~ normal(0, 1);", "", "is given a distribution, and is not a parameter"),
        ("real x; real z;", "x ~ normal(z, 1); z ~ normal(x, 1);", "", "used before it is drawn"),
        (
            "real x; real z;",
            "real s = exp(z); s += 1; x ~ normal(0, s); z ~ normal(0, 1);",
            "",
            "used before it is drawn",
        ),
        (
            "real x; real z;",
            "if (N > 3) x ~ normal(z, 1); else x ~ normal(0, 1); z ~ normal(0, 1);",
            "",
            "used before it is drawn",
        ),
        ("real<lower=0> a; real<lower=0, upper=a> b;", "a ~ exponential(1);", "", "b has no distribution"),
        ("real<lower=0> a;", "", "", "a has no distribution"),
        ("real x;", "x ~ normal(0, 1);", "real z = f_lp(x);", "may change the density"),
        ("real x;", "x ~ normal(0, 1); print(target());", "", "may change the density"),
        ("real x; vector[3] z;", "x ~ normal(0, z); z ~ normal(0, 1);", "", "stanc says"),
        ("complex x;", "get_real(x) ~ normal(0, 1);", "", "not plain numbers"),
        ("real x;", "w ~ normal(0, 1);", "vector[2] w; w[1] = x; w[2] = x;", "w is given a distribution"),
        ("real x; real z;", "w ~ normal(0, 1);", "vector[2] w = [x, 2 * z]';", "w is given a distribution"),
        (
            "real x; real z;",
            "w ~ normal(0, 1); z ~ normal(0, 1);",
            "vector[1] w; w[1] = z;",
            "w is given a distribution",
        ),
    ],
)
def test_what_is_no_recipe_is_left_a_density(parameters: str, block: str, transformed: str, reason: str) -> None:
    source, why = try_forward(parse(read_source(program(parameters, block, transformed))), ALTERNATIVE)
    assert source is None
    assert reason in why


@pytest.mark.usefixtures("stanc_available")
def test_statements_are_put_in_the_order_in_which_they_can_be_drawn() -> None:
    text = forward("real m; real<lower=0> s; vector[N] x;", "x ~ normal(m, s); m ~ normal(0, s); s ~ exponential(1);")
    assert text.index("exponential_rng") < text.index("m = normal_rng") < text.index("for (pathtemp_i")


@pytest.mark.usefixtures("stanc_available")
def test_variables_and_transformed_parameters_are_computed_once_they_can_be() -> None:
    text = forward("real z; real x;", "real s = exp(z); x ~ normal(0, s); z ~ normal(0, 1);")
    assert text.index("z = normal_rng") < text.index("real s = exp(z)") < text.index("x = normal_rng")
    source, why = try_forward(
        parse(
            read_source(
                program(
                    "real<lower=0> x; vector[2] z;",
                    "x ~ gamma(2, w[1]); z ~ normal(0, 1);",
                    "vector<lower=0>[2] w = exp(z); real u = x;",
                )
            )
        ),
        ALTERNATIVE,
    )
    assert source is not None, why
    assert source.text.index("z[pathtemp_i] = normal_rng") < source.text.index("w = exp(z)")
    assert "u = x" not in source.text


@pytest.mark.usefixtures("stanc_available")
def test_parameters_are_drawn_through_a_copy_that_has_their_distribution() -> None:
    source, why = try_forward(
        parse(
            read_source(
                program(
                    "real a; real<lower=0> b; real c;",
                    "c ~ normal(a, 1); for (k in 1 : 2) w[k] ~ normal(0, k);",
                    "vector[2] w; w[1]=a; w[2] = b;",
                )
            )
        ),
        ALTERNATIVE,
    )
    assert source is not None, why
    text = source.text
    assert text.index("w[k] = normal_rng(0, k)") < text.index("a = w[1];") < text.index("c = normal_rng(a, 1)")
    assert "b = w[2];" in text


@pytest.mark.usefixtures("stanc_available")
@pytest.mark.parametrize(
    ("parameters", "block", "mass"),
    [
        ("real<lower=0> x;", "x ~ normal(0, 2);", ["normal_lccdf(0 | 0, 2)"]),
        ("real<lower=0> x;", "x ~ normal(0, 2) T[0, ];", []),
        ("real<lower=0> x;", "x ~ gamma(2, 2);", []),
        ("real<lower=0, upper=1> x;", "x ~ beta(2, 2);", []),
        ("real<upper=N> x;", "x ~ std_normal();", ["std_normal_lcdf(N)"]),
        ("real<lower=0> x;", "x ~ wiener(1, 1, 1, 1);", None),
        ("real<lower=-1, upper=N> x;", "", ["log(N - (-1))"]),
        ("simplex[N] x;", "", ["-lgamma(N)"]),
        ("array[2] simplex[N] x;", "", ["-2 * lgamma(N)"]),
        ("ordered[N] x;", "x ~ normal(0, 1);", ["lgamma(num_elements(x) + 1)"]),
        ("positive_ordered[N] x;", "x ~ std_normal();", ["std_normal_lccdf(0)", "lgamma(num_elements(x) + 1)"]),
        ("real x;", "target += normal_lpdf(x | 0, 1) - normal_lccdf(0 | 0, N);", ["- normal_lccdf(0 | 0, N)"]),
        ("real<lower=0> x;", "x ~ loglogistic(1, 1);", []),
        ("real<lower=1> x;", "x ~ loglogistic(1, 1);", ["positive_infinity()"]),
        ("real m; real<lower=m> x;", "m ~ normal(0, 1); x ~ normal(0, 1);", []),
    ],
)
def test_the_mass_within_bounds_is_counted(parameters: str, block: str, mass: list[str] | None) -> None:
    source, _ = try_forward(parse(read_source(program(parameters, block))), ALTERNATIVE)
    assert (source is None) == (mass is None)
    if source is not None:
        found = re.findall(rf"{LOG_MASS} [-+]= (.*?);", source.text)
        uniform = [part for part in found if "uniform_l" not in part]  # of the bounds themselves: zero
        assert uniform == mass


@pytest.mark.usefixtures("stanc_available")
@pytest.mark.parametrize(
    ("parameters", "block", "again"),
    [
        ("real<lower=0> x;", "x ~ normal(1, 1);", True),
        ("real<lower=0> x; real m;", "m ~ normal(0, 1); x ~ normal(m, 1);", False),
        ("real<lower=0> x; real m;", "m ~ normal(0, 1); real s = m; x ~ normal(s, 1);", False),
        (
            "vector[2] m; real<lower=0> x;",
            "m ~ normal(0, 1); for (v in m[1:1]) x ~ normal(v, 1);",
            False,
        ),
        ("real m; real<lower=m> x;", "m ~ normal(0, 1); x ~ normal(0, 1);", False),
        ("real m; real x;", "m ~ normal(0, 1); x ~ normal(m, 1) T[m, ];", True),
    ],
)
def test_one_number_is_drawn_again_only_where_its_mass_within_the_bounds_is_divided_out(
    parameters: str, block: str, again: bool
) -> None:
    assert ("pathtemp_try" in forward(parameters, block)) is again


@pytest.mark.usefixtures("compiled")
def test_draws_of_a_hierarchy_have_its_law() -> None:
    model = load("eight_schools")
    draws = model.draws(exact_draws(model, 4000))
    mu, tau, theta = draws["mu"], draws["tau"], draws["theta"]
    assert st.kstest(mu, st.norm(0, 5).cdf).pvalue > FALSE_ALARM
    assert st.kstest(tau, st.halfcauchy(0, 5).cdf).pvalue > FALSE_ALARM
    assert st.kstest(((theta - mu[:, None]) / tau[:, None]).ravel(), st.norm.cdf).pvalue > FALSE_ALARM


@pytest.mark.stan_full
@pytest.mark.usefixtures("compiled")
def test_draws_of_a_base_program_of_many_types() -> None:
    model = load("typed_base", base_program=path("typed_base"))
    flat = exact_draws(model, 4000)
    assert_close(stein_z(model.log_base, flat), 0.0, 1.0)
    draws = model.draws(flat)
    assert st.kstest(draws["between"], st.uniform(-2, 5).cdf).pvalue > FALSE_ALARM
    for k, mean in enumerate((1.0, 2.0, 3.0)):
        truth = st.truncnorm((2 - mean) / 2, np.inf, mean, 2)
        assert st.kstest(draws["above"][:, k], truth.cdf).pvalue > FALSE_ALARM
    assert st.kstest(draws["w"][:, 2], st.beta(3, 3).cdf).pvalue > FALSE_ALARM


@pytest.mark.usefixtures("stanc_available")
def test_where_the_draws_do_not_compile_the_densities_still_do(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[bool]] = []

    def build(programs: Sequence[Compilation], **options: object) -> list[Path]:
        asked.append([p.forward is not None for p in programs])
        if any(p.forward for p in programs):
            raise CompileError("program: the C++ compiler failed")
        return [Path("library.so") for _ in programs]

    monkeypatch.setattr(opening, "build_programs", build)
    programs = compile_programs([opened("cauchy"), opened("lp_functions")], progress=False)
    assert asked == [[True, False], [False, False]]
    assert [p.library for p in programs] == [Path("library.so")] * 2
    assert programs[0].forward_instance(seed=0) is None


@pytest.mark.usefixtures("compiled")
def test_the_same_key_is_the_same_draw_for_any_batch() -> None:
    model = load("eight_schools")
    assert model.sample_base is not None
    keys = jax.random.split(jax.random.key(5), 300)
    together = np.asarray(jax.jit(jax.vmap(model.sample_base))(keys))
    alone = np.asarray([model.sample_base(key) for key in keys[:5]])
    np.testing.assert_array_equal(together[:5], alone)
    assert len(np.unique(together[:, 0])) == 300
