"""Front ends: what makes a :class:`pathtemp.model.model.Model` out of a program of another language or library.

A library is imported where it is used, for it is an extra. How a model is tempered is not known here.
"""
