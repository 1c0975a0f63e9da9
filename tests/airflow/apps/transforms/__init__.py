"""Transforms of pipelines whose application is real, in the folder of entry points that Airflow's tests name."""
