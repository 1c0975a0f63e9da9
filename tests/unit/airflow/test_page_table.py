"""The page of a table and the samples of the quarantine: what the state knows, and markup that stays text."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.streams.stand_ins import ORDERS

from lakebound.control.folder import ControlFolder
from lakebound.control.quarantine_samples import QuarantineSample, write_samples
from lakebound.control.table_history import Grain, RewindTarget, TableHistory, write_table_history
from lakebound.operations.maintenance.run_times import read_newest_steps
from lakebound.spec.pipeline import PipelineSpec
from lakebound_airflow.page.pipeline_view import facts_shown
from lakebound_airflow.page.samples_fragment import samples_fragment
from lakebound_airflow.page.state import read_kept_samples
from lakebound_airflow.page.table_fragment import table_fragment
from lakebound_airflow.page.table_view import read_table_view, tables_of
from lakebound_airflow.page.time_line import duration, time_line

MARKUP = "<script>alert(1)</script>"
NOW = 1_800_000_000.0
TABLE = "delta:lake.orders"
SPEC = PipelineSpec.model_validate({**ORDERS, "pipeline": "orders", "tables": [{"format": "delta", "name": "lake.orders"}]})
HISTORY = TableHistory(
    looked_at=NOW - 600,
    targets=(
        RewindTarget(NOW - 30_000, "1", "genesis", NOW - 10),
        RewindTarget(NOW - 7200, "5", MARKUP, NOW + 14_400),
        RewindTarget(NOW - 60.5, "9", "land", None),
    ),
    versions=9,
    grains=(Grain(21_600.0),),
    problems=(MARKUP,),
)


@pytest.fixture
def control(tmp_path: Path) -> ControlFolder:
    return ControlFolder(tmp_path, "orders")


def step(outcome: str, table: str = TABLE) -> dict[str, object]:
    partition = {"partition": {"day": "canary-77"}, "kind": "compact", "table": table}
    return {"step": partition, "outcome": outcome, "files_before": 120, "files_after": 3, "problem": "canary-77"}


def test_the_past_is_said_with_times_that_a_rewind_takes_and_what_is_over_is_left_out(control: ControlFolder) -> None:
    write_table_history(control, {TABLE: HISTORY})
    runs = [{"ended_at_ms": (NOW - age) * 1000, "steps": [step("done"), step("skipped"), step("lost", "x")]} for age in (9, 5)]
    control.maintenance_history.write_text("torn\n" + "".join(f"{json.dumps(run)}\n" for run in runs))
    text = table_fragment(read_table_view(control, TABLE, SPEC), NOW)
    for words in (
        "2027-01-15T07:58:59.500Z",
        "every version for 6 h",
        "2027-01-15 06:00:00 UTC, 2 h ago",
        "<td>4 h</td>",
        "lakebound rewind orders --to TIME --table delta:lake.orders",
        "it is current",
        "&lt;script&gt;",
        ">120<",
    ):
        assert words in text, words
    assert "genesis" not in text and "<script" not in text and "canary-77" not in text
    assert text.count('class="badge none">done') == 2
    assert len(read_newest_steps(control, TABLE, 1)) == 1


def test_what_is_not_known_is_said_and_a_torn_file_hides_no_other(control: ControlFolder) -> None:
    text = table_fragment(read_table_view(control, TABLE, SPEC), NOW)
    assert text.count('<p class="quiet">') == 4
    control.folder.mkdir(parents=True)
    control.table_history.write_text("{")
    control.maintenance_history.write_text(json.dumps({"ended_at_ms": 5, "steps": [step("failed")]}))
    text = table_fragment(read_table_view(control, TABLE, SPEC), NOW)
    assert "not all of the state can be read" in text and "badge critical" in text


def test_the_quarantine_is_a_table_of_its_pipeline_that_goes_back_with_the_others(control: ControlFolder) -> None:
    assert tables_of(SPEC, control) == [TABLE, "delta:quarantine.orders"]
    write_table_history(control, {"delta:quarantine.orders": HISTORY})
    assert tables_of(None, control) == ["delta:quarantine.orders"]
    text = table_fragment(read_table_view(control, "delta:quarantine.orders", SPEC), NOW)
    assert "only be rewound together with the tables of its pipeline" in text and "lakebound rewind" not in text


def test_the_time_line_has_what_is_young_at_the_right() -> None:
    text = time_line(HISTORY.targets, HISTORY.grains, NOW)
    places = [float(part.split('"')[0]) for part in text.split('x="')[1:] if 'width="2"' in part.split("<title>")[0]]
    assert places == sorted(places) and 0 <= places[0] < places[-1] <= 1000
    assert "6 h ago" in text and "7 d ago" not in text and "<script" not in text
    assert [duration(one) for one in (5, 65, 3600, 100_000)] == ["5 s", "1 min 5 s", "1 h", "1 d 3 h"]


def test_samples_are_by_reason_escaped_and_shown_only_where_they_are_wanted(control: ControlFolder) -> None:
    one = QuarantineSample("not_json", NOW, "orders", 0, 7, error=MARKUP, key=None, value=MARKUP, value_bytes=25)
    write_samples(control, [one, replace(one, reason="transform", offset=8), replace(one, offset=9)])
    found, problems = read_kept_samples(control, 2, NOW)
    text = samples_fragment(found, 2, problems)
    assert "<script" not in text and text.count("&lt;script&gt;") == 6
    assert text.index("orders/0 9") < text.index("orders/0 7") < text.index("orders/0 8"), "by reason"
    assert read_kept_samples(control, 0, NOW) == ((), [])
    assert "quarantine_samples" in samples_fragment((), 0) and "No record" in samples_fragment((), 3)
    in_a_topic = samples_fragment((), 3, topic="<b>bad")
    assert "No samples are kept with <code>freshness: real_time</code>" in in_a_topic and "topic &lt;b&gt;bad" in in_a_topic
    control.quarantine_samples.write_text('[{"value": "canary-77"}]')
    _, problems = read_kept_samples(control, 2, NOW)
    assert len(problems) == 1 and "canary" not in problems[0]


def test_who_may_not_see_values_sees_no_texts_among_the_facts() -> None:
    evidence = {"observed": "canary-77", "rows_in_all": 7, "held_since": False, "limit": None}
    assert facts_shown(evidence, sees_values=False) == [
        {"name": "rows in all", "value": 7},
        {"name": "held since", "value": False},
    ]
    assert {"name": "observed", "value": "canary-77"} in facts_shown(evidence, sees_values=True)
