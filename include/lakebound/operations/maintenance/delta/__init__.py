"""Maintenance of Delta tables: compaction, VACUUM, the log's clean-up."""
