"""Every figure of the documentation but those of benchmarks, for light pages and for dark ones.

python examples/gallery.py [FOLDER]    # docs/figures where none is given
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import matplotlib as mpl
import matplotlib.pyplot as plt
from jax import Array
from matplotlib.figure import Figure

import pathtemp as pt
from pathtemp import demo

DPI = 110
ROOT = Path(__file__).parents[1]


def three_modes(v: dict[str, Array]) -> Array:
    """Three modes in the plane of height and width, and a variable that does not tell them apart."""
    centres = jnp.array([[-3.0, 0.0], [4.0, 2.0], [1.0, -5.0]])
    weight, scale = jnp.array([0.5, 0.3, 0.2]), jnp.array([0.4, 0.3, 0.2])
    x = jnp.stack([v["height"], v["width"]])
    inside = -0.5 * jnp.sum((x - centres) ** 2, axis=1) / scale**2
    return -0.5 * v["noise"] ** 2 + jnp.logaddexp.reduce(jnp.log(weight) - 2 * jnp.log(scale) + inside)


def fits() -> dict[str, pt.Fit]:
    """The runs that are drawn."""
    base = {"noise": pt.normal(0.0, 2.0), "height": pt.normal(0.0, 5.0), "width": pt.normal(0.0, 5.0)}
    schools = pt.testing.eight_schools(centred=True).model
    quiet = {"seed": 1, "progress": False}
    return {
        "pair": pt.temper(pt.testing.cauchy_pair().model, budget=120_000, **quiet),
        "three": pt.temper(target=three_modes, base=base, budget=180_000, **quiet),
        "broad": pt.temper(target=three_modes, base=base, budget=400_000, modes="off", seed=2, progress=False),
        "schools": pt.temper(schools, budget=180_000, **quiet),
        "margin": pt.divide_and_conquer(schools, margin="tau", budget=200_000, **quiet),
        "demo": pt.temper(pt.testing.cauchy_pair().model, **quiet),
    }


def galaxies() -> dict[str, Any]:
    """What the code of docs/analysis.md leaves, up to its figures."""
    text = (ROOT / "docs" / "analysis.md").read_text().partition("## Figures")[0]
    names: dict[str, Any] = {}
    exec("\n".join(re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)), names)
    return names


def panel(name: str, fit: pt.Fit) -> Figure:
    """The figure of one panel by its name."""
    return getattr(pt.plots, name)(fit).figure


def figures(fit: dict[str, pt.Fit]) -> dict[str, Callable[[], Figure]]:
    """What makes each figure, by the name of its file."""
    pair, three, schools, plots = fit["pair"], fit["three"], fit["schools"], pt.plots
    made: dict[str, Callable[[], Figure]] = {
        "cauchy": lambda: demo.figure(fit["demo"], pt.testing.cauchy_pair()),
        "plot": pair.plot,
        "plot_modes": three.plot,
        "diagnose": lambda: plots.diagnose(pair),
        "margin": fit["margin"].plot,
        "pairs": lambda: plots.pairs(three),
        "trace": lambda: plots.trace(three),
        "marginals": lambda: plots.marginals(three),
        "comparison": lambda: plots.comparison(pt.compare({"three modes": three, "again": fit["broad"]})).figure,
        "tails": lambda: plots.tails(schools, var="tau").figure,
        "base_draws": lambda: plots.base_draws(three).figure,
    }
    for name in ("joint_path", "log_z", "marginal_a", "history", "tours"):
        made[name] = partial(panel, name, pair)
    for name in ("target_draws", "modes", "mode_shares"):
        made[name] = partial(panel, name, three)
    for name in ("hardness", "acceptance"):
        made[name] = partial(panel, name, schools)
    return made


def galaxy_figures(names: dict[str, Any]) -> dict[str, Callable[[], Figure]]:
    """The figures of docs/analysis.md."""
    return {
        "galaxy-plot": names["two"].plot,
        "galaxy-modes": lambda: pt.plots.modes(names["two"], var=("mu[0]", "mu[1]")).figure,
        "galaxy-comparison": lambda: pt.plots.comparison(names["table"]).figure,
    }


def main(folder: Path) -> None:
    """Draw them all, twice."""
    mpl.use("Agg")
    folder.mkdir(parents=True, exist_ok=True)
    run, galaxy = fits(), galaxies()
    for style, suffix in (("default", ""), ("dark_background", "-dark")):
        with plt.style.context(style):
            for name, make in (figures(run) | galaxy_figures(galaxy)).items():
                figure = make()
                figure.savefig(folder / f"{name}{suffix}.png", dpi=DPI)
                plt.close(figure)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "figures")
