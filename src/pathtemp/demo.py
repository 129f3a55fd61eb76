"""The paper's Cauchy pair end to end: ``python -m pathtemp.demo`` prints a summary and writes one figure.

Two observations contradict each other, so that the posterior of theta has two narrow modes, at -10 and 10. A
sampler that starts in one of them never leaves it; a path to a wide normal base and back finds both.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from pathtemp._types import FloatArray, LogDensity
from pathtemp.api.temper import temper
from pathtemp.errors import InputError
from pathtemp.result.fit import Fit
from pathtemp.result.summary import with_error
from pathtemp.testing import Problem, cauchy_pair

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NOT_CONVERGED = 3
"""Exit status of a run that finished but did not converge."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; the exit status is 0 where the run converged and 3 where it did not."""
    parser = argparse.ArgumentParser("python -m pathtemp.demo", description="Temper the paper's Cauchy pair.")
    parser.add_argument("--out", type=Path, default=Path("demo.png"), help="figure to write (demo.png)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the run (1)")
    parser.set_defaults(report=None)
    options = parser.parse_args(arguments)
    try:
        return demo(options)
    except InputError as error:
        parser.error(str(error))


def demo(options: argparse.Namespace) -> int:
    """The demo with its options ``out``, ``seed`` and ``report``."""
    for name in ("out", "report"):
        place = getattr(options, name)
        if place is not None and not place.resolve().parent.is_dir():
            raise InputError(f"--{name}: there is no folder {place.resolve().parent}")
    problem, began = cauchy_pair(), time.perf_counter()
    fit = temper(problem.model, seed=options.seed)
    spent = time.perf_counter() - began
    print(fit.summary())
    print(f"\n{beside_exact(fit, problem)}")
    figure(fit, problem).savefig(options.out)
    if options.report is not None:
        fit.report(options.report)
        print(f"\nthe report is {options.report}")
    print(f"\n{spent:.1f} seconds in all; the figure is {options.out}")
    return 0 if fit.converged else NOT_CONVERGED


def beside_exact(fit: Fit, problem: Problem) -> str:
    """What the run says beside the exact answers: log z, and the share of the mode at theta > 0."""
    value, se = fit.log_constant
    theta = fit.posterior["theta"].values[..., 0]
    shares = np.mean(theta > 0, axis=1)
    share_se = float(np.std(shares, ddof=1) / np.sqrt(len(shares)))
    rows = [
        ("", "this run", "exact"),
        ("log z(1) - log z(0)", with_error(value, se), f"{problem.log_z_end:.6f}"),
        ("share of theta > 0", with_error(float(np.mean(shares)), share_se), "0.5"),
    ]
    return "\n".join(f"  {label:<20}  {here:<16}  {exact}" for label, here, exact in rows)


def figure(fit: Fit, problem: Problem) -> Figure:
    """Four panels, each over the exact answer where there is one."""
    return fit.plot(
        label="θ",
        target_density=density(problem.model.log_target, problem.log_z_end),
        base_density=density(problem.model.log_base),
        exact=problem.log_z,
    )


def density(log_density: LogDensity, log_constant: float = 0.0) -> Callable[[FloatArray], FloatArray]:
    """Normalised density of a one-dimensional log density, as a function of an array of points.

    >>> normal = density(lambda x: -0.5 * x[0] ** 2, 0.5 * float(np.log(2 * np.pi)))
    >>> normal(np.zeros(1)).round(4)
    array([0.3989])
    """
    at_points = jax.jit(jax.vmap(lambda x: jnp.exp(log_density(x) - log_constant)))
    return lambda x: np.asarray(at_points(jnp.asarray(x)[:, None]))


if __name__ == "__main__":
    raise SystemExit(main())
