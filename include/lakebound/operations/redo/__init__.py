"""Redo: a range of offsets is landed again with today's transform, in place of its rows; the plan, and one chunk of it.

Other rooms import ``orders``, ``plan``, ``prepare``, ``progress`` and ``replacing``.
"""
