"""The file in which an embedded service keeps the ports of its last start."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def read_ports(file: Path) -> dict[str, Any] | None:
    """Return the ports by their names; None where there are none, or the file is damaged: then others are chosen.

    Args:
        file: Of the service.
    """
    try:
        found = json.loads(file.read_text())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def write_ports(file: Path, ports: DataclassInstance) -> None:
    """Write the ports; a disk that is full, or a kill, leaves the file as it was.

    Args:
        file: Of the service.
        ports: Its ports.

    Raises:
        OSError: It cannot be written.
    """
    partial = file.with_name(f"{file.name}.partial")
    with partial.open("w") as new:
        new.write(json.dumps(asdict(ports)) + "\n")
        new.flush()
        os.fsync(new.fileno())
    partial.replace(file)
