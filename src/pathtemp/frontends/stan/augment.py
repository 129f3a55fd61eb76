"""A plain Stan program of the joint density of (theta, a), for any Stan interface."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from pathtemp.errors import InputError
from pathtemp.frontends.stan.build import stanc
from pathtemp.frontends.stan.canonical import canonical, distributions, with_model
from pathtemp.frontends.stan.increments import AT, FLAT, Rewriter, counterparts, lp_functions
from pathtemp.frontends.stan.program import Program, parse, without_alternative
from pathtemp.frontends.stan.source import Source, read_source
from pathtemp.paths.links import A_MAX, A_MIN
from pathtemp.result.curve import LogZ

MARK = "// Joint density of (theta, a), written by `pathtemp augment`."

_HEADER = f"""{MARK}
//
//   log p(theta, a) = lambda log q(theta) + (1 - lambda) log psi(theta) - log c(lambda),   lambda = f(a)
//
// q is the model block and psi the alternative model block of the program, constants kept; f is the
// link of the paper (appendix A); log c, the pseudo-prior, is a smooth curve through nodes given as data.
// Draws with pathtemp_lambda == 1 are draws of the model, those with pathtemp_lambda == 0 of the base.
// The gradient of path sampling is U = f'(a) pathtemp_delta; pathtemp_delta is 0 at both ends, where U is.
// Start with two nodes, pathtemp_lam = (0, 1) and pathtemp_log_c = (0, 0), and put the estimate of log z in
// the place of log c between runs."""

_FUNCTIONS = f"""
  vector {FLAT}(real x) {{ return [x]'; }}
  vector {FLAT}(vector x) {{ return x; }}
  vector {FLAT}(row_vector x) {{ return x'; }}
  vector {FLAT}(matrix x) {{ return to_vector(x); }}
  vector {FLAT}(array[] real x) {{ return to_vector(x); }}
  int {AT}(int x, int i) {{ return x; }}
  int {AT}(array[] int x, int i) {{ return x[i]; }}
  real {AT}(real x, int i) {{ return x; }}
  real {AT}(vector x, int i) {{ return x[i]; }}
  real {AT}(row_vector x, int i) {{ return x[i]; }}
  real {AT}(array[] real x, int i) {{ return x[i]; }}
  real pathtemp_link(real a, real a_min, real a_max) {{
    real s = fmin(fmax((1 - abs(1 - a) - a_min) / (a_max - a_min), 0), 1);
    return square(s) * (3 - 2 * s);
  }}
  vector pathtemp_slopes(vector x, vector y) {{
    int n = num_elements(x);
    vector[n - 1] h = x[2 : n] - x[1 : n - 1];
    vector[n - 1] d = (y[2 : n] - y[1 : n - 1]) ./ h;
    vector[n] slope;
    slope[1] = d[1];
    slope[n] = d[n - 1];
    for (j in 2 : n - 1) {{
      slope[j] = (h[j] * d[j - 1] + h[j - 1] * d[j]) / (h[j - 1] + h[j]);
    }}
    return slope;
  }}
  real pathtemp_curve(real at, vector x, vector y, vector slope) {{
    int j = 1;
    while (j < num_elements(x) - 1 && at > x[j + 1]) {{
      j += 1;
    }}
    real h = x[j + 1] - x[j];
    real t = (at - x[j]) / h;
    return (1 + 2 * t) * square(1 - t) * y[j] + t * square(1 - t) * h * slope[j]
           + square(t) * (3 - 2 * t) * y[j + 1] - square(t) * (1 - t) * h * slope[j + 1];
  }}
"""
_DATA = """
  real<lower=0, upper=1> pathtemp_a_min;
  real<lower=pathtemp_a_min, upper=1> pathtemp_a_max;
  int<lower=2> pathtemp_nodes;
  vector<lower=0, upper=1>[pathtemp_nodes] pathtemp_lam;
  vector[pathtemp_nodes] pathtemp_log_c;
"""
_TRANSFORMED_DATA = "vector[pathtemp_nodes] pathtemp_slope = pathtemp_slopes(pathtemp_lam, pathtemp_log_c);"
_PARAMETERS = "real<lower=0, upper=2> pathtemp_a;"
_TRANSFORMED_PARAMETERS = """
  real pathtemp_lambda = pathtemp_link(pathtemp_a, pathtemp_a_min, pathtemp_a_max);
  real pathtemp_log_target = 0;
  real pathtemp_log_base = 0;
  if (pathtemp_lambda > 0) {{ {target} }}
  if (pathtemp_lambda < 1) {{ {base} }}
  real pathtemp_delta = 0;
  if (pathtemp_lambda > 0 && pathtemp_lambda < 1) {{
    pathtemp_delta = pathtemp_log_target - pathtemp_log_base;
  }}
"""
_MODEL = """model {
  target += pathtemp_lambda * pathtemp_log_target + (1 - pathtemp_lambda) * pathtemp_log_base;
  target += -pathtemp_curve(pathtemp_lambda, pathtemp_lam, pathtemp_log_c, pathtemp_slope);
}"""


def augment(program: str | os.PathLike[str], *, include_paths: Sequence[str | os.PathLike[str]] = ()) -> str:
    """The augmented program: the parameters and ``pathtemp_a``, with the pseudo-prior as data.

    Nothing of a block is evaluated where it has no weight (the model at lambda = 0, the alternative at
    lambda = 1), so what it rejects there does not matter. Data for it: :func:`augmented_data`.

    Parameters
    ----------
    program
        Path or text of a program with an ``alternative model`` block.
    include_paths
        Where ``#include`` looks, after the folder of the program.
    """
    parsed = parse(read_source(program, include_paths))
    if not parsed.has_alternative:
        raise InputError("augment: the program has no `alternative model` block, which is to be the base")
    taken = re.search(r"\bpathtemp_\w+", parsed.source.text)
    if taken:
        place = parsed.source.place_at(taken.start())
        raise InputError(f"{place}: the name {taken.group()} is reserved by pathtemp; rename it")
    target, base = (canonical(source) for source in (without_alternative(parsed), with_model(parsed)))
    functions = target.body("functions")
    rewriter = Rewriter(_suffixes(functions), lp_functions(functions))
    bodies = {
        "target": rewriter.rewrite(target.body("model"), "pathtemp_log_target"),
        "base": rewriter.rewrite(base.body("model"), "pathtemp_log_base"),
    }
    blocks = [
        _HEADER,
        _block("functions", _FUNCTIONS, functions, counterparts(functions, rewriter)),
        _block("data", target.body("data"), _DATA),
        _block("transformed data", target.body("transformed data"), _TRANSFORMED_DATA),
        _block("parameters", target.body("parameters"), _PARAMETERS),
        _block(
            "transformed parameters",
            target.body("transformed parameters"),
            _TRANSFORMED_PARAMETERS.format(**bodies),
        ),
        _MODEL,
        *([_block("generated quantities", target.body("generated quantities"))] if _generates(target) else []),
    ]
    text = "\n".join(blocks)
    return stanc(Source(text, (None,) * (text.count("\n") + 1)), "--auto-format")


def augmented_data(curve: LogZ | None = None) -> dict[str, Any]:
    """What the augmented program needs beside the data of the original one.

    Parameters
    ----------
    curve
        The log z curve to use as pseudo-prior, such as ``fit.log_z``; None for the flat start.

    >>> augmented_data()["pathtemp_log_c"]
    [0.0, 0.0]
    """
    lam, log_c = (np.array([0.0, 1.0]), np.zeros(2)) if curve is None else (curve.lam, curve.mean)
    keep = np.concatenate([[True], np.diff(lam) > 1e-9])
    return {
        "pathtemp_a_min": A_MIN,
        "pathtemp_a_max": A_MAX,
        "pathtemp_nodes": int(keep.sum()),
        "pathtemp_lam": lam[keep].tolist(),
        "pathtemp_log_c": log_c[keep].tolist(),
    }


def _suffixes(functions: str) -> dict[str, str]:
    """``lpdf`` or ``lpmf`` of every distribution, those of the program first."""
    known = {name: kind for name, kinds in distributions().items() for kind in ("lpdf", "lpmf") if kind in kinds}
    return known | {name: kind for name, kind in re.findall(r"\b(\w+)_(lpdf|lpmf)\s*\(", functions)}


def _generates(program: Program) -> bool:
    return "generated quantities" in program.blocks


def _block(name: str, *bodies: str) -> str:
    return "\n".join([f"{name} {{", *bodies, "}"])
