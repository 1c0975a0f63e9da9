"""What a table needs for the pipeline's columns, or why it cannot have it: every kind of change under every policy."""

from __future__ import annotations

from typing import Any, Literal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebound.spec.pipeline import SchemaEvolution
from lakebound.tables.schema_change import SchemaPlan, holds, is_wider, plan_schema
from lakebound.tables.table import KAFKA_TYPE

POLICIES: tuple[SchemaEvolution, ...] = ("refuse", "add_columns", "quarantine", "ignore")
FORMATS: tuple[Literal["delta", "iceberg"], ...] = ("delta", "iceberg")
UTC = pa.timestamp("us", tz="UTC")


def schema(**columns: pa.DataType) -> pa.Schema:
    return pa.schema([pa.field(name, kind) for name, kind in columns.items()])


def struct(**fields: pa.DataType) -> pa.DataType:
    return pa.struct(list(fields.items()))


def plan(found: pa.Schema, wanted: pa.Schema, policy: SchemaEvolution = "add_columns", format_: Any = "iceberg") -> SchemaPlan:
    return plan_schema(found, wanted, policy, format_, value_fields=wanted.names)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("format_", FORMATS)
def test_columns_that_only_the_table_has_stay_and_get_nulls(policy: SchemaEvolution, format_: str) -> None:
    found = plan(
        schema(a=pa.int32(), b=pa.string(), more=pa.int64()), schema(b=pa.large_string(), a=pa.int8()), policy, format_
    )
    assert found == SchemaPlan(unfilled=("more",)) and not found.is_change


@pytest.mark.parametrize("format_", FORMATS)
def test_new_columns_are_added_where_the_spec_says_so(format_: str) -> None:
    found = schema(a=pa.int64(), s=struct(x=pa.string()), l=pa.list_(struct(k=pa.string())), m=pa.map_(pa.string(), struct()))
    wanted = schema(
        a=pa.int64(),
        s=struct(x=pa.string(), y=pa.date32()),
        l=pa.list_(struct(k=pa.string(), n=pa.int64())),
        m=pa.map_(pa.string(), struct(z=pa.bool_())),
        new=pa.float64(),
    )
    done = plan(found, wanted, "add_columns", format_)
    assert [one.path for one in done.additions] == [("s", "y"), ("l", "element", "n"), ("m", "value", "z"), ("new",)]
    assert done.told() == [
        "column s.y (DATE) is added",
        "column l.element.n (BIGINT) is added",
        "column m.value.z (BOOLEAN) is added",
        "column new (DOUBLE) is added",
    ]


def test_without_the_word_a_new_column_is_a_difference() -> None:
    (difference,) = plan(schema(a=pa.int64()), schema(a=pa.int64(), new=UTC), "refuse").differences
    assert str(difference) == "column new (TIMESTAMP) is missing in the table: schema_evolution: add_columns adds it"


def test_a_column_that_looks_renamed_is_asked_about_with_the_way_out() -> None:
    found, wanted = schema(id=pa.int64(), amount=pa.int64(), city=pa.string()), schema(id=pa.int64(), amount_eur=pa.int64())
    (difference,) = plan(found, wanted, "refuse").differences
    assert str(difference) == (
        "column amount_eur (BIGINT) is missing in the table, and the pipeline no longer has amount, which the table has: was "
        "amount renamed to amount_eur? A table's column keeps its name: if the records still have amount, write amount in the "
        "schema again; if they have amount_eur now, give it the name amount in the transform: "
        '.withColumnRenamed("amount_eur", "amount"); if it is a new column, schema_evolution: add_columns adds it, and amount '
        "gets nulls"
    )


@pytest.mark.parametrize("policy", ["add_columns", "ignore", "quarantine"])
def test_a_column_that_looks_renamed_is_asked_about_where_nothing_is_refused(policy: SchemaEvolution) -> None:
    told = plan(schema(amount=pa.int64()), schema(total=pa.int64()), policy).told()
    assert "which only the table has, gets nulls: was amount renamed to total?" in told[0]


def test_a_field_inside_of_a_column_can_look_renamed_too() -> None:
    (difference,) = plan(schema(m=struct(town=pa.string())), schema(m=struct(city=pa.string())), "refuse").differences
    assert "was town renamed to city?" in str(difference) and "withColumnRenamed" not in str(difference)


def test_only_a_column_of_the_same_type_can_look_renamed() -> None:
    (difference,) = plan(schema(amount=pa.int64()), schema(total=pa.string()), "refuse").differences
    assert "renamed" not in str(difference)
    lost, new = schema(paid_at=UTC, sent_at=UTC), schema(sent=UTC, paid=UTC)
    assert [one.former for one in plan(lost, new, "add_columns").additions] == ["sent_at", "paid_at"]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_partition_fields_name_is_no_name_for_a_new_column(policy: SchemaEvolution) -> None:
    found, wanted = schema(at=UTC), schema(at=UTC, at_day=pa.date32())
    done = plan_schema(found, wanted, policy, "iceberg", wanted.names, reserved=["at_day"])
    if policy in ("quarantine", "ignore"):
        assert done.left_out and not done.differences
        return
    assert [str(one) for one in done.differences] == [
        "column at_day (DATE) is missing in the table, which has a partition field of this name: give it another name"
    ]
    assert not plan_schema(
        schema(s=struct()), schema(s=struct(at_day=UTC)), "add_columns", "iceberg", (), ["at_day"]
    ).differences


@pytest.mark.parametrize("name", ["net amount", "a,b", "a;b", "a{b", "a}b", "a(b", "a)b", "a\nb", "a\tb", "a=b"])
@pytest.mark.parametrize("policy", POLICIES)
def test_a_name_that_no_new_delta_table_may_have_is_no_name_for_a_new_column(name: str, policy: SchemaEvolution) -> None:
    found, wanted = schema(id=pa.int64()), schema(id=pa.int64(), **{name: pa.string()})
    done = plan(found, wanted, policy, "delta")
    if policy in ("quarantine", "ignore"):
        assert done.left_out and not done.differences
        return
    assert [str(one) for one in done.differences] == [
        f"column {name} (STRING) is missing in the table, and has a character that Delta's readers refuse "
        f"(one of ' ,;{{}}()=' or a line break): give it another name"
    ]
    assert not plan(found, wanted, "add_columns", "iceberg").differences
    assert not plan(wanted, wanted, policy, "delta").differences, "a column that is there stays"


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("format_", FORMATS)
def test_two_new_columns_must_differ_by_more_than_case(policy: SchemaEvolution, format_: str) -> None:
    done = plan(schema(id=pa.int64()), schema(id=pa.int64(), note=pa.string(), Note=pa.string()), policy, format_)
    if policy in ("quarantine", "ignore"):
        assert done.left_out and not done.differences
        return
    assert str(done.differences[-1]) == (
        "column Note (STRING) is missing in the table, and differs from note by upper and lower case only: give one of them "
        "another name"
    )


@pytest.mark.parametrize("policy", ["quarantine", "ignore"])
def test_a_new_column_can_be_left_out(policy: SchemaEvolution) -> None:
    done = plan(schema(a=pa.int64()), schema(a=pa.int64(), new=pa.string()), policy)
    assert [one.path for one in done.left_out] == [("new",)] and not done.is_change and not done.differences
    nested = plan(schema(s=struct(x=pa.int64())), schema(s=struct(x=pa.int64(), y=pa.int64())), policy)
    assert "cannot be left out" in str(nested.differences[0])


def test_only_a_field_of_the_records_can_send_them_to_quarantine() -> None:
    done = plan_schema(schema(a=pa.int64()), schema(a=pa.int64(), made=pa.int64()), "quarantine", "delta", ["a"])
    assert "is not one of the fields that identify a record" in str(done.differences[0])


WIDER = [
    (pa.int32(), pa.int64()),
    (pa.float32(), pa.float64()),
    (pa.decimal128(10, 2), pa.decimal128(12, 2)),
]


@pytest.mark.parametrize(("narrow", "wide"), WIDER)
def test_iceberg_widens(narrow: pa.DataType, wide: pa.DataType) -> None:
    nested = schema(a=narrow, s=struct(b=narrow), l=pa.list_(narrow), m=pa.map_(pa.string(), narrow))
    wanted = schema(a=wide, s=struct(b=wide), l=pa.list_(wide), m=pa.map_(pa.string(), wide))
    done = plan(nested, wanted)
    assert [one.path for one in done.widenings] == [("a",), ("s", "b"), ("l", "element"), ("m", "value")]
    for policy in ("refuse", "quarantine", "ignore"):
        assert "schema_evolution: add_columns widens it" in str(plan(nested, wanted, policy).differences[0])


@pytest.mark.parametrize(("narrow", "wide"), WIDER)
@pytest.mark.parametrize("policy", POLICIES)
def test_delta_does_not_and_says_what_to_do(narrow: pa.DataType, wide: pa.DataType, policy: SchemaEvolution) -> None:
    (difference,) = plan(schema(a=narrow), schema(a=wide), policy, "delta").differences
    assert "typeWidening" in str(difference) and "or land into a new table" in str(difference)


@pytest.mark.parametrize(("narrow", "wide"), [*WIDER, (pa.int8(), pa.int32()), (pa.int16(), pa.int64())])
@pytest.mark.parametrize("format_", FORMATS)
def test_a_wider_column_takes_the_narrower_type(narrow: pa.DataType, wide: pa.DataType, format_: str) -> None:
    assert plan(schema(a=wide), schema(a=narrow), "refuse", format_) == SchemaPlan()


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (pa.string(), pa.int64()),
        (pa.int64(), pa.string()),
        (pa.int64(), pa.float64()),
        (pa.float64(), pa.int64()),
        (pa.decimal128(10, 2), pa.decimal128(12, 4)),
        (pa.decimal128(10, 2), pa.float64()),
        (pa.date32(), UTC),
        (pa.timestamp("us"), UTC),
        (pa.string(), struct(a=pa.string())),
        (struct(a=pa.string()), pa.list_(pa.string())),
        (pa.bool_(), pa.int32()),
        (pa.map_(pa.int32(), pa.string()), pa.map_(pa.int64(), pa.string())),
    ],
)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("format_", FORMATS)
def test_another_type_is_never_taken(found: pa.DataType, wanted: pa.DataType, policy: SchemaEvolution, format_: str) -> None:
    done = plan(schema(a=found, ok=pa.int64()), schema(a=wanted, ok=pa.int64(), new=pa.int64()), policy, format_)
    assert done.differences[0].path[0] == "a" and not done.is_change
    assert "in the table" in str(done.differences[0])


def test_a_name_that_differs_by_case_only_is_not_added() -> None:
    (difference,) = plan(schema(Amount=pa.int64()), schema(amount=pa.int64())).differences
    assert "differs from Amount" in str(difference)


def test_where_a_row_came_from_is_never_altered() -> None:
    (difference,) = plan(schema(a=pa.int64()), schema(a=pa.int64(), _kafka=KAFKA_TYPE)).differences
    assert "was not made by a pipeline" in str(difference)
    narrow = pa.struct([one.with_type(pa.int32()) if one.name == "offset" else one for one in KAFKA_TYPE])
    assert plan(schema(_kafka=narrow), schema(_kafka=KAFKA_TYPE)).differences


def test_every_difference_is_named() -> None:
    done = plan(schema(a=pa.int64(), b=pa.string()), schema(a=pa.string(), b=pa.int64(), c=pa.int64()), "refuse")
    assert [one.path for one in done.differences] == [("a",), ("b",), ("c",)]


primitives = st.sampled_from(
    [
        pa.int8(),
        pa.int16(),
        pa.int32(),
        pa.int64(),
        pa.float32(),
        pa.float64(),
        pa.string(),
        pa.binary(),
        pa.bool_(),
        pa.date32(),
        UTC,
        pa.decimal128(5, 2),
        pa.decimal128(9, 2),
        pa.decimal128(9, 3),
    ]
)
kinds = st.recursive(
    primitives,
    lambda inner: st.one_of(
        inner.map(lambda kind: pa.list_(pa.field("element", kind))),
        inner.map(lambda kind: pa.map_(pa.string(), kind)),
        st.dictionaries(st.sampled_from("xyz"), inner, min_size=1).map(lambda fields: pa.struct(list(fields.items()))),
    ),
    max_leaves=4,
)
schemas = st.dictionaries(st.sampled_from("abcd"), kinds, min_size=1).map(lambda columns: pa.schema(list(columns.items())))
policies, formats = st.sampled_from(POLICIES), st.sampled_from(FORMATS)


def applied(found: pa.Schema, done: SchemaPlan) -> pa.Schema:
    """Return the columns after the plan, as a table would have them."""
    changes = {one.path: one.type for one in done.additions} | {one.path: one.wanted for one in done.widenings}

    def field(one: pa.Field, path: tuple[str, ...]) -> pa.Field:
        return pa.field(one.name, changes[path] if path in changes else within(one.type, path))

    def within(kind: pa.DataType, path: tuple[str, ...]) -> pa.DataType:
        if path in changes:
            return changes[path]
        if pa.types.is_struct(kind):
            new = [
                pa.field(at[-1], added) for at, added in changes.items() if at[:-1] == path and kind.get_field_index(at[-1]) < 0
            ]
            return pa.struct([*(field(one, (*path, one.name)) for one in kind), *new])
        if pa.types.is_list(kind):
            return pa.list_(pa.field("element", within(kind.value_type, (*path, "element"))))
        if pa.types.is_map(kind):
            return pa.map_(kind.key_type, within(kind.item_type, (*path, "value")))
        return kind

    new = [pa.field(at[0], kind) for at, kind in changes.items() if len(at) == 1 and at[0] not in found.names]
    return pa.schema([*(field(one, (one.name,)) for one in found), *new])


@given(schemas, schemas, policies, formats)
def test_a_plan_leads_to_a_table_that_takes_the_columns(
    found: pa.Schema, wanted: pa.Schema, policy: SchemaEvolution, format_: Literal["delta", "iceberg"]
) -> None:
    done = plan(found, wanted, policy, format_)
    if done.differences:
        assert not done.is_change and not done.left_out
        return
    after = applied(found, done)
    again = plan(
        after, pa.schema([one for one in wanted if (one.name,) not in [out.path for out in done.left_out]]), "refuse", format_
    )
    assert again.differences == () and not again.is_change
    assert policy == "add_columns" or after == found
    assert set(found.names) <= set(after.names), "nothing is ever dropped"


@given(primitives, primitives)
def test_what_is_wider_is_wider_one_way_only(left: pa.DataType, right: pa.DataType) -> None:
    assert not (is_wider(left, right) and is_wider(right, left))
    assert not is_wider(left, left)
    assert not holds(left, right, is_nested=True) or holds(left, right, is_nested=False)
