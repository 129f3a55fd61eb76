"""The default engine of tempering: annealing pass, search for modes, transported HMC, estimates from tours.

Here are its chains, what it prepares, and which gates judge it; the loop is that of the driver.
"""
