"""Spark's checkpoint files: what a batch of ours reads, and what the files of any query say."""

from __future__ import annotations

from lakebound.checkpoint.offset_log import TopicPartitionOffsets, UnreadableOffsetLogError, parse_offsets, read_offset_log

__all__ = ["TopicPartitionOffsets", "UnreadableOffsetLogError", "parse_offsets", "read_offset_log"]
