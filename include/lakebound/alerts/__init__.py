"""Alerts: one model for all that can be wrong, from the findings that each part writes to the messages that people get.

Other rooms import ``airflow_findings``, ``airflow_process``, ``channel_check``, ``concerns``, ``connection_places``,
``doctor_findings``, ``doctor_look``, ``doctor_processes``, ``lateness``, ``load``, ``look``, ``model``,
``outbox``, ``pipeline_file_findings``, ``round``, ``routes``, ``store``, ``stream_findings``, ``try_out`` and ``wording``.
"""
