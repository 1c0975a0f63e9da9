"""Gets what `make test-cluster` needs beside the environment: versitygw by Go, and Iceberg's REST catalog from Maven by Ivy.

``python -m tests.support.cluster.parts`` gets what is missing. `make test` needs none of it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from lakebound.local.jars import resolve_with_ivy

FOLDER = Path.home() / ".cache" / "lakebound" / "test-cluster"
VERSITYGW = FOLDER / "bin" / "versitygw"
CATALOG_JARS = FOLDER / "jars" / "catalog"
MODULE = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"
IVY_FILE = Path(__file__).parents[1] / "catalogs" / "reference" / "ivy.xml"


def main() -> int:
    """Get what is missing; return the exit code."""
    if not VERSITYGW.is_file():
        print(f"test-cluster: go install {MODULE} (some minutes)")
        subprocess.run(["go", "install", MODULE], check=True, env={**os.environ, "GOBIN": str(VERSITYGW.parent)})
    if not list(CATALOG_JARS.glob("iceberg-core*.jar")):
        resolve_with_ivy(IVY_FILE, CATALOG_JARS.parent)
    return 0


if __name__ == "__main__":
    sys.exit(main())
