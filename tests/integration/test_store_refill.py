"""A store that is filled from a table: right as a fold of plain dicts says, whatever is cut, or refused with the reason.

No Kafka and no Spark: tables are landed, and a start after it is made, by ``tests.support.stores.refilling``.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from tests.support.catalogs.postgresql import PASSWORD, USER, PostgreSQL, PostgreSQLProxy
from tests.support.forked_python import run_forked
from tests.support.stores import expected, refilling
from tests.support.stores.expected import Contents
from tests.support.stores.landing import COLUMNS, SOURCE
from tests.support.stores.redis_server import running_redis
from tests.support.stores.refilling import Landed, Row, kafka_of, pipeline_of, settings_of
from tests.support.streams.long_form import LONG_FORM, each_value_once

from lakebound import faults
from lakebound.errors import StoreIncompleteError, StoreRefusedError
from lakebound.inspection.proof.collect import prove
from lakebound.landing.targets.stores import TARGET_KIND as STORES
from lakebound.landing.to_stores.open_store import connect_store
from lakebound.operations.acknowledge import acknowledge
from lakebound.operations.recovery import store_rebuild
from lakebound.operations.recovery.plan import PlanRefusedError
from lakebound.operations.recovery.store_rebuild import apply_store_rebuild, collect_store, plan_store_rebuild

pytestmark = [pytest.mark.integration, each_value_once]

SECRET = "LAKEBOUND_SECRET_OF_STORES"
WITH_GONE = pa.schema([*list(COLUMNS)[:-1], pa.field("gone", pa.bool_()), COLUMNS.field("_kafka")])
KINDS: dict[str, dict[str, Any]] = {
    "rows": {"key": "card", "columns": ["number", "amount"], "delete_if": "gone"},
    "counters": {
        "key": "card",
        "counters": {"time": "paid_at", "windows": {"2h": "1m", "24h": "1h"}, "sums": ["amount", "number"]},
    },
}


@dataclass
class Server:
    """A server, and who reads it without Lakebound."""

    login: dict[str, Any]
    read: Callable[[], Contents]
    wipe: Callable[[], None]
    raw: Callable[[], Any]


@pytest.fixture(params=["redis", "postgres"])
def server(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv(SECRET, PASSWORD)
    if request.param == "redis":
        with running_redis() as running:
            proxy, client = PostgreSQLProxy(running), running.client()
            login = {"redis": {"host": "127.0.0.1", "port": proxy.port}}

            def held() -> Any:
                keys: Any = client.keys("cards:*")
                found: list[Any] = [client.hgetall(key) for key in sorted(keys)]
                return [sorted(fields.items()) for fields in found]

            yield Server(login, lambda: expected.contents_in_redis(client, "cards"), client.flushall, held)
            proxy.close()
        return
    postgresql: PostgreSQL = request.getfixturevalue("postgresql")
    proxy, database = PostgreSQLProxy(postgresql), postgresql.new_database()
    where = {"host": "127.0.0.1", "port": proxy.port, "database": database, "username": USER}
    login = {"host": os.path.dirname(postgresql.socket), "user": USER, "password": PASSWORD, "dbname": database}
    with psycopg.connect(**login, autocommit=True) as own:

        def wipe() -> None:
            own.execute("DROP TABLE IF EXISTS cards; DROP TABLE IF EXISTS lakebound_ledger")

        def read() -> Contents:
            return expected.contents_in_postgres(own, "cards", "card")

        def raw() -> Any:
            cursor = own.execute("SELECT * FROM cards ORDER BY card")
            return [column.name for column in cursor.description or ()], cursor.fetchall()

        yield Server({"postgres": {**where, "password": {"env": SECRET}}}, read, wipe, raw)
    proxy.close()


@pytest.fixture
def dice(request: pytest.FixtureRequest) -> random.Random:
    return random.Random(request.node.name)


def landed_in(
    home: Path, server: Server, kind: str, monkeypatch: pytest.MonkeyPatch, table_format: str = "delta", **more: Any
) -> Landed:
    """Return a pipeline whose Kafka has no record any more."""
    spec = pipeline_of({"name": "cards", **KINDS[kind], **server.login}, table_format, **more)
    landed = Landed(spec, settings_of(home), spec.tables[0], WITH_GONE)

    def kafka(_: object) -> Any:
        held = landed.opened().read_ledger().coverage
        ends = {p: intervals[-1][1] for p, intervals in held[SOURCE].partitions.items()} if held else {}
        return kafka_of(ends, ends)

    monkeypatch.setattr(store_rebuild, "collect_kafka", kafka)
    return landed


def made_up(dice: random.Random, partition: int, start: int, end: int) -> list[Row]:
    """Return rows of the records of a range: of some none, of some several, some of which delete their key."""
    now = datetime.now(UTC).replace(microsecond=0)
    rows: list[Row] = []
    for offset in range(start, end):
        for ordinal in range(dice.choice((0, 1, 1, 1, 2, 3))):
            rows.append(
                {
                    "partition": partition,
                    "offset": offset,
                    "ordinal": ordinal,
                    "card": f"card-{dice.randrange(6)}",
                    "number": dice.randrange(1000),
                    "amount": dice.choice((None, 1, -5, 77)),
                    "paid_at": now - timedelta(minutes=dice.choice((1, 30, 90, 600, 60 * 24 * 9))),
                    "gone": dice.choice((None, False, False, True)),
                }
            )
    dice.shuffle(rows)
    return rows


def land_history(landed: Landed, dice: random.Random, *, most: int = 12) -> list[Row]:
    """Land batches of two partitions; one range is landed after the later ones, as a replay does."""
    every: list[Row] = []
    ranges = {0: 0, 1: 5}
    late: tuple[int, int] | None = None
    for number in range(4):
        rows: list[Row] = []
        covers = {}
        for partition, start in ranges.items():
            end = start + dice.randrange(2, most)
            if number == 1 and partition == 0:
                late = (start, end)  # landed at the end
            else:
                rows += made_up(dice, partition, start, end)
                covers[partition] = (start, end)
            ranges[partition] = end
        landed.land(rows, covers)
        every += rows
    assert late is not None
    rows = made_up(dice, 0, *late)
    landed.land(rows, {0: late})
    return in_order(every + rows)


def in_order(rows: list[Row]) -> list[Row]:
    """Return rows in the order of their source positions."""
    return sorted(rows, key=lambda row: (row["partition"], row["offset"], row["ordinal"]))


def assert_holds(server: Server, kind: str, rows: list[Row]) -> None:
    wanted = expected.folded_contents(KINDS[kind], rows, time.time())
    found = server.read()
    if kind == "counters":
        # Buckets that have left their window are removed when their key gets a new one.
        limit = expected.folded_contents(KINDS[kind], rows, time.time() - 60)
        found = {place: held for place, held in found.items() if place in wanted or place not in limit}
    assert found == wanted


@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3 if LONG_FORM else 1))
def test_a_store_is_what_the_rows_of_the_table_fold_to_and_goes_on_behind_them(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, table_format: str, seed: int
) -> None:
    dice = random.Random(f"{kind} {table_format} {seed}")
    landed = landed_in(tmp_path, server, kind, monkeypatch, table_format)
    rows = land_history(landed, dice)
    # What the store held before is of no matter: here some rows of other keys.
    landed.go_on([{**row, "card": "card-before"} for row in made_up(dice, 0, 0, 4)], {0: (0, 4)}, epoch=1)

    plan = landed.plan()
    landed.apply(plan.hash)

    assert_holds(server, kind, rows)
    assert plan.loses == () and f"{len(rows):,} rows" in plan.markdown()
    coverage = landed.opened().read_ledger().coverage
    marks = {p: intervals[-1][1] for p, intervals in coverage[SOURCE].partitions.items()}
    later = [row for p, mark in marks.items() for row in made_up(dice, p, mark, mark + 5)]
    covered = landed.go_on(later, {p: (mark, mark + 5) for p, mark in marks.items()}, epoch=9)
    assert covered[SOURCE].partitions == {0: ((0, marks[0] + 5),), 1: ((5, marks[1] + 5),)}
    assert_holds(server, kind, rows + in_order(later))


WIDE: dict[str, tuple[pa.DataType, list[Any]]] = {
    "flag": (pa.bool_(), [True, False]),
    "small": (pa.int32(), [-(2**31), 2**31 - 1]),
    "large": (pa.int64(), [-(2**63), 2**63 - 1]),
    "half": (pa.float32(), [0.1, -1e30]),
    "real": (pa.float64(), [0.1, float("nan"), float("-inf")]),
    "price": (pa.decimal128(20, 4), [Decimal("-0.5000"), Decimal("1234567890123456.7891")]),
    "name": (pa.string(), ["", "ü \U0001f600", "a\nb"]),
    "blob": (pa.binary(), [b"", b"\x00\xff"]),
    "day": (pa.date32(), [date(1, 1, 1), date(9999, 12, 31)]),
    "at": (pa.timestamp("us", tz="UTC"), [datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC), datetime(2026, 1, 1, tzinfo=UTC)]),
    "local": (pa.timestamp("us"), [datetime(2026, 3, 29, 2, 30)]),
    "tags": (pa.list_(pa.string()), [[], ["a", None], ["ü"]]),
    "counts": (pa.map_(pa.string(), pa.int64()), [[], [("a", 1), ("b", None)]]),
    "items": (
        pa.list_(
            pa.struct([pa.field("sku", pa.string()), pa.field("parts", pa.list_(pa.struct([pa.field("n", pa.int32())])))])
        ),
        [[None], [{"sku": None, "parts": None}, {"sku": "x", "parts": [{"n": 1}, None, {"n": None}]}]],
    ),
    "place": (pa.struct([pa.field("x", pa.float64()), pa.field("at", pa.timestamp("us", tz="UTC"))]), [{"x": 0.5, "at": None}]),
}


@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_values_are_those_that_the_stream_writes_whatever_their_type(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dice: random.Random, table_format: str
) -> None:
    fields = [pa.field(name, kind) for name, (kind, _) in WIDE.items()]
    spec = pipeline_of({"name": "cards", "key": "card", **server.login}, table_format)
    columns = pa.schema([pa.field("card", pa.string()), *fields, COLUMNS.field("_kafka")])
    landed = Landed(spec, settings_of(tmp_path), spec.tables[0], columns)
    monkeypatch.setattr(store_rebuild, "collect_kafka", lambda _: kafka_of({0: 0}, {0: 30}))
    rows: list[Row] = [
        {"partition": 0, "offset": offset, "ordinal": 0, "card": f"card-{offset}"}
        | {name: dice.choice([None, *values]) for name, (_, values) in WIDE.items()}
        for offset in range(30)
    ]
    landed.land(rows, {0: (0, 30)})
    landed.go_on(rows, {0: (0, 30)}, epoch=1)
    wanted = server.raw()

    landed.apply(landed.plan().hash)

    assert repr(server.raw()) == repr(wanted)  # NaN is another one each time
    assert landed.go_on([], {}, epoch=9)[SOURCE].partitions == {0: ((0, 30),)}


def test_a_table_that_another_pipeline_fills_by_its_other_name_is_left_alone(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dice: random.Random
) -> None:
    if "redis" in server.login:
        pytest.skip("in Redis, a store has one name")
    landed = landed_in(tmp_path, server, "rows", monkeypatch)
    rows = in_order(made_up(dice, 0, 0, 9))
    landed.go_on(rows, {0: (0, 9)}, epoch=1)
    other = pipeline_of({"name": "public.cards", **KINDS["rows"], **server.login}, pipeline="other")

    with pytest.raises(StoreRefusedError, match="'payments' writes to its table already"):
        collect_store(other, "public.cards")
    store = connect_store(other.to_stores[0], "to_stores[0]")
    with pytest.raises(StoreRefusedError, match="'payments' writes to its table already"):
        store.empty()
    store.close()
    assert_holds(server, "rows", rows)


def test_a_server_that_has_lost_everything_gets_it_from_the_table(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dice: random.Random
) -> None:
    landed = landed_in(tmp_path, server, "rows", monkeypatch)
    rows = land_history(landed, dice)
    landed.go_on(rows, {0: (0, 1)}, epoch=1)
    server.wipe()

    landed.apply(landed.plan().hash)

    assert_holds(server, "rows", rows)


def test_the_proof_of_a_filled_store_holds_and_that_of_an_incomplete_one_says_so(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dice: random.Random
) -> None:
    landed = landed_in(tmp_path, server, "rows", monkeypatch)
    rows = land_history(landed, dice)
    store = landed.spec.to_stores[0].id
    landed.apply(landed.plan().hash)
    marks = landed.opened().read_ledger().coverage[SOURCE].partitions
    known = kafka_of({0: 0, 1: 5}, {p: intervals[-1][1] for p, intervals in marks.items()}).topics
    kafka: Any = SimpleNamespace(topics=lambda _: known)
    [proof] = [one for one in prove(landed.spec, landed.places, facts=kafka).tables if one.table == store]
    assert (proof.problems, proof.rows, proof.missing.count) == ((), len(rows), 0)

    with monkeypatch.context() as patch, pytest.raises(Cut):
        counted_points(patch, 8)
        landed.apply(landed.plan().hash)
    [proof] = [one for one in prove(landed.spec, landed.places, facts=kafka).tables if one.table == store]
    assert "being filled from a table" in proof.problems[0]


class Cut(BaseException):
    """Nothing of Lakebound catches it."""


def counted_points(monkeypatch: pytest.MonkeyPatch, cut_at: int | None = None) -> list[str]:
    """Let each fault point be noted, and the one with the number end everything; return the names, which grow."""
    seen: list[str] = []

    def reach(point: str, detail: str | None = None) -> None:
        seen.append(point)
        if len(seen) == cut_at:
            raise Cut(point)

    monkeypatch.setattr(faults, "reach", reach)
    return seen


def test_wherever_it_is_cut_the_store_is_as_before_or_refused_until_it_is_done(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dice: random.Random
) -> None:
    kind = "counters"
    landed = landed_in(tmp_path, server, kind, monkeypatch)
    rows = land_history(landed, dice, most=5)
    before = in_order(made_up(dice, 0, 0, 6))
    landed.go_on(before, {0: (0, 6)}, epoch=1)
    with monkeypatch.context() as patch:
        seen = counted_points(patch)
        landed.apply(landed.plan().hash)
    assert seen.count("after_commit") > 3, seen

    endings = {"as before": 0, "incomplete": 0, "whole": 0}
    # What the store is changes near the beginning and near the end; between, one commit follows the other.
    cuts = [at for at in range(1, len(seen) + 1) if LONG_FORM or at <= 12 or at > len(seen) - 4 or at % 9 == 0]
    for cut_at in cuts:
        server.wipe()
        landed.go_on(before, {0: (0, 6)}, epoch=cut_at + 1)
        approved = landed.plan().hash
        with monkeypatch.context() as patch, pytest.raises(Cut):
            counted_points(patch, cut_at)
            landed.apply(approved)
        try:
            landed.go_on([], {}, epoch=cut_at + 10_000)
        except StoreIncompleteError as exc:
            endings["incomplete"] += 1
            assert STORES.look(landed.spec).refusals == {landed.spec.to_stores[0].id: str(exc)}
        else:
            # The last commit was made, and only its answer was cut off; Redis has made it one point earlier.
            is_whole = cut_at > len(seen) - (2 if "redis" in server.login else 1)
            endings["whole" if is_whole else "as before"] += 1
            assert_holds(server, kind, rows if is_whole else before)
        if cut_at % 7 == 0:
            continue_by_kafka = plan_store_rebuild(landed.spec, collect_store(landed.spec, "cards"))
            assert (
                "removed"
                in apply_store_rebuild(landed.spec, landed.settings, "cards", continue_by_kafka.hash, by="somebody").outcome
            )
        landed.apply(landed.plan().hash)
        assert_holds(server, kind, rows)
    assert endings["incomplete"] > len(cuts) - 12 and endings["whole"] in (1, 2), endings
    assert not list(tmp_path.rglob("*.arrow"))


@pytest.mark.parametrize("rule", ["after_commit/land#2", "before_commit/land#3", "store_rows_sent#2", "store_ledger_gone"])
def test_a_killed_process_leaves_a_store_that_is_refused_and_can_be_filled_again(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dice: random.Random, rule: str
) -> None:
    landed = landed_in(tmp_path, server, "counters", monkeypatch)
    rows = land_history(landed, dice)
    landed.go_on(rows[:3], {0: (0, 3)}, epoch=1)
    store = landed.spec.to_stores[0].format
    rule = rule.replace("store_rows_sent", f"store_rows_sent/{store}")
    command = [refilling.__file__, str(tmp_path), landed.spec.model_dump_json(by_alias=True), "cards", landed.table.id]
    log = tmp_path / "log"
    ended = run_forked(command, {**os.environ, "LAKEBOUND_FAULTS": f"kill@{rule}"}, log, timeout_seconds=120)
    assert ended == -9, log.read_text()

    if (store, rule) == ("postgres", "store_ledger_gone"):
        landed.go_on([], {}, epoch=50)  # the transaction did not end: it is as before
        assert_holds(server, "counters", rows[:3])
    else:
        with pytest.raises(StoreIncompleteError):
            landed.go_on([], {}, epoch=50)
    landed.apply(landed.plan().hash)
    assert_holds(server, "counters", rows)


def test_what_others_did_to_the_table_is_refused_and_the_store_stays(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dice: random.Random
) -> None:
    landed = landed_in(tmp_path, server, "counters", monkeypatch)
    rows = land_history(landed, dice)
    landed.apply(landed.plan().hash)
    held, approved = server.read(), landed.plan().hash
    DeltaTable(str(landed.places.delta_path(landed.table))).delete("card = 'card-1'")

    with pytest.raises(PlanRefusedError, match="others have changed its rows"):
        landed.plan()
    with pytest.raises(PlanRefusedError, match="others have changed its rows"):
        landed.apply(approved)
    acknowledge(landed.spec, landed.table, landed.places)
    with pytest.raises(PlanRefusedError, match="acknowledged"):
        landed.plan()
    with pytest.raises(PlanRefusedError, match="acknowledged"):
        landed.apply(approved)
    assert server.read() == held
    assert_holds(server, "counters", rows)
    landed.go_on([], {}, epoch=50)


@pytest.mark.parametrize(
    ("column", "value", "told"),
    [("card", None, "card is null"), ("amount", None, None), ("paid_at", None, "paid_at is null"), ("offset", 3, "position")],
)
def test_rows_that_the_store_does_not_take_are_refused_before_it_is_touched(
    server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    dice: random.Random,
    column: str,
    value: Any,
    told: str | None,
) -> None:
    landed = landed_in(tmp_path, server, "counters", monkeypatch)
    rows = [{**row, "ordinal": 0} for row in made_up(dice, 0, 0, 40)]
    once = list({row["offset"]: row for row in rows}.values())
    wrong = [{**row, column: value} if number == 5 else row for number, row in enumerate(once)]
    landed.land(wrong, {0: (0, 40)})
    landed.go_on(once[:3], {0: (0, 3)}, epoch=1)
    held = server.read()

    if told is None:
        landed.apply(landed.plan().hash)
        assert_holds(server, "counters", wrong)
        return
    approved = ""
    with suppress(PlanRefusedError):
        approved = landed.plan().hash
    if approved:  # positions are compared when the rows are read for the store
        with pytest.raises(PlanRefusedError, match=told):
            landed.apply(approved)
    else:
        with pytest.raises(PlanRefusedError, match=told):
            landed.plan()
    assert server.read() == held
    landed.go_on([], {}, epoch=50)
