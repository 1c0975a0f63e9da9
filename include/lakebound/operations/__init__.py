"""What a person or a DAG does beside the stream: maintenance, recovery, replay, release, erasure, backup.

Other rooms import ``acknowledge``.
"""
