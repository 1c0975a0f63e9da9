"""The least rights on a bucket, as docs/how-to/deploy.md writes them: they suffice, and none of them is too much."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.s3.access import AccessKey, Permission
from tests.support.s3.running import S3Server
from tests.support.tables.local_tables import lander, make_table
from tests.support.tables.stored import KEY_ID, SECRET, places_in

from lakebound.spec.table import TableSpec
from lakebound.storage.location import delete_all
from lakebound.storage.race import race
from lakebound.tables.places import Places

SPEC = TableSpec(format="delta", name="shop.orders")
PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "deploy.md"
RIGHTS = ("s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:ListBucket")


def written_rights(bucket: str) -> list[Permission]:
    """Return the rights of the policy on the page, for another bucket."""
    found = re.search(r"```json\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found, f"{PAGE} has no policy"
    rights = []
    for statement in json.loads(found[1].replace("my-bucket", bucket))["Statement"]:
        assert statement["Effect"] == "Allow"
        actions = statement["Action"]
        patterns = [statement["Resource"].removeprefix("arn:aws:s3:::")]
        if "Condition" in statement:
            patterns = [f"{patterns[0]}/{prefix}" for prefix in statement["Condition"]["StringLike"]["s3:prefix"]]
        assert all(pattern.endswith("/*") for pattern in patterns), "the tests' server knows prefixes only"
        for pattern in patterns:
            rights.append(Permission((actions,) if isinstance(actions, str) else tuple(actions), pattern.removesuffix("*")))
    return rights


def limited(at: Places, server: S3Server, bucket: str, monkeypatch: pytest.MonkeyPatch, without: str = "") -> Places:
    """Let the warehouse's key have the written rights, or all of them but one."""
    rights = tuple(
        replace(right, actions=tuple(action for action in right.actions if action != without))
        for right in written_rights(bucket)
    )
    key = server.put_access_key(AccessKey(f"LIMITED{without.upper()[3:]}", "secret-limited", permissions=rights))
    monkeypatch.setenv(KEY_ID, key.access_key_id)
    monkeypatch.setenv(SECRET, key.secret_access_key)
    return at


@pytest.fixture
def at(s3_server: S3Server, s3_bucket: str, tmp_path: Path) -> Places:
    """Places in a bucket."""
    return places_in(s3_server, s3_bucket, tmp_path)


def land_and_look(at: Places) -> None:
    """Do what an application does with a table, what ``check --storage`` does, and what maintenance does in the end."""
    make_table(SPEC, at)
    app = lander(SPEC, at)
    for start in range(0, 520, 10):  # a log checkpoint is in it
        app.land(start, start + 10)
    app.table.keep_cheap()
    assert app.table.scan_kafka().num_rows == 520
    assert race(at.root).is_safe
    delete_all(file for file, _ in at.root.list())


def test_the_policy_has_these_rights_and_no_other() -> None:
    assert sorted(action for right in written_rights("lakes") for action in right.actions) == sorted(RIGHTS)


def test_the_least_rights_suffice(at: Places, s3_server: S3Server, s3_bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    land_and_look(limited(at, s3_server, s3_bucket, monkeypatch))


@pytest.mark.parametrize("right", RIGHTS)
def test_each_of_them_is_needed(
    right: str, at: Places, s3_server: S3Server, s3_bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Exception, match=r"403|refuses|AccessDenied|denied"):
        land_and_look(limited(at, s3_server, s3_bucket, monkeypatch, without=right))
