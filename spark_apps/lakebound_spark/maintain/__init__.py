"""The maintenance application, and Iceberg's own Spark actions.

Other rooms import ``application``.
"""
