"""What a run gives: plain arrays of an engine (``run``), and the fit that its user holds, with its curve and draws.

Figures are in ``plots/``, pages in ``report/``, files in ``io/``.
"""
