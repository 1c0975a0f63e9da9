"""Long epochs come after some short ones, which end by themselves."""

from __future__ import annotations

import pytest

from lakebound_spark.real_time.warm_up import Stretch, stretches


@pytest.mark.parametrize("seconds", [5, 30, 59])
def test_short_epochs_come_alone(seconds: int) -> None:
    assert stretches(seconds) == (Stretch(seconds * 1000),)


@pytest.mark.parametrize("seconds", [60, 300, 3600])
def test_before_long_epochs_short_ones_are_run(seconds: int) -> None:
    warm_up, wanted = stretches(seconds)
    assert wanted == Stretch(seconds * 1000)
    assert warm_up.epoch_ms < 5000
    assert [warm_up.is_over(ended) for ended in range(7)] == [False] * 5 + [True, True]
    assert not any(wanted.is_over(ended) for ended in range(7))
