"""The keys and passwords of docker-compose.yaml: made at the first start, on volumes, and never replaced.

``python -m lakebound.local.container.keys`` makes those that are missing. They lie in three folders, because not every
service may read all of them: what is in the folder of pipelines (``LAKEBOUND_SECRETS_FOLDER``) may be named in YAML, so
Airflow's own keys are not in it.
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

DATABASE_USER = "airflow"


@dataclass(frozen=True)
class KeyFolders:
    """Where the keys lie.

    Attributes:
        airflow: Read by Airflow's components and by the command line.
        database: Read by the database and by Airflow's components.
        pipelines: Read by the broker, the object store, its catalog, and whatever lands records.
    """

    airflow: Path
    database: Path
    pipelines: Path


def missing_keys(folders: KeyFolders, database_host: str) -> dict[Path, str]:
    """Return the text of each file that is not there yet. Files that must agree are made together, or completed.

    Args:
        folders: Where the keys lie.
        database_host: Name by which Airflow reaches its database.
    """
    keys, admin = new_secrets(), _kept(folders.airflow / "admin_password")
    database = _kept(folders.database / "password")
    wanted = {
        folders.airflow / "fernet_key": keys.fernet_key,
        folders.airflow / "jwt_secret": keys.jwt_secret,
        folders.airflow / "api_secret": keys.api_secret,
        folders.airflow / "admin_password": admin,
        folders.airflow / "passwords.json": json.dumps({ADMIN: admin}),
        folders.airflow / "login": f"{ADMIN}:{admin}",
        folders.airflow / "sql_alchemy_conn": (
            f"postgresql+psycopg2://{DATABASE_USER}:{database}@{database_host}:5432/{DATABASE_USER}"
        ),
        folders.database / "password": database,
        folders.pipelines / "kafka": secrets.token_urlsafe(24),
        folders.pipelines / "object-store-key-id": secrets.token_hex(10),
        folders.pipelines / "object-store-key": secrets.token_urlsafe(30),
    }
    return {file: text for file, text in wanted.items() if not file.exists()}


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
    parser.add_argument("--database", type=Path, default=Path("/run/lakebound/database"), help="folder of its password")
    parser.add_argument("--pipelines", type=Path, default=Path("/run/secrets"), help="folder of what YAML may name")
    parser.add_argument("--database-host", default="postgres", help="name by which Airflow reaches its database")
    chosen = parser.parse_args(arguments)
    keys = missing_keys(KeyFolders(chosen.airflow, chosen.database, chosen.pipelines), chosen.database_host)
    write_keys(keys)
    print(f"keys: {len(keys)} made: {', '.join(str(file) for file in keys)}" if keys else "keys: all are there")
    return 0


def _kept(file: Path) -> str:
    """Return what an earlier start wrote, or something new."""
    return file.read_text().strip() if file.exists() else secrets.token_urlsafe(24)


if __name__ == "__main__":
    sys.exit(main())
