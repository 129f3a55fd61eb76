"""A run inside a Jupyter kernel: it shows its line, and the stop button ends it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

manager = pytest.importorskip("jupyter_client.manager")
pytest.importorskip("ipykernel")

FIRST = """
import time
import jax, jax.numpy as jnp, numpy as np
import pathtemp as pt

small = {"settings": pt.settings.DEFAULT.replace(chains=8, iterations=8), "modes": "off"}
base = pt.normal(0.0, 2.0, shape=(1,))

def target(x):
    return -jnp.sum(x**2)

fit = pt.temper(target=target, base=base, budget=18000, **small)
fit
"""

LONG = """
class Told:
    rounds = 0
    start = compile = anneal = finish = lambda *how: None

    def round(self, record):
        self.rounds += record.phase == "adapt"
        if self.rounds == 2:
            print("begun", flush=True)

fit = pt.temper(target=target, base=base, budget=1e7, progress=Told(), **small)
print(fit.converged, fit.warnings[0])
"""

WAITING = """
def host(x):
    print("begun", flush=True)
    time.sleep(0.05)
    return np.float64(-np.sum(x**2))

def slow(x):
    return jax.pure_callback(host, jax.ShapeDtypeStruct((), x.dtype), x, vmap_method="sequential")

pt.temper(target=slow, base=base, **small)
"""

AFTER = "print(pt.temper(target=target, base=base, budget=18000, progress=False, **small).posterior.draw.size > 0)"

Kernel = tuple[Any, Any]


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    started, client = manager.start_new_kernel(kernel_name="python3")
    yield started, client
    client.stop_channels()
    started.shutdown_kernel(now=True)


def shown(kernel: Kernel, source: str, *, stop: bool = False) -> str:
    """All that a cell shows; with ``stop`` the button is pressed once, when it first says that it has begun."""
    started, client = kernel
    said: list[str] = []
    pressed = threading.Event()

    def hear(message: Any) -> None:
        if message["msg_type"] == "execute_input":  # the cell itself
            return
        said.append(str(message["content"]))
        if stop and "begun" in said[-1] and not pressed.is_set():
            pressed.set()
            started.interrupt_kernel()

    client.execute_interactive(source, allow_stdin=False, output_hook=hear, timeout=120)
    assert pressed.is_set() == stop
    return "\n".join(said)


@pytest.mark.slow
def test_a_run_in_a_kernel_shows_its_line_and_its_page(kernel: Kernel) -> None:
    text = shown(kernel, FIRST)
    assert "round trips" in text
    assert "text/html" in text


@pytest.mark.slow
def test_the_stop_button_gives_the_fit_so_far(kernel: Kernel) -> None:
    text = shown(kernel, FIRST) + shown(kernel, LONG, stop=True)
    assert "False The run was interrupted after" in text


@pytest.mark.slow
def test_the_stop_button_ends_a_run_before_its_first_round(kernel: Kernel) -> None:
    text = shown(kernel, FIRST) + shown(kernel, WAITING, stop=True)
    assert "KeyboardInterrupt" in text
    assert "True" in shown(kernel, AFTER)
