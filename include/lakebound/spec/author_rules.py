"""What the author of a pipeline may not ask for, though the file is right: whoever runs Lakebound decides that. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lakebound.settings import YamlAccess
from lakebound.spec.installation_file import Installation
from lakebound.spec.named_files import forbidden_certificate_file
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.secret_bindings import any_matches, binding_refusal, is_of_this_machine
from lakebound.spec.secret_uses import secret_uses, token_servers
from lakebound.spec.secrets import forbidden_secret
from lakebound.spec.spark_allowed import refused_to_authors
from lakebound.spec.spark_rules import refused_name
from lakebound.spec.value_bounds import value_refusals
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
