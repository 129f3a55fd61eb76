"""``pathtemp augment``, ``pathtemp compile`` and ``pathtemp cache``."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from pathtemp.io.printable import printable


def augment(options: argparse.Namespace) -> int:
    """Write the joint density of a program, and its data."""
    from pathtemp.frontends.stan import augment, augmented_data
    from pathtemp.frontends.stan.data import read_data

    text = augment(options.program, include_paths=options.include)
    values = None if options.data is None else read_data(options.data)
    if options.out == "-":
        print(text, end="")
        return 0
    out = Path(options.out) if options.out else options.program.with_name(f"{options.program.stem}_augmented.stan")
    out.write_text(text, encoding="utf-8")
    print(f"the joint density is {out}")
    if values is not None:
        data = out.with_suffix(".json")
        data.write_text(json.dumps(values | augmented_data(), indent=1), encoding="utf-8")
        print(f"its data, with a flat pseudo-prior, is {data}")
    return 0


def compile_(options: argparse.Namespace) -> int:
    """Compile programs into the cache, side by side, as ``pathtemp run`` would."""
    from pathtemp.errors import InputError
    from pathtemp.frontends.stan.cache import cache_folder
    from pathtemp.frontends.stan.opening import Role, compile_programs, open_program

    for file in (*options.program, *([options.base] if options.base else [])):
        if not file.is_file():
            raise InputError(f"program: there is no file {printable(str(file))!r}")
    role = Role.BOTH if options.base is None else Role.TARGET
    opened = [open_program(file, None, options.include, role) for file in options.program]
    if options.base is not None:
        opened.append(open_program(options.base, None, options.include, Role.BASE))
    began = time.perf_counter()
    compiled = compile_programs(opened, progress=not options.quiet)
    for program in compiled:
        assert program.library is not None
        print(f"{program.library.stat().st_size / 1e6:7.1f} MB  {printable(program.name)}.stan")
    print(f"{time.perf_counter() - began:.1f} s; what was compiled is in {cache_folder()}")
    return 0


def cache(options: argparse.Namespace) -> int:
    """Show or clear the compiled programs."""
    from pathtemp.frontends.stan.cache import cache_folder, cache_info, clear_cache

    if options.clear:
        print(f"{clear_cache() / 1e6:.1f} MB removed from {cache_folder()}")
        return 0
    entries = cache_info()
    for entry in entries:
        made = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.created))
        print(f"{made}  {entry.bytes / 1e6:7.1f} MB  {entry.kind:8}{entry.name}")
    print(f"{len(entries)} entries, {sum(e.bytes for e in entries) / 1e6:.1f} MB, in {cache_folder()}")
    return 0
