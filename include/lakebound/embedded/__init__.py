"""Services that Lakebound can run by itself on one machine: a Kafka broker and Airflow."""
