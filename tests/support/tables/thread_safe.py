"""Overwrites by PyIceberg, which looks at several manifests at once."""

from __future__ import annotations

from pyiceberg.table.update.snapshot import _OverwriteFiles


def thread_safe(overwrite: _OverwriteFiles) -> _OverwriteFiles:
    """Return an overwrite that finds each file which it is to delete.

    PyIceberg 0.12 asks one evaluator about all manifests, in threads, and the evaluator keeps the partitions of the manifest
    that it is asked about (``_ManifestEvalVisitor.eval``). So it may take a manifest for another one, and say "Missing
    required files to delete". Here each manifest has an evaluator of its own.
    """
    build = overwrite._build_manifest_evaluator
    overwrite._build_manifest_evaluator = lambda spec_id: lambda manifest: build(spec_id)(manifest)  # type: ignore[method-assign]
    return overwrite
