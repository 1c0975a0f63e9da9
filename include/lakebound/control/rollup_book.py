"""Continues a pipeline's rollups where the application before left them. Only the process that has the lease has them open."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from lakebound.control.folder import ControlFolder
from lakebound.control.rollup_files import (
    append_buckets,
    read_file,
    read_totals,
    rewrite_file,
    rollup_file,
    totals_file,
    write_totals,
)
from lakebound.control.rollups import RESOLUTIONS, Bucket, Figures, Resolution, Totals, latest_of_each_time, pruned, rolled_up

log = logging.getLogger(__name__)

_FINEST = RESOLUTIONS[0]


class RollupBook:
    """The files, and what of them is not rolled up yet."""

    def __init__(self, control: ControlFolder, now: float) -> None:
        """Read what is there; roll up what is over and was not rolled up; drop what cannot be read, with a line in the log.

        Args:
            control: State folder of the pipeline.
            now: Epoch seconds; nothing that began earlier is written later.

        Raises:
            OSError: A file cannot be read or written.
        """
        self._control = control
        self._totals = _totals(control, now)
        finest = _readable(control, _FINEST, now)
        self._before = {bucket.at: bucket for bucket in finest if bucket.at + 2 * _FINEST.seconds > now}
        self._not_rolled_up: dict[Resolution, list[Bucket]] = {}
        finer = finest
        for resolution in RESOLUTIONS[1:]:
            known = _readable(control, resolution, now)
            lacking = rolled_up(finer, resolution, before=now, known={bucket.at for bucket in known})
            lacking = pruned(lacking, resolution, now)
            if lacking:
                append_buckets(control, resolution, lacking, now)
            self._not_rolled_up[resolution] = [one for one in finer if resolution.start_of(one.at) + resolution.seconds > now]
            finer = latest_of_each_time([*known, *lacking])

    @property
    def totals(self) -> Totals:
        """The sums of what was written."""
        return self._totals

    def write(self, buckets: Sequence[Bucket], now: float) -> None:
        """Write buckets of ten seconds, and the coarser ones that are over with them. After an error it may be called again.

        Args:
            buckets: What this process counted, oldest first. What another one counted in the same ten seconds is added.
            now: Epoch seconds; no bucket that began earlier comes later.

        Raises:
            OSError: The disk does not take it.
        """
        finer = [self._before[one.at].plus(one.figures) if one.at in self._before else one for one in buckets]
        append_buckets(self._control, _FINEST, finer, now)
        not_rolled_up = {}
        for resolution in RESOLUTIONS[1:]:
            finer = latest_of_each_time([*self._not_rolled_up[resolution], *finer])
            not_rolled_up[resolution] = [one for one in finer if resolution.start_of(one.at) + resolution.seconds > now]
            finer = rolled_up(finer, resolution, before=now)
            if finer:
                append_buckets(self._control, resolution, finer, now)
        totals = self._totals.plus(sum_of(buckets))
        write_totals(self._control, totals)
        # Only now: who calls again after an error finds everything as it was.
        self._totals, self._not_rolled_up = totals, not_rolled_up


def sum_of(buckets: Sequence[Bucket]) -> Figures:
    """Return the figures of all of them, oldest first."""
    figures = Figures()
    for bucket in buckets:
        figures = figures.plus(bucket.figures)
    return figures


def _totals(control: ControlFolder, now: float) -> Totals:
    try:
        found = read_totals(control)
    except ValueError:
        log.warning("%s cannot be read; the totals begin at 0 again", totals_file(control))
        found = None
    return Totals(since=now) if found is None else found


def _readable(control: ControlFolder, resolution: Resolution, now: float) -> list[Bucket]:
    read = read_file(control, resolution)
    if read.unreadable:
        log.warning("%s: %d lines cannot be read and are dropped", rollup_file(control, resolution), read.unreadable)
        rewrite_file(control, resolution, read.buckets, now)
    return read.buckets
