"""A table is put back to an earlier version: the tests of the embedded catalog, in the other catalogs."""

from __future__ import annotations

from tests.local.tables.test_tables_restore import (  # noqa: F401
    app,
    test_a_partitioned_table_goes_back,
    test_a_restore_beside_a_commit_is_refused_or_after_it,
    test_a_restore_by_a_zombie_is_refused,
    test_a_version_before_and_one_after_compaction_can_be_restored,
    test_an_application_from_before_the_restore_is_a_zombie,
    test_an_iceberg_restore_is_a_child_of_the_old_snapshot,
    test_foreign_rows_on_top_are_removed,
    test_looking_back_tells_rows_entry_and_columns,
    test_rows_and_ledger_go_back_and_landing_goes_on_from_there,
    test_the_current_version_can_be_restored_too,
    test_the_handle_that_restored_can_land_once_it_has_read_the_ledger,
    test_versions_are_listed_with_their_times_and_what_was_left_by_a_restore,
)
