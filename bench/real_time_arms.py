"""What is measured from topic to topic: Lakebound in real time and in batches, and Flink with both of its guarantees.

An arm is named ``real_time:EPOCH``, ``0ms``, ``flink:at-least-once`` or ``flink:exactly-once:INTERVAL``.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, replace

import running
from arms import Setting, flink_java, start_pipeline
from peers.install import install
from work import write_reference

TARGET = "{}-sent"
BAD = "{}-bad"
PARTITIONS = 2
REAL_TIME = ("real_time:5s", "real_time:30s", "real_time:5m")
FLINK = ("flink:at-least-once", "flink:exactly-once:100ms", "flink:exactly-once:250ms")
ARMS = (*REAL_TIME, "0ms", *FLINK)


@dataclass(frozen=True)
class Case:
    """One thing to measure.

    Attributes:
        arm: Its name.
        work: ``encode`` or ``enrich``.
        rate: Records per second.
    """

    arm: str
    work: str
    rate: int
    record_bytes: int = 1200

    @property
    def epoch_seconds(self) -> int:
        """Length of its epoch; 0 without one."""
        kind, _, epoch = self.arm.partition(":")
        return int(epoch[:-1]) * (60 if epoch.endswith("m") else 1) if kind == "real_time" else 0


def topics_of(topic: str) -> dict[str, int]:
    """Return the topics of a run, with their partitions."""
    return {topic: PARTITIONS, TARGET.format(topic): PARTITIONS, BAD.format(topic): 1}


def prepare(case: Case, setting: Setting) -> None:
    """Make what an arm needs before its first start."""
    setting.folder.mkdir(parents=True, exist_ok=True)
    if case.work == "enrich":
        write_reference(setting.folder / "reference")


def start(case: Case, setting: Setting, app_id: str = "bench-1") -> subprocess.Popen[bytes]:
    """Start an arm, or start it again after it was killed; its output goes to ``app.log`` in its folder."""
    return _flink(case, setting) if case.arm.startswith("flink") else _lakebound(case, setting, app_id)


def _lakebound(case: Case, setting: Setting, app_id: str) -> subprocess.Popen[bytes]:
    kind, _, epoch = case.arm.partition(":")
    changes = {"real_time": {"epoch": epoch, "quarantine_topic": BAD.format(setting.topic)}} if kind == "real_time" else {}
    spec = running.pipeline(
        setting.topic,
        setting.bootstrap_servers,
        value={"format": "json", "schema": running.SCHEMA},
        freshness=kind,
        transform=f"transforms.{case.work}.clean",
        tables=[],
        to_topics=[{"topic": TARGET.format(setting.topic), "key": "event_id"}],
        **changes,
    )
    return start_pipeline(spec, replace(setting.settings, spark_master=f"local[{PARTITIONS}]"), app_id).process


def _flink(case: Case, setting: Setting) -> subprocess.Popen[bytes]:
    _, guarantee, *interval = case.arm.split(":")
    peer = install() / "flink"
    (setting.folder / "tmp").mkdir(exist_ok=True)
    words = [setting.bootstrap_servers, setting.topic, str(setting.folder), TARGET.format(setting.topic), guarantee]
    words += [f"bench.work={case.work}", f"bench.reference={setting.folder / 'reference' / 'devices.csv'}"]
    words += [f"execution.checkpointing.interval={interval[0]}"] if interval else ["execution.checkpointing.interval=30 s"]
    return running.start([*flink_java(peer, setting.folder), "FlinkTopics", *words], setting.folder, cwd=peer)
