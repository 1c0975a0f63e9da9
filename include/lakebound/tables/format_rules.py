"""What a table of a format can be, as far as its YAML and its columns tell. Pure: a format's library is not imported.

Each format has its rules in ``rules.py`` of its folder; what differs in reading and writing tables is in its other modules.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from lakebound.spec.table import TableSpec
from lakebound.tables.formats import PerFormat

if TYPE_CHECKING:
    from lakebound.storage.location import Location
    from lakebound.tables.places import Places


class FormatRules:
    """The rules of one format; these defaults are those of a format that has nothing of its own.

    Attributes:
        fixed_properties: Properties that have one value in each table of ours.
        unused_properties: Properties without an effect on what is written here.
        tells_partitions_in_log: Whether the log holds each file's value of the partition columns.
        has_catalog: Whether a catalog names the tables; otherwise the folder says all.
        not_widened: Why no column's type is widened; empty: it is.
        skips_changes: Option of Spark's streaming reader that passes commits which change rows.
        commit_requests: Writes and reads of an object store by a commit with one data file, as measured by the tests.
    """

    fixed_properties: ClassVar[Mapping[str, str]] = {}
    unused_properties: ClassVar[tuple[str, ...]] = ()
    tells_partitions_in_log: ClassVar[bool] = False
    has_catalog: ClassVar[bool] = False
    not_widened: ClassVar[str] = ""
    skips_changes: ClassVar[str] = ""
    commit_requests: ClassVar[tuple[float, float]]

    def may_exist(self, places: Places) -> bool:
        """Whether it is worth asking for a table: asking might make a catalog that is not there."""
        return True

    def table_folder(self, data_folder: Location) -> Location:
        """Return the folder of a table, by the one in which its data files are."""
        return data_folder

    def partition_names(self, spec: TableSpec) -> tuple[str, ...]:
        """Return the names of a table's partition fields, which no new column may have; none where they are columns."""
        return ()

    def is_partitioned_by(self, kind: pa.DataType) -> bool:
        """Whether a table can be partitioned by the values of columns of a flat type."""
        return True

    def unusable_name(self, name: str) -> str | None:
        """Return why a column cannot have a name; None: it can."""
        return None

    def is_changeable(self, name: str) -> bool:
        """Whether a property of an existing table may change."""
        return True

    def wanted_properties(self, schema: pa.Schema, wanted: Mapping[str, str]) -> dict[str, str]:
        """Return the properties of a table for which the YAML asks, as the table gets them.

        Args:
            schema: Its columns.
            wanted: By the YAML.
        """
        return dict(wanted)


_RULES: PerFormat[FormatRules] = PerFormat("lakebound.tables", "rules:RULES")


def rules_of(format_: str) -> FormatRules:
    """Return the rules of a format.

    Args:
        format_: Its name, as in the YAML.
    """
    return _RULES.of(format_)
