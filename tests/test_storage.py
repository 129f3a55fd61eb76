import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import h5netcdf
import h5py
import numpy as np
import pytest
import xarray as xr
from crafted import resealed
from synthetic import FAILED, cauchy_fit, fit_of, odd_model

from pathtemp.errors import InputError
from pathtemp.io.atomic import write_new
from pathtemp.io.codec import decode, encode
from pathtemp.io.escape import escape, unescape
from pathtemp.io.sealed import FORMAT, SEAL_BYTES, stamp
from pathtemp.io.storage import load, save
from pathtemp.result.curve import LogZ
from pathtemp.result.fit import Fit
from pathtemp.settings import PAPER, Settings


def assert_same(x: object, y: object) -> None:
    """Equal to the last bit, NaN equal to NaN."""
    assert type(x) is type(y)
    if dataclasses.is_dataclass(x):
        for f in dataclasses.fields(x):
            assert_same(getattr(x, f.name), getattr(y, f.name))
    elif isinstance(x, dict):
        assert list(x) == list(y)
        assert_same(list(x.values()), list(y.values()))
    elif isinstance(x, list | tuple):
        assert len(x) == len(y)
        for p, q in zip(x, y, strict=True):
            assert_same(p, q)
    elif isinstance(x, np.ndarray):
        assert (x.dtype, x.shape, x.tobytes()) == (y.dtype, y.shape, y.tobytes())
    elif isinstance(x, xr.Dataset):
        xr.testing.assert_identical(x, y)
        assert list(x.data_vars) == list(y.data_vars)
        for name in x.variables:
            if x[name].dtype.kind != "U":
                assert_same(x[name].values, y[name].values)
    elif isinstance(x, float):
        assert np.float64(x).tobytes() == np.float64(y).tobytes()
    else:
        assert x == y


def assert_same_fit(x: Fit, y: Fit) -> None:
    assert y.model is None
    assert_same(dataclasses.replace(x, model=None), y)


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "fit.nc"
    save(cauchy_fit(), path)
    return path


@pytest.mark.parametrize(
    "fit",
    [
        cauchy_fit(),
        cauchy_fit(checks=FAILED),
        dataclasses.replace(cauchy_fit(), settings=PAPER, seed=2**80, name='<b>"\u03b8\0'),
        fit_of(odd_model(), draws=0),
        fit_of(odd_model(("a/b", "chain", "<script>"))),
        fit_of(odd_model(("../../x", "100%2F", "theta[1]"))),
        fit_of(odd_model(("", "..", "a\0b \n\ud800\u03b8"))),
        fit_of(odd_model(("x" * 251, "y" * 5000, "\u03b8" * 300))),
    ],
    ids=["plain", "failed", "paper", "empty", "odd", "traversal", "unwritable", "long"],
)
def test_a_fit_comes_back_to_the_last_bit(fit, tmp_path):
    fit.save(tmp_path / "fit.nc")
    assert_same_fit(fit, load(tmp_path / "fit.nc"))
    assert os.listdir(tmp_path) == ["fit.nc"]


def test_odd_numbers_come_back_to_the_last_bit(tmp_path):
    fit = fit_of(odd_model())
    payload = np.frombuffer(np.uint64(0x7FF8DEADBEEF0001).tobytes())[0]
    fit.posterior["mu"].values.flat[:5] = [np.nan, -np.inf, -0.0, 5e-324, payload]
    save(fit, tmp_path / "fit.nc")
    assert_same_fit(fit, load(tmp_path / "fit.nc"))


def test_a_loaded_fit_can_be_used_and_saved_again(saved, tmp_path):
    fit = load(saved)
    assert str(fit.summary()) == str(cauchy_fit().summary())
    assert set(fit.to_datatree().children) == {"posterior", "base", "sample_stats", "path", "path_draws"}
    fit.save(tmp_path / "again.nc")
    assert_same_fit(fit, load(tmp_path / "again.nc"))


def test_the_file_is_one_that_arviz_reads(saved):
    with xr.open_datatree(saved, engine="h5netcdf") as tree:
        np.testing.assert_array_equal(tree["posterior"]["theta"], cauchy_fit().posterior["theta"])


def test_a_long_history_is_quick_and_larger_than_an_attribute(tmp_path):
    fit = cauchy_fit()
    fit = dataclasses.replace(fit, history=fit.history * 100)
    save(fit, tmp_path / "fit.nc")
    assert_same_fit(fit, load(tmp_path / "fit.nc"))
    with h5netcdf.File(tmp_path / "fit.nc", "r") as file:
        assert len(file["pathtemp"].variables) < 10


def test_truncated_files_are_refused_in_one_sentence(saved, tmp_path):
    whole = saved.read_bytes()
    lengths = [0, 1, 8, *np.random.default_rng(3).integers(9, len(whole), 46), len(whole) - 1]
    for length in lengths:
        cut = tmp_path / "cut.nc"
        cut.write_bytes(whole[:length])
        with pytest.raises(InputError, match=r"cut short or damaged"):
            load(cut)


def test_foreign_files_are_refused_in_one_sentence(saved, tmp_path):
    text, other, newer, older = (tmp_path / f"{name}.nc" for name in "abcd")
    text.write_text("not a netCDF file " * 100)
    xr.Dataset({"x": ("i", np.arange(3))}).to_netcdf(other, engine="h5netcdf")
    newer.write_bytes(stamp("fit", b"", "{}", version=FORMAT + 1))
    older.write_bytes(stamp("fit", b"", "{}", version=FORMAT - 1))
    for path, sentence in (
        (text, "is not a file of pathtemp"),
        (other, "netCDF without the checksum of pathtemp"),
        (newer, "newer pathtemp; open it with that version"),
        (older, "older pathtemp; open it with that version"),
        (tmp_path / "none.nc", "there is no file"),
        (tmp_path, "there is no file"),
    ):
        with pytest.raises(InputError, match=sentence):
            load(path)


def test_a_changed_bit_anywhere_is_seen(saved, tmp_path):
    whole = saved.read_bytes()
    rng = np.random.default_rng(2)
    places = {0, 9, 40, 48, len(whole) - 1, *rng.integers(len(whole), size=100).tolist()}
    for place in {*places, *range(len(whole) - SEAL_BYTES, len(whole))}:
        bad = bytearray(whole)
        bad[place] ^= 1 << int(rng.integers(8))
        (tmp_path / "bad.nc").write_bytes(bad)
        with pytest.raises(InputError, match=r"^load: .*(does not match its checksum|cut short or damaged)"):
            load(tmp_path / "bad.nc")


def test_what_another_program_wrote_to_is_refused(saved, tmp_path):
    changed = tmp_path / "changed.nc"
    changed.write_bytes(saved.read_bytes())
    with h5py.File(changed, "r+") as file:
        file["posterior/theta"][0, 0] = 5.0
    with pytest.raises(InputError, match="damaged"):
        load(changed)


def rewrite(old: str, new: str):
    def edit(arrays):
        text = arrays["pathtemp/record"].tobytes().decode()
        assert old in text
        arrays["pathtemp/record"] = np.frombuffer(text.replace(old, new, 1).encode(), np.uint8)

    return edit


def put(path: str, value):
    return lambda arrays: arrays.update({path: np.asarray(value)})


@pytest.mark.parametrize(
    "edit",
    [
        rewrite('"class": "Settings"', '"class": "Popen"'),
        rewrite('"chains": 8', '"chains": 0'),
        rewrite('"chains": 8', '"chains": "8"'),
        rewrite('"chains": 8', '"chains": 8, "args": "x"'),
        rewrite('"seed"', '"sead"'),
        rewrite('"seed": 1', '"seed": [1]'),
        rewrite('"name": "cauchy_pair"', '"name": 3'),
        rewrite('"passed": true', '"passed": null'),
        rewrite('["float64", 0, [65]]', '["float64", 0, [100000]]'),
        rewrite('["float64", 0, [65]]', '["float64", -65, [65]]'),
        rewrite('["float64", 0, [65]]', '["float64", 0, [64]]'),
        rewrite('{"dict"', '{"eval"'),
        rewrite("{", ""),
        rewrite("{", '{"list": [' * 100_000),
        lambda arrays: arrays.pop("posterior/theta"),
        lambda arrays: arrays.pop("pathtemp/record"),
        put("pathtemp/record", 3.0),
        put("posterior/theta", np.zeros(3)),
        put("posterior/chain", ["a"] * 3),
        put("pathtemp/float64", ["text"] * 2000),
    ],
)
def test_a_record_made_up_is_refused_and_makes_nothing(saved, tmp_path, edit):
    with pytest.raises(InputError, match="is damaged") as refused:
        load(resealed(saved, tmp_path / "bad.nc", edit))
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize(
    "table",
    [
        '{"posterior/huge": ["<f8", [10000000000000], 0]}',
        '{"a": ["<f8", [4], 0], "b": ["<f8", [4], 0], "c": ["<f8", [4], 0]}',
        '{"a": ["<f8", [-1], 0]}',
        '{"a": ["<f8", [2], -16]}',
        '{"a": ["<f8", [2.0], 0]}',
        '{"a": ["<f8", [2], 60]}',
        '{"a": ["O", [2], 0]}',
        '{"a": ["f8,(1000000000,)f8", [1], 0]}',
        '{"a": ["<U1000000000", [1], 0]}',
        '{"a": 3}',
        "[1, 2]",
        "[" * 100_000,
    ],
)
def test_a_table_made_up_is_refused_before_reading(tmp_path, table):
    (tmp_path / "bad.nc").write_bytes(stamp("fit", bytes(64), table))
    with pytest.raises(InputError, match="is damaged: its table makes no sense"):
        load(tmp_path / "bad.nc")


def test_text_cannot_multiply_what_there_is():
    text = '{"list": [' + ", ".join(['{"array": ["float64", 0, [1000]]}'] * 3) + "]}"
    with pytest.raises(ValueError, match="more than it has"):
        decode(text, {"float64": np.zeros(2000)})


def test_no_pipe_and_no_device_is_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.nc")
    for place in (tmp_path / "pipe.nc", Path("/dev/zero")):
        with pytest.raises(InputError, match="a device or a pipe"):
            load(place)


@pytest.mark.parametrize("name", ["x" * 300, "nul\0", "lone \ud800", 3])
def test_names_that_no_file_can_have(name, tmp_path):
    place = name if isinstance(name, int) else f"{tmp_path}/{name}"
    with pytest.raises(InputError, match=r"^load: "):
        load(place)
    with pytest.raises((InputError, OSError), match=r"save: "):
        save(fit_of(odd_model()), place)


@pytest.mark.parametrize("where", ["no/such/folder/fit.nc", "."])
def test_a_place_that_cannot_be_is_refused(tmp_path, where):
    with pytest.raises(InputError, match=r"save: .*folder"):
        save(fit_of(odd_model()), tmp_path / where)


def test_a_full_disk_leaves_the_last_good_file(tmp_path):
    """In a process of its own that may not write more than 20 kB to a file."""
    script = f"""
import resource, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from synthetic import cauchy_fit
from pathtemp.io.storage import save
fit = cauchy_fit()
fit.save("fit.nc")
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    fit.save("fit.nc")
except OSError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0
    assert "fit.nc, which is as it was before" in done.stdout
    assert os.listdir(tmp_path) == ["fit.nc"]
    assert load(tmp_path / "fit.nc").converged


def test_a_write_that_fails_at_the_last_step_leaves_the_last_good_file(tmp_path, monkeypatch):
    path = tmp_path / "fit.nc"
    save(fit_of(odd_model(), seed=1), path)
    before = path.read_bytes()

    def fail(*_):
        raise PermissionError(13, "no")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="as it was before"):
        save(fit_of(odd_model(), seed=2), path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["fit.nc"]


def test_saving_through_a_link_keeps_the_link(tmp_path):
    (tmp_path / "real").mkdir()
    link = tmp_path / "link.nc"
    link.symlink_to(tmp_path / "real" / "fit.nc")
    save(fit_of(odd_model()), link)
    assert link.is_symlink()
    assert load(link).name == "odd"


@pytest.mark.parametrize("name", ["x", "a/b", "%", "%2F", "%u0041", "", ".", "..", "a.b", "\0\x1f", "\ud800", "θ/π%"])
def test_escaping_is_reversible_and_safe(name):
    assert unescape(escape(name)) == name
    assert "/" not in escape(name)
    assert escape(name)
    escape(name).encode()


def test_the_codec_keeps_types_and_refuses_what_it_does_not_know():
    value = {
        "x": (1, 2.5, True, None, "s", [float("nan"), -float("inf")]),
        "curve": LogZ(*np.arange(6.0).reshape(3, 2)),
        "settings": Settings(batch=3),
        "arrays": [np.arange(4).reshape(2, 2), np.zeros((0, 3)), np.array([True]), np.float32([1.5])],
        "dict": {"class": "Settings", "float": "nan"},
    }
    assert_same(decode(*encode(value)), value)
    for unknown in (object(), {1, 2}, np.array(["text"])):
        with pytest.raises(TypeError, match="cannot be written"):
            encode(unknown)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_pipe_or_device_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fit.nc")
    for write in (fit_of(odd_model()).save, fit_of(odd_model()).report):
        with pytest.raises(InputError, match="is a device or a pipe"):
            write(tmp_path / "fit.nc")
    assert (tmp_path / "fit.nc").is_fifo()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
@pytest.mark.parametrize("other", ["pipe", "folder", "device", "nothing"])
def test_a_file_that_is_exchanged_as_it_is_opened_is_refused(other, saved, tmp_path, monkeypatch):
    """Whatever was looked at before, it is the open file that is judged; and no pipe is waited for."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    link, opens = tmp_path / "fit.nc", os.open
    link.symlink_to(saved)
    assert load(link).converged

    def exchange(path, flags, *how):
        link.unlink()
        link.symlink_to("/dev/zero" if other == "device" else tmp_path / other)
        return opens(path, flags, *how)

    monkeypatch.setattr(os, "open", exchange)
    with pytest.raises(InputError, match="there is no file"):
        load(link)


def test_a_place_that_becomes_a_folder_while_a_fit_is_written_is_told(tmp_path, monkeypatch):
    place, sync = tmp_path / "fit.nc", os.fsync

    def exchange(descriptor):
        sync(descriptor)
        place.mkdir(exist_ok=True)

    monkeypatch.setattr(os, "fsync", exchange)
    for caller, write in (
        ("save", lambda: save(fit_of(odd_model()), place)),
        ("report", lambda: write_new("report", place, b"page")),
    ):
        with pytest.raises(OSError, match=rf"{caller}: could not write .*fit.nc, which is as it was before \("):
            write()
        assert os.listdir(tmp_path) == ["fit.nc"]
        place.rmdir()


@pytest.mark.skipif(os.name != "posix", reason="no modes here")
@pytest.mark.parametrize(("mask", "mode"), [(0o077, 0o600), (0, 0o666)])
def test_who_may_read_a_file_is_the_users_to_say(mask, mode, tmp_path):
    before = os.umask(mask)
    try:
        save(fit_of(odd_model()), tmp_path / "fit.nc")
    finally:
        os.umask(before)
    assert (tmp_path / "fit.nc").stat().st_mode & 0o777 == mode
