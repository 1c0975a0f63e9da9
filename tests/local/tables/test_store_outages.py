"""What deltalake says of a store that fails: an outage is waited out, a refusal is not."""

from __future__ import annotations

from typing import Any

import pytest
from deltalake import DeltaTable
from tests.support.s3.clients import delta_options
from tests.support.s3.faults import Fault, slow_down
from tests.support.s3.running import S3Server
from tests.support.tables.local_tables import rows

from lakebound.tables.outages import passes

IMPATIENT = {"max_retries": "0", "retry_timeout": "1s", "timeout": "1s"}
OUTAGES = {
    "500": Fault("status", count=None),
    "503": slow_down(count=None),
    "closed": Fault("disconnect", count=None),
    "silent": Fault("silence", count=None),
    "half a body": Fault("half body", count=None, key="*.json"),
}


@pytest.fixture
def table(s3_server: S3Server, s3_bucket: str) -> str:
    """The address of a table."""
    from deltalake import write_deltalake

    write_deltalake(f"s3://{s3_bucket}/t", rows(0, 3), storage_options=delta_options(s3_server))
    return f"s3://{s3_bucket}/t"


def said(address: str, server: S3Server, **changes: Any) -> BaseException:
    """Return what deltalake raises."""
    with pytest.raises(OSError) as raised:
        DeltaTable(address, storage_options=delta_options(server) | IMPATIENT | changes)
    return raised.value


@pytest.mark.parametrize("name", OUTAGES)
def test_an_outage_passes(name: str, table: str, s3_server: S3Server) -> None:
    s3_server.faults.add(OUTAGES[name])
    assert passes(said(table, s3_server))


def test_a_store_that_is_not_there_passes_and_what_is_refused_does_not(table: str, s3_server: S3Server) -> None:
    assert passes(said(table, s3_server, aws_endpoint_url="http://127.0.0.1:9"))
    assert not passes(said(table, s3_server, aws_secret_access_key="another"))
    assert not passes(said("s3://no-such-bucket/t", s3_server))
