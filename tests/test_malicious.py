"""Names, data and files made to do harm neither run nor break anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax.numpy as jnp
import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from synthetic import fit_of, odd_model

import pathtemp as pt
from pathtemp.checkpoint import file
from pathtemp.codec import decode
from pathtemp.report.page import page

mpl.use("Agg")
NAMES = (
    ("../../../etc/passwd", "/absolute", "a/../../b"),
    ("<script>alert(1)</script>", "$\\frac{", "{{7*7}}"),
    ("\x1b[2Jgone", "a\nb", "‮reversed"),
    (".hidden", "%2F", "nul\x00l"),
    ("x" * 5000, "'; DROP TABLE draws; --", "__class__"),
)


@pytest.mark.parametrize("names", NAMES)
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


def test_a_checkpoint_that_claims_too_much_is_refused(tmp_path: Path) -> None:
    import h5netcdf

    place = tmp_path / "run.nc"
    with h5netcdf.File(place, "w") as made:
        made.dimensions["record_bytes"] = 10**12
        made.create_variable("record", ("record_bytes",), dtype="u1", chunks=(1024,))
        made.attrs["pathtemp_checkpoint"] = file.FORMAT
    with pytest.raises(pt.InputError, match="more than it has"):
        file.read(place)
    with pytest.raises(pt.InputError):
        pt.load(place)
