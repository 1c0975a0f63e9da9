"""Edits of a pipeline's YAML that people make, and the tables before them: for tests that no edit breaks a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Body = dict[str, Any]
Change = Callable[[Body], None]
Fate = Literal["applied", "refused", "wrong"]
"""applied: the next start does it · refused: check and start say the same · wrong: the file itself is refused."""

COLUMNS = {
    "id": "BIGINT",
    "city": "STRING",
    "amount": "INT",
    "price": "FLOAT",
    "at": "TIMESTAMP",
    "day": "STRING",
    "merchant": "STRUCT<name: STRING, code: INT>",
}
PARTITIONS: Mapping[tuple[str, bool], list[str]] = {
    ("delta", False): [],
    ("iceberg", False): [],
    ("delta", True): ["day"],
    ("iceberg", True): ["day(at)"],
}


@dataclass(frozen=True)
class Edit:
    """One edit.

    Attributes:
        name: What a person would call it.
        change: Alters the body of the YAML.
        fates: What is right, by the format of the edited table.
    """

    name: str
    change: Change
    fates: Mapping[str, Fate]


def ddl(columns: Mapping[str, str]) -> str:
    """Return a schema of the columns."""
    return ", ".join(f"{name if name.isidentifier() else f'`{name}`'} {kind}" for name, kind in columns.items())


def body(format_name: str, *, partitioned: bool, name: str = "shop.orders") -> Body:
    """Return the YAML of a pipeline with one table, as it was before any edit."""
    return {
        "pipeline": "orders",
        "topics": ["orders"],
        "connection": {"bootstrap_servers": "127.0.0.1:1"},
        "value": {"format": "json", "schema": ddl(COLUMNS)},
        "freshness": "1s",
        "schema_evolution": "add_columns",
        "driver_lane": {"direct": False},
        "tables": [{"format": format_name, "name": name, "partition_by": PARTITIONS[format_name, partitioned]}],
    }


def _columns(**changes: str | None) -> Change:
    """Return an edit of columns: another type, a new one, or none (None)."""

    def change(found: Body) -> None:
        kept = {**COLUMNS, **changes}
        found["value"] = {"format": "json", "schema": ddl({name: kind for name, kind in kept.items() if kind is not None})}

    return change


def _table(**changes: Any) -> Change:
    return lambda found: found["tables"][0].update(changes)


def _top(**changes: Any) -> Change:
    return lambda found: found.update(changes)


def _all(*changes: Change) -> Change:
    def change(found: Body) -> None:
        for one in changes:
            one(found)

    return change


def _both(fate: Fate) -> dict[str, Fate]:
    return {"delta": fate, "iceberg": fate}


def edits(*, partitioned: bool) -> Iterator[Edit]:
    """Yield every edit with what is right for a table that is partitioned or not."""
    yield Edit("nothing changed", lambda found: None, _both("applied"))
    yield from _edits_of_partitioning(partitioned)
    yield from _edits_of_columns(partitioned)
    yield from _edits_of_tables(partitioned)


def _edits_of_partitioning(partitioned: bool) -> Iterator[Edit]:
    yield Edit("partitioned by another column", _table(partition_by=["city"]), _both("refused"))
    yield Edit("partitioned by a column that does not exist", _table(partition_by=["nowhere"]), _both("refused"))
    removed: Fate = "refused" if partitioned else "applied"
    yield Edit("partitioning removed", _table(partition_by=[]), _both(removed))
    yield Edit("partitioned by a transform", _table(partition_by=["hour(at)"]), {"delta": "wrong", "iceberg": "refused"})
    more = {"delta": ["day", "city"], "iceberg": ["day(at)", "city"]}
    yield Edit("a partition field added", lambda found: _add_partition(found, more), _both("refused"))


def _add_partition(found: Body, more: Mapping[str, list[str]]) -> None:
    found["tables"][0]["partition_by"] = more[found["tables"][0]["format"]]


def _edits_of_columns(partitioned: bool) -> Iterator[Edit]:
    yield Edit("a column added", _columns(note="STRING"), _both("applied"))
    yield Edit("a nested field added", _columns(merchant="STRUCT<name: STRING, code: INT, city: STRING>"), _both("applied"))
    yield Edit("a column dropped", _columns(amount=None), _both("applied"))
    yield Edit("a column renamed", _columns(amount=None, total="INT"), _both("applied"))
    yield Edit("a nested field dropped", _columns(merchant="STRUCT<name: STRING>"), _both("applied"))
    yield Edit("a column widened", _columns(amount="BIGINT"), {"delta": "refused", "iceberg": "applied"})
    yield Edit("a float widened", _columns(price="DOUBLE"), {"delta": "refused", "iceberg": "applied"})
    yield Edit(
        "a nested field widened",
        _columns(merchant="STRUCT<name: STRING, code: BIGINT>"),
        {"delta": "refused", "iceberg": "applied"},
    )
    yield Edit("a column narrowed", _columns(id="INT"), _both("applied"))
    yield Edit("a column of another type", _columns(amount="STRING"), _both("refused"))
    yield Edit("a column becomes a struct", _columns(amount="STRUCT<value: INT>"), _both("refused"))
    yield Edit("a column becomes required", _columns(amount="INT NOT NULL"), _both("applied"))
    yield Edit("a column differs by case", _columns(amount=None, Amount="INT"), _both("refused"))
    yield Edit("two columns differ by case", _columns(Amount="INT"), _both("wrong"))
    yield Edit("a column named _kafka", _columns(_kafka="STRING"), _both("wrong"))
    iceberg: Fate = "refused" if partitioned else "applied"
    yield Edit("a column named as a partition field", _columns(at_day="DATE"), {"delta": "applied", "iceberg": iceberg})
    yield Edit("a type that does not exist", _columns(amount="LONGINT"), _both("wrong"))
    gone: Mapping[str, Fate] = {"delta": "refused", "iceberg": "refused"} if partitioned else _both("applied")
    yield Edit("the partition's column dropped", _columns(day=None, at=None), gone)
    yield Edit(
        "new columns are refused",
        _all(_columns(note="STRING"), _top(schema_evolution="refuse")),
        _both("refused"),
    )
    yield Edit(
        "new columns are left out",
        _all(_columns(note="STRING"), _top(schema_evolution="ignore")),
        _both("applied"),
    )


def _edits_of_tables(partitioned: bool) -> Iterator[Edit]:
    yield Edit("the table renamed", _table(name="shop.renamed"), _both("applied"))
    yield Edit("the format swapped", _swap_format, _both("applied"))
    yield Edit(
        "a second table", lambda found: found["tables"].append({"format": "delta", "name": "shop.second"}), _both("applied")
    )
    yield Edit("a second table that cannot be", _bad_second, _both("refused"))
    yield Edit("the quarantine moved", _top(quarantine={"format": "delta", "name": "shop.bad"}), _both("refused"))
    yield Edit("the pipeline renamed", _top(pipeline="returns"), _both("refused"))
    yield Edit("a property set", _property, _both("applied"))
    yield Edit("a property that changes the protocol", _protocol, _both("refused"))
    without_schema: Fate = "refused" if partitioned else "applied"
    yield Edit("records without a schema", _top(value={"format": "bytes"}), _both(without_schema))
    yield Edit("a topic added", _top(topics=["orders", "returns"]), _both("applied"))
    yield Edit("a topic removed", _top(topics=["returns"]), _both("applied"))


def _swap_format(found: Body) -> None:
    other = {"delta": "iceberg", "iceberg": "delta"}[found["tables"][0]["format"]]
    found["tables"][0].update(format=other, partition_by=[])


def _second(**table: Any) -> Change:
    return lambda found: found["tables"].append({"name": "shop.second", **table})


def _bad_second(found: Body) -> None:
    """A new table that its format cannot have, beside one that could be altered: neither may be touched."""
    _columns(note="STRING", at_hour="INT")(found)
    _second(format="iceberg", partition_by=["hour(at)"])(found)


def _property(found: Body) -> None:
    name = {"delta": "delta.logRetentionDuration", "iceberg": "history.expire.max-snapshot-age-ms"}
    value = {"delta": "interval 10 days", "iceberg": "864000000"}
    kind = found["tables"][0]["format"]
    found["tables"][0]["properties"] = {name[kind]: value[kind]}


def _protocol(found: Body) -> None:
    kind = found["tables"][0]["format"]
    properties = {"delta": {"delta.enableDeletionVectors": "true"}, "iceberg": {"format-version": "3"}}
    found["tables"][0]["properties"] = properties[kind]
