import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.image import imread
from synthetic import FAILED, cauchy_fit

from pathtemp import demo
from pathtemp.testing import cauchy_pair

mpl.use("Agg")


def install(monkeypatch, **options) -> dict[str, object]:
    """Put exact draws in the place of the engine."""
    called: dict[str, object] = {}

    def temper(model, *, seed):
        called.update(name=model.name, seed=seed)
        return cauchy_fit(**options)

    monkeypatch.setattr(demo, "temper", temper)
    return called


def test_the_demo_prints_the_answers_and_writes_the_figure(monkeypatch, tmp_path, capsys):
    called = install(monkeypatch)
    out = tmp_path / "picture.png"
    assert demo.main(["--out", str(out), "--seed", "5"]) == 0
    assert called == {"name": "cauchy_pair", "seed": 5}
    text = capsys.readouterr().out
    assert text.startswith("cauchy_pair: converged")
    assert "-8.052885" in text
    assert str(out) in text
    image = imread(out)
    assert image.shape[0] > 600
    assert len(np.unique(image.reshape(-1, image.shape[2]), axis=0)) > 100


def test_the_exit_status_tells_a_run_that_did_not_converge(monkeypatch, tmp_path):
    install(monkeypatch, checks=FAILED)
    assert demo.main(["--out", str(tmp_path / "demo.png")]) == 3


def test_a_wrong_folder_is_refused_before_the_run(monkeypatch, tmp_path, capsys):
    called = install(monkeypatch)
    with pytest.raises(SystemExit):
        demo.main(["--out", str(tmp_path / "none" / "demo.png")])
    assert "there is no folder" in capsys.readouterr().err
    assert called == {}


def test_answers_stand_beside_the_exact_ones():
    fit, problem = cauchy_fit(), cauchy_pair()
    line = demo.beside_exact(fit, problem).splitlines()[-1]
    share, se = float(line.split()[-4]), float(line.split()[-2])
    theta = fit.posterior["theta"].values
    assert share == pytest.approx(np.mean(theta > 0), abs=0.005)
    assert se == pytest.approx(np.sqrt(0.25 / theta.size), rel=0.6)
    assert abs(share - 0.5) < 4 * se


def test_the_densities_drawn_are_normalised():
    problem = cauchy_pair()
    x = np.linspace(-400, 400, 800_001)
    target = demo.density(problem.model.log_target, problem.log_z_end)(x)
    base = demo.density(problem.model.log_base)(x)
    step = x[1] - x[0]
    assert target.sum() * step == pytest.approx(1.0, abs=1e-6)
    assert base.sum() * step == pytest.approx(1.0, abs=1e-9)
