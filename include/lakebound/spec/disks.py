"""The ``disks`` block of ``alerts.yaml``: when people are told that a disk is about to be full."""

from __future__ import annotations

from pydantic import Field

from lakebound.frozen import Frozen

_GIB = 1 << 30


class FreeSpaceSpec(Frozen):
    """What must be free. Of a large disk the bytes count, of a small one the share."""

    free_bytes: int = Field(ge=0, description="With fewer bytes free than this, and less than free_share, people are told.")
    free_share: float = Field(ge=0, le=1, description="The share of the disk that goes with free_bytes.")
    minutes_left: float = Field(ge=0, description="People are told when the disk is full this soon at the present rate.")


class DisksSpec(Frozen):
    """When a disk of Lakebound's becomes an alert."""

    warning: FreeSpaceSpec = FreeSpaceSpec(free_bytes=10 * _GIB, free_share=0.1, minutes_left=240)
    critical: FreeSpaceSpec = FreeSpaceSpec(free_bytes=2 * _GIB, free_share=0.03, minutes_left=30)
