"""Two files name one table: the pipeline whose table it is stays valid, the other is refused, and both are told."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from tests.support.streams.command_line import ORDERS, answer, lakebound, settings
from tests.support.tables.local_tables import make_table

from lakebound.errors import InvalidSpecError
from lakebound.settings import Settings
from lakebound.spec.table import TableSpec
from lakebound.tables.declared import owned_pipeline, owned_pipelines, shown_pipelines
from lakebound.tables.places import places_of

__all__ = ["settings"]
pytestmark = pytest.mark.local


def write(settings: Settings, name: str, *tables: dict[str, str], **more: Any) -> None:
    body = ORDERS | {"pipeline": name, "tables": list(tables)} | more
    (settings.pipelines / f"{name}.yaml").write_text(yaml.safe_dump(body))


@pytest.fixture
def table(spec: TableSpec, settings: Settings) -> TableSpec:
    """A table that ``orders`` made; ``copies``, whose file stands first, names it too."""
    write(settings, "orders", {"format": spec.format, "name": spec.name}, {"format": "delta", "name": "shop.more"})
    make_table(spec, places_of(settings, "default"))
    write(settings, "copies", {"format": spec.format, "name": spec.name})
    return spec


def test_the_pipeline_whose_table_it_is_may_run(settings: Settings, table: TableSpec) -> None:
    loaded = owned_pipelines(settings)
    assert list(loaded.specs) == ["orders"] == list(shown_pipelines(settings).specs)
    assert sorted(path.stem for path in loaded.mistakes) == ["copies", "orders"]
    assert owned_pipeline("orders", settings).pipeline == "orders"
    with pytest.raises(InvalidSpecError, match=f"copies.yaml.*{table.id} is also named in orders.yaml; only one pipe"):
        owned_pipeline("copies", settings)


def test_commands_say_it_of_both_and_hide_nothing(settings: Settings, table: TableSpec) -> None:
    said = answer("status")
    notes = {one["pipeline"]: " ".join(one["notes"]) for one in said["pipelines"]}
    assert "no valid YAML" in notes["copies"] and "no valid YAML" not in notes["orders"]
    assert len(said["problems"]) == 2
    assert lakebound("query", f"select count(*) as n from {table.name}").output.count("1 row") == 1
    assert "also named in" in lakebound("start", "copies", code=1).output
    assert "the desired state is running" in lakebound("start", "orders").output
    for name in ("orders", "copies"):
        assert "also named in" in lakebound("check", name, "--static", code=1).output


def test_a_table_that_nobody_has_made_is_started_by_none(settings: Settings) -> None:
    """The order of files must not decide whose a table is; to look at, the first is as good as any."""
    for name in ("orders", "copies"):
        write(settings, name, {"format": "delta", "name": "shop.new"})
    assert list(owned_pipelines(settings).specs) == []
    assert list(shown_pipelines(settings).specs) == ["copies"]


def test_a_table_of_a_third_pipeline_is_neithers(settings: Settings, table: TableSpec) -> None:
    write(settings, "others", {"format": table.format, "name": table.name})
    (settings.pipelines / "orders.yaml").unlink()
    assert list(shown_pipelines(settings).specs) == []
    (settings.pipelines / "others.yaml").unlink()
    assert list(owned_pipelines(settings).specs) == ["copies"], (
        "one file alone is no dispute: the start refuses it by the ledger"
    )


def test_a_table_that_cannot_be_read_is_nobodys(settings: Settings, table: TableSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable(*_: object) -> None:
        raise OSError("the disk does not answer")

    monkeypatch.setattr("lakebound.tables.table.open_table", unreadable)
    assert list(owned_pipelines(settings).specs) == list(shown_pipelines(settings).specs) == []


def test_all_tables_in_dispute_have_to_be_its_own(settings: Settings, table: TableSpec) -> None:
    write(settings, "copies", {"format": table.format, "name": table.name}, {"format": "delta", "name": "shop.more"})
    assert list(owned_pipelines(settings).specs) == [], "nobody has made shop.more"
    assert list(shown_pipelines(settings).specs) == ["orders"]
