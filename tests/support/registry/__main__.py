"""``python -m tests.support.registry [PORT]``: the registry of the tests in the foreground, to try things with."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from tests.support.registry.server import SchemaRegistry


def main() -> None:
    """Run it until Ctrl-C."""
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8081
    with tempfile.TemporaryDirectory() as folder:
        registry = SchemaRegistry(Path(folder), port)
        try:
            registry.wait_ready()
            print(f"schema registry: {registry.url} (Ctrl-C ends it; it keeps nothing)", flush=True)
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            pass
        finally:
            registry.stop()


if __name__ == "__main__":
    main()
