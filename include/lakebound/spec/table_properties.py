"""Which properties an author of a pipeline may give a table: engines take code and addresses from others."""

from __future__ import annotations

import re

_OWN = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
"""A name of one word, such as ``owner``: no engine reads it."""

_DELTA = (
    "delta.appendOnly",
    "delta.autoOptimize",
    "delta.checkpoint.",
    "delta.checkpointInterval",
    "delta.checkpointPolicy",
    "delta.columnMapping.mode",
    "delta.dataSkipping",
    "delta.deletedFileRetentionDuration",
    "delta.enableChangeDataFeed",
    "delta.enableDeletionVectors",
    "delta.enableExpiredLogCleanup",
    "delta.isolationLevel",
    "delta.logRetentionDuration",
    "delta.minReaderVersion",
    "delta.minWriterVersion",
    "delta.randomPrefixLength",
    "delta.randomizeFilePrefixes",
    "delta.setTransactionRetentionDuration",
    "delta.targetFileSize",
    "delta.tuneFileSizesForRewrites",
)
_ICEBERG = (
    "commit.manifest-merge.enabled",
    "commit.manifest.",
    "commit.retry.",
    "commit.status-check.",
    "format-version",
    "gc.enabled",
    "history.expire.",
    "read.",
    "write.avro.",
    "write.delete.",
    "write.distribution-mode",
    "write.format.default",
    "write.manifest-lists.enabled",
    "write.merge.",
    "write.metadata.compression-codec",
    "write.metadata.delete-after-commit.enabled",
    "write.metadata.metrics.",
    "write.metadata.previous-versions-max",
    "write.object-storage.enabled",
    "write.parquet.",
    "write.spark.",
    "write.target-file-size-bytes",
    "write.update.",
)
_PERMITTED = {"delta": _DELTA, "iceberg": _ICEBERG}
_CODE = ("-impl", ".impl", "-class", ".class")


def names_code(name: str) -> bool:
    """Whether the value of a property is a class or a module, which an engine loads."""
    return name.lower().endswith(_CODE)


def is_permitted(table_format: str, name: str) -> bool:
    """Whether a pipeline's YAML may give a table a property.

    Args:
        table_format: ``delta`` or ``iceberg``.
        name: Of the property.
    """
    if names_code(name):
        return False
    # An entry that ends with a dot permits all names below it; so do some others, whose variants have one ending more.
    return bool(_OWN.fullmatch(name)) or name.startswith(_PERMITTED[table_format])
