"""The keys and passwords of docker-compose.yaml: made at the first start, on volumes, and never replaced.

``python -m lakebound.local.container.keys`` makes those that are missing. They lie in several folders, because not every
service may read all of them: what is in the folder of pipelines (``LAKEBOUND_SECRETS_FOLDER``) may be named in YAML, so
Airflow's own keys are not in it, and those of warehouses, registries and channels lie in folders of it that are volumes of
their own. The broker has a copy of the one password that it needs, and sees no other one of the pipelines.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lakebound.local.airflow_config import ADMIN, new_secrets
from lakebound.spec.secret_bindings import CHANNELS, REGISTRIES, WAREHOUSES

DATABASE_USER = "airflow"
KEY_ID, KEY = "object-store-key-id", "object-store-key"


@dataclass(frozen=True)
class KeyFolders:
    """Where the keys lie.

    Attributes:
        airflow: Read by Airflow's components.
        cli: Read by the command line: how it logs in to Airflow.
        database: Read by the database and by Airflow's components.
        kafka: Read by the broker.
        pipelines: Read by whatever lands records; what is for others is below it.
    """

    airflow: Path
    cli: Path
    database: Path
    kafka: Path
    pipelines: Path

    @property
    def warehouses(self) -> Path:
        """Read by the object store, its catalog, and whatever opens tables; no pipeline may name what is there."""
        return self.pipelines / WAREHOUSES

    @property
    def channels(self) -> Path:
        """Read by Airflow's components: connections of alert channels."""
        return self.pipelines / CHANNELS

    @property
    def registries(self) -> Path:
        """Read by whatever asks schema registries; whoever runs Lakebound puts the logins there."""
        return self.pipelines / REGISTRIES


def missing_keys(folders: KeyFolders, database_host: str) -> dict[Path, str]:
    """Return the text of each file that is not there yet. Files that must agree are made together, or completed.

    The broker's password is the one that pipelines log in with: where an earlier version or a person has put that there, or
    has changed it, the broker's copy is written again.

    Args:
        folders: Where the keys lie.
        database_host: Name by which Airflow reaches its database.
    """
    keys, admin = new_secrets(), _kept(folders.airflow / "admin_password")
    database, kafka = _kept(folders.database / "password"), _kept(folders.pipelines / "kafka")
    wanted = {
        folders.airflow / "fernet_key": keys.fernet_key,
        folders.airflow / "jwt_secret": keys.jwt_secret,
        folders.airflow / "api_secret": keys.api_secret,
        folders.airflow / "admin_password": admin,
        folders.airflow / "passwords.json": json.dumps({ADMIN: admin}),
        folders.cli / "login": f"{ADMIN}:{admin}",
        folders.airflow / "sql_alchemy_conn": (
            f"postgresql+psycopg2://{DATABASE_USER}:{database}@{database_host}:5432/{DATABASE_USER}"
        ),
        folders.database / "password": database,
        folders.pipelines / "kafka": kafka,
        folders.warehouses / KEY_ID: _earlier(folders, KEY_ID) or secrets.token_hex(10),
        folders.warehouses / KEY: _earlier(folders, KEY) or secrets.token_urlsafe(30),
    }
    missing = {file: text for file, text in wanted.items() if not file.exists()}
    broker = folders.kafka / "password"
    is_copied = broker.exists() and broker.read_text().strip() == kafka
    return missing if is_copied else {**missing, broker: kafka}


def _earlier(folders: KeyFolders, name: str) -> str | None:
    """Return the key that an earlier version wrote where pipelines may name it."""
    file = folders.pipelines / name
    return file.read_text().strip() if file.exists() else None


def remove_misplaced(folders: KeyFolders) -> list[Path]:
    """Remove what earlier versions wrote where more services read it than need it, once it is where it belongs."""
    misplaced = {folders.pipelines / KEY_ID: folders.warehouses / KEY_ID, folders.pipelines / KEY: folders.warehouses / KEY}
    misplaced[folders.airflow / "login"] = folders.cli / "login"
    gone = [old for old, new in misplaced.items() if old.exists() and new.exists()]
    for file in gone:
        file.unlink()
    return gone


def write_keys(keys: Mapping[Path, str]) -> None:
    """Write each key into its file, which only its owner may read; a file is there as a whole or not at all."""
    for file, text in keys.items():
        partial = file.with_name(f".{file.name}.{os.getpid()}")
        partial.touch(mode=0o600)
        # Without a line end: Airflow takes what a command prints as it is.
        partial.write_text(text)
        partial.replace(file)


def main(arguments: list[str] | None = None) -> int:
    """Run ``python -m lakebound.local.container.keys``; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m lakebound.local.container.keys", description=__doc__)
    parser.add_argument("--airflow", type=Path, default=Path("/run/lakebound/airflow"), help="folder of Airflow's keys")
    parser.add_argument("--cli", type=Path, default=Path("/run/lakebound/cli"), help="folder of the command line's login")
    parser.add_argument("--database", type=Path, default=Path("/run/lakebound/database"), help="folder of its password")
    parser.add_argument("--kafka", type=Path, default=Path("/run/lakebound/kafka"), help="folder of the broker's password")
    parser.add_argument("--pipelines", type=Path, default=Path("/run/secrets"), help="folder of what YAML may name")
    parser.add_argument("--database-host", default="postgres", help="name by which Airflow reaches its database")
    chosen = parser.parse_args(arguments)
    folders = KeyFolders(chosen.airflow, chosen.cli, chosen.database, chosen.kafka, chosen.pipelines)
    for folder in (folders.warehouses, folders.channels, folders.registries):
        folder.mkdir(exist_ok=True, mode=0o700)
    keys = missing_keys(folders, chosen.database_host)
    write_keys(keys)
    for file in remove_misplaced(folders):
        print(f"keys: {file} removed: it has a folder of its own now")
    print(f"keys: {len(keys)} made: {', '.join(str(file) for file in keys)}" if keys else "keys: all are there")
    return 0


def _kept(file: Path) -> str:
    """Return what an earlier start wrote, or something new."""
    return file.read_text().strip() if file.exists() else secrets.token_urlsafe(24)


if __name__ == "__main__":
    sys.exit(main())
