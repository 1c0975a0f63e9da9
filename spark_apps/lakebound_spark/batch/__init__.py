"""Parts of one micro-batch, from Kafka's records to data files of each table, and the commit.

Other rooms import ``bad_reasons``, ``decode``, ``decoded_rows``, ``direct``, ``event_times``, ``failing_records``,
``landable``, ``lane_choice``, ``lanes``, ``local_relation``, ``local_transform``, ``message_bounds``,
``observation``, ``plan_keeper``,
``quarantine``, ``quarantine_landing``, ``quarantine_sampling``, ``raised``, ``record_format``, ``records``,
``rehearsal``, ``report``, ``rescue``, ``row_hours``, ``row_numbers``, ``row_writer``, ``schema``, ``seen_records``,
``session_settings``, ``spark_objects``, ``store_bounds``, ``targets``, ``tombstones``, ``topic_rows``, ``transform``,
``transform_plan``, ``window_plan`` and ``window_records``.
"""
