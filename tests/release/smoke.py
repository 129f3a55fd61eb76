"""What a newly installed pathtemp has to do with no extra: run by the Python that it was installed for.

python smoke.py VERSION
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np

import pathtemp as pt


def said_by(*arguments: str) -> str:
    """What the command line says."""
    command = Path(sys.executable).with_name("pathtemp")
    return subprocess.run([command, *arguments], check=True, capture_output=True, text=True).stdout


def without_matplotlib(fit: pt.Fit) -> str:
    """What a figure says where matplotlib is absent."""
    try:
        fit.plot()
    except pt.MissingExtraError as error:
        return str(error)
    raise AssertionError("a figure without matplotlib")


def main(version: str) -> None:
    """Import, command line, a run, a file, a page; and one sentence where an extra is absent."""
    assert Path(sys.prefix) in Path(pt.__file__).parents, f"{pt.__file__} is not of this environment"
    assert pt.__version__ == version, pt.__version__
    assert said_by("--version").split() == ["pathtemp", version]
    assert "pathtemp works here" in said_by("doctor")
    assert importlib.util.find_spec("matplotlib") is None, "an extra is there that nobody asked for"

    fit = pt.temper(pt.testing.cauchy_pair().model, seed=1, budget=60_000, progress=False)
    value, se = fit.log_marginal_likelihood
    # Eight standard errors: a broken installation gives another number, and chance gives this one never.
    assert abs(value + 8.052885) < 8 * se < 1.0, (value, se)
    fit.save("fit.nc")
    assert np.array_equal(pt.load("fit.nc").posterior["theta"], fit.posterior["theta"])
    fit.report("report.html")
    assert "Converged" in Path("report.html").read_text() or not fit.converged
    assert "pathtemp[plots]" in without_matplotlib(fit)
    print(f"pathtemp {version} works; log z = {value:.3f} ± {se:.3f}, exact −8.053")


if __name__ == "__main__":
    main(sys.argv[1])
