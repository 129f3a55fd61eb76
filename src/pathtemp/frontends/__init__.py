"""Front ends: what makes a :class:`pathtemp.model.model.Model` out of a program of another language or library."""
