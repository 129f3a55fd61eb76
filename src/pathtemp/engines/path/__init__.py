"""The engine of margins and of any path q(theta, lam): lam moves along the orbit of the transport alone.

Here are its search, transport and estimates; the kernel is in ``kernels/path_rounds.py``, the loop in the driver.
"""
