"""Spark's checkpoint files: what a batch of ours reads, and what the files of any query say.

Other rooms import ``checksums`` and ``log_files``.
"""

from __future__ import annotations

from lakebound.landing.checkpoint.offset_log import (
    UnreadableOffsetLogError,
    parse_offsets,
    read_offset_log,
)

__all__ = ["UnreadableOffsetLogError", "parse_offsets", "read_offset_log"]
