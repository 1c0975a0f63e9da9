"""The arithmetic of offsets: entries, intervals, and where a start continues. Pure.

Other rooms import ``closed_windows``, ``entry``, ``erased``, ``far_ahead``, ``foreign_changes``, ``hours``, ``intervals``,
``lost``, ``marks``, ``redo_progress``, ``source_ranges``, ``sources``, ``start``, ``topics`` and ``windows``.
"""
