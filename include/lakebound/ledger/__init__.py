"""The arithmetic of offsets: entries, intervals, and where a start goes on. Pure.

Other rooms import ``entry``, ``intervals``, ``lost``, ``marks``, ``start`` and ``topics``.
"""
