"""The folder of a pipeline's state (lease, wish, progress, incidents), and the decisions that follow from it.

Other rooms import ``airflow_health``, ``applications``, ``commit_events``, ``complete_hours``, ``complete_hours_file``,
``crash_loop``, ``desired``, ``disks``, ``fallback_files``, ``findings``, ``folder``, ``histogram``, ``incidents``,
``last_end``, ``lease``, ``lock_holder``, ``old_files``, ``person``, ``ports``, ``private_files``, ``process_identity``,
``processes``, ``progress``, ``quarantine_rate``, ``recent_ledger``, ``requests``, ``rollup_book``, ``rollup_files``,
``rollups``, ``runbooks``, ``situations``, ``start_incident``, ``starters``, ``status``, ``submission``, ``summaries``,
``supervision``, ``taken_hours``, ``turns`` and ``wishes``.
"""
