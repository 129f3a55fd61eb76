"""Paths (theta, lam) -> log q(theta, lam)."""
