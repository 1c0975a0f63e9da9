"""The arithmetic of offsets: entries, intervals, and where a start goes on. Pure.

Other rooms import ``entry``, ``intervals``, ``lost``, ``start`` and ``topics``.
"""
