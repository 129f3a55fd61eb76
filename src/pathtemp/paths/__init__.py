"""Paths (theta, lam) -> log q(theta, lam), the link lam = f(a), and families of the pseudo-prior log c.

Functions of one point that JAX can trace; how chains move along them is in ``kernels/``.
"""
