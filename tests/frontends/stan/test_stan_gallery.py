"""The gallery: every program has its data and a line in the README, and runs; so does the code of the page on Stan."""

from __future__ import annotations

import re
import shutil
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stan_programs import EXAMPLES

import pathtemp as pt
from pathtemp.frontends.stan import from_stan

DOCS = Path(__file__).parents[3] / "docs"
BUDGETS = {
    "cauchy": 40_000,
    "eight_schools_centered": 100_000,
    "horseshoe": 300_000,
    "label_switching": 100_000,
    "lda_small": 60_000,
    "logit_probit": 40_000,
}
"""Gradient evaluations: enough to see that a program runs, not always enough to converge."""


def test_the_gallery_is_complete() -> None:
    programs = sorted(path.stem for path in EXAMPLES.glob("*.stan"))
    assert programs == sorted(BUDGETS)
    readme = (EXAMPLES / "README.md").read_text()
    for name in programs:
        assert (EXAMPLES / f"{name}.json").is_file()
        assert f"| `{name}.stan` |" in readme


def gallery_fit(name: str) -> pt.Fit:
    file = EXAMPLES / f"{name}.stan"
    return pt.temper(from_stan(file, file.with_suffix(".json")), seed=1, budget=BUDGETS[name], progress=False)


@pytest.mark.stan_full
@pytest.mark.usefixtures("toolchain")
@pytest.mark.parametrize("name", sorted(BUDGETS))
def test_a_program_of_the_gallery_runs(name: str) -> None:
    fit = gallery_fit(name)
    assert fit.name == name
    value, se = fit.log_marginal_likelihood
    assert np.isfinite([value, se]).all()
    assert fit.posterior.sizes["draw"] > 0
    for draws in fit.posterior.data_vars.values():
        assert np.isfinite(draws.values).all()
    if name in LOG_Z:
        assert abs(value - LOG_Z[name]) < 4 * se
    if name == "label_switching":
        check_relabellings(fit)
    if name == "lda_small":
        np.testing.assert_allclose(fit.posterior["phi"].sum(fit.posterior["phi"].dims[-1]), 1.0)


LOG_Z = {"cauchy": -8.052885, "eight_schools_centered": -31.311347}


def check_relabellings(fit: pt.Fit) -> None:
    """Each of the 3! orders of the means has the same share, within its error over chains."""
    order = np.argsort(fit.posterior["mu"].values, axis=-1)
    for one in permutations(range(3)):
        share = np.all(order == np.array(one), axis=-1).mean(axis=1)
        assert abs(share.mean() - 1 / 6) < 4 * share.std(ddof=1) / np.sqrt(len(share)) + 0.02


@pytest.mark.usefixtures("compiled")
def test_the_code_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (DOCS / "stan.md").read_text()
    (program,) = re.findall(r"^```stan\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    example = EXAMPLES / "cauchy.stan"
    assert re.sub(r"\s+", "", program) == re.sub(r"//.*|\s+", "", example.read_text())
    shutil.copy(example, tmp_path)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE):
        exec(compile(block, "stan.md", "exec"), names)
    value, se = names["fit"].log_marginal_likelihood
    assert abs(value - LOG_Z["cauchy"]) < 4 * se
    assert names["data"]["pathtemp_nodes"] == len(names["data"]["pathtemp_log_c"])
