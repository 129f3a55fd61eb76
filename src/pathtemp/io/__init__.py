"""Files: fits and checkpoints, sealed, locked and written whole; and which fields of a class are its state.

What a run *is* lives with the engines, what a fit is with ``result/``; here is only how they are kept and read again.
"""
