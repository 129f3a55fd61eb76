"""The code in the documents of the front ends runs, and does what they say."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import arviz as az
import numpy as np
import pytest
from agreement import assert_share
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from pathtemp.result.fit import Fit
from pathtemp.testing.calibration import assert_close

DOCS = Path(__file__).parents[2] / "docs"
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")


def run(language: str, blocks: int | None = None) -> dict[str, Any]:
    """The python blocks of one document, one after the other."""
    pytest.importorskip(language, reason=f"{language} is not installed")
    code = re.findall(r"^```python\n(.*?)^```", (DOCS / f"{language}.md").read_text(), re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {}
    for block in code[:blocks]:
        exec(compile(block, f"{language}.md", "exec"), names)
    return names


def evidence(y: np.ndarray) -> float:
    """Of two normals of standard deviation .5 and equal weight with means from N(0, 3): the sum over all labels."""
    terms = []
    for labels in itertools.product([0, 1], repeat=len(y)):
        same = np.equal.outer(labels, labels)
        terms.append(multivariate_normal(np.zeros(len(y)), 0.25 * np.eye(len(y)) + 9.0 * same).logpdf(y))
    return float(logsumexp(terms) - len(y) * np.log(2))


def check(fit: Fit, y: Any) -> None:
    value, se = fit.log_marginal_likelihood
    assert_close(value, evidence(np.asarray(y)), se)
    assert se < 0.2  # ten times what it is: one much larger would agree with any evidence
    mu = fit.posterior["mu"].values
    assert_share((mu[..., 0] < mu[..., 1]).mean(axis=1), 0.5)


@pytest.mark.parametrize("language", ["pymc", "numpyro"])
def test_the_first_example_has_the_exact_evidence_and_both_labellings(language):
    names = run(language, 1)
    check(names["fit"], names["y"])


@pytest.mark.programs_full
@pytest.mark.parametrize("language", ["pymc", "numpyro"])
def test_the_whole_page_runs(language):
    names = run(language)
    check(names["fit"], names["y"])
    if language == "numpyro":
        check(names["same"], names["y"])
    assert len(az.summary(names["data"])) == 2
    found = az.loo(names["data"])
    assert np.isfinite(found.elpd if hasattr(found, "elpd") else found.elpd_loo)
