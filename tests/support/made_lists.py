"""Lists in pages that are made from the code: ``python -m tests.support.made_lists`` writes them, a test compares them.

A list stands between two comments, ``<!-- made: NAME -->`` and ``<!-- end -->``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from lakebound.alerts.channel import channel_kinds
from lakebound.control.runbooks import RUNBOOKS

REPOSITORY = Path(__file__).parents[2]
_MADE = re.compile(r"(<!-- made: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def channels() -> str:
    """Return the table of the kinds of channels."""
    rows = []
    for name, kind in channel_kinds().items():
        what = (kind.__doc__ or "").partition("\n")[0].replace("``", "`")
        rows.append((f"`{name}`", what, kind.model_fields["connection"].description or ""))
    return table(("channel", "what it sends", "connection"), rows)


def runbooks() -> str:
    """Return the table of the runbooks."""
    return table(
        ("page", "what it is about"), ((f"[{name}]({name}.md)", page.title) for name, page in sorted(RUNBOOKS.items()))
    )


LISTS: Mapping[str, tuple[str, Callable[[], str]]] = {
    "channels": ("docs/how-to/alerts.md", channels),
    "runbooks": ("include/runbooks/README.md", runbooks),
}
"""By the name of a list: its page, and what makes it."""


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table of Markdown."""
    heads = list(heads)
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (heads, ["---"] * len(heads), *rows))


def made(name: str) -> tuple[Path, str]:
    """Return the page of a list, and its text with the list made anew."""
    place, make = LISTS[name]
    page = REPOSITORY / place
    text, count = _MADE.subn(
        lambda found: f"{found[1]}{make()}{found[3]}" if found[2] == name else found[0], page.read_text(encoding="utf-8")
    )
    assert count, f"{place} has no place for a list"
    return page, text


if __name__ == "__main__":
    for one in LISTS:
        where, content = made(one)
        where.write_text(content, encoding="utf-8")
