"""Reads ``installation.yaml``: what whoever runs Lakebound lets the authors of pipelines use.

The file lies beside ``warehouses.yaml``. Who may merge a pipeline must not be able to merge this file (docs/security.md).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import Field, field_validator

from lakebound.frozen import Frozen
from lakebound.spec.secret_bindings import SecretBindings, Server
from lakebound.spec.spark import InstallationSpark
from lakebound.spec.yaml_model import read_model

FILE = "installation.yaml"
_PROFILE = re.compile(r"[a-z][a-z0-9_-]{0,62}")


class InstallationSpec(Frozen):
    """The file."""

    spark_profiles: Mapping[str, InstallationSpark] = Field(
        default_factory=dict, description="Settings of Spark by the name of a profile, which pipelines may name."
    )

    secrets: SecretBindings | None = Field(
        default=None,
        description="Servers to which secrets may be sent. Without it, pipelines may send a secret only to this machine, or "
        "one of their own.",
    )
    token_servers: tuple[Server, ...] = Field(
        default=(), description="Servers that pipelines may ask for tokens, as host:port, besides those of bound secrets."
    )

    @field_validator("spark_profiles")
    @classmethod
    def _names(cls, profiles: Mapping[str, InstallationSpark]) -> Mapping[str, InstallationSpark]:
        for name in profiles:
            if not _PROFILE.fullmatch(name):
                raise ValueError(f"{name!r} must be lower-case letters, digits, _ and -, beginning with a letter")
        return profiles


@dataclass(frozen=True)
class Installation:
    """What the file says.

    Attributes:
        path: Where it is, or would be.
        spec: What it says; of a wrong file, nothing.
        problems: What is wrong with it: ``FILE:LINE: FIELD: what is wrong``.
        binds: Whether secrets may only be sent where it says; False to find out what it should say.
    """

    path: Path
    spec: InstallationSpec = field(default_factory=InstallationSpec)
    problems: tuple[str, ...] = ()
    binds: bool = True


def read_installation(pipelines: Path) -> Installation:
    """Return what is said for all of the installation.

    Args:
        pipelines: The folder of the pipelines' YAML files; the file is beside it.
    """
    path = pipelines.parent / FILE
    if not path.exists() and not path.is_symlink():
        return Installation(path)
    found, problems = read_model(path, InstallationSpec, "spark_profiles, secrets, token_servers")
    return Installation(path, found or InstallationSpec(), tuple(problems))
