"""The tests that can reach a file are found by imports, by what their processes run, by fixtures, and by the file's name."""

from __future__ import annotations

import pytest
from tests.support.reached_tests import REPOSITORY, reached_tests


@pytest.mark.parametrize(
    ("changed", "reached", "others"),
    [
        pytest.param(
            "include/lakebound/inspection/proof/judgement.py",
            ["tests/unit/inspection/test_proof.py", "tests/integration/test_prove.py"],
            ["tests/unit/spec/test_inference.py"],
            id="imported",
        ),
        pytest.param(
            "spark_apps/lakebound_spark/stream/application.py",
            ["tests/chaos/test_zombie.py", "tests/airflow/test_real_airflow.py"],
            ["tests/unit/spec/test_inference.py", "tests/local/s3/test_clients.py"],
            id="run by a process that the test starts",
        ),
        pytest.param(
            "include/lakebound/alerts/channels/email.py",
            ["tests/unit/alerts/test_alerts_routes.py"],
            ["tests/unit/ledger/test_offsets.py"],
            id="found in a folder of kinds",
        ),
        pytest.param(
            "include/lakebound/tables/delta/table.py",
            ["tests/local/operations/test_rewind.py", "tests/local/tables/test_tables_ledger.py"],
            ["tests/unit/ledger/test_offsets.py"],
            id="found by the name of a table format",
        ),
        pytest.param(
            "include/lakebound/local/broker.py",
            ["tests/integration/test_landing.py"],
            ["tests/unit/ledger/test_offsets.py"],
            id="brought by a fixture",
        ),
        pytest.param(
            "docs/security.md",
            ["tests/unit/docs/test_pages.py"],
            ["tests/unit/ledger/test_offsets.py"],
            id="named in a text",
        ),
        pytest.param(
            "tests/oracle.py", ["tests/unit/support/test_oracle.py"], ["tests/unit/ledger/test_offsets.py"], id="the oracle"
        ),
    ],
)
def test_what_can_reach_a_file(changed: str, reached: list[str], others: list[str]) -> None:
    assert all((REPOSITORY / one).exists() for one in (changed, *reached, *others))
    found = reached_tests([changed])
    assert set(reached) <= set(found)
    assert not set(others) & set(found)


def test_a_changed_lock_reaches_every_test() -> None:
    assert len(reached_tests(["requirements.lock"])) == len(list((REPOSITORY / "tests").rglob("test_*.py")))
