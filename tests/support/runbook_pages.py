"""The pages of include/runbooks, and the commands that they print."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
FOLDER = REPOSITORY / "include" / "runbooks"
PAGES = sorted(path for path in FOLDER.glob("*.md") if path.name != "README.md")
SPAN = re.compile(r"`([^`\n]+)`")
_BLOCK = re.compile(r"^ *```bash\n(.*?)^ *```", re.DOTALL | re.MULTILINE)


def commands(page: Path) -> Iterator[list[str]]:
    """Yield the commands in a page, split into words."""
    for span in SPAN.findall(page.read_text()):
        if span.startswith(("lakebound ", "make ")) and "…" not in span:
            yield shlex.split(span)


def blocks(page: Path) -> list[str]:
    """Return the pieces of shell in a page."""
    return _BLOCK.findall(page.read_text())
