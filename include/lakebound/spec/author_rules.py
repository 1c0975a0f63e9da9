"""What the author of a pipeline may not ask for, though the file is right: whoever runs Lakebound decides that. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from lakebound.settings import YamlAccess
from lakebound.spec.installation_file import Installation
from lakebound.spec.named_files import forbidden_certificate_file
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.secret_bindings import any_matches, binding_refusal, is_of_this_machine
from lakebound.spec.secret_uses import secret_uses, token_servers
from lakebound.spec.secrets import forbidden_secret
from lakebound.spec.spark import InstallationSpark
from lakebound.spec.spark_rules import refused_name
from lakebound.spec.value_bounds import value_refusals
from lakebound.spec.yaml_source import Keys

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


def spark_refusals(body: Any, access: YamlAccess, installation: Installation) -> Iterator[tuple[Keys, str]]:
    """Yield what is not for an author to set under ``spark``, by its keys; also of a file that is wrong elsewhere.

    Args:
        body: What the file says under ``spark``.
        access: What YAML may use of this machine.
        installation: What ``installation.yaml`` says.
    """
    spark = body if isinstance(body, dict) else {}
    conf, profile, profiles = spark.get("conf"), spark.get("profile"), installation.spec.spark_profiles
    for name, value in conf.items() if isinstance(conf, dict) else ():
        if not isinstance(name, str) or not isinstance(value, str) or refused_name(name):
            continue
        if refused := refused_to_authors(name, value, access, profiles):
            yield ("spark", "conf", name), refused
    if isinstance(profile, str) and profile not in profiles:
        known = ", ".join(sorted(profiles)) or "none"
        yield ("spark", "profile"), f"{installation.path.name} has no profile {profile!r}; its profiles are: {known}"


def refusals(spec: PipelineSpec, access: YamlAccess, installation: Installation) -> Iterator[tuple[Keys, str]]:
    """Yield what a pipeline may not use of this machine, by its keys.

    Args:
        spec: The pipeline.
        access: What YAML may use of this machine.
        installation: What ``installation.yaml`` says.
    """
    yield from value_refusals(spec)
    for keys, use in secret_uses(spec).items():
        refused = forbidden_secret(use.ref, access)
        if refused is None and installation.binds:
            refused = binding_refusal(use, spec.pipeline, installation.spec.secrets, access.secrets_folder)
        if refused:
            yield keys, refused
    if installation.binds and (refused := _token_server_refusal(spec, access, installation)):
        yield ("connection", "sasl", "token_url"), refused
    for keys, file in spec.certificate_files.items():
        if forbidden := forbidden_certificate_file(file, access):
            yield keys, forbidden


def _token_server_refusal(spec: PipelineSpec, access: YamlAccess, installation: Installation) -> str | None:
    """Return why a pipeline may not ask a server for tokens: each application sends requests there, from inside the network."""
    sasl = spec.connection.sasl
    if sasl is None or sasl.token_url is None or sasl.client_secret is None:
        return None
    (server,), bindings = token_servers(sasl), installation.spec.secrets
    bound = () if bindings is None else bindings.servers_of(sasl.client_secret, access.secrets_folder)
    if any_matches((*installation.spec.token_servers, *bound), server) or (bindings is None and is_of_this_machine(server)):
        return None
    return f"{server} is not one of token_servers in {installation.path.name}; whoever runs Lakebound can add it there"
