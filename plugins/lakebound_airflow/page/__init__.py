"""The page "Lakebound" in Airflow: every pipeline, what needs a person first, and one pipeline closely. Reads small files only.

Other rooms import ``navigation``.
"""
