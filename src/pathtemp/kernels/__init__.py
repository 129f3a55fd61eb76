"""Markov kernels that leave the joint law of (theta, a) invariant, and the compiled rounds that run them.

What they are tuned to is an argument, and frozen within a round; engines learn it.
"""
