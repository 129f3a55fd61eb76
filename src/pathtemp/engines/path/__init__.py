"""The engine of margins and of any path q(theta, lam): lam moves along the orbit of the transport alone.

Here are its search, its transport and its estimates; the kernel is in ``kernels/walk.py``, the loop in the driver.
"""
