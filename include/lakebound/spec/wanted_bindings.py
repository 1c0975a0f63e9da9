"""What ``installation.yaml`` must say, so that pipelines may send their secrets to the servers that they name. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from lakebound.spec.installation_file import InstallationSpec
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.secret_bindings import SecretBindings, SecretUse, binding_refusal, file_name
from lakebound.spec.secret_uses import secret_uses


@dataclass(frozen=True)
class WantedBindings:
    """What is missing.

    Attributes:
        files: Servers by the path of a file in the folder of secrets, with the pipelines that name it.
        variables: The same by the name of a variable.
        impossible: Secrets that no pipeline may use.
    """

    files: dict[str, dict[str, set[str]]] = field(default_factory=dict)
    variables: dict[str, dict[str, set[str]]] = field(default_factory=dict)
    impossible: list[str] = field(default_factory=list)


def wanted_bindings(specs: Iterable[PipelineSpec], installation: InstallationSpec, folder: Path) -> WantedBindings:
    """Return which bindings are missing.

    Args:
        specs: The pipelines.
        installation: What is said already.
        folder: Where the files of secrets are.
    """
    found = WantedBindings(defaultdict(lambda: defaultdict(set)), defaultdict(lambda: defaultdict(set)))
    for spec in specs:
        for use in secret_uses(spec).values():
            # As if some secret were bound: then those sent to this machine are to be bound, too.
            bindings = installation.secrets or SecretBindings()
            if binding_refusal(use, spec.pipeline, bindings, folder) is None:
                continue
            name = use.ref.env or file_name(use.ref, folder)
            if name is None or binding_refusal(use, spec.pipeline, _bound(use, name), folder) is not None:
                found.impossible.append(f"{spec.pipeline}: {use.ref}")
                continue
            for server in use.servers:
                (found.variables if use.ref.env else found.files)[name][server.lower()].add(spec.pipeline)
    return found


def _bound(use: SecretUse, name: str) -> SecretBindings:
    bound = {name: tuple(server.lower() for server in use.servers)}
    return SecretBindings.model_construct(files={} if use.ref.env else bound, variables=bound if use.ref.env else {})


def wanted_lines(wanted: WantedBindings) -> list[str]:
    """Return the lines of YAML; each server has the pipelines that send a secret there beside it."""
    lines = []
    for title, bound in (("files", wanted.files), ("variables", wanted.variables)):
        if bound:
            lines.append(f"  {title}:")
        for name in sorted(bound):
            lines.append(f"    {_scalar(name)}:")
            lines += [
                f"      - {_scalar(server)}   # {', '.join(sorted(bound[name][server]))}" for server in sorted(bound[name])
            ]
    impossible = [f"# no pipeline may use it: {one}" for one in wanted.impossible]
    return [*impossible, *(["secrets:", *lines] if lines else [])]


def _scalar(text: str) -> str:
    return str(yaml.safe_dump(text, default_flow_style=True, width=10_000)).removesuffix("\n...\n").strip()
