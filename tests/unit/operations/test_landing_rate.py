"""The rate at which a stream lands, from its entries alone."""

from __future__ import annotations

from tests.support.tables.local_tables import draft

from lakebound.operations.recovery.landing_rate import landing_rate
from lakebound.tables.table import CommittedEntry


def commits(*points: tuple[int, int]) -> list[CommittedEntry]:
    """Return entries newest first, of (milliseconds, records) oldest first."""
    return [CommittedEntry(str(at), at, draft(0, read)) for at, read in points][::-1]


def test_the_best_second_tells_the_rate() -> None:
    steady = [(number * 500, 10) for number in range(10)]
    burst = [(5000, 400), (5500, 400), (6000, 10)]
    assert landing_rate(commits(*steady)) == 20
    assert landing_rate(commits(*steady, *burst)) == 800


def test_two_commits_a_millisecond_apart_are_no_rate() -> None:
    assert landing_rate(commits((0, 5), (1, 1_000_000))) is None
    assert landing_rate(commits((0, 5))) is None and landing_rate([]) is None
    assert landing_rate(commits((0, 0), (60_000, 0))) is None
    assert landing_rate(commits((0, 7), (4000, 100))) == 25
