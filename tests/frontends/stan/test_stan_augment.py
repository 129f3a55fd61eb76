from __future__ import annotations

import numpy as np
import pytest
from stan_programs import augmented, load

from pathtemp.errors import InputError
from pathtemp.frontends.stan import from_stan
from pathtemp.frontends.stan.augment import augment, augmented_data
from pathtemp.frontends.stan.increments import Rewriter, lp_functions
from pathtemp.result.curve import LogZ

REWRITER = Rewriter({"normal": "lpdf", "poisson": "lpmf", "std_normal": "lpdf"}, {"bump_lp": "pathtemp_bump"})


@pytest.mark.parametrize(
    ("statement", "rewritten"),
    [
        ("y[n] ~ normal(mu[g[n]], exp(s));", "lp += normal_lpdf(y[n] | mu[g[n]], exp(s));"),
        ("{a, b} ~ normal(0, 1);", "lp += normal_lpdf({a, b} | 0, 1);"),
        ("-y ~ std_normal();", "lp += std_normal_lpdf(-y);"),
        ("for (v in y) v ~ normal(0, 1);", "for (v in y) lp += normal_lpdf(v | 0, 1);"),
        ("if (n > 1) { k ~ poisson(l); }", "if (n > 1) { lp += poisson_lpmf(k | l); }"),
        ("target += foo_lupdf(x | 1);", "lp += sum(pathtemp_flat(foo_lpdf(x | 1)));"),
        ('print("x ~ y;", target());', 'print("x ~ y;", lp);'),
        ("bump_lp(x); bump_lp(y);", "lp += pathtemp_bump(x); lp += pathtemp_bump(y);"),
        ("for (v in y) bump_lp(v);", "for (v in y) lp += pathtemp_bump(v);"),
    ],
)
def test_statements_add_to_a_variable(statement: str, rewritten: str) -> None:
    assert REWRITER.rewrite(statement, "lp") == rewritten


def test_a_function_that_returns_and_increments_is_refused() -> None:
    with pytest.raises(InputError, match="both_lp both returns a value and adds to target"):
        lp_functions("real both_lp(real x) { target += x; return x; }")
    assert lp_functions("void f_lp(real x) { g_lp(x); } void g_lp(real x);") == {"f_lp": "pathtemp_f"}


@pytest.mark.usefixtures("stanc_available")
def test_programs_that_cannot_be_augmented_say_why() -> None:
    with pytest.raises(InputError, match="no `alternative model` block"):
        augment("parameters { real x; } model { x ~ normal(0, 1); }")
    with pytest.raises(InputError, match="line 1: the name pathtemp_a is reserved"):
        augment("parameters { real pathtemp_a; } alternative model { }")
    with pytest.raises(InputError, match=r"line 2, column 33: Identifier .no. not in scope"):
        augment("parameters { real x; }\nalternative model {x ~ normal(0, no); }")


def test_a_curve_becomes_data() -> None:
    curve = LogZ(np.array([0.0, 1e-12, 0.5, 1.0]), np.array([0.0, -1e-9, -2.0, -3.0]), np.zeros(4))
    data = augmented_data(curve)
    assert data["pathtemp_nodes"] == 3
    assert data["pathtemp_lam"] == [0.0, 0.5, 1.0]
    assert data["pathtemp_log_c"] == [0.0, -2.0, -3.0]


@pytest.mark.stan_full
@pytest.mark.usefixtures("compiled")
def test_draws_of_the_augmented_program_know_lambda_and_delta() -> None:
    joint = from_stan(augmented("cauchy"), data={"y": 10.0} | augmented_data())
    model = load("cauchy")
    theta = 3.0
    points = np.array([[theta, u] for u in (-6.0, 0.0, -0.5)])
    draws = joint.draws(points)
    np.testing.assert_array_equal(draws["pathtemp_lambda"][:2], [0.0, 1.0])
    lam = draws["pathtemp_lambda"][2]
    assert 0 < lam < 1
    base, target = (float(f(np.array([theta]))) for f in (model.log_base, model.log_target))
    np.testing.assert_allclose(draws["pathtemp_delta"], [0.0, 0.0, target - base])
    a = draws["pathtemp_a"][2]
    expected = lam * target + (1 - lam) * base + np.log(a) + np.log(1 - a / 2)
    assert joint.log_target(points[2]) == pytest.approx(expected, rel=1e-12)
