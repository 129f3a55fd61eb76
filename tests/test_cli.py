"""The command line, called as a user calls it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pathtemp.cli import main
from pathtemp.errors import InputError, MissingExtraError
from pathtemp.frontends.stan.toolchain import find_compiler, find_stan

CAUCHY = Path(__file__).parent / "frontends" / "stan" / "programs" / "cauchy_pair.stan"


@pytest.fixture
def stan() -> None:
    try:
        find_stan()
    except (InputError, MissingExtraError) as error:
        pytest.skip(str(error))
    if find_compiler() is None:
        pytest.skip("no C++ compiler")


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    for option in ("--help", "--version"):
        with pytest.raises(SystemExit) as left:
            main([option])
        assert left.value.code == 0
    assert "augment" in capsys.readouterr().out


def test_wrong_input_is_one_sentence_and_status_1(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["run", str(tmp_path / "no.stan")]) == 1
    said = capsys.readouterr().err
    assert said.startswith("pathtemp: program: cannot read")
    assert said.count("\n") == 1
    assert main(["run", str(CAUCHY), "--out", str(tmp_path / "no" / "fit.nc")]) == 1


@pytest.mark.usefixtures("stan")
def test_a_program_runs_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "fit.nc"
    options = ["--data", str(CAUCHY.with_suffix(".json")), "--seed", "1", "--budget", "60000", "--quiet"]
    assert main(["run", str(CAUCHY), *options, "--out", str(out)]) in (0, 3)
    said = capsys.readouterr().out
    assert said.startswith("cauchy_pair: ")
    assert "log z" in said
    import pathtemp as pt

    assert "theta" in pt.load(out).posterior


@pytest.mark.usefixtures("stan")
def test_augment_writes_a_program_and_its_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "mine.stan"
    program.write_text(CAUCHY.read_text())
    assert main(["augment", str(program), "--data", str(CAUCHY.with_suffix(".json"))]) == 0
    assert "real<lower=0, upper=2> pathtemp_a;" in (tmp_path / "mine_augmented.stan").read_text()
    data = json.loads((tmp_path / "mine_augmented.json").read_text())
    assert data["y"] == 10.0
    assert data["pathtemp_lam"] == [0.0, 1.0]
    capsys.readouterr()
    assert main(["augment", str(program), "--out", "-"]) == 0
    assert capsys.readouterr().out == (tmp_path / "mine_augmented.stan").read_text()


def test_the_cache_is_shown_and_cleared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATHTEMP_CACHE", str(tmp_path))
    entry = tmp_path / "stan" / "program-abc"
    entry.mkdir(parents=True)
    (entry / "program.so").write_bytes(b"x" * 100_000)
    (entry / "entry.json").write_text('{"name": "mine.stan", "created": 0.0}')
    assert main(["cache"]) == 0
    assert "0.1 MB  program mine.stan" in capsys.readouterr().out
    assert main(["cache", "--clear"]) == 0
    assert "0.1 MB removed" in capsys.readouterr().out
    assert not (tmp_path / "stan").exists()


def test_it_runs_as_a_module() -> None:
    answer = subprocess.run([sys.executable, "-m", "pathtemp.cli", "cache", "--help"], capture_output=True, text=True)
    assert answer.returncode == 0
    assert "--clear" in answer.stdout
