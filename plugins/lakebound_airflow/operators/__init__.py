"""The operators behind Lakebound's DAGs.

Other rooms import ``alerts``, ``complete_hours``, ``control``, ``guard``, ``health``, ``maintain``, ``prove``, ``recover``,
``stream``, ``take_hour`` and ``validate``.
"""
