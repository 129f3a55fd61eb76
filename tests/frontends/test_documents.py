"""The code in the documents of the front ends runs, and does what they say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from arviz_stats import loo, summary

DOCS = Path(__file__).parents[2] / "docs"


def run(language: str) -> dict[str, Any]:
    """The python blocks of one document, one after the other."""
    pytest.importorskip(language, reason=f"{language} is not installed")
    blocks = re.findall(r"^```python\n(.*?)^```", (DOCS / f"{language}.md").read_text(), re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, f"{language}.md", "exec"), names)
    return names


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("language", ["pymc", "numpyro"])
def test_the_code_runs(language):
    pytest.importorskip("numpyro", reason="NumPyro is not installed")
    names = run(language)
    fit, tree = names["fit"], names["tree"]
    assert fit.converged
    mu = fit.posterior["mu"].values
    first = (mu[..., 0] < mu[..., 1]).mean(axis=1)
    assert abs(first.mean() - 0.5) < 4 * first.std(ddof=1) / np.sqrt(len(first))
    assert len(summary(tree)) == 2
    assert np.isfinite(loo(tree).elpd)
    if language == "numpyro":
        (a, a_se), (b, b_se) = fit.log_marginal_likelihood, names["same"].log_marginal_likelihood
        assert abs(a - b) < 4 * np.hypot(a_se, b_se)
