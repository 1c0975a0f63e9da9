"""Schemas that a pipeline used, in state that machines share: each reads what the other kept, and no id changes its schema."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.support.s3.running import S3Server
from tests.support.state.shared import shared_control

from lakebound.control import kept_schemas
from lakebound.control.folder import ControlFolder
from lakebound.control.kept_schemas import keep_schemas, read_kept_schemas
from lakebound.formats.schemas import Reference, SchemaText

BASE = SchemaText("protobuf", "base")
TOP = SchemaText("protobuf", "top", (Reference("base.proto", BASE),))


def numbered(number: int) -> SchemaText:
    return SchemaText("avro", f'"{number}"')


def test_one_machine_reads_what_another_kept(s3_server: S3Server, s3_bucket: str, tmp_path: Path) -> None:
    one, other = (shared_control(s3_server, s3_bucket, tmp_path / name) for name in ("one", "other"))
    keep_schemas(one, "company", {1: TOP}, 100.0)
    assert read_kept_schemas(other, "company").schemas == {1: TOP}
    keep_schemas(other, "company", {1: BASE, 2: BASE}, 200.0)
    assert read_kept_schemas(one, "company").schemas == {1: TOP, 2: BASE}
    assert not (tmp_path / "one").exists(), "nothing of it is on the machine"


@pytest.mark.parametrize("shared", [True, False])
def test_what_is_kept_at_the_same_time_is_all_there(s3_server: S3Server, s3_bucket: str, tmp_path: Path, shared: bool) -> None:
    control = shared_control(s3_server, s3_bucket, tmp_path) if shared else ControlFolder(tmp_path, "orders", None)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: keep_schemas(control, "company", {number: numbered(number)}, 100.0), range(12)))
    assert read_kept_schemas(control, "company").schemas == {number: numbered(number) for number in range(12)}


def test_a_bucket_keeps_no_more_than_a_folder(
    s3_server: S3Server, s3_bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_schemas, "MOST_IDS", 2)
    control = shared_control(s3_server, s3_bucket, tmp_path)
    for number in range(4):
        keep_schemas(control, "company", {number: numbered(number)}, float(number))
    assert read_kept_schemas(control, "company").schemas == {3: numbered(3), 2: numbered(2)}
    names = {file.name for file in control.schemas.glob("*")}
    assert names == {"ids.json", f"{numbered(2).fingerprint}.json", f"{numbered(3).fingerprint}.json"}
