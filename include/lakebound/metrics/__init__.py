"""What Prometheus is told of the pipelines, read from files of the state alone: no table, no Kafka and no Airflow is asked.

Other rooms import ``page``.
"""
