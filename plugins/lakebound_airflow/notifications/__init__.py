"""Alerts as messages, through Airflow's own notifiers.

Other rooms import ``alerts`` and ``channels``.
"""
