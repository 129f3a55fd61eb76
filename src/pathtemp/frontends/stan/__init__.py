"""Stan programs as models: the prior found in the text, compiled from the package index, and run inside XLA.

Text is read, split and rewritten here, compilers are called and densities wrapped. Sampling knows only the model.
"""

from __future__ import annotations

from pathtemp.frontends.stan.augment import augment, augmented_data
from pathtemp.frontends.stan.cache import CacheEntry, cache_info, clear_cache
from pathtemp.frontends.stan.model import from_stan

__all__ = ["CacheEntry", "augment", "augmented_data", "cache_info", "clear_cache", "from_stan"]
