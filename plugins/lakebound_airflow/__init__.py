"""What Airflow runs: operators, triggers, hooks and the plugin. It imports ``lakebound``, and never Spark."""
