"""Names, data and files made to do harm neither run nor break anything."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import jax.numpy as jnp
import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from crafted import resealed
from synthetic import fit_of, odd_model

import pathtemp as pt
from pathtemp.cli import main
from pathtemp.engines.paper.plan import PaperPlan
from pathtemp.io import checkpoint as checkpoint_file
from pathtemp.io.codec import decode
from pathtemp.report.page import page
from pathtemp.result.run import Check
from pathtemp.settings import PAPER

mpl.use("Agg")
NAMES = (
    ("../../../etc/passwd", "/absolute", "a/../../b"),
    ("<script>alert(1)</script>", "$\\frac{", "{{7*7}}"),
    ("\x1b[2Jgone", "a\nb", "‮reversed"),
    (".hidden", "%2F", "nul\x00l"),
    ("x" * 5000, "'; DROP TABLE draws; --", "__class__"),
)


@pytest.mark.parametrize("names", [*NAMES[:2], *(pytest.param(x, marks=pytest.mark.slow) for x in NAMES[2:])])
def test_names_are_only_names(names: tuple[str, ...], tmp_path: Path) -> None:
    fit = fit_of(odd_model(names))
    place = tmp_path / "inside" / "fit.nc"
    place.parent.mkdir()
    fit.save(place)
    fit.report(place.with_suffix(".html"))
    assert set(pt.load(place).posterior.data_vars) == set(names)
    assert "\x1b" not in str(fit.summary())
    plt.close(fit.plot())
    plt.close(pt.plots.pairs(fit))
    written = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*"))
    assert written == ["inside", "inside/fit.html", "inside/fit.nc"]


def test_a_huge_posterior_has_a_small_page() -> None:
    fit = fit_of(odd_model())
    draws = np.random.default_rng(0).normal(size=(2, 10, 50_000))
    big = xr.Dataset({"theta": (("chain", "draw", "i"), draws)})
    html = page(type(fit)(**{**vars(fit), "posterior": big, "base": big}))
    assert len(html) < 3_000_000
    assert "49,950 more" in html


def test_nan_data_are_refused_before_sampling() -> None:
    y = jnp.array([1.0, float("nan")])

    def target(x: Any) -> Any:
        return -0.5 * jnp.sum((y - x) ** 2)

    with pytest.raises(pt.InputError, match="NaN"):
        pt.temper(target=target, base=pt.normal(0.0, 1.0, shape=(1,)), progress=False)


def test_a_file_can_make_only_what_it_may() -> None:
    for text in (
        '{"class": "Popen", "fields": {"args": "true"}}',
        '{"class": "__import__", "fields": {"name": "os"}}',
        '{"array": ["float64", 0, [1000000000000]]}',
        '{"array": ["object", 0, [1]]}',
        '{"pickle": "gASVHQAAAAAAAACMBXBvc2l4lIwGc3lzdGVtlJOUjAR0cnVllIWUUpQu"}',
    ):
        with pytest.raises((KeyError, ValueError, TypeError)):
            decode(text, {"float64": np.zeros(3)})


def test_a_module_that_a_checkpoint_names_is_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "planted.py").write_text("open('ran', 'w').close()")
    monkeypatch.chdir(tmp_path)
    plan = PaperPlan(0, PAPER, None)
    for name in ("planted:make", "os:abort", "planted:\x1b[2J\u202e", "x" * 5000):
        known = {"name": "m", "dim": 1, "versions": {}, "recipe": {"of": "command line", "object": name}}
        checkpoint_file.write(tmp_path / "run.nc", {"plan": plan, "model": known, "state": {}})
        assert main(["run", "--checkpoint", "run.nc", "--resume"]) == 1
        said = capsys.readouterr().err
        assert "name it yourself: pathtemp run" in said
        assert said.strip().isprintable()
        assert len(said) < 1000
    assert not (tmp_path / "ran").exists()


def test_messages_of_a_file_cannot_reach_the_terminal(tmp_path: Path) -> None:
    fit = fit_of(odd_model())
    odd = Check("tours\x1b[2J", 1.0, 2.0, False, "\x1b]0;owned\x07 \u202etxt.exe")
    counted = replace(fit.diagnostics, checks=(odd,))
    replace(fit, diagnostics=counted, seconds={"\x1b[31m": 1.0}).save(tmp_path / "fit.nc")
    loaded = pt.load(tmp_path / "fit.nc")
    for text in (str(loaded.summary()), repr(loaded)):
        assert all(line.isprintable() for line in text.split("\n"))


def test_a_file_that_points_elsewhere_is_not_followed(tmp_path: Path) -> None:
    """Links, storage and datasets of other files are HDF5's, which never reads a file for us, sealed or not."""
    secret = tmp_path / "secret"
    secret.write_bytes(b"\x01" * 800)
    os.mkfifo(tmp_path / "pipe.nc")
    fit, good = fit_of(odd_model()), tmp_path / "good.nc"
    fit.save(good)
    for number, plant in enumerate(OUTSIDE):
        place = tmp_path / f"{number}.nc"
        buffer = io.BytesIO()
        with h5py.File(buffer, "w") as file:
            plant(file, tmp_path)
        place.write_bytes(buffer.getvalue())
        with pytest.raises(pt.InputError, match="without the checksum of pathtemp"):
            pt.load(place)
        loaded = pt.load(resealed(good, place, lambda arrays: None, netcdf=buffer.getvalue()))
        np.testing.assert_array_equal(loaded.posterior["mu"], fit.posterior["mu"])


def virtual(place: Path) -> Any:
    layout = h5py.VirtualLayout((100,), "f8")
    layout[:] = h5py.VirtualSource(str(place), "x", shape=(100,))
    return layout


def odd_types(file: Any) -> None:
    """Attributes that are arrays, no groups, and variables of types that netCDF hardly has."""
    file.attrs["pathtemp_format"] = np.arange(5)
    file["compound"] = np.zeros(3, [("a", "f8"), ("b", "S3")])
    file.create_dataset("enum", (3,), h5py.enum_dtype({"A": 1}))
    file.create_dataset("ragged", (3,), h5py.vlen_dtype(np.int32))
    file["text"] = ["a", "bb"]


OUTSIDE: tuple[Callable[[Any, Path], Any], ...] = (
    lambda file, here: file.__setitem__("posterior", h5py.ExternalLink(here / "secret", "/x")),
    lambda file, here: file.__setitem__("posterior", h5py.ExternalLink(here / "pipe.nc", "/x")),
    lambda file, here: file.create_dataset("mu", (100,), "f8", external=[(str(here / "secret"), 0, 800)]),
    lambda file, here: file.create_virtual_dataset("mu", virtual(here / "secret")),
    lambda file, here: file.__setitem__("posterior", h5py.SoftLink("/posterior")),
    lambda file, here: odd_types(file),
    lambda file, here: None,
)
