"""Alerts as messages, through Airflow's own notifiers.

Other rooms import ``alerts``, ``channels`` and ``connection_files``.
"""
