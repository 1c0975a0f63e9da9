"""Whether a pipeline's transform is where its YAML says, from the source alone: nothing of it is run."""

from __future__ import annotations

import ast
import hashlib
from pathlib import Path

from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.transform_files import transform_files


def missing_transform(spec: PipelineSpec, apps: Path) -> str | None:
    """Return what is missing, or None.

    Args:
        spec: The pipeline.
        apps: Folder of the spark-submit entry points.
    """
    if spec.transform is None:
        return None
    *package, function = spec.transform.split(".")
    folder = apps.joinpath(*package)
    module = folder.with_suffix(".py") if folder.with_suffix(".py").is_file() else folder / "__init__.py"
    if not module.is_file():
        return f"the file {folder.with_suffix('.py')} does not exist"
    try:
        tree = ast.parse(module.read_bytes(), filename=str(module))
    except (SyntaxError, ValueError) as exc:
        return f"{module}:{getattr(exc, 'lineno', None) or 1} is not Python: {getattr(exc, 'msg', None) or exc}"
    return None if function in _names(tree) else f"{module} defines no function {function!r}"


def _names(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names.update(target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names.update(alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.If | ast.Try):
            # Defined under a condition: Python would know, this does not.
            names.update(inner.name for inner in ast.walk(node) if isinstance(inner, ast.FunctionDef))
    return names


def source_hash(spec: PipelineSpec, apps: Path) -> str:
    """Return a short hash of the YAML's meaning and of the transform's modules, by which an application shows as outdated."""
    # Maintenance is another application's, and no application reads which fields are ignored: a change needs no restart.
    body = spec.model_dump_json(by_alias=True, exclude={"maintenance": True, "value": {"ignored_fields"}})
    digest = hashlib.sha256(body.encode())
    for file in transform_files(spec, apps):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]
