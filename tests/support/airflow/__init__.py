"""What stands in for Airflow's parts, and those who get alerts."""
