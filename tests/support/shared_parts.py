"""Which tests one process must run, where several processes share a run."""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling


class SharedParts(LoadScopeScheduling):
    """One process runs a whole file, because its tests share an application; one runs all tests of the one Airflow.

    One also runs all that use Spark's sessions: the first tests of a session cost 40 s of CPU, in which its JVM loads and
    compiles what the later ones need, too.

    Unit and local tests go to whoever is free. This is what ``xdist_group`` marks are for, but xdist 3.8.0 writes them into an
    attribute of the tests that pytest 9.2 does not read.
    """

    def _split_scope(self, nodeid: str) -> str:
        """Return what the test shares with those of the same process."""
        file = nodeid.split("::", 1)[0]
        folder = file.split("/")[1]
        if folder in ("unit", "local"):
            return nodeid
        return folder if folder in ("airflow", "spark") else file
