"""A fit as one HTML page that needs nothing else: the verdict first, then what is behind it.

Its figures come from ``plots/``; the words of a gate from ``verdict/``.
"""
