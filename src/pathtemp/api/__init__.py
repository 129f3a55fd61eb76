"""Ways in: ``pt.temper``, ``pt.divide_and_conquer``, ``pt.path_sample``, ``pt.resume``, ``pt.compare`` and more.

Each checks what it was given, makes a plan and an engine, and hands them to the driver. No mathematics is here.
"""
