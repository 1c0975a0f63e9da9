"""What a stream does when its records name schemas that are not read yet."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from lakebound.formats.schemas import PartOfRecord, SchemaId
from lakebound.landing.read_schemas import SchemaBook


def ask_for(book: SchemaBook, named: Mapping[PartOfRecord, Collection[SchemaId]]) -> None:
    """Ask for the schemas that records name, by the part of the record."""
    for part, ids in named.items():
        book.want(part, ids)
    book.ask()
