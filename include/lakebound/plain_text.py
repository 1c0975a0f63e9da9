"""Text that others wrote, so that whoever shows it reads it as text: no link, no image, no call to everybody. Pure.

HTML has ``html.escape``.
"""

from __future__ import annotations

import re

_OF_MARKDOWN = re.compile(r"[\\`*_{}\[\]()<>#+\-.!|~&=:@]")
_CALLS = re.compile(r"@(?=(?:everyone|here|channel|all|team)\b)", re.IGNORECASE)
_IN_CHATS = {"<": "\u2039", ">": "\u203a"}
_LINK = re.compile(r"\](?=[(\[])")


def visible_text(text: str, keep: str = "") -> str:
    """Return a text in which every character is seen, and does nothing else to a terminal or a log; others are escaped.

    Args:
        text: Whatever somebody wrote.
        keep: Further characters that stay as they are.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in keep else char.encode("unicode_escape").decode() for char in text)


def markdown_text(text: str) -> str:
    """Return a text for Markdown that shows it as it is written; its paragraphs stay.

    Args:
        text: Whatever somebody wrote.
    """
    lines = (_OF_MARKDOWN.sub(lambda found: f"\\{found[0]}", line.strip()) for line in text.splitlines())
    return "\n".join(lines)


def chat_text(text: str) -> str:
    """Return a text for services of chat, each of which reads other characters as markup and knows no escapes of others.

    In angle brackets Slack reads who is called (``<!channel>``) and where a link leads, others read ``@everyone`` and
    ``[text](address)``.

    Args:
        text: Whatever somebody wrote.
    """
    bare = "".join(_IN_CHATS.get(char, char) for char in text)
    return _LINK.sub("] ", _CALLS.sub("\uff20", bare))
