"""The gallery: every program has its data and a line in the README, and runs; so does the code of the page on Stan."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from stan_programs import EXAMPLES

import pathtemp as pt
from pathtemp.frontends.stan import from_stan
from pathtemp.frontends.stan.build import program_info
from pathtemp.frontends.stan.prior import described, find_prior
from pathtemp.frontends.stan.program import parse
from pathtemp.frontends.stan.source import read_source
from pathtemp.testing.calibration import assert_close

DOCS = Path(__file__).parents[3] / "docs"
BUDGETS = {
    "eight_schools_centered": 300_000,
    "horseshoe": 90_000,
    "label_switching": 300_000,
    "lda_small": 90_000,
    "logit_probit": 120_000,
}
"""Gradient equivalents: enough to see that a program runs, not always enough to converge."""


def test_the_gallery_is_complete() -> None:
    programs = sorted(path.stem for path in EXAMPLES.glob("*.stan"))
    assert programs == sorted(["cauchy", *BUDGETS])
    readme = (EXAMPLES / "README.md").read_text()
    for name in programs:
        assert (EXAMPLES / f"{name}.json").is_file()
        assert f"| `{name}.stan` |" in readme


def check_too_short(fit: pt.Fit) -> None:
    """A run that its budget does not bring to the target and back says so."""
    assert not fit.converged
    assert fit.warnings


def check_log_z(truth: float) -> Callable[[pt.Fit], None]:
    def check(fit: pt.Fit) -> None:
        value, se = fit.log_marginal_likelihood
        assert_close(value, truth, se)
        assert se < LARGEST_SE

    return check


def check_two_models(fit: pt.Fit) -> None:
    """The Bayes factor of logit over probit, by quadrature of both densities."""
    assert fit.model is not None
    grid = np.linspace(-8, 8, 4001)
    masses = [
        np.trapezoid(np.exp(jax.vmap(density)(grid[:, None])), grid)
        for density in (fit.model.log_target, fit.model.log_base)
    ]
    check_log_z(float(np.log(masses[0] / masses[1])))(fit)


def check_relabellings(fit: pt.Fit) -> None:
    """Each of the 3! orders of the means has the same share, within its error over chains."""
    order = np.argsort(fit.posterior["mu"].values, axis=-1)
    shares = np.stack([np.all(order == np.array(one), axis=-1).mean(axis=1) for one in permutations(range(3))])
    chains = shares.shape[1]
    assert_close(shares.mean(axis=1), 1 / 6, shares.std(axis=1, ddof=1) / np.sqrt(chains), df=chains - 1)


def check_topics(fit: pt.Fit) -> None:
    np.testing.assert_allclose(fit.posterior["phi"].sum(fit.posterior["phi"].dims[-1]), 1.0)


LARGEST_SE = 0.5
"""Errors of log z are a tenth of it in these runs; one much larger would agree with any truth."""

CHECKS = {
    "eight_schools_centered": check_log_z(-31.311347),
    "horseshoe": check_too_short,
    "label_switching": check_relabellings,
    "lda_small": check_topics,
    "logit_probit": check_two_models,
}
"""What is known of the runs; the Cauchy pair is that of the page."""


@pytest.mark.stan_full
@pytest.mark.usefixtures("toolchain")
@pytest.mark.parametrize("name", sorted(CHECKS))
def test_a_program_of_the_gallery_runs(name: str) -> None:
    file = EXAMPLES / f"{name}.stan"
    fit = pt.temper(from_stan(file, file.with_suffix(".json")), seed=1, budget=BUDGETS[name], progress=False)
    assert fit.name == name
    for draws in fit.posterior.data_vars.values():
        assert np.isfinite(draws.values).all()
    CHECKS[name](fit)


@pytest.mark.usefixtures("stanc_available")
def test_the_prior_that_the_page_shows_is_found(tmp_path: Path) -> None:
    page = (DOCS / "stan.md").read_text()
    plain, _ = re.findall(r"^```stan\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    (shown,) = re.findall(r"^>>> print\(model.base\)\n(.*?)\n```", page, re.DOTALL | re.MULTILINE)
    file = tmp_path / "eight_schools.stan"
    file.write_text(plain)
    program = parse(read_source(file))
    split, _, forward = find_prior(program, program_info(program.source))
    assert described(split, exact=forward is not None) == shown


@pytest.mark.usefixtures("compiled")
def test_the_code_of_the_page_runs_and_finds_both_modes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (DOCS / "stan.md").read_text()
    _, program = re.findall(r"^```stan\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    example = EXAMPLES / "cauchy.stan"
    assert re.sub(r"\s+", "", program) == re.sub(r"//.*|\s+", "", example.read_text())
    shutil.copy(example, tmp_path)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE):
        exec(compile(block, "stan.md", "exec"), names)
    fit = names["fit"]
    check_log_z(-8.052885)(fit)
    assert fit.posterior["theta"].dims == ("chain", "draw")
    above = (fit.posterior["theta"] > 0).mean(dim="draw").values
    assert_close(above.mean(), 0.5, above.std(ddof=1) / np.sqrt(len(above)), df=len(above) - 1)
    assert names["data"]["pathtemp_nodes"] == len(names["data"]["pathtemp_log_c"])
