from __future__ import annotations

import re
from pathlib import Path

import pytest

from pathtemp.errors import InputError
from pathtemp.frontends.stan.program import check_reserved, merge, parse, without_alternative
from pathtemp.frontends.stan.source import Place, masked, read_source

TRICKY = """/* model { "quote */
functions { real f(real x) { return x; } // }
}
parameters { real x; } alternative
model { x ~ normal(0, 5); print("} model {"); }
model { x ~ normal(f(1), 1); }
"""


def test_comments_and_strings_hide_braces() -> None:
    assert masked(TRICKY).count("{") == masked(TRICKY).count("}") == 5
    program = parse(read_source(TRICKY))
    assert list(program.blocks) == ["functions", "parameters", "alternative model", "model"]


def test_every_line_of_the_merged_program_keeps_its_place_and_columns() -> None:
    program = parse(read_source(TRICKY))
    merged = merge(program)
    original = TRICKY.split("\n")
    found = 0
    for number, row in enumerate(merged.text.split("\n"), start=1):
        place = merged.place(number)
        if place is not None:
            found += 1
            quoted = row.strip()
            assert original[place.line - 1][row.index(quoted) :].startswith(quoted)
    assert found >= 4


def test_blanking_the_alternative_block_moves_nothing() -> None:
    plain = without_alternative(parse(read_source(TRICKY))).text
    assert len(plain) == len(TRICKY)
    assert "alternative" not in plain
    assert all(a in (b, " ") for a, b in zip(plain, TRICKY, strict=True))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "lib").mkdir()
    (tmp_path / "main.stan").write_text("data {\n  int N; #include a.stan // why\n  real z;\n}\n#include <b.stan>\n")
    (tmp_path / "a.stan").write_text("real a1;\nreal a2;")
    (tmp_path / "lib" / "b.stan").write_text("/* #include nothing */\nparameters { real x; }\nmodel {\n}\n")
    return tmp_path


def test_lines_of_includes_are_those_of_their_files(folder: Path) -> None:
    source = read_source(folder / "main.stan", [folder / "lib"])
    rows = source.text.split("\n")
    assert source.place(rows.index("real a2;") + 1) == Place("a.stan", 2)
    assert source.place(rows.index("  real z;") + 1) == Place("main.stan", 3)
    assert source.place(rows.index("model {") + 1) == Place("b.stan", 3)
    assert len(source.places) == len(rows)
    assert "int N;" in rows[1]
    assert "// why" in source.text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("data {\n  #include missing.stan\n}", "line 2: #include 'missing.stan' was not found"),
        ("data {\n int N;\n", "line 1: the block 'data' is never closed"),
        ("data { }\n}\n", "line 2: this } closes nothing"),
        ("data { }\nmodle { }\n", "line 2: 'modle' is not a block"),
        ("model { }\nmodel { }\n", "line 2: the block 'model' is given twice"),
        ("model { }\n\nx\n", "line 3: 'x' stands outside"),
        ("model { }\n;\n", "line 2: ';' stands outside"),
        ("model { }\n/* open\n", "line 2: this /* comment is never closed"),
        ('model {\n print("a);\n}', "line 2: this string is never closed"),
        (
            "data { int pathtemp_which; }\nalternative model { }",
            "line 1: the name pathtemp_which is reserved",
        ),
    ],
)
def test_what_is_wrong_names_the_line(text: str, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        check_reserved(parse(read_source(text)))
    assert str(caught.value).startswith("the Stan program, line")


def test_an_include_of_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.stan").write_text('#include "b.stan"\n')
    (tmp_path / "b.stan").write_text("\n#include a.stan\n")
    with pytest.raises(InputError, match=r"b\.stan, line 2: #include 'a\.stan' includes itself"):
        read_source(tmp_path / "a.stan")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read"):
        read_source(tmp_path / "none.stan")
