"""Ports of the embedded services: a file that a full disk or a kill left damaged costs other ports, and no start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lakebound.local import ports_file, stack
from lakebound.local.broker import BrokerPorts
from lakebound.local.ports_file import read_ports, write_ports
from lakebound.settings import load_settings

SERVICES: tuple[Callable[..., Any], ...] = (stack.broker_of, stack.airflow_of)


@pytest.mark.parametrize("service_of", SERVICES)
@pytest.mark.parametrize("damaged", ["", "{", "[]", "7"])
def test_a_service_whose_ports_cannot_be_read_chooses_others(
    service_of: Callable[..., Any], damaged: str, tmp_path: Path
) -> None:
    service = service_of(replace(load_settings(), home=tmp_path))
    service._ports_file.parent.mkdir(parents=True)
    service._ports_file.write_text(damaged)
    assert service._choose_ports()


def test_a_disk_that_is_full_leaves_the_ports_of_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "ports.json"
    write_ports(file, BrokerPorts(1, 2))
    assert read_ports(file) == {"plaintext": 1, "controller": 2, "sasl": 0}

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ports_file.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_ports(file, BrokerPorts(3, 4))
    assert read_ports(file) == {"plaintext": 1, "controller": 2, "sasl": 0}
