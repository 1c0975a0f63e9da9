"""The files of a new pipeline can be read, whatever its records were like; and what `lakebound try` prints."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from tests.support.streams.command_line import answer, lakebound, settings
from tests.support.streams.long_form import examples

from lakebound.cli import trial
from lakebound.inspection.validation.expectation_files import check_expectations
from lakebound.settings import Settings
from lakebound.spec.draft.files import Beginning, notes_of_beginning, pipeline_yaml, transform_source
from lakebound.spec.draft.inference import infer
from lakebound.spec.draft.judged import expectations_yaml, source_of_test
from lakebound.spec.load import load_file

__all__ = ["settings"]

NAMES = st.text(max_size=8) | st.sampled_from(
    ["created_at", "order_id", "amount", "a-b", "$x", "_kafka", "on", "null", "`", "#", "\n"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.just(1_767_225_600_000) | st.floats() | st.text(max_size=8),
    lambda inside: st.lists(inside, max_size=2) | st.dictionaries(NAMES, inside, max_size=2),
    max_leaves=4,
)


@hypothesis_settings(max_examples=examples(100), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(NAMES, VALUES, max_size=4))
def test_the_files_are_right_whatever_the_records_are_like(settings: Settings, body: dict[str, Any]) -> None:
    values = [json.dumps(body).encode()] * 30
    new = Beginning("payments", "pay.ments-1", "bootstrap_servers: nowhere:1", infer(values), values[:1])
    path = settings.pipelines / "payments.yaml"
    path.write_text(pipeline_yaml(new), encoding="utf-8")
    spec = load_file(path, settings)
    assert (spec.pipeline, spec.topics, spec.transform) == ("payments", ("pay.ments-1",), "transforms.payments.clean")
    expectations = settings.pipelines.parent / "expectations" / "payments.yaml"
    expectations.parent.mkdir(exist_ok=True)
    expectations.write_text(expectations_yaml(new), encoding="utf-8")
    assert check_expectations(spec, settings, {}) == []
    [table] = spec.tables
    assert f"#   tables: [{table.id}]" in expectations.read_text()
    ast.parse(transform_source(new).encode())
    assert ast.parse(source_of_test(new, "../pipelines/payments.yaml").encode())


@pytest.mark.parametrize("value", [b'{"id": 1}', b"\x00\x00\x00\x00\x07payload"], ids=["json", "wire format"])
def test_what_is_known_of_the_topic_is_in_the_comments(settings: Settings, value: bytes) -> None:
    found = infer([value] * 3)
    new = Beginning("payments", "payments", "bootstrap_servers: nowhere:1", found, [value], is_compacted=True)
    text = pipeline_yaml(new)
    assert "# The topic is compacted (cleanup.policy)" in text and "null_values: skip" in text
    assert ("Confluent's wire format" in " ".join(text.replace("#", "").split())) == (found.wire_format is not None)
    assert len(notes_of_beginning(new)) == (2 if found.wire_format else 1)
    (settings.pipelines / "payments.yaml").write_text(text)
    spec = load_file(settings.pipelines / "payments.yaml", settings)
    assert (spec.value.format, spec.null_values) == ("bytes" if found.wire_format else "json", "quarantine")


def test_the_comments_lead_to_what_is_right(settings: Settings) -> None:
    """What is out-commented on partitions can be taken in as it stands."""
    values = [json.dumps({"at": "2026-01-01T00:00:00Z", "n": 1}).encode()] * 3
    new = Beginning("payments", "payments", "bootstrap_servers: nowhere:1", infer(values), values[:1])
    text = pipeline_yaml(new)
    for line in (
        "    # partition_by: [at_date]",
        "  # - format: iceberg",
        "  #   name: lake.payments",
        "  #   partition_by: [day(at)]",
    ):
        assert f"{line}\n" in text
        text = text.replace(f"{line}\n", f"{line.replace('# ', '', 1)}\n")
    (settings.pipelines / "payments.yaml").write_text(text)
    delta, iceberg = load_file(settings.pipelines / "payments.yaml", settings).tables
    assert (delta.partition_by, iceberg.partition_by) == (("at_date",), ("day(at)",))


def test_a_pipeline_without_a_sample_is_right_and_nothing_is_overwritten(settings: Settings) -> None:
    made = answer("new", "payments")
    assert [Path(path).name for path in made["files"]] == ["payments.yaml", "payments.py", "payments.yaml", "test_payments.py"]
    assert lakebound("check", "payments", "--static").stdout == "payments: valid\n"
    assert "these files exist already" in lakebound("new", "payments", code=1).stderr
    assert "these files exist already" in lakebound("new", "orders", code=1).stderr, "a file that somebody else wrote"
    assert not (settings.apps / "transforms" / "orders.py").exists()


BODY: dict[str, Any] = {
    "problems": [],
    "warnings": ["w"],
    "schemas": ["avro of the subject orders-value"],
    "ranges": [["orders", 0, 5, 10]],
    "read": 5,
    "landed": 3,
    "rows": 6,
    "filtered": 1,
    "bad": 1,
    "reasons": [
        {
            "reason": "does_not_fit",
            "records": 1,
            "examples": [{"topic": "orders", "partition": 0, "offset": 7, "error": "n: 'x' is"}],
        }
    ],
    "tables": {
        "delta:lake.orders": {
            "columns": [["id", "string"], ["n", "int32"], ["_kafka", "struct"]],
            "partition_by": ["n"],
            "changes": ["is created"],
            "rows": [
                {"id": "x" * 100, "n": None, "_kafka": {"partition": 0, "offset": 5}},
                {"id": "b", "n": 2, "_kafka": {"partition": 0, "offset": 6}},
            ],
        }
    },
}


def test_a_trial_is_told_in_words(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}
    monkeypatch.setattr(trial, "try_pipeline", lambda spec, _, **options: asked.update(options) or BODY)
    told = lakebound("try", "orders", "--from-beginning", "--records", "9").stdout
    assert asked == {"records": 9, "newest": False, "rows": 3, "against_landed": False}
    for words in (
        "warning: w",
        "orders, partition 0: offsets 5 to 9",
        "5 records: 3 give 6 rows, 1 are filtered, 1 are bad",
        "orders, partition 0, offset 7: n: 'x' is",
        "delta:lake.orders, partitioned by n",
        f"{'x' * 40}...",
        "partition 0, offset 6",
        "nothing was written",
    ):
        assert words in told
    assert answer("try", "orders") == BODY
    monkeypatch.setattr(trial, "try_pipeline", lambda *_, **__: BODY | {"problems": ["it cannot start"], "tables": {}})
    assert lakebound("try", "orders", code=1).stdout.splitlines()[0] == "it cannot start"
