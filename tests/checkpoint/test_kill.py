"""A run that is killed loses no finished round; `python -m benchmarks.never_lost` does this fifty times."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from kept_runs import SMALL, assert_same, two_modes

import pathtemp as pt
from pathtemp.checkpoint.file import read_last

CHILD = """
import sys
sys.path.insert(0, sys.argv[1])
from kept_runs import SMALL, two_modes
import pathtemp as pt
from pathtemp.checkpoint import keeper

write = keeper.write
def and_say(place, record):
    write(place, record)
    print(record["state"]["engine"]["counts"].gradients, flush=True)

keeper.write = and_say
pt.temper(two_modes(), settings=SMALL, budget=3000, seed=3, progress=False, checkpoint=sys.argv[2])
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
def test_a_killed_run_goes_on(tmp_path: Path) -> None:
    place = tmp_path / "run.nc"
    command = [sys.executable, "-c", CHILD, str(Path(__file__).parent), str(place)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"PATHTEMP_CACHE": ""}) as child:
        assert child.stdout is not None
        told = [child.stdout.readline() for _ in range(random.Random(0).randrange(2, 12))]
        child.send_signal(signal.SIGKILL)
        told += child.stdout.readlines()
    model = two_modes()
    assert read_last(place)["state"]["engine"]["counts"].gradients >= int(told[-1])
    whole = pt.temper(model, settings=SMALL, budget=3000, seed=3, progress=False)
    assert_same(whole, pt.resume(place, model, progress=False))
