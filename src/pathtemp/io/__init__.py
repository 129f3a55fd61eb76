"""State in files and back: which fields of a class are its state, and how they are read and written.

What a run *is* lives with the engines; here is only how it is kept.
"""
