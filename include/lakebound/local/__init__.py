"""The services that run on one machine without other set-up: a Kafka broker, Airflow, the demo.

Other rooms import ``airflow_view``, ``avro_records``, ``demo``, ``earlier_demo``, ``produce``, ``sample_records``
and ``stack``.
"""
