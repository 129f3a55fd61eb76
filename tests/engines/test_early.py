"""What is compiled before it is wanted is what is then run, and nothing of it is compiled twice."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pytest

import pathtemp as pt
from pathtemp._types import FloatArray
from pathtemp.engines.default import early
from pathtemp.engines.default.chains import Chains
from pathtemp.kernels import compilation
from pathtemp.model.evaluate import energies_of
from pathtemp.model.inputs import starts
from pathtemp.model.model import Model
from pathtemp.modes.ascent import ascend
from pathtemp.modes.local import gradients_at
from pathtemp.paths.geometric import GeometricPath


@pytest.fixture
def nothing_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_programs", "_begun"):
        monkeypatch.setattr(compilation, name, OrderedDict())


def chains_of(model: Model) -> tuple[Chains, FloatArray]:
    theta = starts(model, count=64, seed=0)
    start = theta, energies_of(GeometricPath(model.log_base, model.log_target), theta)
    return Chains(model, seed=0, draws=16, must_draw=True, settings=pt.settings.DEFAULT, start=start), theta


@pytest.mark.parametrize("marginal", ["balanced", "min-variance"])
@pytest.mark.usefixtures("nothing_compiled")
def test_a_round_that_was_begun_has_the_shapes_of_a_path_that_is_not_long(marginal: str) -> None:
    chains, theta = chains_of(pt.testing.mixture_1d().model)
    chains.settings = chains.settings.replace(marginal=marginal)
    early.begin_round(chains, theta)
    early.begin_round(chains, theta)
    assert len(compilation._begun) == 1
    chains.anneal(1e5, lambda lam, n: None)
    chains.compile()
    assert not compilation._begun
    assert compilation.is_compiled(*chains.round_made_of())
    assert len([key for key in compilation._programs if key[0] is chains.round_made_of()[0]]) == 1


@pytest.mark.usefixtures("nothing_compiled")
@pytest.mark.parametrize("dim", [2, 70])
def test_the_programs_of_the_search_are_begun_as_they_are_wanted(dim: int) -> None:
    model = pt.testing.gaussian_scale(dim).model
    early.begin_search(model)
    assert len(compilation._begun) == 2
    ascend(model.log_target, np.ones((3, dim)), scale=np.full(dim, 2.0), most_gradients=1e3)
    gradients_at(model.log_target, np.ones((5, dim)))
    assert not compilation._begun
    assert len(compilation._programs) == 2
