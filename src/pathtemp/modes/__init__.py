"""Separated modes: found by ascents, joined into a base that knows them, and judged by what is left unseen.

When to look for them in a run is the default engine's (``engines/default/modes.py``); the gates are in ``verdict/``.
"""
