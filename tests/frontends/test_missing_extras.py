"""Without PyMC and NumPyro everything else works, and asking for them says what to install."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
for name in ("pymc", "pytensor", "numpyro", "funsor", "arviz"):
    sys.modules[name] = None  # importing it raises ImportError
import jax.numpy as jnp
import pathtemp as pt
base = {"x": pt.normal(0.0, 3.0, shape=(2,))}
fit = pt.temper(target=lambda v: -0.5 * jnp.sum(v["x"] ** 2), base=base, budget=20_000, progress=False)
fit.to_arviz(), fit.summary()
pt.bayes_factor(fit, fit), pt.compare({"a": fit, "b": fit})
for ask in (lambda: pt.from_pymc(None), lambda: pt.from_numpyro(lambda: None)):
    try:
        ask()
    except pt.MissingExtraError as error:
        print(error)
"""


def test_without_pymc_and_numpyro():
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == [
        "PyMC is not installed; run: pip install 'pathtemp[pymc]'",
        "NumPyro is not installed; run: pip install 'pathtemp[numpyro]'",
    ]
