"""What targets beside tables are for an application: their columns, their bounds and who is asked, kind by kind; no server."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from tests.support.streams.stand_ins import settings_fixture  # noqa: F401

from lakebound.control.folder import ControlFolder
from lakebound.errors import BrokerUnavailableError, TableMismatchError
from lakebound.landing.kafka import WrittenSettings
from lakebound.landing.other_target import OtherTarget
from lakebound.landing.to_stores.target import StoreTarget
from lakebound.landing.to_topics.messages import JSON_COLUMN
from lakebound.landing.to_topics.target import TopicTarget
from lakebound.settings import Settings
from lakebound.spec.pipeline import PipelineSpec
from lakebound.tables.table import KAFKA_TYPE, LedgerView
from lakebound_spark.batch.targets import Writer
from lakebound_spark.stream.other_epochs import newest_epoch, newest_landed_other_epoch
from lakebound_spark.stream.other_targets import OtherTargets, check_machine, take_json

COLUMNS = pa.schema([pa.field("id", pa.string()), pa.field("cents", pa.int64()), pa.field("_kafka", KAFKA_TYPE)])
BODY = {
    "pipeline": "orders",
    "topics": ["in"],
    "connection": {"bootstrap_servers": "kafka:9092"},
    "value": {"format": "json", "schema": "id STRING, cents BIGINT"},
    "freshness": "1s",
    "tables": [{"format": "delta", "name": "orders"}],
    "to_topics": [{"topic": "out", "key": "id"}],
    "to_stores": [{"name": "totals", "key": "id", "columns": ["cents"], "redis": {"host": "cache"}}],
}
TABLE, TOPIC, STORE = "delta:orders", "topic:out", "redis:totals"


class Kafka:
    """Says how large messages may be."""

    def written_settings(self, names: Iterable[str]) -> dict[str, WrittenSettings]:
        return dict.fromkeys(names, WrittenSettings(2000, is_compacted=True))


def others(settings: Settings, **changes: Any) -> OtherTargets:
    spec = PipelineSpec.model_validate({**BODY, **changes})
    rows = COLUMNS.append(pa.field(JSON_COLUMN, pa.string())) if take_json(spec) else COLUMNS
    run = SimpleNamespace(spec=spec, control=ControlFolder(settings.home, spec.pipeline), app_id="orders-g0-1", freshness="1s")
    planned = SimpleNamespace(arrow_rows=rows, arrow_columns=COLUMNS)
    return OtherTargets(run, planned, Kafka())  # type: ignore[arg-type]


def test_each_kind_says_which_columns_wait_for_it_and_what_it_asks_of_them(settings: Settings) -> None:
    found = others(settings)
    assert {target: set(schema.names) for target, schema in found.staged.items()} == {
        TOPIC: {"id", "_kafka", JSON_COLUMN},
        STORE: {"id", "cents", "_kafka"},
    }
    assert found.left_out({TABLE: frozenset({"old"})}) == {
        TABLE: {"old", JSON_COLUMN},
        TOPIC: {"cents"},
        STORE: {JSON_COLUMN},
    }
    assert {bound.told.partition(": ")[0] for bound in found.bounds()} == {TOPIC, STORE}


def test_without_topics_no_row_gets_its_json(settings: Settings) -> None:
    found = others(settings, to_topics=[])
    assert found.left_out({}) == {STORE: frozenset()}
    assert others(settings, to_topics=[], to_stores=[]).bounds() == []


def test_the_targets_of_an_application_have_folders_of_their_own(settings: Settings) -> None:
    writer = Writer("orders", 3, lambda: None, 1)
    made = others(settings).make(writer)
    assert [(type(one), one.spec.id) for one in made] == [(TopicTarget, TOPIC), (StoreTarget, STORE)]
    folders = [Path(str(one.layout().folder)) for one in made]
    assert [folder.relative_to(settings.home).parts[-3:] for folder in folders] == [
        ("orders-g0-1", "topics", "out"),
        ("orders-g0-1", "stores", "0-totals"),
    ]
    assert all(folder.parent.stat().st_mode & 0o077 == 0 for folder in folders)
    assert others(settings, to_topics=[], to_stores=[]).make(writer) == []


@pytest.mark.parametrize("kept", ["to_topics", "to_stores"])
def test_rows_that_wait_must_be_on_the_drivers_machine(kept: str) -> None:
    one = PipelineSpec.model_validate(
        {**{key: found for key, found in BODY.items() if not key.startswith("to_")}, kept: BODY[kept]}
    )
    run: Any = SimpleNamespace(spec=one)
    check_machine(run, "local[2]")
    with pytest.raises(TableMismatchError, match="wait on the driver's machine"):
        check_machine(run, "spark://master:7077")


def test_the_newest_epoch_is_that_of_whoever_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    spec, asked, closed = PipelineSpec.model_validate(BODY), list[str](), list[str]()

    def ledger(epoch: int) -> Any:
        def read(target: OtherTarget, **_: Any) -> LedgerView:
            asked.append(target.spec.id)
            if epoch < 0:
                raise BrokerUnavailableError("kafka:9092", "no answer")
            return SimpleNamespace(epoch=epoch)  # type: ignore[return-value]

        return read

    monkeypatch.setattr(StoreTarget, "close", lambda target: closed.append(target.spec.id))
    monkeypatch.setattr(TopicTarget, "read_ledger", ledger(4))
    monkeypatch.setattr(StoreTarget, "read_ledger", ledger(7))
    assert (newest_epoch(spec), asked, closed) == (7, [TOPIC, STORE], [STORE])
    monkeypatch.setattr(TopicTarget, "read_ledger", ledger(-1))
    assert newest_epoch(spec) == 7
    entries = [SimpleNamespace(entry=SimpleNamespace(epoch=epoch, rows=rows)) for epoch, rows in ((6, 0), (5, 9), (2, 9))]
    monkeypatch.setattr(TopicTarget, "entries", lambda target: iter(entries))
    assert newest_landed_other_epoch(spec) == 5
