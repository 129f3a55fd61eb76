"""Files for :mod:`benchmarks.hostile`: bits flipped, and files made up; and the process that opens them."""

from __future__ import annotations

import hashlib
import io
import json
import random
import resource
import sys
import warnings
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import h5py
import numpy as np

import pathtemp as pt
from pathtemp.io.checkpoint import read, read_last
from pathtemp.io.codec import encode
from pathtemp.io.persistent import storable_classes
from pathtemp.io.sealed import stamp, unseal
from pathtemp.io.storage import IN_RECORD
from pathtemp.settings import Settings

MEMORY = 2 * 2**30
"""Bytes that the process may take beyond what it has when it starts."""

LONGEST = 700
"""Characters of a sentence, with the name of a file in it."""

FIRST = 8192
"""Bytes at the start of a file of which each has a bit flipped."""

Arrays = dict[str, np.ndarray]


def prepare(folder: Path) -> None:
    """A fit and a checkpoint, as a run on two modes wrote them."""
    model = pt.testing.mixture_1d().model
    how = Settings(chains=8, iterations=8, anneal_moves=2)
    fit = pt.temper(model, budget=24000, seed=1, settings=how, progress=False, checkpoint=folder / "checkpoint.nc")
    fit.save(folder / "fit.nc")
    (folder / "checkpoint.nc.before").unlink()


def flips(folder: Path, count: int, seed: int) -> Iterator[dict[str, Any]]:
    """One bit in each of the first bytes, and ``count`` anywhere; none at all where that is zero."""
    rng = random.Random(seed)
    for kind in ("fit", "checkpoint"):
        size = (folder / f"{kind}.nc").stat().st_size
        for at in [*range(min(FIRST, size) if count else 0), *(rng.randrange(size) for _ in range(count))]:
            yield {"sort": f"flipped bits of a {kind}", "kind": kind, "at": at, "bit": rng.randrange(8)}


def crafted(folder: Path, count: int, seed: int) -> Iterator[dict[str, Any]]:
    """HDF5 that leads elsewhere or means something else, tables that claim too much, records changed at random.

    None of them where ``count``, the number of records, is 0.
    """
    for kind in ("fit", "checkpoint") if count else ():
        for number in range(len(HDF5)):
            for sealed in (False, True):
                yield {"sort": f"crafted HDF5 as a {kind}", "kind": kind, "hdf5": number, "sealed": sealed}
        for number in range(len(TABLES)):
            yield {"sort": f"crafted table of a {kind}", "kind": kind, "table": number}
        for number in range(count):
            yield {"sort": f"crafted record of a {kind}", "kind": kind, "record": seed + number}


def _external(file: h5py.File, here: Path) -> None:
    file["x"] = h5py.ExternalLink(str(here / "fit.nc"), "/posterior/theta")


def _to_pipe(file: h5py.File, here: Path) -> None:
    file["x"] = h5py.ExternalLink("/dev/stdin", "/x")


def _stored_elsewhere(file: h5py.File, here: Path) -> None:
    file.create_dataset("x", (100,), "f8", external=[("/etc/hostname", 0, 800)])


def _virtual(file: h5py.File, here: Path) -> None:
    layout = h5py.VirtualLayout((100,), "f8")
    layout[:] = h5py.VirtualSource(str(here / "fit.nc"), "posterior/theta", shape=(100,))
    file.create_virtual_dataset("x", layout)


def _cycle(file: h5py.File, here: Path) -> None:
    file["a"], file["b"] = h5py.SoftLink("/b"), h5py.SoftLink("/a")
    file.create_group("c")["up"] = file["/"]


def _repeated(file: h5py.File, here: Path) -> None:
    first = file.create_dataset("x0", data=np.zeros(1000))
    for number in range(1, 200):
        file[f"x{number}"] = first


def _huge(file: h5py.File, here: Path) -> None:
    file.create_dataset("x", (10**13,), "f8", chunks=(1000,))


def _odd_types(file: h5py.File, here: Path) -> None:
    file["compound"] = np.zeros(3, [("a", "f8"), ("b", "S3")])
    file["text"] = ["a", "bb"]
    file.create_dataset("enum", (3,), h5py.enum_dtype({"A": 1}))
    file.create_dataset("ragged", (3,), h5py.vlen_dtype(np.int32))
    file.attrs["pathtemp_format"] = np.arange(5)
    file.attrs["pathtemp_checkpoint"] = ["a", "b"]


def _older(file: h5py.File, here: Path) -> None:
    file.attrs["pathtemp_format"] = 1
    file.attrs["pathtemp_checkpoint"] = 2


HDF5: tuple[Callable[[h5py.File, Path], None], ...] = (
    *(_external, _to_pipe, _stored_elsewhere, _virtual, _cycle, _repeated, _huge, _odd_types, _older),
    lambda file, here: None,
)

TABLES = (
    *("", "{}", "[]", "3", "null", "{", "[" * 100_000, '{"a": {"b": ' * 50_000),
    *('{"a": 3}', '{"a": []}', '{"a": ["<f8", [2]]}', '{"a": ["<f8", 2, 0]}', '{"a": ["<f8", [2.5], 0]}'),
    *('{"a": ["<f8", [-1], 0]}', '{"a": ["<f8", [2], -8]}', '{"a": ["<f8", [10000000000000], 0]}'),
    *('{"a": ["<f8", [2], 1e999]}', '{"a": ["O", [2], 0]}', '{"a": ["x", [2], 0]}', '{"a": [3, [2], 0]}'),
    *('{"a": ["f8,f8", [1], 0]}', '{"a": ["(1000000000,)f8", [1], 0]}', '{"a": ["<U1000000000", [1], 0]}'),
    "{" + ", ".join(f'"a{i}": ["<f8", [8], 0]' for i in range(10_000)) + "}",
    '{"a": ["<f8", [' + "9" * 5000 + "], 0]}",
    '{"a": ["<f8", [' + ", ".join(["0"] * 100) + "], 0]}",
    '{"a": ["<f8", [65536, 65536, 0], 0]}',
)

VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0, 3, 10**18, 10**400, 0.5, -1e308, "", "x", "\x1b[2J\u202e", "x" * 100_000, [], {}, [1, [2]]),
    *({"float": "nan"}, {"float": "-inf"}, {"float": "x"}, {"list": 3}, {"dict": []}, {"tuple": [1, 2]}),
    *({"array": ["float64", 0, [3]]}, {"array": ["float64", 0, [0]]}, {"array": ["float64", 0, []]}),
    *({"array": ["float64", 0, [10**12]]}, {"array": ["bool", 0, [1]]}, {"array": ["float64", -5, [2, 2]]}),
    *({"class": "Popen", "fields": {"args": "true"}}, {"class": "Settings", "fields": {}}, {"class": "Counts"}),
    {"class": "LogZ", "fields": {"lam": 1, "mean": 2, "stderr": 3}},
)


def changed(text: str, rng: random.Random) -> str:
    """A record with one to three of its values taken away, exchanged or replaced."""
    record = json.loads(text)
    for _ in range(rng.randint(1, 3)):
        holder = record
        while True:
            inside = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
            key = rng.choice(inside)
            if not isinstance(holder[key], dict | list) or not holder[key] or rng.random() < 0.15:
                break
            holder = holder[key]
        if rng.random() < 0.2 and isinstance(holder, dict):
            del holder[key]
        else:
            holder[key] = deepcopy(rng.choice(VALUES))
        if not record:
            break
    return json.dumps(record)


def written(task: dict[str, Any], folder: Path) -> Path:
    """The file of a task."""
    kind, place = task["kind"], folder / "try.nc"
    if "at" in task:
        content = bytearray((folder / f"{kind}.nc").read_bytes())
        content[task["at"]] ^= 1 << task["bit"]
        place.write_bytes(content)
    elif "hdf5" in task:
        buffer = io.BytesIO()
        with h5py.File(buffer, "w") as file:
            HDF5[task["hdf5"]](file, folder)
        content = buffer.getvalue()
        place.write_bytes(stamp(kind, content, '{"x": ["<f8", [10], 0]}') if task["sealed"] else content)
    elif "table" in task:
        place.write_bytes(stamp(kind, bytes(512), TABLES[task["table"]]))
    else:
        arrays = unseal(folder / f"{kind}.nc", kind, "hostile")
        name = "pathtemp/record" if kind == "fit" else "record"
        text = changed(arrays[name].tobytes().decode(), random.Random(task["record"]))
        arrays[name] = np.frombuffer(text.encode(), np.uint8)
        place.write_bytes(resealed(kind, arrays))
    return place


def resealed(kind: str, arrays: Arrays) -> bytes:
    """A file of any arrays with a checksum that is right."""
    data, table = [], {}
    at = 0
    for path, x in arrays.items():
        table[path] = [x.dtype.str, list(x.shape), at]
        data.append(x.tobytes())
        at += x.nbytes
    return stamp(kind, b"".join(data), json.dumps(table))


def content_of(kind: str, place: Path, *, use: bool) -> str:
    """Hash of all that a file says; with ``use``, after printing it as a user would."""
    if kind == "checkpoint":
        record = read(place) if use else read_last(place)
        text, vectors = encode(record, storable_classes())
    else:
        fit = pt.load(place)
        if use:
            lines = f"{fit.summary()}\n{fit!r}".split("\n")
            if not all(line.isprintable() for line in lines):
                raise RuntimeError("control characters reach the terminal")
        text, vectors = encode({name: getattr(fit, name) for name in IN_RECORD})
        groups = {"posterior": fit.posterior, "base": fit.base, "path": fit.path}
        vectors = {**vectors, **{f"{g}/{n}": x.values for g, data in groups.items() for n, x in data.variables.items()}}
    digest = hashlib.sha256(text.encode())
    for name in sorted(vectors):
        digest.update(name.encode() + np.ascontiguousarray(vectors[name]).tobytes())
    return digest.hexdigest()


def attempt(task: dict[str, Any], folder: Path, known: dict[str, str]) -> str:
    """What becomes of one file."""
    place, made_up = written(task, folder), "at" not in task
    try:
        content = content_of(task["kind"], place, use=made_up)
    except pt.InputError as error:
        message = str(error)
        return "refused" if message.isprintable() and len(message) < LONGEST else f"crashed with {message[:80]!r}"
    except Exception as error:
        return f"crashed with {type(error).__name__}: {str(error)[:80]!r}"
    if content == known[task["kind"]]:
        return "equal"
    return "opened" if made_up else "different"


def main() -> None:
    warnings.simplefilter("ignore")
    folder = Path(sys.argv[1])
    known = {kind: content_of(kind, folder / f"{kind}.nc", use=True) for kind in ("fit", "checkpoint")}
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    print("ready", flush=True)
    for line in sys.stdin:
        print(attempt(json.loads(line), folder, known), flush=True)


if __name__ == "__main__":
    main()
