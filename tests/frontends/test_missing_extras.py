"""Without PyMC, NumPyro and blackjax everything else works, and asking for them says what to install."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

WITHOUT = """
import sys
for name in ("pymc", "pytensor", "numpyro", "funsor", "arviz", "blackjax"):
    sys.modules[name] = None  # importing it raises ImportError
import jax.numpy as jnp
import pathtemp as pt
"""

ASKING = """
model = pt.testing.mixture_1d().model
by_the_paper = lambda: pt.temper(model, settings=pt.settings.PAPER)
for ask in (lambda: pt.from_pymc(None), lambda: pt.from_numpyro(lambda: None), by_the_paper):
    try:
        ask()
    except pt.MissingExtraError as error:
        print(error)
from pathtemp.io.persistent import missing_extra, storable_classes
import pathtemp.cli.resumed, pathtemp.api.resume  # the command line and pt.resume
print("TemperPlan" in storable_classes(), missing_extra())
"""

RUNNING = """
base = {"x": pt.normal(0.0, 3.0, shape=(2,))}
how = {"budget": 60_000, "progress": False, "checkpoint": "run.nc"}
fit = pt.temper(target=lambda v: -0.5 * jnp.sum(v["x"] ** 2), base=base, **how)
fit.to_datatree(), fit.summary()
fit.save("fit.nc"), pt.load("fit.nc")
assert pt.resume("run.nc", fit.model, progress=False).seed == fit.seed
pt.bayes_factor(fit, fit), pt.compare({"a": fit, "b": fit})
"""


def output(program: str, folder: Path) -> list[str]:
    command = [sys.executable, "-W", "ignore", "-c", WITHOUT + program]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


def test_asking_for_them_says_what_to_install(tmp_path: Path):
    assert output(ASKING, tmp_path) == [
        "PyMC is not installed; run: pip install 'pathtemp[pymc]'",
        "NumPyro is not installed; run: pip install 'pathtemp[numpyro]'",
        "blackjax is not installed; run: pip install 'pathtemp[paper]'",
        # Fits and checkpoints of the other engines are written and read all the same.
        "True blackjax is not installed; run: pip install 'pathtemp[paper]'",
    ]


@pytest.mark.programs_full
def test_runs_and_comparisons_work_without_them(tmp_path: Path):
    assert output(RUNNING, tmp_path) == []
