from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pathtemp.errors import InputError
from pathtemp.frontends.stan.data import check_data, observed_names, read_data, to_json
from pathtemp.frontends.stan.program import parse
from pathtemp.frontends.stan.sizes import check_sizes
from pathtemp.frontends.stan.source import read_source

DECLARATIONS = "int N;\n  vector[N] y;\n  array[2] int k;\n  complex z;\n  tuple(int, real) t;"
PROGRAM = parse(read_source(f"data {{\n  {DECLARATIONS}\n}}\nmodel {{ }}"))
INPUTS = {
    "N": {"type": "int", "dimensions": 0},
    "y": {"type": "real", "dimensions": 1},
    "k": {"type": "int", "dimensions": 1},
    "z": {"type": "complex", "dimensions": 0},
    "t": {"type": [{"type": "int", "dimensions": 0}, {"type": "real", "dimensions": 0}], "dimensions": 0},
}
GOOD = {"N": 2, "y": [0.5, 1.0], "k": [1, 2], "z": 1 + 2j, "t": (3, 4.5)}


def test_numpy_and_lists_become_json() -> None:
    given = GOOD | {
        "N": np.int64(2),
        "y": np.array([0.5, 1.0], dtype=np.float32),
        "k": np.array([1.0, 2.0]),
        "extra": "x",
    }
    assert check_data(given, INPUTS, PROGRAM) == {
        "N": 2,
        "y": [0.5, 1.0],
        "k": [1, 2],
        "z": [1.0, 2.0],
        "t": {"1": 3, "2": 4.5},
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"N": None}, "line 2: the data variable 'N' must be an integer, and is None"),
        ({"N": 2.5}, "line 2: the data variable 'N' must be an integer, and has other numbers, such as 2.5"),
        ({"N": "2"}, "line 2: the data variable 'N' must be an integer, and is '2'"),
        ({"N": [1, 2]}, r"line 2: .* must be an integer, and is of shape \(2,\)"),
        ({"N": 2**40}, "line 2: .* beyond the 32 bits"),
        ({"y": 3.0}, "line 3: .* must be a 1-dimensional array of real numbers, and is a single number"),
        ({"y": [[1.0], [2.0, 3.0]]}, "line 3: .* rows differ in length"),
        ({"y": [1j, 2.0]}, "line 3: .* and is complex"),
        ({"k": [1, np.nan]}, "line 4: .* such as nan"),
        ({"t": (1, 2, 3)}, "line 6: .* must be a tuple of 2, and has 3 parts"),
    ],
)
def test_wrong_data_names_the_declaration(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_data(GOOD | change, INPUTS, PROGRAM)


def test_missing_data_offers_the_nearest_name() -> None:
    with pytest.raises(InputError, match="line 3: the data variable 'y' is not in data; is 'yy' meant"):
        check_data({"N": 2, "yy": [1.0, 2.0]}, INPUTS, PROGRAM)


def test_data_may_be_a_file_or_json_or_nothing(tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    path.write_text('{"N": 3}')
    assert read_data(path) == read_data(str(path)) == read_data('{"N": 3}') == {"N": 3}
    assert read_data(None) == {}


@pytest.mark.parametrize(
    ("text", "message"), [("[1]", "JSON object"), ('{"N": 1,\n}', r"d\.json, line 2: this is not JSON")]
)
def test_bad_files_are_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "d.json"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_data(path)
    with pytest.raises(InputError, match="cannot read"):
        read_data(tmp_path / "none.json")
    with pytest.raises(InputError, match="got a list"):
        read_data([1])  # type: ignore[arg-type]


def test_floats_keep_all_their_digits() -> None:
    values = {"x": [0.1 + 0.2, 1e-300, float("inf"), -0.0]}
    assert json.loads(to_json(values)) == values


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ({"N": 5, "y": [1.0, 2.0]}, "line 2: the data variable 'y' is declared with size .N = 5., and data has .2."),
        ({"N": -1, "y": []}, "'y' cannot have the size N = -1"),
        (
            {"N": 2, "y": [1.0, 2.0], "M": [[1.0, 2.0, 3.0]]},
            r"'M' is declared with size .N \+ 1 = 3, 2., and data has .1, 3.",
        ),
    ],
)
def test_data_of_a_wrong_size_are_told_before_anything_is_compiled(data: dict[str, object], sentence: str) -> None:
    program = parse(read_source("data {\n int N; vector[N] y;\n matrix[N + 1, 2] M; array[f(N)] real z; }"))
    with pytest.raises(InputError, match=sentence):
        check_sizes(data, program)


def test_sizes_that_are_right_or_that_only_stan_knows_pass() -> None:
    program = parse(read_source("data {\n int N; vector[N] y; array[f(N)] real z; array[N] vector[2] w; }"))
    check_sizes({"N": 2, "y": [1.0, 2.0], "z": [1.0], "w": [[1.0, 2.0], [3.0, 4.0]]}, program)


def test_what_the_model_gives_a_distribution_is_observed() -> None:
    text = "model { y ~ normal(mu, 1); for (n in 1:N) z[n] ~ f(1); target += g_lpmf(k | mu); mu ~ normal(x, 1); }"
    assert observed_names(parse(read_source(f"data {{ }} {text}"))) == {"y", "z", "k", "mu"}
