"""Which settings of Spark the author of a pipeline may give, and with which values. Pure.

A list of what is harmless, and not of what is dangerous: Spark has hundreds of settings, and new ones with each version. Some
run code or send data elsewhere (``spark.driver.resource.….discoveryScript``, ``spark.python.daemon.module``). Whoever installs
Lakebound adds to the list, or prepares profiles.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from lakebound.settings import YamlAccess
from lakebound.spec.spark import InstallationSpark

_KINDS: Mapping[str, tuple[str, str]] = {
    "boolean": (r"true|false", '"true" or "false"'),
    "number": (r"\d{1,9}", "a whole number"),
    "number or -1": (r"-1|\d{1,9}", "a whole number, or -1"),
    "fraction": (r"0?\.\d{1,9}|0|1(\.0)?", "a number from 0 to 1"),
    "size": (r"\d{1,12}([kmgt]b?|b)?", "a size such as 64k, 512m or 2g"),
    "size or -1": (r"-1|\d{1,12}([kmgt]b?|b)?", "a size such as 64k, 512m or 2g, or -1"),
    "duration": (r"\d{1,9}(ms|s|m|min|h|d)?", "a duration such as 500ms, 30s or 5min"),
    "FIFO or FAIR": (r"FIFO|FAIR", "FIFO or FAIR"),
}

ALLOWED: Mapping[str, str] = {
    "spark.broadcast.blockSize": "size",
    "spark.broadcast.compress": "boolean",
    "spark.default.parallelism": "number",
    "spark.driver.memoryOverhead": "size",
    "spark.driver.memoryOverheadFactor": "fraction",
    "spark.dynamicAllocation.enabled": "boolean",
    "spark.dynamicAllocation.executorIdleTimeout": "duration",
    "spark.dynamicAllocation.initialExecutors": "number",
    "spark.dynamicAllocation.maxExecutors": "number",
    "spark.dynamicAllocation.minExecutors": "number",
    "spark.dynamicAllocation.shuffleTracking.enabled": "boolean",
    "spark.executor.heartbeatInterval": "duration",
    "spark.executor.instances": "number",
    "spark.executor.memoryOverhead": "size",
    "spark.executor.memoryOverheadFactor": "fraction",
    "spark.files.maxPartitionBytes": "size",
    "spark.hadoop.fs.s3a.attempts.maximum": "number",
    "spark.hadoop.fs.s3a.connection.establish.timeout": "duration",
    "spark.hadoop.fs.s3a.connection.maximum": "number",
    "spark.hadoop.fs.s3a.connection.timeout": "duration",
    "spark.hadoop.fs.s3a.multipart.size": "size",
    "spark.hadoop.fs.s3a.threads.max": "number",
    "spark.kryoserializer.buffer.max": "size",
    "spark.locality.wait": "duration",
    "spark.memory.fraction": "fraction",
    "spark.memory.offHeap.enabled": "boolean",
    "spark.memory.offHeap.size": "size",
    "spark.memory.storageFraction": "fraction",
    "spark.network.timeout": "duration",
    "spark.rdd.compress": "boolean",
    "spark.reducer.maxSizeInFlight": "size",
    "spark.rpc.askTimeout": "duration",
    "spark.scheduler.mode": "FIFO or FAIR",
    "spark.shuffle.compress": "boolean",
    "spark.shuffle.file.buffer": "size",
    "spark.shuffle.spill.compress": "boolean",
    "spark.sql.autoBroadcastJoinThreshold": "size or -1",
    "spark.sql.broadcastTimeout": "number or -1",
    "spark.sql.debug.maxToStringFields": "number",
    "spark.sql.files.maxPartitionBytes": "size",
    "spark.sql.maxPlanStringLength": "number",
    "spark.sql.shuffle.partitions": "number",
    "spark.sql.streaming.metricsEnabled": "boolean",
    "spark.sql.ui.retainedExecutions": "number",
    "spark.task.cpus": "number",
    "spark.task.maxDirectResultSize": "size",
    "spark.task.maxFailures": "number",
    "spark.ui.retainedJobs": "number",
    "spark.ui.retainedStages": "number",
    "spark.ui.retainedTasks": "number",
}
"""The settings by which an author tunes Spark's memory, tasks and SQL, with the kind of their values."""


def refused_to_authors(name: str, value: str, access: YamlAccess, profiles: Mapping[str, InstallationSpark]) -> str | None:
    """Return why the author of a pipeline may not give a setting, and what to write instead; None where they may.

    Args:
        name: Of the setting. Whether anybody may give it is for ``spark_rules`` to say.
        value: Its value, which is not repeated.
        access: What whoever installs Lakebound allows.
        profiles: What they prepared, by name.
    """
    kind = ALLOWED.get(name)
    if kind is not None:
        pattern, said = _KINDS[kind]
        return None if re.fullmatch(pattern, value, re.IGNORECASE) else f"must be {said}"
    if access.may_set_in_spark(name):
        return None
    reason = "can only be set by whoever installs Lakebound"
    if having := sorted(profile for profile, one in profiles.items() if name in one.conf):
        return f"{reason}; write 'profile: {having[0]}' under 'spark' instead, which sets it to their value"
    return (
        f"{reason}; write 'profile: NAME' under 'spark' instead, with a profile of installation.yaml that sets it, or let them "
        f"allow it by LAKEBOUND_SPARK_ALLOWED={name} (docs/how-to/backends.md)"
    )
