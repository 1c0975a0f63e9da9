"""Where things are on this machine, from environment variables: the only reader of them.

| variable | meaning | default |
| --- | --- | --- |
| LAKEBOUND_HOME | state: leases, progress, logs, embedded services | ./.lakebound |
| LAKEBOUND_PIPELINES | folder of pipeline YAML files | ./include/pipelines |
| LAKEBOUND_APPS | folder of the spark-submit entry points | ./spark_apps |
| LAKEBOUND_REFERENCES | folder of the files that pipelines may name as reference data | ./include/references |
| LAKEBOUND_WAREHOUSE | folder of the tables and of the SQLite Iceberg catalog | LAKEBOUND_HOME/warehouse |
| LAKEBOUND_JARS | folder of the checked JVM jars | ~/.cache/lakebound/jars |
| LAKEBOUND_KAFKA | bootstrap servers that ${LAKEBOUND_KAFKA} stands for in YAML | of the embedded broker |
| LAKEBOUND_SPARK_MASTER | --master of the Spark applications | local[2] |
| LAKEBOUND_JVM_OPTIONS | further options of the applications' driver JVM | |
| LAKEBOUND_SPARK_SETTINGS | memory, cores and settings of Spark for all pipelines, as JSON | |
| LAKEBOUND_SPARK_ALLOWED | settings of Spark that YAML may also give; a name that ends with a dot allows what begins so | |
| LAKEBOUND_SPARK_UI | on or off: whether applications have Spark's web UI | on with a local master, else off |
| LAKEBOUND_VARIABLES | names of further variables that YAML may name and that reach the applications | |
| LAKEBOUND_SECRETS | names of the variables that hold secrets | |
| LAKEBOUND_SECRETS_FOLDER | folder of the files that hold secrets | /run/secrets |
| LAKEBOUND_CERTIFICATES | further folders of certificate files that YAML may name, with : between them | |
| LAKEBOUND_KEEP_DAYS | for how many days logs and outcomes are kept | 30 |
| LAKEBOUND_LINEAGE_SECONDS | between two OpenLineage events of a stream | 300 |
| LAKEBOUND_STATE | s3://BUCKET/PREFIX of the state that machines share | LAKEBOUND_HOME |
| LAKEBOUND_STATE_ACCESS | who may enter the state: owner, or also the group | owner |
| LAKEBOUND_AIRFLOW_URL | address of your own Airflow's API server | of the embedded Airflow |
| LAKEBOUND_AIRFLOW_LOGIN_FILE | file with USER:PASSWORD, or with a token, for that Airflow | |
| LAKEBOUND_METRICS_TOKEN_FILE | file with the token that opens /lakebound/metrics of Airflow's API server | |
| LAKEBOUND_AIRFLOW_ROLES | roles of Airflow that owners of pipelines may name, with commas between them | |
| LAKEBOUND_SELF_APPROVAL | allow or refuse: whether who asked for a repair may approve it in Airflow | refuse |
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from lakebound.errors import SettingError

DEFAULT_KAFKA = "127.0.0.1:9092"
DEFAULT_SECRETS_FOLDER = Path("/run/secrets")
DEFAULT_REFERENCES = Path("include/references")
DEFAULT_LINEAGE_SECONDS = 300.0
SYSTEM_CERTIFICATES = (
    "/etc/lakebound",
    "/etc/ssl/certs",
    "/etc/pki/tls/certs",
    "/etc/pki/ca-trust/extracted",
    "/usr/share/ca-certificates",
    "/usr/local/share/ca-certificates",
)
"""Where Linux keeps the certificates of authorities, and a folder for those of an installation."""
SECRET_PREFIX = "LAKEBOUND_SECRET_"
"""Variables of such names hold secrets, and need not be named."""


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
    spark_settings: str = ""
    spark_ui: str = ""
    keep_days: float = 30.0
    lineage_seconds: float = DEFAULT_LINEAGE_SECONDS
    references: Path = DEFAULT_REFERENCES

    @property
    def services_file(self) -> Path:
        """The file in which ``lakebound up`` writes the addresses of the embedded services."""
        return self.home / "embedded" / "services.json"

    @property
    def iceberg_catalog_uri(self) -> str:
        """SQLAlchemy address of the embedded Iceberg catalog."""
        return embedded_catalog_uri(self.warehouse)

    def environment(self) -> dict[str, str]:
        """The variables that give a child process these same settings."""
        return {
            "LAKEBOUND_HOME": str(self.home),
            "LAKEBOUND_PIPELINES": str(self.pipelines),
            "LAKEBOUND_APPS": str(self.apps),
            "LAKEBOUND_REFERENCES": str(self.references),
            "LAKEBOUND_WAREHOUSE": str(self.warehouse),
            "LAKEBOUND_JARS": str(self.jars),
            "LAKEBOUND_KAFKA": self.kafka,
            "LAKEBOUND_SPARK_MASTER": self.spark_master,
            "LAKEBOUND_JVM_OPTIONS": self.jvm_options,
            "LAKEBOUND_SPARK_SETTINGS": self.spark_settings,
            "LAKEBOUND_SPARK_UI": self.spark_ui,
            "LAKEBOUND_KEEP_DAYS": f"{self.keep_days:g}",
            "LAKEBOUND_LINEAGE_SECONDS": f"{self.lineage_seconds:g}",
        }


def embedded_catalog_uri(warehouse: Path) -> str:
    """Return the SQLAlchemy address of the Iceberg catalog in a folder of tables."""
    return f"sqlite:///{warehouse}/iceberg/catalog.db"


def load_settings(environ: Mapping[str, str] | None = None) -> Settings:
    """Return the settings that the environment (default: this process's) asks for.

    Raises:
        SettingError: A variable has a value that means nothing.
    """
    env = os.environ if environ is None else environ
    home = _path(env, "LAKEBOUND_HOME", Path(".lakebound"))
    return Settings(
        home=home,
        pipelines=_path(env, "LAKEBOUND_PIPELINES", Path("include/pipelines")),
        apps=_path(env, "LAKEBOUND_APPS", Path("spark_apps")),
        warehouse=_path(env, "LAKEBOUND_WAREHOUSE", home / "warehouse"),
        jars=_path(env, "LAKEBOUND_JARS", Path("~/.cache/lakebound/jars")),
        kafka=env.get("LAKEBOUND_KAFKA") or _embedded_kafka(home) or DEFAULT_KAFKA,
        spark_master=env.get("LAKEBOUND_SPARK_MASTER") or "local[2]",
        jvm_options=env.get("LAKEBOUND_JVM_OPTIONS") or "",
        spark_settings=env.get("LAKEBOUND_SPARK_SETTINGS") or "",
        spark_ui=_spark_ui(env),
        keep_days=_keep_days(env),
        lineage_seconds=lineage_interval_seconds(env),
        references=_path(env, "LAKEBOUND_REFERENCES", DEFAULT_REFERENCES),
    )


_NOT_SHOWN = frozenset({"LAKEBOUND_JVM_OPTIONS", "LAKEBOUND_SPARK_SETTINGS"})
"""The operator's own texts, in which a password may stand."""


@dataclass(frozen=True)
class YamlAccess:
    """What YAML files may read of this machine. Who runs Lakebound decides it, not who writes YAML.

    Attributes:
        variables: Variables that may stand in a text, besides ``LAKEBOUND_…``; they also reach the applications.
        secrets: Variables that may be named as a secret, besides ``LAKEBOUND_SECRET_…``.
        secrets_folder: Files in and below it may be named as a secret.
        spark_settings: Settings of Spark that authors may give besides those that only tune it; one that ends with a dot
            allows every setting that begins so.
        certificates: Files in and below these folders may be named as certificates, besides those in the folder of secrets.
    """

    variables: frozenset[str] = frozenset()
    secrets: frozenset[str] = frozenset()
    secrets_folder: Path = DEFAULT_SECRETS_FOLDER
    certificates: tuple[Path, ...] = tuple(map(Path, SYSTEM_CERTIFICATES))
    spark_settings: frozenset[str] = frozenset()

    def may_expand(self, name: str) -> bool:
        """Return whether ``${NAME}`` may stand for the variable. Texts are shown; secrets are not."""
        if self.may_be_secret(name):
            return False
        return name in self.variables or (name.startswith("LAKEBOUND_") and name not in _NOT_SHOWN)

    def may_be_secret(self, name: str) -> bool:
        """Return whether a password may be in the variable."""
        return name.startswith(SECRET_PREFIX) or name in self.secrets

    def secret_file(self, file: str) -> Path | None:
        """Return the file that may hold a secret; None where it is not in the folder of secrets, links followed."""
        folder = _resolved(self.secrets_folder)
        path = _resolved(folder / file)
        return path if path.is_relative_to(folder) and path != folder else None

    def may_set_in_spark(self, name: str) -> bool:
        """Return whether authors may give a setting of Spark that does more than tune it."""
        return any(name == one or (one.endswith(".") and name.startswith(one)) for one in self.spark_settings)

    def certificate_file(self, file: str) -> Path | None:
        """Return the file that may hold certificates; None where it is in none of the folders for them.

        Both the path as it is written and the file to which links lead must be in one of the folders.
        """
        folders = [self.secrets_folder, *self.certificates]
        written = Path(os.path.normpath(self.secrets_folder / file))
        if not any(written.is_relative_to(folder) or written.is_relative_to(_resolved(folder)) for folder in folders):
            return None
        path = _resolved(written)
        return path if any(path.is_relative_to(_resolved(folder)) for folder in folders) else None


def _resolved(path: Path) -> Path:
    """Return the path with links followed; of a circle of links, the path as it is written."""
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):
        return path


def load_yaml_access(environ: Mapping[str, str] | None = None) -> YamlAccess:
    """Return what the environment (default: this process's) lets YAML read."""
    env = os.environ if environ is None else environ
    return YamlAccess(
        variables=_names(env, "LAKEBOUND_VARIABLES"),
        secrets=_names(env, "LAKEBOUND_SECRETS"),
        secrets_folder=_path(env, "LAKEBOUND_SECRETS_FOLDER", DEFAULT_SECRETS_FOLDER),
        certificates=_certificates(env),
        spark_settings=_names(env, "LAKEBOUND_SPARK_ALLOWED"),
    )


@dataclass(frozen=True)
class AirflowAccess:
    """Where an Airflow is that ``lakebound up`` did not start.

    The login is in a file that no variable of YAML can name: ``${LAKEBOUND_…}`` stands in texts that are sent and shown.

    Attributes:
        url: Of its API server; empty: there is no such Airflow.
        login_file: Holds ``USER:PASSWORD``, or a token.
    """

    url: str = ""
    login_file: Path | None = None


def load_airflow_access(environ: Mapping[str, str] | None = None) -> AirflowAccess:
    """Return where the environment (default: this process's) says that an Airflow is.

    Raises:
        SettingError: The address is none.
    """
    env = os.environ if environ is None else environ
    url, file = (env.get("LAKEBOUND_AIRFLOW_URL") or "").rstrip("/"), env.get("LAKEBOUND_AIRFLOW_LOGIN_FILE")
    try:
        parts = urlsplit(url)
        named = parts.scheme in ("http", "https") and parts.hostname
    except ValueError:
        named = None
    if url and not named:
        raise SettingError("LAKEBOUND_AIRFLOW_URL", "it is not an address such as https://airflow.example.com")
    if "@" in url:
        raise SettingError("LAKEBOUND_AIRFLOW_URL", "the login belongs in the file LAKEBOUND_AIRFLOW_LOGIN_FILE")
    return AirflowAccess(url, Path(file).expanduser().absolute() if file else None)


def metrics_token_file(environ: Mapping[str, str] | None = None) -> Path | None:
    """Return the file with the token that opens the metrics page of Airflow's API server; None: there is no such page."""
    file = (os.environ if environ is None else environ).get("LAKEBOUND_METRICS_TOKEN_FILE")
    return Path(file).expanduser().absolute() if file else None


def lineage_interval_seconds(environ: Mapping[str, str] | None = None) -> float:
    """Return the seconds between two OpenLineage events of a stream.

    Raises:
        SettingError: LAKEBOUND_LINEAGE_SECONDS is not a number of seconds, 1 or more.
    """
    env = os.environ if environ is None else environ
    chosen = env.get("LAKEBOUND_LINEAGE_SECONDS") or f"{DEFAULT_LINEAGE_SECONDS:g}"
    try:
        seconds = float(chosen)
    except ValueError:
        seconds = 0.0
    if not 1 <= seconds <= 86_400:
        raise SettingError("LAKEBOUND_LINEAGE_SECONDS", f"{chosen!r} is not a number of seconds from 1 to 86400")
    return seconds


def state_address(environ: Mapping[str, str] | None = None) -> str | None:
    """Return the address in an object store of the state that machines share; None: all state is in LAKEBOUND_HOME.

    Raises:
        SettingError: LAKEBOUND_STATE is no such address.
    """
    env = os.environ if environ is None else environ
    chosen = (env.get("LAKEBOUND_STATE") or "").rstrip("/")
    if not chosen:
        return None
    parts = urlsplit(chosen)
    if parts.scheme != "s3" or not parts.netloc or not parts.path:
        raise SettingError(
            "LAKEBOUND_STATE", f"{chosen!r} is not an address such as s3://bucket/prefix; for a folder, set LAKEBOUND_HOME"
        )
    if parts.query or parts.fragment or "@" in parts.netloc:
        raise SettingError("LAKEBOUND_STATE", "it has more than a bucket and a prefix; keys belong in warehouses.yaml")
    return chosen


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


def self_approval_is_allowed(environ: Mapping[str, str] | None = None) -> bool:
    """Return whether who asked for a repair in Airflow may also approve it, as in a team of one.

    Raises:
        SettingError: LAKEBOUND_SELF_APPROVAL is another word than those that it may be.
    """
    env = os.environ if environ is None else environ
    chosen = env.get("LAKEBOUND_SELF_APPROVAL") or "refuse"
    if chosen not in ("allow", "refuse"):
        raise SettingError("LAKEBOUND_SELF_APPROVAL", f"{chosen!r} is neither 'allow' nor 'refuse' (the default)")
    return chosen == "allow"


def airflow_roles(environ: Mapping[str, str] | None = None) -> frozenset[str]:
    """Return the roles of Airflow's FAB auth manager that ``owners`` in YAML may name. Their names may have blanks in them."""
    env = os.environ if environ is None else environ
    return frozenset(filter(None, (name.strip() for name in env.get("LAKEBOUND_AIRFLOW_ROLES", "").split(","))))


def _path(env: Mapping[str, str], name: str, default: Path) -> Path:
    return Path(env.get(name) or default).expanduser().absolute()


def _certificates(env: Mapping[str, str]) -> tuple[Path, ...]:
    named = filter(None, env.get("LAKEBOUND_CERTIFICATES", "").split(os.pathsep))
    return tuple(Path(folder).expanduser().absolute() for folder in (*SYSTEM_CERTIFICATES, *named))


def _spark_ui(env: Mapping[str, str]) -> str:
    chosen = env.get("LAKEBOUND_SPARK_UI") or ""
    if chosen not in ("", "on", "off"):
        raise SettingError("LAKEBOUND_SPARK_UI", f"{chosen!r} is neither 'on' nor 'off'")
    return chosen


def _keep_days(env: Mapping[str, str]) -> float:
    chosen = env.get("LAKEBOUND_KEEP_DAYS") or "30"
    try:
        days = float(chosen)
    except ValueError:
        days = 0.0
    if not 1 <= days < 100_000:
        raise SettingError("LAKEBOUND_KEEP_DAYS", f"{chosen!r} is not a number of days, 1 or more")
    return days


def _names(env: Mapping[str, str], name: str) -> frozenset[str]:
    return frozenset(filter(None, env.get(name, "").replace(",", " ").split()))


def _embedded_kafka(home: Path) -> str | None:
    try:
        services = json.loads((home / "embedded" / "services.json").read_text())
    except (OSError, ValueError):
        return None
    address = services.get("kafka")
    return address if isinstance(address, str) else None
