"""``lakebound bind-secrets``: the lines of installation.yaml that let today's pipelines send their secrets where they do."""

from __future__ import annotations

from typing import Annotated

import typer

from lakebound.cli.output import say, show

Write = Annotated[
    bool, typer.Option("--write", help="Also write them into installation.yaml, if that file has no 'secrets' yet.")
]


def bind_secrets(write: Write = False) -> None:
    """Print which secret each pipeline sends to which servers, as lines for installation.yaml.

    Read them before you use them: who may merge a pipeline chose these servers. A secret in a folder named like its pipeline
    needs no line.
    """
    from lakebound.settings import load_settings, load_yaml_access
    from lakebound.spec.installation_file import read_installation
    from lakebound.spec.load import load_pipelines, load_unbound
    from lakebound.spec.wanted_bindings import wanted_bindings, wanted_lines

    settings = load_settings()
    installation = read_installation(settings.pipelines)
    for problem in installation.problems:
        show(problem)
    if installation.problems:
        raise typer.Exit(1)
    specs = load_unbound(settings)
    wanted = wanted_bindings(specs, installation.spec, load_yaml_access().secrets_folder)
    lines = wanted_lines(wanted)
    for line in lines:
        typer.echo(line)
    if not lines:
        say("bind-secrets: nothing is missing")
    elif not write:
        say(f"bind-secrets: read these lines, then add them to {installation.path}, or run it again with --write")
    elif installation.spec.secrets is not None or installation.spec.token_servers:
        say(f"bind-secrets: not written, because {installation.path} already binds secrets; add the lines yourself")
        raise typer.Exit(1)
    else:
        before = installation.path.read_text(encoding="utf-8").rstrip() if installation.path.exists() else ""
        installation.path.write_text("\n".join(filter(None, (before, *lines))) + "\n", encoding="utf-8")
        say(f"bind-secrets: written to {installation.path}")
    known = {spec.pipeline for spec in specs}
    unread = [line for path, found in load_pipelines(settings).mistakes.items() if path.stem not in known for line in found]
    for line in unread:
        show(f"warning: not looked at, because it is wrong: {line}")
