"""The recipe by which consumers skip copies, taken out of the page that tells it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from tests.support.page_blocks import blocks
from tests.support.printed_commands import REPOSITORY
from tests.support.topics.reading import ReadMessage

PAGE = REPOSITORY / "docs" / "how-to" / "real-time.md"


class _SeenRows(Protocol):
    def is_new(self, target_partition: int, source: str) -> bool:
        """Whether the row was not there before."""


def handled(messages: Iterable[ReadMessage]) -> list[ReadMessage]:
    """Return the messages that a consumer handles who follows the page: each goes in as it was received."""
    (code,) = [block.text for block in blocks(PAGE) if block.language == "python" and "class SeenRows" in block.text]
    names: dict[str, type[_SeenRows]] = {}
    exec(compile(code, str(PAGE), "exec"), names)
    seen = names["SeenRows"]()
    return [message for message in messages if seen.is_new(message.partition, message.source)]
