"""Separated modes: found by ascents, joined into a base that knows them, and judged by what is left unseen."""
