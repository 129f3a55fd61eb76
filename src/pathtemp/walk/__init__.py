"""Walks along any path q(theta, lam): the adaptive loop of section 2.1 for margins and for functions of lam."""
