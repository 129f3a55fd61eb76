"""The gates of the verdict, one function each, registered with their question, limit and advice (``registry``).

``travel`` judges how chains moved along the path, ``draws`` the target draws, ``modes`` the known modes, ``densities``
the log densities themselves. An engine measures and chooses its gates; no gate depends on an engine.
"""
