"""A catalog that is put back to an older copy: no start forks a table's history, and the repair finds its end. Real tables."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.tables.local_tables import landed_offsets, offsets
from tests.support.tables.older_catalogs import copied, land_many, named, put_back
from tests.support.tables.recovering import DELTA, ICEBERG, Case, case_fixture  # noqa: F401

from lakebound.control.desired import change_desired, read_desired
from lakebound.control.incidents import read_incidents
from lakebound.control.lease import acquire, read_lease, release
from lakebound.errors import CatalogBehindError, TableUnreadableError
from lakebound.inspection.doctor.pipeline.ledger_facts import read_ledgers
from lakebound.landing.run_spec import RunSpec, make_run_spec
from lakebound.operations.recovery.apply import plan_recovery
from lakebound.operations.recovery.plan import PlanChangedError, PlanRefusedError
from lakebound.tables.table import open_table
from lakebound_spark.stream.opening import take_lease


def run_spec(case: Case) -> RunSpec:
    return make_run_spec(case.spec, case.settings, read_desired(case.control), "orders-again")


@pytest.mark.parametrize("commits", [3, 25], ids=["its file is there", "its file was deleted by later commits"])
def test_no_start_forks_the_history_and_the_repair_finds_its_end(case: Case, tmp_path: Path, commits: int) -> None:
    older = copied(case, tmp_path)
    end = land_many(case, commits)
    newest = named(case)
    put_back(case, older)
    assert named(case).exists() == (commits == 3)
    before = sorted(newest.parent.iterdir())

    with pytest.raises(CatalogBehindError, match=f"has the newer file {newest.name}"):
        take_lease(run_spec(case))
    assert read_lease(case.control) is None
    states = {table.table: table.state for table in read_ledgers(case.spec, case.at)}
    assert (states[ICEBERG.id], states[DELTA.id]) == ("behind", "entry")
    with pytest.raises(PlanRefusedError, match="action repoint"):
        case.plan("accept_loss")

    change_desired(case.control, "held", reason="restored")
    plan = plan_recovery(case.spec, case.settings, "repoint")
    assert [step.table for step in plan.steps] == [ICEBERG.id]
    applied = case.apply("repoint", plan.hash)
    assert (applied.committed, named(case)) == ({ICEBERG.id: newest.name}, newest)
    assert sorted(newest.parent.iterdir()) == before, "nothing is deleted"
    assert read_desired(case.control).reason == "restored", "a person starts it"
    assert landed_offsets(open_table(ICEBERG, case.at)) == list(range(end))
    (incident,) = read_incidents(case.control)
    assert (incident.runbook, incident.approved_by) == ("catalog-behind", "ada")
    with pytest.raises(PlanRefusedError, match="nothing to do"):
        case.plan("repoint")

    lease = take_lease(run_spec(case))
    assert lease.epoch > 5, "above every epoch in the tables, and so of whoever wrote before the catalog was restored"
    release(case.control, lease)
    case.land(ICEBERG, end, end + 5)
    assert landed_offsets(open_table(ICEBERG, case.at)) == list(range(end + 5))


def test_a_plan_for_another_file_is_not_applied(case: Case, tmp_path: Path) -> None:
    first = copied(case, tmp_path).rename(tmp_path / "first.db")
    end = land_many(case, 2)
    second = copied(case, tmp_path)
    land_many(case, 3, end)
    put_back(case, first)
    approved = case.plan("repoint")
    put_back(case, second)
    with pytest.raises(PlanChangedError):
        case.apply("repoint", approved)
    put_back(case, first)
    case.apply("repoint", approved)


def test_two_histories_are_refused_until_a_person_has_moved_one_aside(case: Case, tmp_path: Path) -> None:
    older = copied(case, tmp_path)
    land_many(case, 4)
    newest = named(case)
    put_back(case, older)
    aside = tmp_path / "aside"
    aside.mkdir()
    first = {path.name for path in newest.parent.glob("*.metadata.json")}
    for path in newest.parent.glob("*.metadata.json"):
        if path.name > named(case).name:
            path.rename(aside / path.name)
    land_many(case, 2)  # what a start made of it before it was refused
    other = {path for path in newest.parent.glob("*.metadata.json") if path.name not in first}
    for path in aside.iterdir():
        path.rename(newest.parent / path.name)
    with pytest.raises(CatalogBehindError, match="several histories"):
        open_table(ICEBERG, case.at).read_ledger()
    with pytest.raises(PlanRefusedError, match="several histories"):
        case.plan("repoint")
    for path in other:
        path.rename(aside / path.name)
    case.apply("repoint", case.plan("repoint"))
    assert (named(case), landed_offsets(open_table(ICEBERG, case.at))) == (newest, list(range(34)))


def test_a_table_whose_metadata_is_gone_is_named(case: Case) -> None:
    case.land(ICEBERG, 30, 40)
    for path in named(case).parent.glob("*.metadata.json"):
        path.unlink()
    with pytest.raises(TableUnreadableError, match="does not exist"):
        open_table(ICEBERG, case.at).read_ledger()


def test_an_older_lease_does_not_bring_epochs_back(case: Case) -> None:
    """What a restored state folder says of epochs is older than the tables: they decide."""
    case.land(DELTA, 30, 31)  # by epoch 99
    first = acquire(case.control, "long-ago", 30)
    assert first.epoch == 1
    release(case.control, first)
    lease = take_lease(run_spec(case))
    assert (lease.epoch, open_table(DELTA, case.at).read_ledger().coverage) == (100, offsets(0, 31))
    release(case.control, lease)
