"""Data that break what is declared, and names that do not fit, are told before anything is compiled."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import numpyro.distributions as dist
import pytest
from wrong_inputs import STAN

import pathtemp as pt
from pathtemp.errors import InputError
from pathtemp.frontends.stan import build as building
from pathtemp.frontends.stan import from_stan
from pathtemp.frontends.stan.bounds import check_bounds
from pathtemp.frontends.stan.nan_data import check_nan
from pathtemp.frontends.stan.parameters import check_base, check_same, check_some
from pathtemp.frontends.stan.program import Program, parse
from pathtemp.frontends.stan.source import read_source

NAN = float("nan")
SQUARE = [[2.0, 0.5], [0.5, 1.0]]


def declaring(what: str) -> Program:
    return parse(read_source(f"data {{\n  int K;\n  real s;\n  {what};\n}}\nmodel {{ }}"))


BROKEN: list[tuple[str, Any, str]] = [
    ("int<lower=0> x", -1, "'x' must be at least 0, and is -1"),
    ("int<lower=1, upper=K> x", 4, "'x' must be at most K = 3, and is 4"),
    ("array[2] int<lower=1, upper=K + 1> x", [1, 5], "'x' must be at most K + 1 = 4, and x[2] is 5"),
    ("real<lower=-0.5> x", -0.6, "'x' must be at least -0.5, and is -0.6"),
    ("real<upper=2 * s> x", 3.5, "'x' must be at most 2 * s = 3.0, and is 3.5"),
    ("vector<lower=0>[2] x", [1.0, NAN], "'x' has NaN, at x[2]"),
    ("matrix<lower=0, upper=1>[2, 2] x", [[0, 1], [2, 0]], "'x' must be at most 1, and x[2, 1] is 2"),
    ("simplex[K] x", [0.2, 0.2, 0.5], "'x' must be of type simplex, and sums to 0.9"),
    ("simplex[K] x", [1.2, -0.4, 0.2], "'x' must be of type simplex, and has -0.4"),
    ("array[2] simplex[2] x", [[0.5, 0.5], [0.5, 0.4]], "'x' must be of type simplex, and x[2] sums to 0.9"),
    ("simplex[K] x", [NAN, 0.2, 0.5], "'x' has NaN, at x[1]"),
    ("ordered[K] x", [1.0, 1.0, 2.0], "'x' must be of type ordered, and element 2 is not above element 1"),
    ("positive_ordered[K] x", [-1.0, 1.0, 2.0], "'x' must be of type positive_ordered, and begins with -1"),
    ("unit_vector[K] x", [1.0, 1.0, 0.0], "and has the length 1.4142136"),
    ("sum_to_zero_vector[K] x", [1.0, 1.0, 0.0], "and sums to 2"),
    ("cov_matrix[2] x", [[1.0, 0.5], [0.2, 1.0]], "'x' must be of type cov_matrix, and is not symmetric"),
    ("cov_matrix[2] x", [[1.0, 2.0], [2.0, 1.0]], "and has the eigenvalue -1"),
    ("corr_matrix[2] x", SQUARE, "and has 2 on its diagonal"),
    ("cholesky_factor_cov[2] x", SQUARE, "and has numbers above its diagonal"),
    ("cholesky_factor_cov[2] x", [[1.0, 0.0], [1.0, -1.0]], "and has -1 on its diagonal"),
    ("cholesky_factor_corr[2] x", [[1.0, 0.0], [1.0, 1.0]], "and has a row of length 1.4142136"),
    ("row_stochastic_matrix[2, 2] x", SQUARE, "and has a row that sums to 2.5"),
    ("column_stochastic_matrix[2, 2] x", [[0.5, 0.5], [0.5, 0.1]], "and has a column that sums to 0.6"),
]


@pytest.mark.parametrize(("what", "value", "sentence"), BROKEN, ids=[f"{w}-{n}" for n, (w, _, _) in enumerate(BROKEN)])
def test_data_that_break_their_declaration_are_told(what: str, value: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=rf"^the Stan program, line 4: the data variable .*{re.escape(sentence)}$"):
        check_bounds({"K": 3, "s": 1.5, "x": value}, declaring(what))


@pytest.mark.parametrize(
    ("what", "value"),
    [
        ("int<lower=0> x", 0),
        ("real x", NAN),
        ("vector<lower=0>[0] x", []),
        ("simplex[K] x", [0.3, 0.3, 0.4 + 1e-9]),
        ("real<lower=log(K)> x", -5.0),  # only Stan computes this bound, and tells
        ("real<upper=other> x", 5.0),
        ("ordered[K] x", [1.0, 2.0, 3.0]),
        ("unit_vector[2] x", [0.6, 0.8]),
        ("cov_matrix[2] x", SQUARE),
        ("corr_matrix[2] x", [[1.0, 0.5], [0.5, 1.0]]),
        ("cholesky_factor_cov[2] x", [[1.0, 0.0], [1.0, 1.0]]),
        ("cholesky_factor_corr[2] x", [[1.0, 0.0], [0.6, 0.8]]),
        ("array[2] cov_matrix[2] x", [SQUARE, SQUARE]),
    ],
)
def test_data_within_their_declaration_pass(what: str, value: Any) -> None:
    check_bounds({"K": 3, "s": 1.5, "x": value}, declaring(what))


def modelled(model: str, functions: str = "") -> Program:
    blocks = f"functions {{ {functions} }} " if functions else ""
    return parse(
        read_source(f"{blocks}data {{\n  int N; vector[N] y; }}\nparameters {{ real m; }}\nmodel {{ {model} }}")
    )


@pytest.mark.parametrize("model", ["y ~ normal(m, 1);", "target += normal_lpdf(y | m, 1);", "m ~ normal(mean(y), 1);"])
def test_nan_in_data_that_a_model_takes_whole_is_told(model: str) -> None:
    with pytest.raises(InputError, match=r"line 2: the data variable 'y' has NaN at 1 of 3 places, the first y\[2\]"):
        check_nan({"N": 3, "y": [1.0, NAN, 2.0]}, modelled(model))


@pytest.mark.parametrize(
    "model",
    [
        "for (n in 1:N) if (!is_nan(y[n])) y[n] ~ normal(m, 1);",
        "y[1] ~ normal(m, 1);",
        "if (N > 5) y ~ normal(m, 1);",
        "for (n in 1:N) { y ~ normal(m, 1); }",
        "head(y, 1) ~ normal(m, 1);",
        "m ~ normal(size(y), 1);",
        "m ~ normal(N > 3 ? mean(y) : 0, 1);",
        "m ~ normal(own(y), 1);",
        "m ~ normal((y)[1], 1);",
        "vector[N] z = y; m ~ normal(0, 1);",
    ],
)
def test_nan_that_may_be_left_aside_passes(model: str) -> None:
    own = "real own(vector y) { return y[1]; }"
    check_nan({"N": 3, "y": [1.0, NAN, 2.0]}, modelled(model, own))


def with_parameters(text: str) -> Program:
    return parse(read_source(f"data {{ int N; }}\nparameters {{\n  {text} }}\nmodel {{ }}"))


def test_a_program_without_parameters_is_told() -> None:
    with pytest.raises(InputError, match=r"^the Stan program, line 1: the program has no parameters"):
        check_some(parse(read_source("model { }")), {})
    with pytest.raises(InputError, match=r"^the Stan program, line 2: the program has no parameters"):
        check_some(with_parameters("/* none */"), {"N": 3})
    with pytest.raises(InputError, match=r"line 3: with these data no parameter has any elements"):
        check_some(with_parameters("vector[N] x;"), {"N": 0})
    check_some(with_parameters("vector[N] x; real y;"), {"N": 0})
    check_some(with_parameters("tuple(real, real) x;"), {"N": 0})


TWO = "real<lower=0> tau; vector[N] x;"


@pytest.mark.parametrize(
    ("base", "sentence"),
    [
        ({"tau": dist.HalfNormal(1.0)}, "base: it has no distribution for 'x'; the parameters are tau, x"),
        (
            {"tau": dist.HalfNormal(1.0), "x": pt.normal(shape=(3,)), "u": pt.normal()},
            "base: it names 'u', which is no parameter",
        ),
        (
            {"tau": dist.HalfNormal(1.0), "x": pt.normal(shape=(4,))},
            "base: the distribution of 'x' has the shape (4,), and the Stan program, line 3 declares (3,)",
        ),
        (pt.normal(shape=(3,)), "base: it has 3 dimensions, and the program has 4 (unconstrained)"),
    ],
)
def test_a_base_that_does_not_fit_is_told(base: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}"):
        check_base(base, with_parameters(TWO), {"N": 3})


def test_a_base_that_fits_or_of_which_only_stan_knows_passes() -> None:
    check_base(pt.normal(shape=(4,)), with_parameters(TWO), {"N": 3})
    check_base({"tau": dist.HalfNormal(1.0)}, with_parameters(TWO), {"N": 0})
    check_base(pt.normal(shape=(9,)), with_parameters("vector[f(N)] x;"), {"N": 3})
    check_base(pt.normal(shape=(2,)), with_parameters("simplex[N] x;"), {"N": 3})
    check_base(dist.HalfNormal(1.0), with_parameters("real<lower=0> x;"), {"N": 3})


def test_a_base_program_with_other_parameters_is_told() -> None:
    with pytest.raises(InputError, match=r"^base_program: .* 'tau' is in program, not in base_program"):
        check_same(with_parameters(TWO), with_parameters("vector[N] x;"))
    check_same(with_parameters(TWO), with_parameters("vector[N] x; real tau;"))


def _never(*_: Any, **__: Any) -> None:
    raise AssertionError("compiling began")


@pytest.mark.usefixtures("stanc_available")
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"data": {"N": -1, "y": []}}, "mine.stan, line 2: the data variable 'N' must be at least 0, and is -1"),
        ({"data": {"N": 2, "y": [NAN, 1.0]}}, "mine.stan, line 3: the data variable 'y' has NaN at 1 of 2"),
        ({"base": {"nu": pt.normal()}}, "base: it has no distribution for 'mu'"),
        ({"base_program": STAN.replace("mu", "nu")}, "base_program: both must have the same parameters"),
        ({"program": "model { }"}, "the Stan program, line 1: the program has no parameters"),
    ],
)
def test_nothing_was_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], sentence: str
) -> None:
    monkeypatch.setattr(building, "build", _never)
    file = tmp_path / "mine.stan"
    file.write_text(STAN)
    given = {"program": file, "data": {"N": 2, "y": np.ones(2)}, "progress": False}
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}"):
        from_stan(**(given | change))
    with pytest.raises(AssertionError, match="compiling began"):
        from_stan(**given)


@pytest.mark.usefixtures("stanc_available")
@pytest.mark.parametrize(
    ("function", "given", "sentence"),
    [
        (pt.temper, {"checkpoint": "no/such/folder/run.nc"}, "checkpoint: there is no folder"),
        (pt.temper, {"checkpoint": 3}, "checkpoint: '3' is no name of a file"),
        (pt.temper, {"modes": "fast"}, 'modes: it must be "auto", "off" or points'),
        (pt.temper, {"modes": [1.0]}, "modes: expected finite points of shape (n, dim), got shape (1,)"),
        (pt.temper, {"modes": [[NAN]]}, "modes: expected finite numbers"),
        (pt.temper, {"init": {"mu": NAN}}, "init of mu: expected finite numbers"),
        (pt.temper, {"init": {"mu": 1.0}, "modes": "off"}, "init: it is where modes are looked for"),
        (pt.temper, {"init": {"mu": 1.0}, "settings": pt.settings.PAPER}, "init: the paper's engine starts"),
        (pt.temper, {"draws": 10**12}, "draws: 1000000000000 of each of 64 chains take"),
        (pt.divide_and_conquer, {"margin": "mu", "checkpoint": "no/such/run.nc"}, "checkpoint: there is no folder"),
    ],
)
def test_arguments_beside_a_program_are_told_before_compiling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: Any, given: dict[str, Any], sentence: str
) -> None:
    monkeypatch.setattr(building, "build", _never)
    monkeypatch.chdir(tmp_path)
    Path("mine.stan").write_text(STAN)
    right = {"data": {"N": 2, "y": np.ones(2)}, "progress": False} | ({"margin": "mu"} if "margin" in given else {})
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}"):
        function("mine.stan", **(right | given))
    with pytest.raises(AssertionError, match="compiling began"):
        function("mine.stan", **right)


@pytest.mark.usefixtures("stanc_available")
@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"buget": 3}, "buget: there is no such argument; is budget= meant?"),
        ({"budget": "many"}, "budget: it must be a positive number"),
        ({"seed": "x"}, "seed: expected an int"),
        ({"modes": "fast"}, 'modes: it must be "auto"'),
        ({"client": 3}, "client: "),
        ({"weights": {"x": 1.0}}, "compare: weights names ['x'], and fits ['a', 'b']"),
        ({"fits": {"a": "mine.stan"}}, "compare: give at least two fits"),
        ({"fits": {"a": "mine.stan", "b": 3}}, "b: it must be a fit"),
    ],
)
def test_what_compare_is_given_is_told_before_compiling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], sentence: str
) -> None:
    monkeypatch.setattr(building, "build", _never)
    monkeypatch.chdir(tmp_path)
    Path("mine.stan").write_text(STAN)
    right = {"fits": {"a": "mine.stan", "b": "mine.stan"}, "data": {"N": 2, "y": np.ones(2)}}
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}"):
        pt.compare(**(right | given))
    with pytest.raises(AssertionError, match="compiling began"):
        pt.compare(**right)


def test_names_in_other_arguments_are_told(tmp_path: Path) -> None:
    file = tmp_path / "mine.stan"
    file.write_text(STAN)
    with pytest.raises(InputError, match=r"^margin: the program has no 'muu'; is 'mu' meant\?"):
        pt.divide_and_conquer(file, margin="muu[3]", data={})
    with pytest.raises(InputError, match=r"^init: the program has no 'sigma'; its parameters are mu"):
        pt.temper(str(file), data={}, init=[{"mu": 1.0}, {"sigma": 2.0}])
