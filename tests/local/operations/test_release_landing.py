"""A release's pieces on real tables, with a stand-in for what Spark does: what it looks at again when a table moved on."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.support.tables.releasing import Scene, scene_fixture  # noqa: F401

from lakebound.control.desired import change_desired
from lakebound.ledger.entry import Entry
from lakebound.tables.table import DataFile, Table, open_table


def test_a_new_application_meanwhile_is_followed_after_a_look_at_the_columns(scene: Scene) -> None:
    scene.meanwhile = scene.take_over
    assert scene.release().state == "completed"
    assert scene.landed() == [[3, 5, 6]] * 2 and (scene.decoded, scene.checks) == (2, [1])


def test_other_columns_meanwhile_end_it(scene: Scene) -> None:
    scene.meanwhile, scene.columns_moved = scene.take_over, True
    result = scene.release()
    assert (result.state, result.error_class) == ("failed", "ColumnsMovedError") and "Run it again" in result.reason
    assert scene.landed() == [[], []]


def test_one_that_is_held_in_flight_is_not_tried_again(scene: Scene) -> None:
    def rewind() -> None:
        change_desired(scene.control, "held", reason="rewind")
        scene.take_over()

    scene.meanwhile = rewind
    result = scene.release()
    assert (result.state, result.error_class, scene.decoded) == ("refused", "HeldError", 1)
    assert scene.landed() == [[], []]


def test_a_release_by_another_after_a_commit_that_was_not_heard_of_is_seen(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger is read again then, and has the other's commit; the rows were read before."""
    table = scene.world.targets[0]
    commit = type(table).commit
    heard = [False]

    def unheard(self: Table, files: Sequence[DataFile], entry: Entry) -> str:
        version = commit(self, files, entry)
        if entry.kind == "release" and not heard[0]:
            heard[0] = True
            scene.world.release(open_table(table.spec, scene.world.at), 6)
            raise OSError("connection reset")
        return version

    monkeypatch.setattr(type(table), "commit", unheard)
    scene.most_records = 2
    assert scene.release().state == "completed"
    assert heard[0] and scene.landed() == [[3, 5, 6]] * 2


def test_a_trial_may_look_at_a_held_pipeline_and_a_release_may_not_land_in_it(scene: Scene) -> None:
    change_desired(scene.control, "held", reason="audit")
    result = scene.release(is_trial=True)
    assert (result.state, result.read) == ("completed", 3), result
    assert (scene.release().error_class, scene.landed()) == ("HeldError", [[], []])
