"""What readers make of a file's columns, by what the columns meant when it was written and by what they are now."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lakebound.tables.misread import Column, Compared, HeldColumn, Misreading, compare

ID, CITY, TOWN = Column("id", 1), Column("city", 2), Column("town", 2)
NEW_CITY = Column("city", 3)


def held(**keys: int | None) -> list[HeldColumn]:
    return [HeldColumn(name, key) for name, key in keys.items()]


def test_a_renamed_column_is_found_by_its_key() -> None:
    assert compare(held(id=1, city=2), [[ID, CITY]], [ID, TOWN]) == Compared()


def test_a_column_of_the_old_name_gets_nothing() -> None:
    assert compare(held(id=1, city=2), [[ID, CITY]], [ID, TOWN, NEW_CITY]) == Compared()


def test_values_in_another_column() -> None:
    assert compare(held(city=2), [[TOWN, NEW_CITY]], [TOWN, NEW_CITY]).misread == (Misreading("city", "city", "town"),)
    assert compare(held(city=3), [[CITY]], [TOWN, NEW_CITY]).misread == (Misreading("city", "town", "city"),)
    assert compare(held(city=3), [[CITY]], [NEW_CITY]).misread == (Misreading("city", None, "city"),), "dropped values"


def test_values_that_nobody_finds() -> None:
    for key in (None, 9):
        assert compare(held(city=key), [[CITY]], [CITY]).misread == (Misreading("city", "city", None),)
        assert compare(held(city=key), [[CITY]], [TOWN]).misread == (Misreading("city", "town", None),)
        assert compare(held(city=key), [[CITY]], [ID]) == Compared(), "it was dropped since"


def test_a_column_that_the_file_has_under_its_key_is_found() -> None:
    assert compare(held(city=9, other=2), [[CITY]], [CITY]) == Compared()


def test_a_column_that_the_table_did_not_have_says_nothing() -> None:
    assert compare(held(city=2, written_by_spark=None), [[CITY]], [CITY]) == Compared()


def test_where_several_columns_may_be_meant_it_is_undecided() -> None:
    both = [[CITY], [TOWN, NEW_CITY]]
    assert compare(held(city=2), both, [TOWN, NEW_CITY]) == Compared(is_undecided=True)
    assert compare(held(city=2), both, [ID]) == Compared(), "the table has neither of them any more"
    assert compare(held(city=7), both, [TOWN, NEW_CITY]).misread, "but never this one"


def test_fields_in_columns_are_compared_likewise() -> None:
    def items(*fields: Column) -> Column:
        return Column("items", 5, (Column("element", 6, fields),))

    inside = HeldColumn("items", 5, (HeldColumn("element", 6, (HeldColumn("sku", 8),)),))
    was, now = items(Column("sku", 7)), items(Column("code", 7), Column("sku", 8))
    assert compare([inside], [[was]], [now]).misread == (
        Misreading("items.element.sku", "items.element.code", "items.element.sku"),
    )
    assert compare([inside], [[now]], [now]) == Compared()


NAMES = st.sampled_from(["a", "b", "c", "d"])


@given(st.lists(NAMES, unique=True), st.lists(st.tuples(st.sampled_from(["rename", "drop", "add"]), NAMES), max_size=8))
def test_files_with_keys_of_their_own_are_never_misread(names: list[str], edits: list[tuple[str, str]]) -> None:
    columns = [Column(name, number) for number, name in enumerate(names)]
    file = [HeldColumn(one.name, one.key) for one in columns]
    now, newest = columns, len(columns)
    for what, name in edits:
        free = name not in {one.name for one in now}
        if what == "drop":
            now = [one for one in now if one.name != name]
        elif what == "add" and free:
            newest += 1
            now = [*now, Column(name, newest)]
        elif what == "rename" and free and now:
            now = [Column(name, now[0].key), *now[1:]]
    assert compare(file, [columns], now) == Compared()
