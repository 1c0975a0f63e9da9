"""What a person or a DAG does beside the stream: maintenance, recovery, replay, release of quarantined records, backup.

Other rooms import ``acknowledge``.
"""
