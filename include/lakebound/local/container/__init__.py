"""What the services of docker-compose.yaml run beside Airflow's and Spark's own commands: keys, broker, signs of health."""
