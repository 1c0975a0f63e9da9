"""Runs the server as a process: ``python -m tests.support.s3.server`` prints one line of JSON with its addresses and a key.

The key's parts are taken from LAKEBOUND_TEST_S3_KEY_ID and LAKEBOUND_TEST_S3_SECRET, or made up.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import signal
import sys
from pathlib import Path

from tests.support.s3.access import AccessKey
from tests.support.s3.control import start_control
from tests.support.s3.http_side import HttpSide
from tests.support.s3.service import Service


def main(arguments: list[str] | None = None) -> None:
    """Serve until the process is ended."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.s3.server", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=0, help="port of S3; 0 takes a free one (default)")
    parser.add_argument("--control-port", type=int, default=0, help="port for faults and the log, on 127.0.0.1 only")
    parser.add_argument("--folder", type=Path, help="keep objects here as well, for the next server")
    parser.add_argument("--bucket", action="append", default=[], help="bucket to begin with; may be given several times")
    parser.add_argument("--end-with-stdin", action="store_true", help="end when standard input is closed (the parent died)")
    chosen = parser.parse_args(arguments)
    key = AccessKey(
        os.environ.get("LAKEBOUND_TEST_S3_KEY_ID") or f"TEST{secrets.token_hex(8).upper()}",
        os.environ.get("LAKEBOUND_TEST_S3_SECRET") or secrets.token_urlsafe(30),
    )
    service = Service([key], chosen.folder)
    for bucket in set(chosen.bucket) - service.store.buckets().keys():
        service.store.create_bucket(bucket)
    side = HttpSide(service, chosen.host, chosen.port)
    control = start_control(service, side, "127.0.0.1", chosen.control_port)
    about = {
        "endpoint": "http://{}:{}".format(*side.address),
        "control": "http://{}:{}".format(*control),
        "access_key_id": key.access_key_id,
        "secret_access_key": key.secret_access_key,
    }
    print(json.dumps(about), flush=True)
    if chosen.end_with_stdin:
        sys.stdin.read()
    else:
        signal.pause()


if __name__ == "__main__":
    main()
