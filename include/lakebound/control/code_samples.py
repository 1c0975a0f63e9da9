"""Samples of what the newest two versions of the code landed: the record of the looks. Pure, but for reading and writing it.

The watch, or the DAG ``checkpoint_health``, looks at the newest commits of a table now and then, and adds what they landed
(``lakebound.alerts.code_look``). So the old version is known when a new one comes, also where its files are gone by then. The
record holds counts, and short hashes of the values of columns that have few; never a value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import islice
from typing import Annotated

from pydantic import Field, StringConstraints

from lakebound.control.bounds import Count, Moment, MomentMs
from lakebound.control.folder import ControlFolder, read_json, write_json
from lakebound.control.progress import Progress
from lakebound.frozen import FrozenRecord

NEW_SECONDS = 900.0
"""How long code is new: each minute counts then."""
NEW_LOOK_EVERY_SECONDS = 60.0
FIRST_SLICES = 6
"""Of a version: what is compared with the version before."""
LAST_SLICES = 30
"""Of a version, after the first ones: with looks every five minutes, two and a half hours."""
FULL_SLICE_RECORDS = 200
"""A slice of fewer records gets those of the next look, too."""
MOST_COLUMNS = 64
MOST_VALUES = 20
"""A column with more values than this is not one with few."""
OTHER_VALUES = ""
"""In place of the hash: values beyond the first ``MOST_VALUES``."""

_Name = Annotated[str, StringConstraints(max_length=1000)]
_Sign = Annotated[str, StringConstraints(max_length=64)]


class ColumnCounts(FrozenRecord):
    """Of a column: its values, nulls included, and how many of them are null."""

    values: Count = 0
    nulls: Count = 0

    def plus(self, other: ColumnCounts) -> ColumnCounts:
        """Return the sums."""
        return ColumnCounts(values=self.values + other.values, nulls=self.nulls + other.nulls)


class Slice(FrozenRecord):
    """What some commits landed.

    Attributes:
        until: When they were looked at, in epoch seconds.
        read: Records: ``read = filtered + landed + quarantined``.
        rows: An explode makes more rows than records.
        columns: Of the files that were looked at.
    """

    until: Moment = 0.0
    read: Count = 0
    filtered: Count = 0
    quarantined: Count = 0
    landed: Count = 0
    rows: Count = 0
    columns: Annotated[dict[_Name, ColumnCounts], Field(max_length=MOST_COLUMNS)] = Field(default_factory=dict)

    def plus(self, later: Slice) -> Slice:
        """Return both as one."""
        names = islice(dict.fromkeys([*self.columns, *later.columns]), MOST_COLUMNS)
        none = ColumnCounts()
        return Slice(
            until=later.until,
            read=self.read + later.read,
            filtered=self.filtered + later.filtered,
            quarantined=self.quarantined + later.quarantined,
            landed=self.landed + later.landed,
            rows=self.rows + later.rows,
            columns={name: self.columns.get(name, none).plus(later.columns.get(name, none)) for name in names},
        )


Values = dict[_Sign, Count]
"""How often each value was seen, by the value's hash."""


class VersionSamples(FrozenRecord):
    """What was seen of one version of the code.

    Attributes:
        hash: Of what makes the rows (``lakebound.ledger.sources``).
        revision: Of the Git checkout.
        since_ms: When its first application opened the table, in epoch milliseconds.
        is_known: Whether the table remembers the same code from an earlier time: it was put back.
        first: Slices of its first time.
        last: The newest slices after these.
        values: Of columns with few values, in all slices.
    """

    hash: _Sign
    revision: _Sign = ""
    since_ms: MomentMs
    is_known: bool = False
    first: Annotated[tuple[Slice, ...], Field(max_length=FIRST_SLICES)] = ()
    last: Annotated[tuple[Slice, ...], Field(max_length=LAST_SLICES)] = ()
    values: Annotated[dict[_Name, Values], Field(max_length=MOST_COLUMNS)] = Field(default_factory=dict)

    @property
    def slices(self) -> tuple[Slice, ...]:
        """All that are kept, oldest first."""
        return self.first + self.last

    @property
    def is_past_first(self) -> bool:
        """Whether its first time is over."""
        return bool(self.last)

    def plus(self, seen: Slice, values: Mapping[str, Values]) -> VersionSamples:
        """Return the samples after another look."""
        first, last = self.first, self.last
        if last:
            last = _added(last, seen)[-LAST_SLICES:]
        else:
            first = _added(first, seen)
            first, last = first[:FIRST_SLICES], first[FIRST_SLICES:]
        names = [*islice(dict.fromkeys([*self.values, *values]), MOST_COLUMNS)]
        merged = {name: _few(Counter(self.values.get(name, {})) + Counter(values.get(name, {}))) for name in names}
        return self.model_copy(update={"first": first, "last": last, "values": merged})


def _added(slices: tuple[Slice, ...], seen: Slice) -> tuple[Slice, ...]:
    if slices and slices[-1].read < FULL_SLICE_RECORDS:
        return (*slices[:-1], slices[-1].plus(seen))
    return (*slices, seen)


def _few(counts: Counter[str]) -> Values:
    """Return the counts of the most frequent values; the others are one."""
    other = counts.pop(OTHER_VALUES, 0)
    kept = dict(counts.most_common(MOST_VALUES))
    other += sum(counts.values()) - sum(kept.values())
    return {**kept, OTHER_VALUES: other} if other else kept


class CodeSamples(FrozenRecord):
    """The whole record.

    Attributes:
        table: Id of the table that is looked at.
        version: Its newest version that was.
        before: What the version of the code before the current one landed; None where nothing was seen of one.
        current: What the current one landed.
    """

    table: _Name
    version: _Name
    before: VersionSamples | None = None
    current: VersionSamples | None = None

    def after(self, version: str, current: VersionSamples, seen: Slice, values: Mapping[str, Values]) -> CodeSamples:
        """Return the record after a look. Pure.

        Args:
            version: The table's newest, which was looked at.
            current: The version of the code that landed what was seen; of its samples nothing is used.
            seen: What its new commits landed.
            values: Of their columns with few values.
        """
        known = self.current
        if known is not None and (known.hash, known.since_ms) == (current.hash, current.since_ms):
            return self.model_copy(update={"version": version, "current": known.plus(seen, values)})
        before = known if known is not None and known.slices else self.before
        return self.model_copy(update={"version": version, "before": before, "current": current.plus(seen, values)})


def is_new(progress: Progress | None, now: float) -> bool:
    """Whether the code that an application runs began a short time ago. Pure.

    Args:
        progress: The application's, if there is one.
        now: Epoch seconds.
    """
    return progress is not None and progress.source is not None and 0 <= now - progress.source.since < NEW_SECONDS


def read_samples(control: ControlFolder) -> CodeSamples | None:
    """Return the record; None where nobody has looked, or the file cannot be read: the next look begins anew."""
    try:
        body = read_json(control.code_samples)
        return None if body is None else CodeSamples.model_validate(body)
    except (OSError, ValueError):
        return None


def write_samples(control: ControlFolder, samples: CodeSamples) -> None:
    """Replace the record.

    Raises:
        OSError: The folder cannot be written.
    """
    write_json(control.code_samples, samples.model_dump(mode="json", exclude_defaults=True))
