"""Record what plain Spark streams do to files, in order: ``python -m tests.recordings.record`` (needs the jars; one minute).

It writes native_delta.json and native_iceberg.json beside itself. Each holds the effects of nine batches on checkpoint and
table as inotify saw them, and the final checkpoint of another query on the same topic, which ended a minute earlier.
"""

from __future__ import annotations

import ctypes
import json
import os
import struct
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lakebound.inspection.doctor.foreign.reading import read_files
from lakebound.local.broker import Broker
from lakebound.settings import load_settings
from tests.support.kafka.makers import topic_maker
from tests.support.worlds.native_streams import NativeSpark, NativeStream, native_spark, produce

HERE = Path(__file__).parent
CREATE, MOVED_FROM, MOVED_TO, DELETE, CLOSE_WRITE = 0x100, 0x40, 0x80, 0x200, 0x8
APART_SECONDS = 65
RECORDS = {0: 220, 1: 160, 2: 160}
WATCHED = ("", "offsets", "commits", "sources", "sources/0")


class Watch:
    """Notes what happens to the files of some folders, in the order in which it happens."""

    def __init__(self, checkpoint: Path, log: Path) -> None:
        self.effects: list[dict[str, Any]] = []
        self._libc = ctypes.CDLL("libc.so.6", use_errno=True)
        self._fd = self._libc.inotify_init1(os.O_NONBLOCK)
        self._folders: dict[int, tuple[Path, str | None]] = {}
        self._moves: dict[int, str] = {}
        self._texts: set[str] = set()
        for name in WATCHED:
            (checkpoint / name).mkdir(parents=True, exist_ok=True)
            self._add(checkpoint / name, name)
        log.mkdir(parents=True, exist_ok=True)
        self._add(log, None)
        self._thread = threading.Thread(target=self._loop)
        self._ended = threading.Event()
        self._thread.start()

    def end(self) -> None:
        """Take what is left, and stop."""
        self._ended.set()
        self._thread.join()
        os.close(self._fd)

    def _add(self, folder: Path, name: str | None) -> None:
        mask = CREATE | MOVED_FROM | MOVED_TO | DELETE | CLOSE_WRITE
        self._folders[self._libc.inotify_add_watch(self._fd, os.fsencode(folder), mask)] = (folder, name)

    def _loop(self) -> None:
        while True:
            try:
                data = os.read(self._fd, 1 << 16)
            except BlockingIOError:
                if self._ended.is_set():
                    return
                time.sleep(0.001)
                continue
            at = 0
            while at < len(data):
                watch, mask, cookie, length = struct.unpack_from("iIII", data, at)
                name = data[at + 16 : at + 16 + length].rstrip(b"\0").decode()
                at += 16 + length
                folder, parent = self._folders[watch]
                if parent is None:
                    self._table(folder, mask, name)
                else:
                    self._checkpoint(folder / name, f"{parent}/{name}".lstrip("/"), mask, cookie)

    def _checkpoint(self, file: Path, path: str, mask: int, cookie: int) -> None:
        if mask & 0x40000000:  # a folder
            return
        if mask & CREATE:
            self.effects.append({"op": "create", "path": path})
        elif mask & MOVED_FROM:
            self._moves[cookie] = path
        elif mask & MOVED_TO:
            content = file.read_bytes().decode("latin-1")
            self.effects.append({"op": "rename", "from": self._moves.pop(cookie), "path": path, "content": content})
        elif mask & DELETE:
            self.effects.append({"op": "delete", "path": path})

    def _table(self, folder: Path, mask: int, name: str) -> None:
        if name in self._texts or not mask & (MOVED_TO | CLOSE_WRITE | CREATE):
            return
        if name.endswith(".json") and name[:20].isdecimal() and len(name) == 25:
            found = [line for line in (folder / name).read_text().splitlines() if line.startswith(('{"commitInfo', '{"txn'))]
            self.effects.append({"op": "table", "version": int(name[:20]), "text": "\n".join(found)})
        elif name.endswith(".metadata.json") and name.startswith("v"):
            body = json.loads((folder / name).read_text())
            kept = ("current-snapshot-id", "snapshots")
            self.effects.append({"op": "table", "metadata": {key: body.get(key) for key in kept}})
        else:
            return
        self._texts.add(name)


@contextmanager
def watching(checkpoint: Path, log: Path) -> Iterator[Watch]:
    """Watch a checkpoint and the log folder of a table."""
    watch = Watch(checkpoint, log)
    try:
        yield watch
    finally:
        watch.end()


def record(spark: NativeSpark, servers: str, topic: str, kind: str, folder: Path, warehouse: Path) -> dict[str, Any]:
    """Run the stream and return its recording."""
    table, log = _new_table(spark, kind, f"main_{kind}", folder, warehouse)
    checkpoint = folder / f"{kind}-checkpoint"
    with watching(checkpoint, log) as watch:
        spark.run(NativeStream(servers, topic, kind, table, f"file://{checkpoint}", retained_batches=4))
    return {"topic": topic, "records": RECORDS, "effects": watch.effects}


def other(spark: NativeSpark, servers: str, topic: str, kind: str, folder: Path, warehouse: Path) -> Mapping[str, str]:
    """Run another query, of other batches, and return its checkpoint."""
    table, _ = _new_table(spark, kind, f"other_{kind}", folder, warehouse)
    checkpoint = folder / f"{kind}-other"
    starting = json.dumps({topic: {"0": 13, "1": 7, "2": 29}})
    spark.run(NativeStream(servers, topic, kind, table, f"file://{checkpoint}", starting, batch_offsets=47))
    return {path: content.decode("latin-1") for path, content in read_files(checkpoint).items()}


def main() -> None:
    """Record both formats."""
    jars = load_settings().jars
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        broker = Broker(folder / "broker", jars)
        broker.start()
        try:
            with native_spark(folder / "warehouse", jars) as spark:
                servers = broker.bootstrap_servers
                topic = topic_maker(servers)("native", 3)
                produce(servers, topic, RECORDS)
                places = (folder, folder / "warehouse")
                others = {kind: other(spark, servers, topic, kind, *places) for kind in ("delta", "iceberg")}
                time.sleep(APART_SECONDS)
                for kind in ("delta", "iceberg"):
                    recording = record(spark, servers, topic, kind, *places) | {"other": others[kind]}
                    (HERE / f"native_{kind}.json").write_text(json.dumps(recording, indent=0) + "\n")
                    print(kind, len(recording["effects"]), "effects", file=sys.stderr)
        finally:
            broker.stop()


def _new_table(spark: NativeSpark, kind: str, name: str, folder: Path, warehouse: Path) -> tuple[str, Path]:
    if kind == "delta":
        return str(folder / name), folder / name / "_delta_log"
    spark.sql(f"CREATE TABLE hadoop.db.{name} (partition INT, offset BIGINT, value STRING) USING iceberg")
    return f"hadoop.db.{name}", warehouse / "db" / name / "metadata"


if __name__ == "__main__":
    main()
