"""Redo: a range of offsets is landed again with today's transform, in place of its rows; and that is undone.

Other rooms import ``announce``, ``apply``, ``made_by``, ``orders``, ``plan``, ``prepare``, ``progress``, ``quarantined``,
``replacing``, ``takes_place`` and ``undo_facts``.
"""
