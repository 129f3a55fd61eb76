"""pathtemp: draws and normalising constants of metastable posteriors by adaptive path sampling."""

import jax

# Densities, weights and log normalising constants need float64 throughout.
jax.config.update("jax_enable_x64", True)
