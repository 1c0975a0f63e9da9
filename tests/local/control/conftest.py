"""The same tests run on state in a folder and on state in an object store."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.s3.running import S3Server
from tests.support.state.shared import shared_control

from lakebound.control.folder import ControlFolder


@pytest.fixture(params=["folder", "store"])
def control(request: pytest.FixtureRequest, tmp_path: Path) -> ControlFolder:
    """The state of the pipeline ``orders``, of which nothing is there yet."""
    if request.param == "folder":
        return ControlFolder(tmp_path, "orders")
    server: S3Server = request.getfixturevalue("s3_server")
    return shared_control(server, server.new_bucket(), tmp_path)
