"""The command line, called as a user calls it."""

from __future__ import annotations

import errno
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from tempered import BUDGET

from pathtemp.api.resume import resume
from pathtemp.cli import doctor, main
from pathtemp.cli.parser import make_parser
from pathtemp.cli.resumed import say_what_is_ignored
from pathtemp.engines.default.plan import TemperPlan
from pathtemp.errors import InputError, MissingExtraError
from pathtemp.frontends.stan import from_stan
from pathtemp.frontends.stan.toolchain import find_compiler, find_stan
from pathtemp.settings import Settings
from pathtemp.testing.calibration import assert_close

CAUCHY = Path(__file__).parents[1] / "examples" / "stan" / "cauchy.stan"


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


def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module of the user's with models in it, where the command is called.

    They are copies of one that other tests run as well, so that its programs are there already.
    """
    lines = [
        "from dataclasses import replace",
        "from pathtemp.testing import mixture_1d",
        "def make(): return replace(mixture_1d().model, name='<b>quick</b>')",
        "whole, number = make(), 3",
    ]
    (tmp_path / "mine_for_cli.py").write_text("\n".join(lines))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "mine_for_cli", raising=False)


def test_a_python_model_runs_and_speaks_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    quick(tmp_path, monkeypatch)
    options = ["--budget", str(BUDGET), "--quiet", "--json", "--seed", "2"]
    files = ["--out", "fit.nc", "--report", "r.html", "--checkpoint", "run.nc"]
    status = main(["run", "mine_for_cli:whole", *options, *files])
    said = json.loads(capsys.readouterr().out)
    assert status == (0 if said["converged"] else 3)
    assert_close(said["log_z"], 0.0, said["log_z_se"])
    assert said["model"] == "<b>quick</b>"
    assert said["files"] == {"out": "fit.nc", "report": "r.html"}
    assert all(Path(name).stat().st_size > 1000 for name in ("fit.nc", "r.html", "run.nc"))

    assert main(["run", "mine_for_cli:make", *options, "--checkpoint", "run.nc"]) == 1
    assert "is there already" in capsys.readouterr().err
    assert main(["run", "mine_for_cli:make", *options, "--checkpoint", "run.nc", "--resume"]) == status
    again = json.loads(capsys.readouterr().out)
    assert {**again, "seconds": 0, "files": 0} == {**said, "seconds": 0, "files": 0}

    # What a file names is shown, and imported by nobody who has not named it.
    monkeypatch.delitem(sys.modules, "mine_for_cli")
    assert main(["run", "--checkpoint", "run.nc", "--resume", "--quiet", "--json"]) == 1
    assert "name it yourself: pathtemp run mine_for_cli:whole --checkpoint run.nc --resume" in capsys.readouterr().err
    assert "mine_for_cli" not in sys.modules
    with pytest.raises(InputError, match="holds no model"):
        resume("run.nc")

    assert main(["report", "fit.nc", "--out", "again.html"]) == 0
    assert "&lt;b&gt;quick&lt;/b&gt;" in Path("again.html").read_text()


def test_options_that_a_resumed_run_ignores_are_told(caplog: pytest.LogCaptureFixture) -> None:
    plan = TemperPlan(2, Settings(chains=8), 100, True, 4e4, False)
    given = make_parser().parse_args(
        [
            "run",
            "--seed",
            "3",
            "--budget",
            "7",
            "--draws",
            "5",
            "--chains",
            "8",
            "--modes",
            "auto",
            "--paper",
            "--resume",
        ]
    )
    say_what_is_ignored(given, plan)
    say_what_is_ignored(make_parser().parse_args(["run", "--seed", "2", "--budget", "40000", "--resume"]), plan)
    say_what_is_ignored(make_parser().parse_args(["run", "--max-seconds", "5", "--resume"]), plan, max_seconds=60.0)
    assert [record.getMessage() for record in caplog.records] == [
        "--resume: --seed 3, --paper, --budget 7, --draws 5, --modes auto: ignored, as the run goes on the way it "
        "was begun (seed 2, paper off, budget 40000, draws 100, modes off)",
        "--resume: --max-seconds 5: ignored, as the run goes on the way it was begun (max_seconds 60)",
    ]


def test_ctrl_c_at_once_says_how_to_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    quick(tmp_path, monkeypatch)

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pathtemp.cli.run.temper", interrupted)
    command = ["run", "mine_for_cli:make", "--checkpoint", "run.nc"]
    assert main(command) == 130
    assert "interrupted before there was anything to show" in capsys.readouterr().err
    Path("run.nc").touch()
    assert main(command) == 130
    assert "run it again with --resume and the same --checkpoint" in capsys.readouterr().err


def test_ctrl_c_while_libraries_are_imported_is_no_error_of_theirs() -> None:
    code = """
import os, signal, sys
class Hook:
    def find_spec(self, name, *_):
        if name == "numpy":
            os.kill(os.getpid(), signal.SIGINT)
            raise ImportError("as NumPy says where Ctrl-C meets its extension")
sys.meta_path.insert(0, Hook())
from pathtemp.cli import main
main(["doctor"])
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.stderr == "pathtemp: interrupted before there was anything to show\n"
    assert ended.returncode == 130


def test_python_models_that_are_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    quick(tmp_path, monkeypatch)
    for name, says in (
        ("no_such_module:make", "there is no module 'no_such_module'"),
        ("mine_for_cli:absent", "has no 'absent'"),
        ("mine_for_cli:number", "is an int; expected a pathtemp model"),
        ("mine_for_cli:make()", "is no module:object"),
    ):
        assert main(["run", name]) == 1
        assert says in capsys.readouterr().err
    assert main(["run", "mine_for_cli:make", "--data", "x.json"]) == 1
    assert main(["run", "mine_for_cli:make", "--resume"]) == 1
    assert main(["run"]) == 1
    assert main(["run", "--checkpoint", "run.nc", "--resume", "--data", "x.json"]) == 1
    assert main(["run", "--checkpoint", "none.nc", "--resume"]) == 1
    assert main(["run", "mine_for_cli:make", "--report", "no/r.html"]) == 1
    capsys.readouterr()
    assert main(["run", "mine_for_cli.py"]) == 1
    assert "as in mine_for_cli:make_model" in capsys.readouterr().err
    assert main(["run", str(CAUCHY), "--include", "nowhere"]) == 1
    assert "--include: there is no folder 'nowhere'" in capsys.readouterr().err
    assert main(["augment", str(CAUCHY), "--data", "none.json", "--out", "joint.stan"]) == 1
    assert not Path("joint.stan").exists()
    assert main(["report", "none.nc"]) == 1


def test_the_doctor_notices_a_cache_that_cannot_be_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("PATHTEMP_CACHE", str(tmp_path / "file"))
    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    assert "BROKEN  cache" in said
    assert "set PATHTEMP_CACHE to a folder of your own" in said
    assert "pathtemp works here, but for Stan programs" in said


def test_the_doctor_says_what_works(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["doctor"]) == 0
    assert "pathtemp works here" in capsys.readouterr().out
    monkeypatch.setitem(doctor.EXTRAS, "no-such-library", "stan")
    assert main(["doctor", "--json"]) == 0
    findings = {f["name"]: f for f in json.loads(capsys.readouterr().out)["findings"]}
    assert "float64" in findings["JAX"]["says"]
    assert findings["no-such-library"]["says"] == "run: pip install 'pathtemp[stan]'"
    broken = doctor.Finding("JAX", False, "", True)
    monkeypatch.setattr(doctor, "LOOKS", (lambda: broken,))
    assert main(["doctor"]) == 1


def test_help_needs_no_jax() -> None:
    code = "import sys, pathtemp.cli as c\ntry: c.main(['--help'])\nexcept SystemExit: print('jax' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.endswith("False\n")


def test_numbers_are_float64_whenever_jax_was_imported() -> None:
    for code in ("import pathtemp, jax.numpy as jnp", "import jax.numpy as jnp, pathtemp"):
        check = f"{code}; print(jnp.zeros(1).dtype)"
        answer = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
        assert answer.stdout == "float64\n"


def test_wrong_input_is_one_sentence_and_status_1(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["run", str(tmp_path / "no.stan")]) == 1
    said = capsys.readouterr().err
    assert said.startswith("pathtemp: program: cannot read")
    assert said.count("\n") == 1
    assert main(["run", str(CAUCHY), "--out", str(tmp_path / "no" / "fit.nc")]) == 1


@pytest.mark.slow
@pytest.mark.usefixtures("stan")
def test_a_program_runs_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "fit.nc"
    options = ["--data", str(CAUCHY.with_suffix(".json")), "--seed", "1", "--budget", "180000", "--quiet"]
    assert main(["run", str(CAUCHY), *options, "--out", str(out)]) in (0, 3)
    said = capsys.readouterr().out
    assert said.startswith("cauchy: ")
    assert "log z" in said
    import pathtemp as pt

    assert "theta" in pt.load(out).posterior


@pytest.mark.slow
@pytest.mark.usefixtures("stan")
@pytest.mark.filterwarnings("ignore:no base was given")
def test_a_program_goes_on_without_being_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = ["--checkpoint", "run.nc", "--quiet", "--json"]
    options = ["--data", str(CAUCHY.with_suffix(".json")), "--base", "auto", "--chains", "8", "--budget", "18000"]
    status = main(["run", str(CAUCHY), *options, *outcome])
    said = json.loads(capsys.readouterr().out)
    assert said["normalised_base"]
    assert_close(said["log_z"], -8.052885, said["log_z_se"])
    assert main(["run", "--resume", *outcome]) == status
    again = json.loads(capsys.readouterr().out)
    assert {**again, "seconds": 0} == {**said, "seconds": 0}


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


@pytest.mark.stan_full
@pytest.mark.usefixtures("stan")
def test_what_is_compiled_is_what_a_run_needs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compile", str(CAUCHY), "--quiet"]) == 0
    said = capsys.readouterr()
    assert "MB  cauchy.stan" in said.out
    assert not said.err

    def refuse(artifacts: object) -> None:
        pytest.fail(f"compiled again: {artifacts}")

    monkeypatch.setattr("pathtemp.frontends.stan.build._build_missing", refuse)
    assert from_stan(CAUCHY, CAUCHY.with_suffix(".json")).dim == 1
    assert main(["compile", str(CAUCHY)]) == 0


@pytest.mark.usefixtures("stan")
def test_a_program_that_cannot_be_compiled_is_told_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compile", str(tmp_path / "absent.stan")]) == 1
    assert "there is no file" in capsys.readouterr().err
    wrong = tmp_path / "wrong.stan"
    wrong.write_text("parameters { real x; }\nmodel { x ~ normal(0, z); }")
    assert main(["compile", str(wrong)]) == 1
    assert "wrong.stan, line 2, column 22: Identifier 'z' not in scope" in capsys.readouterr().err


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


def test_nowhere_to_write_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    for stdout, status in ((Full(), 1), (None, 0)):  # None is what Python has where a shell has closed it
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "stdout", stdout)
            assert main(["doctor"]) == status
    assert capsys.readouterr().err == "pathtemp: No space left on device\n"


def test_it_runs_as_a_module() -> None:
    answer = subprocess.run([sys.executable, "-m", "pathtemp.cli", "cache", "--help"], capture_output=True, text=True)
    assert answer.returncode == 0
    assert "--clear" in answer.stdout
