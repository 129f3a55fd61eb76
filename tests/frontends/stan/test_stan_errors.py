"""What a user is told when a program, its data or the machine is not right: one sentence, with their file and line."""

from __future__ import annotations

import _ctypes
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stan_programs import load, path

from pathtemp.errors import InputError, MissingExtraError
from pathtemp.frontends.stan import from_stan, toolchain
from pathtemp.frontends.stan.build import stanc
from pathtemp.frontends.stan.source import read_source

GOOD = """data {
  int<lower=1> N;
  vector<lower=0>[N] y;
}
parameters {
  real mu;
}
model {
  y ~ normal(mu, 1);
}
alternative model {
  mu ~ normal(0, 5);
}
"""


def write(folder: Path, text: str) -> Path:
    file = folder / "mine.stan"
    file.write_text(text)
    return file


@pytest.mark.usefixtures("stanc_available")
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("normal(mu, 1);", "normal(mu, 1)", "mine.stan, line 10, column 0: "),
        ("normal(0, 5);", "normal(0, 5)", "mine.stan, line 13, column 0: "),
        ("normal(mu, 1)", "normal(mu, nothing)", "mine.stan, line 9, column 17: Identifier"),
        ("normal(0, 5)", "normal(0, nothing)", "mine.stan, line 12, column 17: Identifier"),
        ("normal(0, 5)", "wrongly(0, 5)", "mine.stan, line 12, column "),
        ("mu ~ normal(0, 5)", "mu = unheard_of(3)", "mine.stan, line 12, column"),
        ("real mu;", "reel mu;", "mine.stan, line 6, column 2: "),
        ("vector<lower=0>[N] y;", "int y[N];", "mine.stan, line 3, column"),
        ("mu ~ normal(0, 5)", "mu <- 5", "mine.stan, line 12, column"),
    ],
)
def test_errors_of_the_program_name_the_users_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert GOOD.count(old) == 1
    with pytest.raises(InputError, match=re.escape(message)):
        from_stan(write(tmp_path, GOOD.replace(old, new)), data={"N": 1, "y": [1.0]})


@pytest.mark.usefixtures("stanc_available")
def test_a_type_that_came_later_is_said_to_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pathtemp.frontends.stan.build._stanc_version", lambda: (2, 35))
    wrong = GOOD.replace("real mu;", "real mu; sum_to_zero_vector[3] u = 1;")  # an error in any version
    with pytest.raises(InputError, match=r"mine.stan, line 6, .*sum_to_zero_vector came with Stan 2.36, and this is"):
        from_stan(write(tmp_path, wrong), data={"N": 1, "y": [1.0]})


@pytest.mark.usefixtures("stanc_available")
def test_an_error_in_an_include_names_the_include(tmp_path: Path) -> None:
    (tmp_path / "prior.stan").write_text("// a comment\nmu ~ normal(0, nothing);\n")
    text = GOOD.replace("mu ~ normal(0, 5);", "#include prior.stan")
    with pytest.raises(InputError, match=r"prior\.stan, line 2, column 15: Identifier .nothing."):
        from_stan(write(tmp_path, text), data={"N": 1, "y": [1.0]})


@pytest.mark.usefixtures("stanc_available")
def test_blocks_out_of_order_are_an_error_though_the_alternative_may_stand_anywhere(tmp_path: Path) -> None:
    blocks = {
        "model": "model { }\n",
        "parameters": "parameters { real mu; }\n",
        "alternative": "alternative model { mu ~ normal(0, 1); }\n",
    }
    with pytest.raises(InputError, match=r"mine\.stan, line [123]"):
        from_stan(write(tmp_path, blocks["model"] + blocks["alternative"] + blocks["parameters"]))


@pytest.mark.usefixtures("stanc_available")
def test_the_line_is_shown_with_a_mark_under_the_column(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        stanc(read_source(write(tmp_path, GOOD.replace("alternative model", "generated quantities"))), "--info")
    rows = str(caught.value).split("\n")
    assert rows[1].strip() == "mu ~ normal(0, 5);"
    assert rows[2].index("^") == 4 + int(re.findall(r"column (\d+)", rows[0])[0])


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, "eight_schools.stan, line 2: the data variable 'J' is not in data"),
        (
            {"J": 8, "y": np.zeros(8), "sigmas": np.ones(8)},
            "line 4: the data variable 'sigma' is not in data; is 'sigmas' meant?",
        ),
        ({"J": 8.5, "y": np.zeros(8), "sigma": np.ones(8)}, "line 2: the data variable 'J' must be an integer"),
        ({"J": 8, "y": "many", "sigma": np.ones(8)}, "line 3: the data variable 'y' must be a 1-dimensional array"),
        (
            {"J": 8, "y": np.zeros(8), "sigma": -np.ones(8)},
            "eight_schools.stan, line 4: the data variable 'sigma' must be at least 0, and sigma[1] is -1",
        ),
        (
            {"J": -1, "y": [], "sigma": []},
            "eight_schools.stan, line 2: the data variable 'J' must be at least 0, and is -1",
        ),
        (
            {"J": 8, "y": np.zeros(7), "sigma": np.ones(8)},
            "line 3: the data variable 'y' is declared with size (J = 8)",
        ),
    ],
)
def test_errors_of_the_data_name_the_declaration(data: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        load("eight_schools", data=data)


@pytest.mark.usefixtures("compiled")
def test_wrong_kinds_of_argument_are_named() -> None:
    with pytest.raises(InputError, match="program: expected the path or the text"):
        from_stan(3)
    with pytest.raises(InputError, match="there is no shared library"):
        from_stan("nothing.so")
    with pytest.raises(InputError, match="data: expected a dict"):
        load("cauchy", data=[1])
    with pytest.raises(InputError, match="is not a Stan program that BridgeStan or pathtemp built"):
        from_stan(_ctypes.__file__)


def test_without_httpstan_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain.importlib.util, "find_spec", lambda name: None)
    toolchain.find_stan.cache_clear()
    with pytest.raises(MissingExtraError, match=r"httpstan is not installed; run: pip install 'pathtemp\[stan\]'"):
        from_stan(path("cauchy"), data={"y": 1.0})
    monkeypatch.setattr(toolchain.platform, "machine", lambda: "aarch64")
    monkeypatch.setattr(toolchain.sys, "platform", "linux")
    with pytest.raises(InputError, match=r"no Stan compiler from PyPI, for .* aarch64; .*bridgestan.StanModel"):
        from_stan(path("cauchy"), data={"y": 1.0})
    monkeypatch.undo()
    toolchain.find_stan.cache_clear()


@pytest.mark.usefixtures("stanc_available")
def test_without_a_compiler_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(InputError, match=r"CXX='no-such-compiler' is not a program; install one .*shared library"):
        from_stan(path("cauchy"), data={"y": 1.0})
    monkeypatch.delenv("CXX")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match=r"there is no C\+\+ compiler"):
        from_stan(path("cauchy"), data={"y": 1.0})


def test_a_binary_include_is_told(tmp_path: Path) -> None:
    (tmp_path / "inside.stan").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "whole.stan").write_text("#include inside.stan\nparameters { real x; }")
    with pytest.raises(InputError, match=r"inside.stan' is not a text file in UTF-8"):
        read_source(tmp_path / "whole.stan")
