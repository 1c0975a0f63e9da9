"""Triggers: pollers that run in the triggerer. They live in a package, because a triggerer imports no DAG bundle.

Other rooms import ``commits``, ``control``, ``hours``, ``redone``, ``stream`` and ``stream_watch``.
"""
