"""Redo: a range of offsets is landed again with today's transform, in place of the rows that it gave before; so far its plan.

Other rooms import ``prepare``.
"""
