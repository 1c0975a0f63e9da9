"""Which brokers of pipelines answer: without a broker, and with settings that do not work."""

from __future__ import annotations

import time
from typing import Any

import pytest
from tests.support.streams.command_line import ORDERS

from lakebound.landing.brokers import look_at_brokers
from lakebound.spec.pipeline import PipelineSpec


def pipeline(name: str, **connection: Any) -> PipelineSpec:
    return PipelineSpec.model_validate({**ORDERS, "pipeline": name, "connection": connection})


def test_brokers_that_are_away_cost_one_timeout_together() -> None:
    specs = [pipeline(f"p{number}", bootstrap_servers=f"127.0.0.1:{1 + number % 12}") for number in range(24)]
    begin = time.monotonic()
    found = look_at_brokers(specs, timeout_seconds=1.0)
    assert time.monotonic() - begin < 10, "twelve addresses, one after the other, take twelve seconds"
    assert [set(view.pipelines) for view in found] == [{f"p{n}", f"p{n + 12}"} for n in range(12)]
    assert all(view.brokers is None and "no answer" in (view.problem or "") for view in found)


def test_what_is_wrong_with_the_settings_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAKEBOUND_SECRET_NOWHERE", raising=False)
    sasl = {"mechanism": "PLAIN", "username": "ada", "password": {"env": "LAKEBOUND_SECRET_NOWHERE"}}
    secret, authority = look_at_brokers(
        [
            pipeline("secret", bootstrap_servers="127.0.0.1:1", sasl=sasl),
            pipeline("authority", bootstrap_servers="127.0.0.1:1", tls=True, tls_ca_file="/nowhere/ca.pem"),
        ],
        timeout_seconds=1.0,
    )
    assert "sasl.password" in (secret.problem or "")
    assert "connection.tls_ca_file: /nowhere/ca.pem" in (authority.problem or "")
