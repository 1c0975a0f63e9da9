"""Which tests one process must run, where several processes share a run."""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

ALONE = ("unit", "local")
"""Folders of tests that share no part."""


def _spark(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/spark/test_{name}.py" for name in names)


WITHOUT_SESSION = _spark(
    "gx_catalog",
    "kubernetes",
    "maintenance_actions",
    "maintenance_application",
    "quick_start",
    "standalone",
    "validation_check",
)
"""Files whose tests use none of the sessions of their folder: each Spark of theirs is a process of its own."""
WITH_BOTH_FORMATS = _spark(
    "delta_colleagues",
    "edits",
    "iceberg_columns_replaced",
    "iceberg_other_hands",
    "maintenance_readers",
    "native_checkpoints",
    "pauses",
    "reader_rows",
    "schemas_in_readers",
    "tables_spark",
)
"""Files whose tests use the Spark with both table formats."""
_SECOND_HALF = "tests/spark/test_p"
"""The first of the files that use the second session; both halves take about as long."""


class SharedParts(LoadScopeScheduling):
    """One process runs a whole file, because its tests share an application; one runs all tests of the one Airflow.

    One also runs all that use the Spark with both table formats, and two share the files that use the other session: the first
    tests of a session cost 40 s of CPU, in which its JVM loads and compiles what the later ones need, too. One process for all
    of them went on alone for a quarter of an hour at the end. The files of that folder that use none go to whoever is free.

    Unit and local tests go to whoever is free. The last process takes no others as long as there are some: they fill the time
    in which the others wait, and the cores would be idle.

    This is what ``xdist_group`` marks are for, but xdist 3.8.0 writes them into an attribute of the tests that pytest 9.2 does
    not read.
    """

    def _split_scope(self, nodeid: str) -> str:
        """Return what the test shares with those of the same process."""
        file = nodeid.split("::", 1)[0]
        folder = _folder(nodeid)
        if folder in ALONE:
            return nodeid
        if folder == "airflow":
            return folder
        if folder != "spark" or file in WITHOUT_SESSION:
            return file
        if file in WITH_BOTH_FORMATS:
            return "spark/with both formats"
        return "spark/second half" if file >= _SECOND_HALF else "spark/first half"

    def _assign_work_unit(self, node: WorkerController) -> None:
        """Give a process its next tests: the last one those that share nothing."""
        if node is self.nodes[-1] and (alone := next((scope for scope in self.workqueue if _folder(scope) in ALONE), None)):
            self.workqueue.move_to_end(alone, last=False)
        super()._assign_work_unit(node)


def _folder(scope: str) -> str:
    return scope.partition("::")[0].removeprefix("tests/").split("/")[0]
