"""The folder of a pipeline's state (lease, desired state, progress, incidents), and the decisions that follow from it.

Other rooms import ``airflow_health``, ``applications``, ``bounds``, ``code_samples``, ``commit_events``, ``complete_hours``,
``complete_hours_file``, ``crash_loop``, ``desired``, ``disks``, ``erased_record``, ``fallback_files``, ``findings``,
``folder``, ``handover``, ``histogram``, ``incidents``, ``kept_schemas``, ``last_end``, ``lease``, ``lock_holder``,
``old_files``, ``person``, ``ports``, ``private_files``, ``process_identity``, ``processes``, ``progress``,
``quarantine_rate``, ``quarantine_samples``, ``recent_ledger``, ``redone``, ``replay_result``, ``request_file``, ``requests``,
``rollup_book``, ``rollup_files``, ``rollups``, ``runbooks``, ``schemas_in_use``, ``situations``, ``start_incident``,
``starters``, ``state_text``, ``status``, ``submission``, ``summaries``, ``supervision``, ``table_history``, ``taken_hours``,
``turns``, ``unknown_fields`` and ``windows_in_use``.
"""
