"""Small checkpoints of other people's streams, with the table that they write, for tests of the doctor."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace

from lakebound.inspection.doctor.diagnosis import Diagnosis
from lakebound.inspection.doctor.foreign.checkpoint_facts import parse_checkpoint
from lakebound.inspection.doctor.foreign.diagnosis import RULES, ForeignRule, diagnose
from lakebound.inspection.doctor.foreign.facts import ForeignFacts, TopicSeen
from lakebound.inspection.doctor.foreign.mending import Mending, mend
from lakebound.inspection.doctor.foreign.table_facts import ForeignHistory, Removal, StreamCommit
from lakebound.landing.checkpoint.checksums import checksum_file

QUERY = "6aa44d78-4f3c-4f0e-9b51-1d2a3b4c5d6e"
OTHER = "11111111-2222-4333-8444-555555555555"
TOPIC = "orders"
BATCH = 10
"""Records of one batch, in each of two partitions."""
STARTED_MS = 1_795_217_663_821
MINUTE_MS = 60_000


def metadata(query: str = QUERY) -> bytes:
    """Return ``metadata``."""
    return json.dumps({"id": query}, separators=(",", ":")).encode()


def offsets(batch: int, *, ends: dict[int, int] | None = None, planned_at_ms: int | None = None, topic: str = TOPIC) -> bytes:
    """Return ``offsets/N``: the end of a batch; batch -1 is the beginning."""
    ends = dict.fromkeys((0, 1), (batch + 1) * BATCH) if ends is None else ends
    planned = STARTED_MS + batch * MINUTE_MS if planned_at_ms is None else planned_at_ms
    head = json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": planned, "conf": {"spark.sql.shuffle.partitions": "200"}})
    return f"v1\n{head}\n{marks(ends, topic)}".encode()


def marks(ends: dict[int, int], topic: str = TOPIC) -> str:
    """Return the offsets of a source."""
    return json.dumps({topic: {str(partition): end for partition, end in ends.items()}}, separators=(",", ":"))


def commit() -> bytes:
    """Return ``commits/N``."""
    return b'v1\n{"nextBatchWatermarkMs":0}'


def files(planned: int, finished: int) -> dict[str, bytes]:
    """Return a checkpoint with batches 0 to ``planned``, finished up to ``finished``, with its checksum files."""
    found = {"metadata": metadata(), "sources/0/0": b"\0v1\n" + marks({0: 0, 1: 0}).encode()}
    found |= {f"offsets/{batch}": offsets(batch) for batch in range(planned + 1)}
    found |= {f"commits/{batch}": commit() for batch in range(finished + 1)}
    return with_checksums(found)


def with_checksums(found: dict[str, bytes]) -> dict[str, bytes]:
    """Return the files with fresh checksum files."""
    crc = {}
    for path, content in found.items():
        folder, slash, name = path.rpartition("/")
        crc[f"{folder}{slash}.{name}.crc"] = checksum_file(content)
    return {**found, **crc}


def table(epoch: int, query: str = QUERY, *, rows: int = 2 * BATCH, name: str = "delta:/lake/orders") -> ForeignHistory:
    """Return a table that a query has committed up to an epoch, each with so many rows."""
    commits = tuple(
        StreamCommit(query, number, number, str(number), STARTED_MS + number * MINUTE_MS + 2_000, rows)
        for number in range(epoch, -1, -1)
    )
    return ForeignHistory(name, True, None, {query: epoch} if epoch >= 0 else {}, commits)


def restored(found: ForeignHistory, kept: int) -> ForeignHistory:
    """Return the table after a RESTORE to the version ``kept``."""
    version = found.commits[0].order + 1
    return replace(found, removals=(Removal("RESTORE", version, str(version), STARTED_MS, kept_order=kept),))


@dataclass(frozen=True)
class Foreign:
    """A checkpoint and its surroundings; healthy unless told otherwise: O = C = V = 5."""

    files: dict[str, bytes] = field(default_factory=lambda: files(5, 5))
    tables: tuple[ForeignHistory, ...] = field(default_factory=lambda: (table(5),))
    kafka: dict[str, TopicSeen | None] | None = None
    is_moving: bool = False

    @property
    def facts(self) -> ForeignFacts:
        """What the doctor gets."""
        return ForeignFacts(parse_checkpoint(self.files), self.tables, self.kafka, self.is_moving)

    def without(self, *prefixes: str) -> Foreign:
        """Return it without the files (and their checksums) whose paths begin so."""
        hidden = [f"{folder}{slash}.{name}" for folder, slash, name in (prefix.rpartition("/") for prefix in prefixes)]
        return replace(
            self, files={path: text for path, text in self.files.items() if not path.startswith((*prefixes, *hidden))}
        )

    def having(self, **changed: bytes) -> Foreign:
        """Return it with other contents; ``__`` in a name stands for ``/``. Checksum files stay as they are."""
        return replace(self, files={**self.files, **{path.replace("__", "/"): text for path, text in changed.items()}})

    def rewritten(self, **changed: bytes) -> Foreign:
        """Return it with other contents, and checksum files that fit them."""
        new = {path.replace("__", "/"): text for path, text in changed.items()}
        return replace(self, files={**self.files, **with_checksums(new)})

    def with_tables(self, *tables: ForeignHistory) -> Foreign:
        """Return it with other tables."""
        return replace(self, tables=tables)

    def without_checksums(self) -> Foreign:
        """Return it as an object store keeps it."""
        return replace(self, files={path: text for path, text in self.files.items() if not path.endswith(".crc")})

    def diagnose(self, rules: tuple[ForeignRule, ...] = RULES) -> Diagnosis:
        """Return the doctor's answer."""
        return diagnose("checkpoint", self.facts, rules)

    def mend(self) -> Mending | None:
        """Return what would mend it."""
        return mend(self.facts, self.diagnose())


def seen(earliest: int = 0, latest: int = 100, younger: int | None = None, partitions: int = 2) -> dict[str, TopicSeen | None]:
    """Return what Kafka says of the topic."""
    both = range(partitions)
    younger_from = dict.fromkeys(both, younger) if younger is not None else {}
    return {TOPIC: TopicSeen("topic-id", dict.fromkeys(both, earliest), dict.fromkeys(both, latest), younger_from)}
