"""What several pipelines write to, as their authors are told of it: both files, and each one's name of the server."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lakebound.spec.claims import STORE, TABLE, TOPIC, claims_of, one_name_per_server, servers_of, table_claim, tables_of
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.problem_lines import problem_line
from lakebound.spec.table import TableSpec
from lakebound.spec.yaml_source import Keys, Mistake, YamlSource, read_yaml

Identities = Mapping[str, Sequence[str]]
"""By what else a server is known: an id that it tells, or the address to which its name leads."""


@dataclass(frozen=True)
class Claim:
    """A file that names something, and how it writes it."""

    path: Path
    written: str

    @property
    def server(self) -> str:
        """The server as the file names it; empty where it names none."""
        return self.written.partition(" at ")[2]


Claims = Mapping[str, Sequence[Claim]]
"""What one file has in common with others, or has twice: all files that name it."""


def alias_problems(specs: Mapping[Path, PipelineSpec], identities: Identities) -> list[str]:
    """Return what pipelines claim together once it is known which names stand for one server.

    Args:
        specs: The pipelines, by file.
        identities: By what else their servers are known.
    """
    return [line for path, claims in claimed_twice(specs, identities).items() for line in disputed_lines(path, claims)]


def claimed_twice(specs: Mapping[Path, PipelineSpec], identities: Identities | None = None) -> dict[Path, Claims]:
    """Return what each file names that another one names, too, or that it names twice.

    Args:
        specs: The pipelines, by file.
        identities: By what else their servers are known; None: by their names alone.
    """
    named: defaultdict[str, list[Claim]] = defaultdict(list)
    servers = one_name_per_server((cluster for spec in specs.values() for cluster in servers_of(spec)), identities)
    for path, spec in specs.items():
        as_written = {server: server for cluster in servers_of(spec) for server in cluster}
        for claim, written in zip(claims_of(spec, servers), claims_of(spec, as_written), strict=True):
            named[claim].append(Claim(path, written))
    found: defaultdict[Path, dict[str, Sequence[Claim]]] = defaultdict(dict)
    for claim, all_of_it in named.items():
        for one in all_of_it if len(all_of_it) > 1 else ():
            found[one.path][claim] = all_of_it
    return dict(sorted(found.items()))


def disputed_lines(path: Path, claims: Claims) -> Iterator[str]:
    """Yield what the author of a file is told, a line each.

    Args:
        path: The file.
        claims: What it has in common with others.
    """
    source = read_yaml(path)
    for claim, named in claims.items():
        own = next(one for one in named if one.path == path)
        others = ", ".join(sorted({_other(one, own) for one in named if one.path != path})) or "the same file"
        what = f"{own.written} is also named in {others}"
        if any(one.server != own.server for one in named):
            what += "; these names lead to one server"
        if claim.startswith(TABLE):
            what += (
                "; only one pipeline may write to a table: name another table in the file of the pipeline that did not create "
                "it"
            )
        yield problem_line(path, Mistake(_line(source, own.written), what))


def disputed_tables(spec: PipelineSpec, claims: Claims) -> tuple[TableSpec, ...]:
    """Return the tables that are in dispute; none where something else is wrong, too.

    Args:
        spec: The pipeline.
        claims: What its file has in common with others.
    """
    if any(not claim.startswith(TABLE) or len({one.path for one in named}) < len(named) for claim, named in claims.items()):
        return ()
    return tuple(table for table in tables_of(spec) if table_claim(spec, table) in claims)


def _other(one: Claim, own: Claim) -> str:
    return one.path.name if one.server == own.server else f"{one.path.name} (at {one.server})"


def _line(source: YamlSource, claim: str) -> int:
    kind, _, name = claim.partition(" in warehouse ")[0].partition(" ")
    if kind == "pipeline":
        return source.line_of(("pipeline",))
    if claim.startswith(TOPIC):
        bad: Keys = ("real_time", "quarantine_topic")
        real_time = source.root.get("real_time")
        is_bad = isinstance(real_time, dict) and claim.startswith(f"{TOPIC}{real_time.get(bad[1])} at ")
        return source.line_of(bad if is_bad else ("to_topics",) if source.root.get("to_topics") else ("freshness",))
    if claim.startswith(STORE):
        return source.line_of(("to_stores",))
    places: list[Keys] = [("tables", position) for position in range(len(source.root.get("tables") or ()))]
    for keys in [*places, ("quarantine",)]:
        found = source.root.get("quarantine") if keys == ("quarantine",) else source.root["tables"][keys[1]]
        if found and name in (f"{found['format']}:{found['name']}", f"{found['format']}:default.{found['name']}"):
            return source.line_of(keys)
    return 1
