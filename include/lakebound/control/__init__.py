"""The folder of a pipeline's state (lease, wish, progress, incidents), and the decisions that follow from it.

Other rooms import ``applications``, ``commit_events``, ``crash_loop``, ``desired``, ``findings``, ``folder``, ``incidents``,
``last_end``, ``lease``, ``ports``, ``process_identity``, ``processes``, ``progress``, ``requests``, ``runbooks``,
``situations``, ``start_incident``, ``status``, ``submission``, ``summaries``, ``supervision`` and ``turns``.
"""
