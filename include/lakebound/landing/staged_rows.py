"""Rows of a topic or a store that wait for their commit: Parquet files in a folder of the application's own."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from lakebound.storage.location import Location
from lakebound.tables.layout import FileLayout


class StagedRows:
    """The folder of one target.

    A batch's rows wait here alone, so what is here after a commit, or before a batch is read again, is of no use any more.
    """

    def __init__(self, target: str, schema: pa.Schema | None, folder: Path | None) -> None:
        """Make nothing yet.

        Args:
            target: Id of the target.
            schema: Columns of the files; None for who only looks.
            folder: Where the files go; None for who only looks.
        """
        self._target = target
        self._schema = schema
        self._folder = folder

    @property
    def schema(self) -> pa.Schema:
        """The columns of the files."""
        assert self._schema is not None, "who only looks writes no files"
        return self._schema

    @property
    def layout(self) -> FileLayout:
        """Where the files go."""
        assert self._folder is not None, "who only looks writes no files"
        return FileLayout(self._target, "", Location(str(self._folder)))

    def remove(self) -> None:
        """Remove all files, and the folders of their own in which Spark has put some."""
        if self._folder is None or not self._folder.is_dir():
            return
        for path in self._folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                with suppress(OSError):
                    path.unlink()
