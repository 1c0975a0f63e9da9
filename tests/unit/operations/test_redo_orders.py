"""A redo lands rows by the code that its approved plan names: a deploy may come while it waits, and while it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lakebound.control.replay_result import ReplayResult
from lakebound.formats.schemas import PartOfRecord, SchemaText
from lakebound.landing.row_source import row_source
from lakebound.operations.redo.apply import RedoNotCompletedError
from lakebound.operations.redo.orders import RedoOrders
from lakebound.operations.redo.replacing import RedoOvertakenError
from lakebound.spec.pipeline import PipelineSpec

SPEC = PipelineSpec.model_validate(
    {
        "pipeline": "orders",
        "topics": ["orders"],
        "connection": {"bootstrap_servers": "127.0.0.1:1"},
        "value": {"format": "json", "schema": "v INT"},
        "freshness": "1s",
        "transform": "transforms.orders.to_rows",
        "tables": [{"format": "delta", "name": "shop.orders"}],
    }
)


@pytest.fixture
def module(tmp_path: Path) -> Path:
    folder = tmp_path / "transforms"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "orders.py").write_text("def to_rows(records):\n    return records\n")
    return folder / "orders.py"


def orders(apps: Path | None, module: Path, schemas: dict[PartOfRecord, SchemaText]) -> RedoOrders:
    known = row_source(SPEC, module.parents[1], schemas)
    values: dict[str, Any] = {"spec": SPEC, "source": known, "schema_files": schemas, "apps": "" if apps is None else str(apps)}
    return RedoOrders.model_construct(**values)


def test_code_that_was_changed_since_ends_the_redo(tmp_path: Path, module: Path) -> None:
    approved = orders(tmp_path, module, {"value": SchemaText("avro", '"long"')})
    approved.check_code()
    module.write_text(module.read_text() + "# another\n")
    with pytest.raises(RedoOvertakenError, match=r"shop\.orders: what makes its rows was changed since the redo was planned"):
        approved.check_code()


def test_a_stand_in_without_a_folder_of_code_is_not_looked_at(module: Path) -> None:
    approved = orders(None, module, {})
    module.unlink()
    approved.check_code()


def test_the_same_plan_is_offered_only_where_it_can_go_on() -> None:
    ended = ReplayResult(app_id="redo-1", state="stopped", reason="asked to end")
    assert "the same plan does the rest" in str(RedoNotCompletedError("orders", ended))
    overtaken = RedoOvertakenError("delta:shop.orders", "others changed its rows")
    refused = ended.model_copy(update={"state": "refused", "reason": str(overtaken), "error_class": "RedoOvertakenError"})
    assert str(RedoNotCompletedError("orders", refused)).endswith("Plan the redo again. What it has committed stays")
