"""The one loop of section 2.1 (``driver``), and the engines that it drives, one folder each.

An engine samples, learns and estimates (``protocol``); it knows nothing of files, interrupts or when to stop.
"""

ENGINES = (
    "pathtemp.engines.default.engine",
    "pathtemp.engines.path.engine",
    "pathtemp.engines.paper.engine",
    "pathtemp.engines.paper.margin",
)
"""Modules of the engines whose runs a checkpoint may hold."""
