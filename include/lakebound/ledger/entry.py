"""The ledger: what each commit to a table says about the offsets that it lands. Pure.

An entry is cumulative: its coverage holds everything landed so far, so one reachable entry is enough to continue.
It stands in ``commitInfo.userMetadata`` of a Delta commit and in the snapshot property ``lakebound`` of Iceberg.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from lakebound import __version__
from lakebound.errors import BadEntryError, ForeignTableError, NewerEntryError, TopicRecreatedError
from lakebound.frozen import Frozen, FrozenRecord
from lakebound.ledger.erased import ErasedFile
from lakebound.ledger.field_rules import CarriedOn, Required, carried_on, required_by, requirements_of
from lakebound.ledger.foreign_changes import ForeignChange
from lakebound.ledger.hours import RowHours
from lakebound.ledger.intervals import Intervals, merge, merge_partitions, overlap_partitions, subtract_partitions, total
from lakebound.ledger.marks import NextOffsets
from lakebound.ledger.packing import pack, unpack
from lakebound.ledger.redo_progress import NO_REDO, RedoProgress
from lakebound.ledger.sources import SourceVersion
from lakebound.ledger.windows import WindowState

FORMAT_VERSION = 1
INCOMPLETE = "incomplete"
"""Required by entries of a store that is being filled from a table: nobody else writes to it. No field says it."""
ENTRY_KEY = "lakebound"
"""Key of the JSON inside Delta's userMetadata, and name of the Iceberg snapshot property."""

EntryKind = Literal["genesis", "open", "land", "replay", "release", "recall", "erase", "redo", "skip", "reset", "carry"]
DECIDE_ANEW: tuple[EntryKind, ...] = ("release", "recall")
"""Kinds whose commits add to no coverage, and name offsets of it in ``releases``."""

Offset = Annotated[int, Field(ge=0)]


class TopicOffsets(Frozen):
    """Offsets of one incarnation of a topic.

    Attributes:
        topic_id: Kafka's id of the topic (KIP-516); differs after delete and create.
        partitions: Per partition, merged half-open intervals.
    """

    topic_id: str
    partitions: dict[int, tuple[tuple[Offset, Offset], ...]]

    @model_validator(mode="after")
    def _merged(self) -> TopicOffsets:
        for partition, intervals in self.partitions.items():
            if merge(intervals) != intervals:
                raise ValueError(f"partition {partition}: intervals are not sorted and merged")
        return self


Offsets = dict[str, TopicOffsets]
"""Topic name to offsets: the shape of coverage and of range."""

FormerCoverage = Mapping[str, tuple[TopicOffsets, ...]]
"""Per topic the coverage of its earlier incarnations."""


class Entry(FrozenRecord):
    """One commit's record.

    What later commits and older versions do with a field is said beside it (``lakebound.ledger.field_rules``). ``CarriedOn``:
    every later entry repeats it. ``Required``: an entry that has it names it in ``requires``, and a version that does not know
    it refuses the entry instead of misreading it. Any other field says something of its own commit only: a version that does
    not know it leaves it out.

    ``coverage`` is everything landed so far, this commit included; ``range`` is what this commit adds.
    Counts are records (not rows) of ``range``: ``read = filtered + landed + quarantined``.
    ``rows`` are rows of the table; an explode makes more rows than records.
    ``carries``: a ``carry`` is committed onto the version at which the named entry counted, so it is as new as its own commit.
    Without the name it was read before the maintenance began, and rows may have landed meanwhile.
    ``quarantine`` is the id of the table that holds the pipeline's bad records, as its application said when it started.
    ``former`` is the coverage of earlier incarnations of recreated topics, whose rows are in the table, too.
    ``releases`` are covered offsets whose outcome this commit changes. A ``release`` lands records that were quarantined
    before, or finds them to give no row. A ``recall``, of the quarantine, puts records there that were good when they were read
    before. The counts of both are of these offsets, and their ``range`` is empty. ``released`` counts all that were ever
    decided again.
    ``redoes`` are covered offsets whose rows leave with this commit, in which their new ones come. The counts of a ``redo`` are
    of these offsets, and its ``range`` is empty. Those of its records that were in quarantine and landed are ``released``.
    ``newest_redo`` and ``redo_before`` link the redos that the rows stand on: a rewind says with which of them it goes on.
    ``erased`` names the rows that were ever erased by decision, and every later entry carries it on. The coverage still holds
    their offsets. An ``erase`` takes rows out, so its ``range`` and counts are empty.
    """

    version: Literal[1] = 1
    writer: str | None = Field(default=__version__, description="Version of Lakebound that wrote it, if noted.")
    requires: tuple[str, ...] = Field(default=(), description="What a reader must know so that it does not misread the entry.")
    kind: EntryKind
    pipeline: str
    epoch: int = Field(ge=0)
    commit: str
    batch: int | None = None
    coverage: Offsets = Field(default_factory=dict)
    range: Offsets = Field(default_factory=dict)
    former: Annotated[dict[str, tuple[TopicOffsets, ...]], CarriedOn(by_resets=False)] = Field(default_factory=dict)
    releases: Offsets = Field(default_factory=dict)
    released: Annotated[int, CarriedOn(by_resets=False)] = Field(default=0, ge=0)
    read: int = Field(default=0, ge=0)
    filtered: int = Field(default=0, ge=0)
    landed: int = Field(default=0, ge=0)
    quarantined: int = Field(default=0, ge=0)
    rows: int = Field(default=0, ge=0)
    lane: Literal["driver", "cluster"] | None = None
    timestamps_ms: tuple[int, int] | None = Field(
        default=None, description="Kafka's earliest and latest of this commit's rows."
    )
    references: dict[str, str] = Field(
        default_factory=dict, description="Versions of the reference data that the transform read for this commit, by name."
    )
    hours: RowHours | None = Field(
        default=None, description="Hours of this commit's rows; None where the pipeline announces no complete hours."
    )
    quarantine: Annotated[str | None, CarriedOn()] = None
    foreign_changes: Annotated[tuple[ForeignChange, ...], CarriedOn()] = Field(
        default=(),
        description="Commits by which others changed rows, until a person acknowledges or a rewind undoes them.",
    )
    changes_seen: Annotated[int | None, CarriedOn()] = Field(
        default=None,
        description="How many commits by others ever changed rows of the state that the table holds, acknowledged or not.",
    )
    sources: Annotated[tuple[SourceVersion, ...], CarriedOn()] = Field(
        default=(),
        description="Versions of the code that made the rows, oldest first, as far as they are remembered.",
    )
    acknowledges: tuple[str, ...] = Field(
        default=(),
        description="Versions of foreign changes that this commit takes from the list: a person has said so.",
    )
    schemas: Annotated[dict[str, dict[str, str]], CarriedOn()] = Field(
        default_factory=dict,
        description="Schemas with which the records up to this commit could be read, the newest ones: by the registry's name, "
        "by what records say of them, the first digits of their fingerprints.",
    )
    carries: str | None = Field(default=None, description="Of a carry: id of the commit whose entry it repeats.")
    erased: Annotated[ErasedFile | None, CarriedOn(), Required("erased")] = None
    erases: int = Field(default=0, ge=0, description="Of an erase or a redo: how many rows this commit takes out of the table.")
    redoes: Annotated[Offsets, Required("redo")] = Field(
        default_factory=dict,
        description="Of a redo: covered offsets all of whose rows leave with this commit, in which their new rows come.",
    )
    redo_stays: Offsets = Field(
        default_factory=dict,
        description="Of a redo: offsets whose rows stay, because Kafka gave no record of them; few.",
    )
    from_quarantine: int = Field(
        default=0, ge=0, description="Of a redo: how many of the records that it landed are in quarantine from before."
    )
    redo_before: str | None = Field(
        default=None, description="Of a redo: id of the commit of the redo before it, if any stood."
    )
    redo_first: str | None = Field(
        default=None, description="Of a redo: id of the commit with which its plan began in this table."
    )
    redo_source: str = Field(default="", description="Of a redo: hash of the code that made its rows, if known.")
    redo_progress: Annotated[RedoProgress | None, CarriedOn()] = Field(
        default=None, description="The plan of the newest redo that stands, and how much of it is left in this table."
    )
    newest_redo: Annotated[str | None, CarriedOn(), Required("redo")] = Field(
        default=None, description="Id of the commit of the newest redo that stands; empty where a rewind left none."
    )
    decision: str | None = Field(default=None, description="Of an erase or a redo: the hash of its plan.")
    delivery: Literal["at_least_once"] | None = Field(
        default=None,
        description="Of a topic in real time: rows are sent before the entry that counts them, so a row of the time after the "
        "newest entry may be in the topic more than once. None: exactly once.",
    )
    windows: Annotated[WindowState | None, CarriedOn(by_resets=False), Required("windows")] = Field(
        default=None,
        description="Of a pipeline with state: the newest batch that was landed, and from where its open windows are rebuilt.",
    )
    rewind: str | None = Field(default=None, description="Of a reset that a rewind made: the hash of its plan.")
    undoes: str | None = Field(
        default=None, description="Of a reset that undid a rewind, or of a redo that undid another: the hash of its plan."
    )

    @property
    def is_incomplete(self) -> bool:
        """Whether it is of a store that is being filled from a table, and does not hold all rows yet."""
        return INCOMPLETE in self.requires


KNOWN_REQUIREMENTS: frozenset[str] = frozenset({INCOMPLETE}) | requirements_of(Entry)
"""What an entry may require of its readers so far."""


def new_commit_id() -> str:
    """Return the UUID by which a commit is found again after an unknown outcome."""
    return str(uuid.uuid4())


def encode(entry: Entry) -> str:
    """Return the entry as compact JSON with the one key ``lakebound``; many released intervals are packed."""
    body = entry.model_dump(mode="json", exclude_defaults=True)
    body["version"] = FORMAT_VERSION
    body["writer"] = entry.writer
    if required := {*body.pop("requires", ())} | required_by(entry):
        body["requires"] = sorted(required)  # at the end: the kind comes first
    if entry.releases:
        body["releases"] = _packed(body["releases"])
    return json.dumps({ENTRY_KEY: body}, separators=(",", ":"))


def decode(text: str | None, where: str) -> Entry | None:
    """Return the entry in a commit's metadata, or None where the metadata is somebody else's.

    Args:
        text: What stands in the commit.
        where: The commit, for the error message.

    Raises:
        BadEntryError: It says it is an entry, and cannot be read.
        NewerEntryError: It needs a later version.
    """
    if not text:
        return None
    try:
        body = json.loads(text)
    except ValueError:
        return None
    if not isinstance(body, dict) or ENTRY_KEY not in body:
        return None
    entry = body[ENTRY_KEY]
    if isinstance(entry, dict):
        _check_known(entry, where)
        entry = {"writer": None, **entry}
    try:
        return Entry.model_validate(_unpacked(entry))
    except ValidationError as exc:
        raise BadEntryError(where, str(exc.errors()[0]["msg"])) from exc
    except ValueError as exc:
        raise BadEntryError(where, f"its released offsets: {exc}") from exc


def carried(entry: Entry) -> Entry:
    """Return the entry as a commit carries it on that lands nothing: maintenance, or a change of the table's columns.

    Args:
        entry: What counts at the version onto which it is committed. A commit that lands on another version carries that one's.
    """
    draft = Entry(
        kind="carry",
        pipeline=entry.pipeline,
        epoch=entry.epoch,
        commit=new_commit_id(),
        coverage=entry.coverage,
        carries=entry.carries if entry.kind == "carry" else entry.commit,
    )
    return following(draft, entry)


def following(draft: Entry, before: Entry | None) -> Entry:
    """Return an entry with everything that it carries on: what it does not say itself, the entry before it says.

    Args:
        draft: The entry.
        before: The one that counts; None where none does.
    """
    return draft.model_copy(update=carried_on(before, draft, is_reset=draft.kind == "reset"))


def check_owner(entry: Entry, pipeline: str, table: str) -> None:
    """Raise ForeignTableError when another pipeline lands in the table.

    Args:
        entry: Newest entry of the table.
        pipeline: Name of the pipeline that wants to use the table.
        table: Id of the table, for the message.

    Raises:
        ForeignTableError: The entry names another pipeline.
    """
    if entry.pipeline != pipeline:
        raise ForeignTableError(table, entry.pipeline, pipeline)


def check_topic_ids(coverage: Mapping[str, TopicOffsets], topic_ids: Mapping[str, str]) -> None:
    """Raise TopicRecreatedError when a topic of the coverage now has another id.

    Args:
        coverage: Offsets by topic, with the id that each topic had when they were landed.
        topic_ids: Present ids by topic; topics that are not in it are not checked.

    Raises:
        TopicRecreatedError: A topic has another id now.
    """
    for topic, offsets in coverage.items():
        found = topic_ids.get(topic)
        if found is not None and found != offsets.topic_id:
            raise TopicRecreatedError(topic, offsets.topic_id, found)


def add(coverage: Mapping[str, TopicOffsets], landed: Mapping[str, TopicOffsets]) -> Offsets:
    """Return coverage with ``landed`` added.

    Args:
        coverage: Offsets by topic.
        landed: Further offsets by topic.

    Raises:
        TopicRecreatedError: The two name different ids of one topic.
    """
    check_topic_ids(coverage, {topic: offsets.topic_id for topic, offsets in landed.items()})
    result = dict(coverage)
    for topic, offsets in landed.items():
        known = result[topic].partitions if topic in result else {}
        result[topic] = TopicOffsets(topic_id=offsets.topic_id, partitions=merge_partitions(known, offsets.partitions))
    return result


def missing(wanted: Mapping[str, TopicOffsets], coverage: Mapping[str, TopicOffsets]) -> Offsets:
    """Return what of ``wanted`` the coverage does not hold; topics without a rest are left out."""
    result: Offsets = {}
    for topic, offsets in wanted.items():
        held = coverage[topic].partitions if topic in coverage else {}
        rest = subtract_partitions(offsets.partitions, held)
        if rest:
            result[topic] = TopicOffsets(topic_id=offsets.topic_id, partitions=rest)
    return result


def common(left: Mapping[str, TopicOffsets], right: Mapping[str, TopicOffsets]) -> Offsets:
    """Return the offsets that stand in both; topics without any are left out."""
    result: Offsets = {}
    for topic in left:
        if topic in right:
            both = overlap_partitions(left[topic].partitions, right[topic].partitions)
            if both:
                result[topic] = TopicOffsets(topic_id=left[topic].topic_id, partitions=both)
    return result


def high_water_marks(coverage: Mapping[str, TopicOffsets]) -> NextOffsets:
    """Return the next offset to read, per topic and partition: the end of the last interval."""
    return {
        topic: {partition: intervals[-1][1] for partition, intervals in offsets.partitions.items() if intervals}
        for topic, offsets in coverage.items()
    }


def has_gaps(coverage: Mapping[str, TopicOffsets]) -> bool:
    """Return whether offsets are missing below a next offset: a start continues above them, and a replay lands them."""
    return any(len(intervals) > 1 for offsets in coverage.values() for intervals in offsets.partitions.values())


def redo_in(entry: Entry | None) -> RedoProgress:
    """Return what an entry says of the newest redo; of none where it says nothing."""
    return (entry.redo_progress if entry else None) or NO_REDO


def count(offsets: Mapping[str, TopicOffsets]) -> int:
    """Return how many offsets are in all intervals."""
    return sum(total(intervals) for topic in offsets.values() for intervals in topic.partitions.values())


def intervals_of(offsets: Mapping[str, TopicOffsets]) -> list[tuple[str, int, Intervals]]:
    """Return (topic, partition, intervals), sorted."""
    return [
        (topic, partition, intervals)
        for topic, topic_offsets in sorted(offsets.items())
        for partition, intervals in sorted(topic_offsets.partitions.items())
    ]


def _check_known(body: Mapping[str, Any], where: str) -> None:
    """Raise NewerEntryError for a later format, and for what is required and not known; validation judges other shapes."""
    version, required, writer = body.get("version"), body.get("requires"), body.get("writer")
    said_by = writer if isinstance(writer, str) else None
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise NewerEntryError(where, said_by, f"format {version} of the entry", __version__)
    unknown = [str(one) for one in required if one not in KNOWN_REQUIREMENTS] if isinstance(required, list) else []
    if unknown:
        raise NewerEntryError(where, said_by, ", ".join(sorted(unknown)), __version__)


def _packed(releases: dict[str, Any]) -> dict[str, Any]:
    return {
        topic: {**held, "partitions": {partition: pack(intervals) for partition, intervals in held["partitions"].items()}}
        for topic, held in releases.items()
    }


def _unpacked(body: Any) -> Any:
    """Return an entry's body with its released offsets as intervals; what is not of their shape is left to the validation."""
    releases = body.get("releases") if isinstance(body, dict) else None
    if not isinstance(releases, dict):
        return body
    topics = {topic: _unpacked_topic(held) for topic, held in releases.items()}
    return {**body, "releases": topics}


def _unpacked_topic(held: Any) -> Any:
    partitions = held.get("partitions") if isinstance(held, dict) else None
    if not isinstance(partitions, dict):
        return held
    return {**held, "partitions": {p: unpack(text) if isinstance(text, str) else text for p, text in partitions.items()}}
