"""A proof of a pipeline that has landed nothing is no proof that all is complete, and says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakebound.control.folder import ControlFolder
from lakebound.control.summaries import read_proof
from lakebound.inspection.proof.record import record_proof
from lakebound.inspection.proof.result import Found, Proof, TableProof


def proof(**table: object) -> Proof:
    tables = (TableProof(table="delta:lake.orders", **table), TableProof(table="delta:lake.bad", role="quarantine"))  # type: ignore[arg-type]
    return Proof(pipeline="orders", level="entries", tables=tables)


def test_where_nothing_was_landed_it_says_that_there_is_nothing_to_prove(tmp_path: Path) -> None:
    empty = proof()
    assert empty.ok and empty.is_empty
    assert empty.sentence == "pipeline orders: nothing has landed yet, so there is nothing to prove"
    record_proof(ControlFolder(tmp_path, "orders"), empty)
    kept = read_proof(ControlFolder(tmp_path, "orders"))
    assert kept is not None and kept.ok and kept.is_empty


@pytest.mark.parametrize(
    "table",
    [
        {"source": "entry"},
        {"records": 3},
        {"quarantined": 3},
        {"assumed": 3},
        {"problems": ("its ledger cannot be read",)},
        {"skipped": Found(count=3)},
        {"lag": 3, "source": "entry"},
    ],
)
def test_where_anything_was_landed_or_is_wrong_it_is_a_proof(table: dict[str, object]) -> None:
    assert not proof(**table).is_empty and "nothing to prove" not in proof(**table).sentence
