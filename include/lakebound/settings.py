"""Where things are on this machine, from environment variables: the only reader of them.

| variable | meaning | default |
| --- | --- | --- |
| LAKEBOUND_HOME | state: leases, progress, logs, embedded services | ./.lakebound |
| LAKEBOUND_PIPELINES | folder of pipeline YAML files | ./include/pipelines |
| LAKEBOUND_APPS | folder of the spark-submit entry points | ./spark_apps |
| LAKEBOUND_WAREHOUSE | folder of the tables and of the SQLite Iceberg catalog | LAKEBOUND_HOME/warehouse |
| LAKEBOUND_JARS | folder of the checked JVM jars | ~/.cache/lakebound/jars |
| LAKEBOUND_KAFKA | bootstrap servers that ${LAKEBOUND_KAFKA} stands for in YAML | of the embedded broker |
| LAKEBOUND_SPARK_MASTER | --master of the Spark applications | local[2] |
| LAKEBOUND_JVM_OPTIONS | further options of the applications' driver JVM | |
| LAKEBOUND_STATE_ACCESS | who may enter the state: owner, or also the group | owner |
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lakebound.errors import SettingError

DEFAULT_KAFKA = "127.0.0.1:9092"


@dataclass(frozen=True)
class Settings:
    """This machine's places. All paths are absolute."""

    home: Path
    pipelines: Path
    apps: Path
    warehouse: Path
    jars: Path
    kafka: str
    spark_master: str
    jvm_options: str = ""

    @property
    def services_file(self) -> Path:
        """The file in which ``lakebound up`` writes the addresses of the embedded services."""
        return self.home / "embedded" / "services.json"

    @property
    def iceberg_catalog_uri(self) -> str:
        """SQLAlchemy address of the embedded Iceberg catalog."""
        return f"sqlite:///{self.warehouse}/iceberg/catalog.db"

    def environment(self) -> dict[str, str]:
        """The variables that give a child process these same settings."""
        return {
            "LAKEBOUND_HOME": str(self.home),
            "LAKEBOUND_PIPELINES": str(self.pipelines),
            "LAKEBOUND_APPS": str(self.apps),
            "LAKEBOUND_WAREHOUSE": str(self.warehouse),
            "LAKEBOUND_JARS": str(self.jars),
            "LAKEBOUND_KAFKA": self.kafka,
            "LAKEBOUND_SPARK_MASTER": self.spark_master,
            "LAKEBOUND_JVM_OPTIONS": self.jvm_options,
        }


def load_settings(environ: Mapping[str, str] | None = None) -> Settings:
    """Return the settings that the environment (default: this process's) asks for."""
    env = os.environ if environ is None else environ
    home = _path(env, "LAKEBOUND_HOME", Path(".lakebound"))
    return Settings(
        home=home,
        pipelines=_path(env, "LAKEBOUND_PIPELINES", Path("include/pipelines")),
        apps=_path(env, "LAKEBOUND_APPS", Path("spark_apps")),
        warehouse=_path(env, "LAKEBOUND_WAREHOUSE", home / "warehouse"),
        jars=_path(env, "LAKEBOUND_JARS", Path.home() / ".cache" / "lakebound" / "jars"),
        kafka=env.get("LAKEBOUND_KAFKA") or _embedded_kafka(home) or DEFAULT_KAFKA,
        spark_master=env.get("LAKEBOUND_SPARK_MASTER") or "local[2]",
        jvm_options=env.get("LAKEBOUND_JVM_OPTIONS") or "",
    )


def state_is_shared(environ: Mapping[str, str] | None = None) -> bool:
    """Return whether the group may enter the state folder, for containers that get another user id at each start.

    Raises:
        SettingError: LAKEBOUND_STATE_ACCESS is another word than those that it may be.
    """
    env = os.environ if environ is None else environ
    chosen = env.get("LAKEBOUND_STATE_ACCESS") or "owner"
    if chosen not in ("owner", "group"):
        raise SettingError("LAKEBOUND_STATE_ACCESS", f"{chosen!r} is neither 'owner' (the default) nor 'group'")
    return chosen == "group"


def _path(env: Mapping[str, str], name: str, default: Path) -> Path:
    return Path(env.get(name) or default).expanduser().absolute()


def _embedded_kafka(home: Path) -> str | None:
    try:
        services = json.loads((home / "embedded" / "services.json").read_text())
    except (OSError, ValueError):
        return None
    address = services.get("kafka")
    return address if isinstance(address, str) else None
