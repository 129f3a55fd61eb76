"""``python -m pathtemp.cli``."""

from __future__ import annotations

import sys

from pathtemp.cli import main

if __name__ == "__main__":
    sys.exit(main())
