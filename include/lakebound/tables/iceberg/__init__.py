"""Apache Iceberg: its catalog, metadata and manifests, and the one function that commits to them.

Other rooms import ``catalog``, ``catalog_file``, ``expirable``, ``features``, ``files``, ``graft``, ``health``,
``history``, ``live_files``, ``local_files``, ``manifests``, ``metadata``, ``metadata_json``, ``open``,
``replacing``, ``rows`` and ``table``.
"""
