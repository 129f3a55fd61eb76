"""Stan programs as models: ``alternative model`` blocks, built from the package index, run inside XLA."""

from __future__ import annotations

from pathtemp.frontends.stan.augment import augment, augmented_data
from pathtemp.frontends.stan.cache import CacheEntry, cache_info, clear_cache
from pathtemp.frontends.stan.model import from_stan

__all__ = ["CacheEntry", "augment", "augmented_data", "cache_info", "clear_cache", "from_stan"]
