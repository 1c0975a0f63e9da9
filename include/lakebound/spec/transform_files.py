"""The files of a pipeline's transform: its module, and the modules beside it that it imports. Nothing of them is run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from lakebound.spec.pipeline import PipelineSpec

_OWN_PACKAGES = ("lakebound", "lakebound_spark")
"""Their version stands for them."""


def transform_files(spec: PipelineSpec, apps: Path) -> tuple[Path, ...]:
    """Return the file of the transform and those of the modules beside it that it imports, in a fixed order.

    Args:
        spec: The pipeline; without a transform there are none.
        apps: Folder of the spark-submit entry points.
    """
    if spec.transform is None:
        return ()
    found: set[Path] = set()
    left = list(_files(apps, spec.transform.split(".")[:-1]))
    while left:
        if (file := left.pop()) not in found:
            found.add(file)
            left += _imported(file, apps)
    return tuple(sorted(found))


def _files(apps: Path, parts: list[str]) -> Iterator[Path]:
    """Yield the files of a module under a folder: its own, and those of the packages that it is in."""
    if not parts or parts[0] in _OWN_PACKAGES:
        return
    own = apps.joinpath(*parts)
    packages = (apps.joinpath(*parts[:number]) / "__init__.py" for number in range(1, len(parts) + 1))
    yield from (file for file in (own.with_name(f"{own.name}.py"), *packages) if file.is_file())


def _imported(file: Path, apps: Path) -> Iterator[Path]:
    seen = file.stat()
    for module in _modules(file, file.relative_to(apps).parts[:-1], seen.st_mtime_ns, seen.st_size):
        yield from _files(apps, list(module))


@lru_cache(maxsize=1024)
def _modules(file: Path, package: tuple[str, ...], mtime_ns: int, size: int) -> tuple[tuple[str, ...], ...]:
    """Return what a file imports; status, page and each watch ask for it again and again."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return ()
    found: list[tuple[str, ...]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [tuple(alias.name.split(".")) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            module = (*above, *(node.module.split(".") if node.module else ()))
            found += [module, *((*module, alias.name) for alias in node.names)]  # each name may be a module
    return tuple(found)
