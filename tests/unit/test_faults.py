from __future__ import annotations

import pytest

from lakebound import faults


@pytest.fixture
def rules(monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    def set_rules(text: str) -> None:
        monkeypatch.setenv("LAKEBOUND_FAULTS", text)
        faults._rules.cache_clear()
        faults._seen.clear()

    yield set_rules
    monkeypatch.delenv("LAKEBOUND_FAULTS")
    faults._rules.cache_clear()
    faults._seen.clear()


def test_a_rule_acts_the_nth_time_its_point_is_reached(rules) -> None:  # type: ignore[no-untyped-def]
    rules("fail@after_commit/delta#2")
    faults.reach("after_commit", "delta")
    faults.reach("after_commit", "iceberg")
    with pytest.raises(faults.InjectedFaultError, match="after_commit/delta"):
        faults.reach("after_commit", "delta")
    faults.reach("after_commit", "delta")


def test_a_rule_without_detail_counts_every_detail(rules) -> None:  # type: ignore[no-untyped-def]
    rules("fail@before_commit#2")
    faults.reach("before_commit", "delta")
    with pytest.raises(faults.InjectedFaultError):
        faults.reach("before_commit", "iceberg")


@pytest.mark.parametrize("text", ["kill@nowhere", "explode@after_commit", "kill", "kill@after_commit#x"])
def test_a_rule_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="ACTION@POINT"):
        faults.parse(text)
