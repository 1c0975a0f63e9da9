"""Where the shared state is, and how its bucket is reached."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from lakebound.cli import app
from lakebound.control.folder import ControlFolder
from lakebound.errors import NotWithSharedStateError, SettingError
from lakebound.inspection.validation.history import only_run
from lakebound.settings import Settings, load_settings
from lakebound.spec.state_store import find_state_store
from lakebound.spec.warehouse import MACHINES_OWN, StoreSpec

LAKE: dict[str, Any] = {"location": "s3://lake/tables", "store": {"endpoint": "http://store:9000"}}
KEYS = {"access_key_id": {"env": "LAKEBOUND_SECRET_ID"}, "secret_access_key": {"env": "LAKEBOUND_SECRET_KEY"}}


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A machine that shares its state in the bucket ``lake``."""
    (tmp_path / "pipelines").mkdir()
    monkeypatch.setenv("LAKEBOUND_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("LAKEBOUND_PIPELINES", str(tmp_path / "pipelines"))
    monkeypatch.setenv("LAKEBOUND_STATE", "s3://lake/state/")
    return load_settings()


def write_warehouses(settings: Settings, **warehouses: dict[str, Any]) -> None:
    """Write the file."""
    (settings.pipelines.parent / "warehouses.yaml").write_text(yaml.safe_dump({"warehouses": warehouses}))


def test_without_the_variable_everything_is_in_the_folder(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAKEBOUND_STATE")
    control = ControlFolder(settings.home, "orders")
    assert find_state_store(settings) is None and not control.is_shared
    assert control.lease == settings.home / "pipelines" / "orders" / "lease.json"
    assert control.shared == control.folder and control.watched_every(1.0) == 1.0


def test_the_bucket_is_reached_as_the_warehouse_in_it(settings: Settings) -> None:
    write_warehouses(settings, other={"location": "s3://lakes/tables"}, lake=LAKE | {"store": LAKE["store"] | KEYS})
    control = ControlFolder(settings.home, "orders")
    store = control.store
    assert store is not None and store.location == "s3://lake/state"
    assert store.store is not None and store.store.endpoint == "http://store:9000"
    assert store.secret_variables == ("LAKEBOUND_SECRET_ID", "LAKEBOUND_SECRET_KEY") and store.own_variables == ()
    assert str(control.lease) == "s3://lake/state/pipelines/orders/lease.json"
    assert control.log("app") == settings.home / "pipelines" / "orders" / "logs" / "app.log"
    assert control.watched_every(1.0) == 5.0
    # A file that has changed is read anew.
    write_warehouses(settings, lake=LAKE)
    (settings.pipelines.parent / "warehouses.yaml").touch()
    assert find_state_store(settings).store == StoreSpec(endpoint="http://store:9000")  # type: ignore[union-attr]


def test_without_such_a_warehouse_the_machines_own_credentials_count(settings: Settings) -> None:
    store = find_state_store(settings)
    assert store is not None and store.store is None and store.own_variables == MACHINES_OWN


def test_two_ways_to_one_bucket_are_refused(settings: Settings) -> None:
    write_warehouses(settings, lake=LAKE, again={"location": "s3://lake/more"})
    with pytest.raises(SettingError, match="the warehouses again, lake in s3://lake"):
        ControlFolder(settings.home, "orders")


@pytest.mark.parametrize("command", [["backup", "there.tar.gz"], ["restore", "there.tar.gz"], ["up"], ["demo"]])
def test_what_needs_all_state_in_the_folder_is_refused(command: list[str], settings: Settings) -> None:
    done = CliRunner().invoke(app, command)
    assert isinstance(done.exception, NotWithSharedStateError) or "LAKEBOUND_STATE shares it" in done.output
    assert done.exit_code != 0 and not settings.home.exists()


def test_validation_is_refused(settings: Settings) -> None:
    with pytest.raises(NotWithSharedStateError, match="lakebound validate"), only_run(ControlFolder(settings.home, "orders")):
        pass
