"""The gates of the verdict, one function each, registered with their question, limit and advice (``registry``).

``travel`` judges how chains went along the path, ``draws`` what they brought, ``modes`` what is known of the modes. An
engine measures and chooses its gates; nothing here knows an engine.
"""
