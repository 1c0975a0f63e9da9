"""Alerts without a running Airflow: the process that ``lakebound watch`` starts. It needs Airflow's packages only.

Other rooms import ``looks``.
"""
