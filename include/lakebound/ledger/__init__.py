"""The arithmetic of offsets: entries, intervals, and where a start continues. Pure.

Other rooms import ``entry``, ``erased``, ``foreign_changes``, ``hours``, ``intervals``, ``lost``, ``marks``,
``source_ranges``, ``sources``, ``start``, ``topics`` and ``windows``.
"""
