"""Markov kernels that leave the joint law of (theta, a) invariant."""
