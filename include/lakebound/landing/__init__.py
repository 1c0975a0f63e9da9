"""From Kafka to an application that lands: what it is told, how it is started, and what it asks the broker.

Other rooms import ``background``, ``batch_command``, ``brokers``, ``class_archive``, ``complete_hours_watch``,
``cpu_seconds``, ``direct_read``, ``jaas``, ``java``, ``kafka``, ``kafka_clients``, ``kafka_errors``, ``kafka_settings``,
``kubernetes_command``, ``landed_freshness``, ``ledger_recorder``, ``lineage_client``, ``lineage_events``, ``lineage_names``,
``lineage_settings``, ``local_launch``, ``missed_window``, ``other_target``, ``read_schemas``, ``real_time_check``,
``recent_window``, ``registry_subjects``, ``rollup_recorder``, ``row_source``, ``run_spec``, ``sample_recorder``,
``sampling``, ``schema_files``, ``schema_findings``, ``server_identities``, ``spark_command``, ``spark_resources``,
``table_settling``, ``target_kind``, ``topic_check``, ``topic_creation`` and ``trace``.
"""
