"""The files that would repair a foreign checkpoint, for a new folder. Pure: only a person writes them.

All faults of files have the same repair: a checkpoint that ends exactly where the table ends. Batch ids continue to rise, so
the table never skips a batch. It needs the query's id and the offsets at the end of the newest epoch in the table.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

from lakebound.inspection.doctor.diagnosis import Diagnosis
from lakebound.inspection.doctor.foreign.facts import ForeignFacts
from lakebound.inspection.doctor.foreign.standing import Standing
from lakebound.landing.checkpoint.checksums import checksum_file
from lakebound.landing.checkpoint.log_files import OffsetsFile

MENDABLE = frozenset(
    {
        "metadata-missing",
        "query-unknown-to-table",
        "stray-batch-file",
        "offsets-missing",
        "newest-offsets-damaged",
        "previous-offsets-missing",
        "newest-commit-damaged",
        "commits-missing",
        "initial-offsets-missing",
        "table-ahead",
        "table-behind",
    }
)
"""Rules whose fault is repaired by a checkpoint that ends at the table's epoch."""

_COMMIT = b'v1\n{"nextBatchWatermarkMs":0}'


@dataclass(frozen=True)
class Mending:
    """What would repair a checkpoint.

    Attributes:
        sentence: What the files do, or why there are none.
        files: Content by path below the new folder, ``.crc`` files among them; empty when nothing exact is known.
    """

    sentence: str
    files: Mapping[str, bytes] = field(default_factory=dict)

    def script(self) -> str:
        """Return a command for a POSIX shell that writes the files into the new folder named by the variable NEW.

        Where that cannot be made, nothing is written: whoever runs it may stand in the damaged checkpoint.
        """
        folders = sorted({path.rpartition("/")[0] for path in self.files if "/" in path})
        lines = [f'mkdir "$NEW" && cd "$NEW" && mkdir -p {" ".join(map(shlex.quote, folders))}']
        lines += [f"printf {_printable(content)} > {shlex.quote(path)}" for path, content in sorted(self.files.items())]
        return " &&\n".join(lines)


def mend(facts: ForeignFacts, diagnosis: Diagnosis) -> Mending | None:
    """Return what would repair the checkpoint; None when a restart needs no repair."""
    serious = [finding.rule for finding in diagnosis.findings if finding.verdict in ("needs_approval", "needs_person")]
    if not serious:
        return None
    standing = Standing(facts)
    reason = _obstacle(standing, serious)
    if reason is not None:
        return Mending(f"no exact files can be given: {reason}")
    if standing.lowest == standing.highest:
        return _ending_at(standing, standing.lowest)
    return _in_flight(standing)


def _obstacle(s: Standing, serious: list[str]) -> str | None:
    others = sorted(set(serious) - MENDABLE)
    if others:
        return f"a new checkpoint alone does not repair the findings {', '.join(others)}"
    if s.checkpoint.is_stateful:
        return "the query keeps state, which a new checkpoint would not have"
    if s.query_id is None or s.lowest < 0:
        return "the id of the query that wrote the table is not known"
    needed = {s.lowest} if s.lowest == s.highest else {s.planned - 1, s.planned}
    if needed != {s.lowest} and {s.lowest, s.highest} != needed:
        return "the tables are more than one batch apart"
    missing = [batch for batch in sorted(needed) if s.checkpoint.sound_offsets(batch) is None]
    if missing:
        return (
            f"the sink records only epochs, and offsets/{missing[0]}, which says where epoch {missing[0]} ends, is missing; "
            "if the table's rows contain their offsets, calculate the end from them (highest offset + 1 per partition)"
        )
    unvouched = [batch for batch in sorted(needed) if not s.ranges.vouched(batch)]
    return f"nothing confirms the numbers in offsets/{unvouched[0]}" if unvouched else None


def _ending_at(s: Standing, epoch: int) -> Mending:
    planned = s.checkpoint.offsets[epoch]
    files = _common(s) | {f"offsets/{epoch}": planned.content, f"commits/{epoch}": _commit(s, epoch)}
    if epoch > 0:
        files[f"offsets/{epoch - 1}"] = _before(s, planned)
    return Mending(
        f"a new checkpoint that ends where the table ends, at epoch {epoch}: the query continues from there with batch "
        f"{epoch + 1}; no record is landed twice or skipped",
        _with_checksums(files),
    )


def _in_flight(s: Standing) -> Mending:
    """One table has the newest batch and another does not: it runs again with the same range."""
    newest = s.planned
    files = _common(s) | {f"offsets/{batch}": s.checkpoint.offsets[batch].content for batch in (newest - 1, newest)}
    files[f"commits/{newest - 1}"] = _commit(s, newest - 1)
    return Mending(
        f"a new checkpoint with batch {newest} in flight: the batch runs again with the same range, and each table lands what "
        "it does not have",
        _with_checksums(files),
    )


def _common(s: Standing) -> dict[str, bytes]:
    initial = {f"sources/{source}/0": file.content for source, file in s.checkpoint.initial.items() if file.flaw is None}
    return {"metadata": json.dumps({"id": s.query_id}, separators=(",", ":")).encode(), **initial}


def _commit(s: Standing, batch: int) -> bytes:
    found = s.checkpoint.commits.get(batch)
    return found.content if found is not None and found.flaw is None else _COMMIT


def _before(s: Standing, planned: OffsetsFile) -> bytes:
    """Return the offsets file of the batch before, which Spark needs but does not use: the real one, or a substitute."""
    found = s.checkpoint.sound_offsets(planned.batch - 1)
    if found is not None and s.ranges.records(planned.batch) != 0:
        return found.content
    version, _, rest = planned.content.partition(b"\n")
    metadata, _, sources = rest.partition(b"\n")
    body = json.loads(metadata) if metadata.strip() else {}
    body["batchTimestampMs"] = (planned.planned_at_ms or 1) - 1
    return b"\n".join((version, json.dumps(body, separators=(",", ":")).encode(), sources))


def _with_checksums(files: Mapping[str, bytes]) -> dict[str, bytes]:
    crc = {}
    for path, content in files.items():
        folder, slash, name = path.rpartition("/")
        crc[f"{folder}{slash}.{name}.crc"] = checksum_file(content)
    return {**files, **crc}


def _printable(content: bytes) -> str:
    """Return the argument of printf that makes these bytes."""
    special = {0x25: "%%", 0x5C: "\\\\", 0x27: "'\\''"}
    return "'" + "".join(special.get(byte) or (chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}") for byte in content) + "'"
