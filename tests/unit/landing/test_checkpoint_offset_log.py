from __future__ import annotations

from pathlib import Path

import pytest

from lakebound.landing.checkpoint.offset_log import UnreadableOffsetLogError, read_offset_log


def offset_log(checkpoint: Path, text: str) -> Path:
    path = checkpoint / "offsets" / "7"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return checkpoint


def test_the_end_offsets_of_a_batch_are_read(tmp_path: Path) -> None:
    log = 'v1\n{"batchWatermarkMs":0}\n{"orders":{"0":25361,"1":25565}}'
    assert read_offset_log(offset_log(tmp_path, log), 7) == {"orders": {0: 25361, 1: 25565}}


@pytest.mark.parametrize("text", ["", "v1", "v2\n{}\n{}", "v1\n{}\n{}\n{}", 'v1\n{}\n{"orders":{"0":', "v1\n{}\n-"])
def test_a_torn_or_foreign_file_is_refused_by_name(tmp_path: Path, text: str) -> None:
    with pytest.raises(UnreadableOffsetLogError, match="offsets/7"):
        read_offset_log(offset_log(tmp_path, text), 7)


def test_a_missing_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(UnreadableOffsetLogError, match="offsets/3"):
        read_offset_log(tmp_path, 3)
