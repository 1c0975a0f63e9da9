"""As ``test_pauses.py``, with a Delta table in a bucket: actors are suspended before each request of theirs, too."""

from __future__ import annotations

import pytest
from tests.support.pauses.actors import makers
from tests.support.pauses.bucket import Bucket
from tests.support.pauses.form import ALL, gates, kept, seeded, tell
from tests.support.pauses.runs import Found, double_pauses, run_cases, single_pauses
from tests.support.pauses.world import PausedWorld, make_paused_world
from tests.support.s3.running import S3Server

from lakebound.storage.objects import ObjectStore

_SINGLE = None if ALL else 6
_DOUBLE = 300 if ALL else 3


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, shared_s3_server: S3Server) -> PausedWorld:
    """A table of three batches in a bucket."""
    return make_paused_world(tmp_path_factory.mktemp("pauses") / "world", "delta", bucket=Bucket(shared_s3_server))


def test_one_is_suspended_anywhere_while_another_runs_to_its_end(world: PausedWorld) -> None:
    found, passed, chance = Found(), gates(world), seeded("store", "one")
    cases = [
        case for first in makers("delta") for other in makers("delta") for case in single_pauses((first, other), passed[first])
    ]
    found.add(run_cases(world, cases if _SINGLE is None else chance.sample(cases, _SINGLE), keep=kept()))
    tell("delta in a bucket, one suspended", found)
    found.assert_clean()


def test_two_are_suspended_and_go_on_in_any_order(world: PausedWorld) -> None:
    found, passed, chance = Found(), gates(world), seeded("store", "two")
    for _ in range(_DOUBLE):
        names = chance.choices(list(makers("delta")), k=2)
        found.add(run_cases(world, double_pauses(names, [passed[name] for name in names], 1, chance), keep=kept()))
    tell("delta in a bucket, two suspended", found)
    found.assert_clean()


def test_a_commit_without_its_condition_is_found(world: PausedWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ObjectStore, "put_new", lambda store, key, content: store.put(key, content))
    passed = gates(world)["stream"]
    cases = single_pauses(("stream", "takeover"), passed)
    assert any(run_cases(world, [case]).faults for case in cases), f"{passed} pauses, and each of them without a fault"
