"""The experiments by name."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from experiments.common import Experiment

NAMES = (
    *("link", "beta_binomial", "mixture_1d", "mixture", "flower", "horseshoe", "eight_schools"),
    *("cauchy", "logit_probit", "logz_and_tempering", "lda", "gradients", "ties", "coverage"),
)
"""Modules of this package, in the order of the paper; the last three are the library's own."""


def experiment(name: str, *, corpus: Path | None = None) -> Experiment:
    """The experiment of that name; that of topics on the text in the file ``corpus``, where there is one."""
    if name == "lda" and corpus is not None:
        return import_module("experiments.lda").of(str(corpus))
    found: Experiment = import_module(f"experiments.{name}").EXPERIMENT
    return found
