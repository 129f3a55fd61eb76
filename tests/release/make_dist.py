"""`make dist`: a wheel and a source distribution in dist/, each installed in an empty environment and tried there."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from environments import PROJECT, ROOT, Built, Environment, build

SMOKE = Path(__file__).with_name("smoke.py")


def try_both(built: Built, environment: Environment, folder: Path) -> list[str]:
    """Install and try the source distribution in an empty environment, then the wheel in its place; a line for each."""
    lines = []
    for package, options in ((built.sdist, ()), (built.wheel, ("--force-reinstall", "--no-deps"))):
        environment.install(package, *options)
        said = environment.run("python", SMOKE, PROJECT["version"], cwd=folder)
        lines.append(f"{package.name}: {package.stat().st_size / 1e6:.1f} MB; {said.splitlines()[-1]}")
    return lines


def main() -> int:
    """Build, try, and say what came of it."""
    built = build(ROOT / "dist")
    with tempfile.TemporaryDirectory() as folder:
        environment = Environment.fresh(Path(folder) / "environment")
        print(*try_both(built, environment, Path(folder)), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
