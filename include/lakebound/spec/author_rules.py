"""What the author of a pipeline may not ask for, though the file is right: whoever runs Lakebound decides that. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lakebound.settings import YamlAccess
from lakebound.spec.installation_file import Installation
from lakebound.spec.named_files import forbidden_certificate_file
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.secrets import forbidden_secret
from lakebound.spec.spark_allowed import refused_to_authors
from lakebound.spec.spark_rules import refused_name
from lakebound.spec.yaml_source import Keys


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


def refusals(spec: PipelineSpec, access: YamlAccess) -> Iterator[tuple[Keys, str]]:
    """Yield what a pipeline may not use of this machine, by its keys.

    Args:
        spec: The pipeline.
        access: What YAML may use of this machine.
    """
    for keys, ref in spec.secrets.items():
        if forbidden := forbidden_secret(ref, access):
            yield keys, forbidden
    for keys, file in spec.certificate_files.items():
        if forbidden := forbidden_certificate_file(file, access):
            yield keys, forbidden
