"""What a new pipeline says of values whose schema a registry has: its YAML is right, and names the subject and the record."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from lakebound.formats.framing import VALUE_HEADER
from lakebound.formats.schemas import RecordType, SchemaKind
from lakebound.spec.draft.files import Beginning, notes_of_beginning, pipeline_yaml
from lakebound.spec.draft.inference import Column, Inferred
from lakebound.spec.draft.registered import FoundSchema, proposed
from lakebound.spec.draft.wire_format import WireFormat, foreign_frame_of, wire_format_of
from lakebound.spec.pipeline import PipelineSpec

ORDER, SECOND = RecordType("shop.Order", is_default=True), RecordType("shop.Paid", is_default=False)
WIRE = WireFormat(90, (17, 18))


@pytest.mark.parametrize(
    ("found", "fields", "subject"),
    [
        (FoundSchema("avro", ("orders-value",), ORDER), {}, "orders-value"),
        (FoundSchema("avro", (), ORDER), {}, "orders-value"),
        (FoundSchema("protobuf", ("orders-value",), SECOND), {"record": "shop.Paid"}, "orders-value"),
        (
            FoundSchema("avro", ("other", "shop.Order"), ORDER),
            {"subject_strategy": "record_name", "record": "shop.Order"},
            "shop.Order",
        ),
        (
            FoundSchema("json_schema", ("orders-shop.Order",), ORDER),
            {"subject_strategy": "topic_record_name", "record": "shop.Order"},
            "orders-shop.Order",
        ),
        (FoundSchema("avro", ("other",), None), {"subject": "other"}, "other"),
        (FoundSchema("protobuf", ("on",), SECOND), {"subject": "on", "record": "shop.Paid"}, "on"),
    ],
)
def test_the_proposal_leads_to_the_subject_that_has_the_schema(
    found: FoundSchema, fields: dict[str, str], subject: str
) -> None:
    proposal = proposed("orders", "company", WIRE, {17: found})
    assert proposal is not None
    columns = (Column("id", "BIGINT"), Column("a-b", "STRING"))
    new = Beginning("orders", "orders", "bootstrap_servers: k:1", Inferred(columns, 100, 0), registered=proposal)
    spec = PipelineSpec.model_validate(yaml.safe_load(pipeline_yaml(new)))
    written: dict[str, Any] = spec.value.model_dump(exclude_defaults=True)
    assert written == {"format": found.kind, "registry": "company", **fields}
    assert spec.schema_evolution == "add_columns", "the tables follow the registry"
    assert proposal.subject == subject and not new.is_json
    assert "id BIGINT, `a-b` STRING" in " ".join(pipeline_yaml(new).replace("#", "").split())
    assert any("does not have 18" in note for note in notes_of_beginning(new)), "what goes to quarantine is said"


def test_other_types_of_records_are_named_because_one_pipeline_lands_one() -> None:
    found = {
        17: FoundSchema("avro", ("shop.Order",), ORDER),
        18: FoundSchema("avro", ("shop.Paid",), RecordType("shop.Paid", is_default=True)),
    }
    proposal = proposed("orders", "company", WIRE, found)
    assert proposal is not None and "shop.Paid of shop.Paid" in proposal.others[0]
    assert proposed("orders", "company", WIRE, {}) is None


@pytest.mark.parametrize("form", ["avro", "protobuf", "json_schema"])
def test_where_one_subject_has_several_types_the_proposal_names_one(form: SchemaKind) -> None:
    is_binding = form != "json_schema"
    records = [RecordType(name, is_default=True, is_binding=is_binding) for name in ("shop.Order", "shop.Paid")]
    found = {17 + at: FoundSchema(form, ("orders-value",), one) for at, one in enumerate(records)}
    proposal = proposed("orders", "company", WIRE, found)
    assert proposal is not None
    assert proposal.fields.get("record") == ("shop.Order" if is_binding else None)
    assert any("shop.Paid" in one for one in proposal.others) == is_binding


def test_a_header_names_the_schema_as_well_and_foreign_frames_are_told() -> None:
    guid = bytes(range(16))
    wire = wire_format_of([b"abc", b"abd"], [[(VALUE_HEADER, b"\x01" + guid)], None])
    assert wire is not None and wire.records == 1 and [*wire.payloads.values()] == [b"abc"]
    glue = b"\x03\x00" + guid + b"abc"
    assert "Glue" in str(foreign_frame_of([glue, glue, b"x"])) and foreign_frame_of([glue, b"x", b"y"]) is None


def test_without_a_registry_the_file_is_right_and_shows_what_to_fill_in() -> None:
    new = Beginning("orders", "orders", "bootstrap_servers: k:1", Inferred((), 90, 0, wire_format=WIRE))
    text = pipeline_yaml(new)
    assert PipelineSpec.model_validate(yaml.safe_load(text)).value.format == "bytes"
    assert "#   registry:" in text and "schema ids 17, 18" in " ".join(text.replace("#", "").split())
