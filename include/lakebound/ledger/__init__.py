"""The arithmetic of offsets: entries, intervals, and where a start continues. Pure.

Other rooms import ``entry``, ``foreign_changes``, ``hours``, ``intervals``, ``lost``, ``marks``, ``start`` and ``topics``.
"""
