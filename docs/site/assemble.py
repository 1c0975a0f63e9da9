"""Gathers the pages of the site in one folder, as Sphinx wants them: ``python docs/site/assemble.py FOLDER``.

The folder mirrors the repository, so the pages' relative links are right there, too. Files that a page links are copied beside
it; a link to a folder goes to the folder's page. What is made from code is in ``reference/``.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = ("*.md", "docs/**/*.md", "include/runbooks/*.md", "examples/**/*.md", "tests/**/README.md")
PAGE_OF_FOLDER = {"docs": "index.md", "docs/decisions": "docs/decisions/index.md"}
"""Of folders without a README.md."""
_LINK = re.compile(r"\]\(([^)#\s]+)(#[^)\s]*)?\)")
_ADDRESS = re.compile(r"[a-z]+:")


def pages() -> Iterator[Path]:
    """Yield every page that a person wrote, by its path in the repository."""
    site = REPOSITORY / "docs" / "site"
    for pattern in PAGES:
        yield from (path.relative_to(REPOSITORY) for path in sorted(REPOSITORY.glob(pattern)) if site not in path.parents)


def assemble(target: Path) -> None:
    """Make the folder anew.

    Args:
        target: The folder; what is in it goes.
    """
    from reference import reference_pages

    shutil.rmtree(target, ignore_errors=True)
    for page in pages():
        _write(target / page, _with_links_to_pages(page, target))
    shutil.copy(REPOSITORY / "docs" / "site" / "index.md", target / "index.md")
    _write(target / "docs" / "decisions" / "index.md", _list_of("Decisions", "[0-9]*"))
    _write(target / "include" / "runbooks" / "README.md", _with_list(target / "include" / "runbooks" / "README.md"))
    for name, text in reference_pages().items():
        _write(target / "reference" / f"{name}.md", text)


def _with_links_to_pages(page: Path, target: Path) -> str:
    """Return a page whose links to folders go to pages, and copy the other files that it links."""

    def rewritten(match: re.Match[str]) -> str:
        if _ADDRESS.match(match[1]):
            return match[0]
        linked = (REPOSITORY / page.parent / match[1]).resolve()
        if linked.is_dir():
            return f"]({_page_of(linked, page)})"
        if linked.is_file() and linked.suffix != ".md":
            copy = target / linked.relative_to(REPOSITORY)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(linked, copy)
        return match[0]

    return _LINK.sub(rewritten, (REPOSITORY / page).read_text())


def _page_of(folder: Path, linking: Path) -> str:
    name = str(folder.relative_to(REPOSITORY))
    return "../" * (len(linking.parts) - 1) + PAGE_OF_FOLDER.get(name, f"{name}/README.md")


def _list_of(title: str, pattern: str) -> str:
    return f"# {title}\n\n```{{toctree}}\n:maxdepth: 1\n:glob:\n\n{pattern}\n```\n"


def _with_list(page: Path) -> str:
    """Return the page with its neighbours below it in the navigation."""
    return f"{page.read_text()}\n```{{toctree}}\n:hidden:\n:glob:\n\n[a-z]*\n```\n"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


if __name__ == "__main__":
    assemble(Path(sys.argv[1]))
