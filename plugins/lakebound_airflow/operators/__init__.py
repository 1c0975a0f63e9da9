"""The operators behind Lakebound's DAGs.

Other rooms import ``alerts``, ``control``, ``guard``, ``health``, ``maintain``, ``prove``, ``recover``, ``stream`` and
``validate``.
"""
