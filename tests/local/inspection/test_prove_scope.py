"""A proof by the entries alone says of how much of the table it is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.support.tables.foreign_hands import forget_all_but_newest
from tests.support.tables.local_tables import TOPIC, TOPIC_ID, lander, make_table, pipeline_over

from lakebound.inspection.proof.collect import prove
from lakebound.ledger.topics import TopicFacts
from lakebound.spec.table import TableSpec
from lakebound.tables.places import Places


@pytest.mark.parametrize("spec", ["delta", "iceberg"], indirect=True)
def test_after_the_end_of_history_rows_of_the_table_stand_beside_the_rows_that_are_proved(spec: TableSpec, at: Places) -> None:
    pipeline = pipeline_over(spec)
    known = {TOPIC: TopicFacts(TOPIC_ID, {0: 0}, {0: 30})}
    kafka = cast(Any, SimpleNamespace(topics=lambda names: known))
    make_table(spec, at)
    app = lander(spec, at)
    app.land(0, 10)
    app.land(10, 20)
    found = prove(pipeline, at, facts=kafka).tables[0]
    assert (found.rows, found.is_partial, found.since, found.table_rows, found.ok) == (20, False, None, None, True)
    version = app.land(20, 30).version
    forget_all_but_newest(spec, at)
    found = prove(pipeline, at, facts=kafka).tables[0]
    assert (found.ok, found.rows, found.assumed, found.table_rows) == (True, 10, 20, 30)
    assert found.since is not None and found.since.version == version
    assert found.scope == f"since {version}"
