"""Whatever a commit answers, the batch lands once: the tests of the embedded catalog, in the other catalogs."""

from __future__ import annotations

from tests.local.tables.test_commit_outcomes import (  # noqa: F401
    test_a_commit_right_after_ours_is_not_stepped_over,
    test_a_commit_that_answers_with_an_error_lands_once,
    test_a_handle_that_has_not_read_the_ledger_is_refused,
    test_a_ledger_that_stays_unreadable_is_an_unknown_outcome,
    test_a_stale_application_is_told_that_its_batch_has_landed,
    test_a_stale_handle_is_refused,
    test_a_zombie_is_refused_by_the_table,
    test_a_zombie_that_reads_the_ledger_anew_is_refused_too,
    test_a_zombie_whose_commit_succeeded_unheard_ends_and_the_batch_is_there_once,
    test_an_error_after_which_the_ledger_cannot_be_read_at_first,
    test_another_pipelines_table_is_refused,
    test_batches_land_one_after_another,
    test_the_lease_is_looked_at_before_another_attempt,
)
from tests.local.tables.test_commit_races import (  # noqa: F401
    test_a_compaction_meanwhile_does_not_stop_the_batch,
    test_a_metadata_change_meanwhile_does_not_stop_the_batch,
    test_handles_that_race_land_each_batch_once,
)
from tests.support.tables.local_tables import app_fixture  # noqa: F401
