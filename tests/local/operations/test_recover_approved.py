"""Recovery is applied only as approved and once, and what was cut short is planned anew: real tables of both formats."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.support.tables.local_tables import TOPIC, offsets
from tests.support.tables.recovering import DELTA, ICEBERG, NEW_ID, Case, case_fixture  # noqa: F401

from lakebound.control.desired import Desired, read_desired
from lakebound.control.incidents import read_incidents
from lakebound.errors import BrokerUnavailableError, LakeboundError, MissingTopicError
from lakebound.ledger.entry import Entry
from lakebound.operations.recovery import apply as applying
from lakebound.operations.recovery import takeover
from lakebound.operations.recovery.apply import plan_recovery
from lakebound.operations.recovery.plan import PlanChangedError, PlanRefusedError
from lakebound.operations.recovery.takeover import DesiredChangedError
from lakebound.spec.table import TableSpec
from lakebound.tables.places import Places
from lakebound.tables.table import open_table


class TestOnlyAsApproved:
    def test_changed_facts_apply_nothing(self, case: Case) -> None:
        case.kafka.earliest = 45
        approved = case.plan("accept_loss")
        case.kafka.earliest = 46
        with pytest.raises(PlanChangedError, match="nothing was applied"):
            case.apply("accept_loss", approved)
        self._untouched(case)

    def test_facts_that_change_while_the_pipeline_is_taken_over_apply_nothing(
        self, case: Case, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        case.kafka.earliest = 45
        approved = case.plan("accept_loss")
        end = takeover.end_application

        def meanwhile(*arguments: Any, **options: Any) -> None:
            case.kafka.earliest = 60
            end(*arguments, **options)

        monkeypatch.setattr(takeover, "end_application", meanwhile)
        with pytest.raises(PlanChangedError):
            case.apply("accept_loss", approved)
        self._untouched(case)

    def test_a_hash_of_another_action_applies_nothing(self, case: Case) -> None:
        case.kafka.earliest = 45
        with pytest.raises(PlanRefusedError):
            case.apply("new_incarnation", case.plan("accept_loss"))
        with pytest.raises(PlanChangedError):
            case.apply("accept_loss", "0123456789ab")
        self._untouched(case)

    def test_applied_twice_the_second_time_does_nothing(self, case: Case) -> None:
        case.kafka.earliest = 45
        approved = case.plan("accept_loss")
        case.apply("accept_loss", approved)
        kinds = case.kinds(DELTA)
        with pytest.raises(PlanRefusedError, match="nothing to do"):
            case.apply("accept_loss", approved)
        assert case.kinds(DELTA) == kinds
        assert len(read_incidents(case.control)) == 1

    def test_applied_twice_at_once_one_of_them_does_it(self, case: Case) -> None:
        case.kafka.earliest = 45
        approved = case.plan("accept_loss")
        together = threading.Barrier(2)

        def apply(_: int) -> str:
            together.wait(10)
            try:
                case.apply("accept_loss", approved)
            except (PlanRefusedError, DesiredChangedError):
                return "refused"
            return "applied"

        with ThreadPoolExecutor(2) as pool:
            assert sorted(pool.map(apply, range(2))) == ["applied", "refused"]
        for table in (DELTA, ICEBERG):
            assert case.kinds(table).count("skip") == 1
        assert read_desired(case.control).state == "running"

    @pytest.mark.parametrize("error", [BrokerUnavailableError("b", "silence"), MissingTopicError(TOPIC, "b")])
    def test_a_broker_that_does_not_tell_gives_no_plan(self, case: Case, error: LakeboundError) -> None:
        case.kafka.error = error
        with pytest.raises(PlanRefusedError):
            case.plan("accept_loss")

    def _untouched(self, case: Case) -> None:
        for table in (DELTA, ICEBERG):
            assert case.kinds(table) == ["land"] * 3 + ["open", "genesis"]
        assert read_desired(case.control) == Desired() or read_desired(case.control).state == "running"
        assert read_incidents(case.control) == []


class TestCutShort:
    def test_what_is_left_is_the_next_plan(self, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
        case.kafka.earliest = 45
        approved = case.plan("accept_loss")
        commit = applying.commit_entry

        def fail_at_iceberg(table: Any, *arguments: Any, **options: Any) -> Any:
            if table.spec == ICEBERG:
                raise OSError("catalog away")
            return commit(table, *arguments, **options)

        with monkeypatch.context() as patched:
            patched.setattr(applying, "commit_entry", fail_at_iceberg)
            with pytest.raises(OSError, match="catalog away"):
                case.apply("accept_loss", approved)
        assert read_desired(case.control).state == "held", "nothing runs before somebody has looked"
        (incident,) = read_incidents(case.control)
        assert incident.outcome.startswith("interrupted after {'delta:shop.orders'")
        with pytest.raises(PlanChangedError):
            case.apply("accept_loss", approved)
        rest = plan_recovery(case.spec, case.settings, "accept_loss")
        assert [step.table for step in rest.steps if step.table] == [ICEBERG.id]
        case.apply("accept_loss", rest.hash)
        assert read_desired(case.control).state == "running"
        assert open_table(ICEBERG, case.at).read_ledger().coverage == offsets(0, 45)

    def test_a_commit_that_answers_with_an_error_stands_once(self, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
        case.kafka.topic_id = NEW_ID
        opened = open_table

        def unsure(spec: TableSpec, at: Places) -> Any:
            table = opened(spec, at)
            commit = table.commit

            def commit_then_fail(files: Any, entry: Entry) -> str:
                commit(files, entry)
                raise OSError("connection reset")

            table.commit = commit_then_fail  # type: ignore[method-assign]
            return table

        monkeypatch.setattr(applying, "open_table", unsure)
        case.apply("new_incarnation", case.plan("new_incarnation"))
        for table in (DELTA, ICEBERG):
            assert case.kinds(table).count("reset") == 1
