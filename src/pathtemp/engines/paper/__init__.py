"""The paper's own engines: Algorithm 1 (tempering) and Algorithm 2 (a margin), both with joint NUTS from blackjax.

Here are what one adaptation does and what follows from it; the loop is that of the driver.
"""
