"""The ``disks`` block of ``alerts.yaml``: when people are told that a disk is about to be full."""

from __future__ import annotations

from pydantic import Field

from lakebound.frozen import Frozen

_GIB = 1 << 30


class FreeSpaceSpec(Frozen):
    """How much must be free. On a large disk free_bytes decides, on a small one free_share."""

    free_bytes: int = Field(ge=0, description="An alert is raised if fewer bytes than this and less than free_share are free.")
    free_share: float = Field(
        ge=0, le=1, description="Share of the disk, 0 to 1. It is used together with free_bytes, and alone for free inodes."
    )
    minutes_left: float = Field(
        ge=0, description="An alert is raised if the disk will be full within this time at the present rate."
    )


class DisksSpec(Frozen):
    """When a disk of Lakebound's becomes an alert."""

    warning: FreeSpaceSpec = FreeSpaceSpec(free_bytes=10 * _GIB, free_share=0.1, minutes_left=240)
    critical: FreeSpaceSpec = FreeSpaceSpec(free_bytes=2 * _GIB, free_share=0.03, minutes_left=30)
