"""What is measured against what: how each contender is started on a topic, and where its tables are looked at.

An arm is named ``lakebound:TABLES:FRESHNESS[:WORK][:spark]``, ``flink:INTERVAL[:WORK]``, ``connect:INTERVAL[:dirty]`` or
``spark:FORMAT[:tuned]``. WORK is ``encode``, ``enrich`` or ``dirty`` (``bench/work.py``), or the format of the values that is
not JSON: ``avro`` or ``protobuf`` with a schema registry (``bench/value_formats.py``); ``:spark`` is
``driver_lane.direct: false``. Kafka Connect has no encode and no enrich: of what it ships (``connect-transforms``, and those of
Iceberg's sink) nothing hashes, changes case, takes a part of a text, filters by a value or looks a row up.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import running
import yaml
from arm_names import ArmName, parse
from peers.install import install
from value_formats import FORMATS
from visible import DeltaTable, HadoopTable, Place, SqlTable
from work import write_reference

from lakebound.control.desired import Desired
from lakebound.control.folder import ControlFolder
from lakebound.control.ports import free_port
from lakebound.landing.run_spec import make_run_spec
from lakebound.landing.spark_command import spark_environment, spark_submit_command
from lakebound.local.stack import create_topics
from lakebound.settings import Settings
from lakebound.spec.pipeline import PipelineSpec

SCHEMA = "event_id STRING, device STRING, value DOUBLE, kind STRING, pad STRING"
_OPENED = ("lang", "lang.reflect", "util", "util.concurrent", "util.concurrent.atomic", "util.concurrent.locks")
_OPENED += ("net", "io", "nio", "text", "time")
_TUNED = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.locality.wait": "0s",
    "spark.ui.enabled": "false",
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.databricks.delta.stats.collect": "false",
}


@dataclass(frozen=True)
class Setting:
    """Where one run of one arm works.

    Attributes:
        bootstrap_servers: Of the broker.
        topic: That it lands; there already.
        settings: This machine's places; the home is the run's own.
        registry: Address of the schema registry, for arms whose values have a schema.
    """

    bootstrap_servers: str
    topic: str
    settings: Settings
    registry: str | None = None

    @property
    def folder(self) -> Path:
        """The run's own folder."""
        return self.settings.home


@dataclass(frozen=True)
class Started:
    """A running arm.

    Attributes:
        process: Its first process.
        places: Its tables, by name.
        settle_seconds: How long its last records may take to be seen.
        control: The pipeline's folder, if it is one of Lakebound's.
    """

    process: subprocess.Popen[bytes]
    places: dict[str, Place]
    settle_seconds: float = 5.0
    control: ControlFolder | None = None


def start(arm: str, setting: Setting) -> Started:
    """Start an arm; its output goes to ``app.log`` in its folder."""
    name = parse(arm)
    setting.folder.mkdir(parents=True, exist_ok=True)
    starters = {"lakebound": _lakebound, "flink": _flink, "connect": _connect, "spark": _plain_spark}
    return starters[name.kind](setting, name)


def _lakebound(setting: Setting, name: ArmName) -> Started:
    tables, freshness = name.words
    formats = ["delta", "iceberg"] if tables == "both" else [tables]
    if name.work == "enrich":
        write_reference(setting.folder / "reference")
    value = {"format": "json", "schema": SCHEMA}
    settings = setting.settings
    if name.work in FORMATS:
        value = {"format": name.work, "registry": "bench"}
        settings = _with_registry(setting)
    spec = running.pipeline(
        setting.topic,
        setting.bootstrap_servers,
        value=value,
        freshness=freshness,
        transform=f"transforms.{name.work}.clean" if name.work in ("encode", "enrich") else None,
        driver_lane={"direct": name.mark != "spark"},
        tables=[{"format": one, "name": "bench.events"} for one in formats],
    )
    return start_pipeline(spec, settings)


def _with_registry(setting: Setting) -> Settings:
    """Return the run's settings with a ``registries.yaml`` of its own."""
    include = setting.folder / "include"
    (include / "pipelines").mkdir(parents=True)
    (include / "registries.yaml").write_text(yaml.safe_dump({"registries": {"bench": {"url": setting.registry}}}))
    return replace(setting.settings, pipelines=include / "pipelines")


def start_pipeline(spec: PipelineSpec, settings: Settings, app_id: str = "bench") -> Started:
    """Start a pipeline's application; its tables go by their format."""
    run = make_run_spec(spec, settings, Desired(), app_id)
    places: dict[str, Place] = {}
    for table in spec.tables:
        if table.format == "delta":
            places["delta"] = DeltaTable(run.places.delta_path(table), "_kafka.timestamp")
        else:
            folder = run.places.iceberg_warehouse / table.namespace / table.short_name
            database = Path(run.places.iceberg_catalog_uri.removeprefix("sqlite:///"))
            places["iceberg"] = SqlTable(folder, "_kafka.timestamp", database=database)
    command = spark_submit_command(run, settings)
    process = running.start(command, settings.home, env=spark_environment(settings))
    return Started(process, places, control=run.control)


def flink_java(peer: Path, folder: Path) -> list[str]:
    """Return the command of a Flink in one process, without its class; its scratch folder is ``tmp`` of the run's.

    Args:
        peer: Where Flink is installed.
        folder: Of the run.
    """
    opened = [f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in _OPENED]
    opened.append("--add-opens=java.base/sun.nio.ch=ALL-UNNAMED")
    memory = ["-Xms512m", "-Xmx2g", "-XX:MaxDirectMemorySize=512m"]
    log = f"-Dlog4j2.configurationFile={peer / 'log4j2.properties'}"
    return ["java", *memory, *opened, log, f"-Djava.io.tmpdir={folder / 'tmp'}", "-cp", "classes:lib/*"]


def _flink(setting: Setting, name: ArmName) -> Started:
    peer = install() / "flink"
    (setting.folder / "tmp").mkdir()
    java = [*flink_java(peer, setting.folder), "FlinkJob"]
    words = [setting.bootstrap_servers, setting.topic, str(setting.folder), f"execution.checkpointing.interval={name.words[0]}"]
    words.append(f"bench.work={name.work}")
    if name.work in FORMATS:
        words.append(f"bench.registry={setting.registry}")
    if name.work == "enrich":
        words.append(f"bench.reference={write_reference(setting.folder / 'reference')}")
    place = HadoopTable(setting.folder / "warehouse" / "bench" / "events", "kafka_ts")
    return Started(running.start([*java, *words], setting.folder, cwd=peer), {"iceberg": place})


def _connect(setting: Setting, arm: ArmName) -> Started:
    peer = install() / "connect"
    warehouse = setting.folder / "warehouse"
    log = f"-Dlog4j2.configurationFile={peer / 'log4j2.properties'}"
    java = ["java", log, "-cp", "classes:lib/*"]
    subprocess.run([*java, "CreateTable", str(warehouse)], cwd=peer, check=True, stdout=subprocess.DEVNULL)
    # Connect names its consumer groups after the connector: one of another run would go on where that one ended.
    name = setting.folder.name
    control = f"{name}-control"
    create_topics(setting.bootstrap_servers, {control: 1})
    worker = {
        "bootstrap.servers": setting.bootstrap_servers,
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        "offset.storage.file.filename": str(setting.folder / "offsets"),
        "offset.flush.interval.ms": "100",
        "plugin.discovery": "service_load",
        "listeners": f"http://127.0.0.1:{free_port()}",
    }
    connector = {
        "name": name,
        "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
        "tasks.max": "1",
        "topics": setting.topic,
        "consumer.override.auto.offset.reset": "earliest",
        "transforms": "k",
        "transforms.k.type": "org.apache.kafka.connect.transforms.InsertField$Value",
        "transforms.k.topic.field": "topic",
        "transforms.k.partition.field": "partition",
        "transforms.k.offset.field": "offset",
        "transforms.k.timestamp.field": "kafka_ts",
        "iceberg.catalog": "ice",
        "iceberg.catalog.type": "hadoop",
        "iceberg.catalog.warehouse": str(warehouse),
        "iceberg.tables": "bench.events",
        "iceberg.kafka.bootstrap.servers": setting.bootstrap_servers,
        "iceberg.control.topic": control,
        "iceberg.control.group-id-prefix": f"{name}-",
        "iceberg.control.commit.interval-ms": arm.words[0].removesuffix("ms"),
        "iceberg.control.commit.timeout-ms": "5000",
    }
    if arm.work == "dirty":
        connector["errors.tolerance"] = "all"
    for role, properties in (("worker", worker), ("connector", connector)):
        lines = "".join(f"{key}={value}\n" for key, value in properties.items())
        (setting.folder / f"{role}.properties").write_text(lines)
    memory = ["-Xms512m", "-Xmx1536m", "-XX:MaxDirectMemorySize=512m"]
    files = [str(setting.folder / f"{role}.properties") for role in ("worker", "connector")]
    command = [java[0], *memory, *java[1:], "org.apache.kafka.connect.cli.ConnectStandalone", *files]
    place = HadoopTable(warehouse / "bench" / "events", "kafka_ts")
    return Started(running.start(command, setting.folder, cwd=peer), {"iceberg": place})


def _plain_spark(setting: Setting, name: ArmName) -> Started:
    [table_format], tuned = name.words, name.mark
    jars = str(setting.settings.jars / "spark" / "*")
    conf = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraClassPath": jars,
        "spark.ui.showConsoleProgress": "false",
        "spark.security.credentials.kafka.enabled": "false",
    }
    if table_format == "delta":
        conf["spark.sql.extensions"] = "io.delta.sql.DeltaSparkSessionExtension"
        conf["spark.sql.catalog.spark_catalog"] = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        place: Place = DeltaTable(setting.folder / "events", "kafka_ts")
    else:
        conf["spark.sql.extensions"] = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
        conf["spark.sql.catalog.ice"] = "org.apache.iceberg.spark.SparkCatalog"
        conf["spark.sql.catalog.ice.type"] = "hadoop"
        conf["spark.sql.catalog.ice.warehouse"] = f"file://{setting.folder}/warehouse"
        place = HadoopTable(setting.folder / "warehouse" / "bench" / "events", "kafka_ts")
    if tuned:
        conf |= _TUNED
    command = [str(Path(sys.executable).with_name("spark-submit")), "--master", setting.settings.spark_master]
    command += ["--driver-memory", "1g"]
    command += [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
    command += [str(Path(__file__).with_name("plain_spark.py")), "--bootstrap-servers", setting.bootstrap_servers]
    command += ["--topic", setting.topic, "--folder", str(setting.folder), "--format", table_format, "--schema", SCHEMA]
    command += ["--tuned"] if tuned else []
    process = running.start(command, setting.folder, env=spark_environment(setting.settings))
    return Started(process, {table_format: place}, settle_seconds=10.0 if tuned else 45.0)


def setting_of(base: Settings, bootstrap_servers: str, topic: str, registry: str | None = None) -> Setting:
    """Return the place of one run below the benchmark's folder."""
    home = base.home / topic
    return Setting(bootstrap_servers, topic, replace(base, home=home, warehouse=home / "warehouse"), registry)
