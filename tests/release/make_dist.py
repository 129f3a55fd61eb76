"""`make dist`: a wheel and a source distribution in dist/, each installed in an empty environment and tried there."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from environments import PROJECT, ROOT, Built, Environment, build

SMOKE = Path(__file__).with_name("smoke.py")


def try_both(built: Built, folder: Path) -> list[str]:
    """Install and try the wheel, then the source distribution in its place; a line for each."""
    environment = Environment.fresh(folder / "environment")
    lines = []
    for package, options in ((built.wheel, ()), (built.sdist, ("--force-reinstall", "--no-deps"))):
        environment.install(package, *options)
        said = environment.run("python", SMOKE, PROJECT["version"], cwd=folder)
        lines.append(f"{package.name}: {package.stat().st_size / 1e6:.1f} MB; {said.splitlines()[-1]}")
    return lines


def main() -> int:
    """Build, try, and say what came of it."""
    built = build(ROOT / "dist")
    with tempfile.TemporaryDirectory() as folder:
        print(*try_both(built, Path(folder)), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
