"""Spark's checkpoint files, byte by byte: what is read, and the precise reason when it cannot be."""

from __future__ import annotations

import pytest
from tests.support.worlds.recorded_streams import FORMATS, recording

from lakebound.landing.checkpoint.checksums import checksum_file, checksum_of
from lakebound.landing.checkpoint.log_files import parse_commit, parse_initial_offsets, parse_metadata, parse_offsets

OFFSETS = b'v1\n{"batchWatermarkMs":0,"batchTimestampMs":17,"conf":{}}\n{"orders":{"0":5,"1":0}}'


@pytest.mark.parametrize("kind", FORMATS)
def test_checksums_are_hadoops(kind: str) -> None:
    files = recording(kind).moments[-1].files
    crc = {path: content for path, content in files.items() if path.endswith(".crc") and not path.endswith(".tmp.crc")}
    assert len(crc) > 5
    for path, content in crc.items():
        folder, slash, name = path.rpartition("/")
        assert checksum_file(files[f"{folder}{slash}{name.removeprefix('.').removesuffix('.crc')}"]) == content


@pytest.mark.parametrize("size", [0, 1, 511, 512, 513, 1024, 1500])
def test_a_checksum_finds_every_flipped_bit(size: int) -> None:
    content = bytes(number % 251 for number in range(size))
    crc = checksum_file(content)
    assert len(crc) == 8 + 4 * -(-size // 512)
    assert checksum_of(content, crc) == "matches"
    assert checksum_of(content, None) == "missing"
    assert checksum_of(content, b"") == "missing"
    for at in range(0, size, 97):
        assert checksum_of(content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :], crc) == "differs"


def test_offsets_of_kafka_are_read_per_source_and_partition() -> None:
    found = parse_offsets(4, OFFSETS + b'\n-\n{"orders":{"0":7}}')
    assert found.flaw is None
    assert found.planned_at_ms == 17
    assert found.marks == {(0, "orders", 0): 5, (0, "orders", 1): 0, (2, "orders", 0): 7}
    assert not found.records_are_countable
    assert parse_offsets(4, OFFSETS).records_are_countable


@pytest.mark.parametrize("line", ["12", '{"logOffset":3}', '{"seqNum":1,"files":[{"a":1}]}', '{"timestamp":1}'])
def test_offsets_of_other_sources_have_no_marks(line: str) -> None:
    found = parse_offsets(0, f"v1\n{{}}\n{line}".encode())
    assert (found.flaw, dict(found.marks), found.sources) == (None, {}, (line,))


def test_the_format_of_spark_4_2_names_its_sources() -> None:
    assert parse_offsets(0, b'v2\n{}\n0:{"orders":{"0":5}}\nname:-').sources == ('{"orders":{"0":5}}', None)
    assert parse_offsets(0, b'v2\n{}\n{"orders":{"0":5}}').flaw == "a line of a source does not name it"


@pytest.mark.parametrize(
    ("content", "flaw"),
    [
        (b"", "it has 0 bytes"),
        (b"v1", "only the version line is there"),
        (b"v1\n{}", "there is no line of a source"),
        (b"v9\n{}\n{}", "its first line is 'v9', not a version that this doctor knows (v1, v2)"),
        (b"{}\n{}", "its first line is '{}', not a version"),
        (b'v1\n{"batchWater\n{}', "the metadata line cannot be read"),
        (b"v1\n[]\n{}", "the metadata line is not a JSON object"),
        (b'v1\n{}\n{"orders":{"0":', "the offsets of a source cannot be read"),
        (b'v1\n{}\n{"orders":{"0":5,"0":6}}', "a key stands twice"),
        (b'v1\n{}\n{"orders":{"x":5}}', "for a partition 'x'"),
        (b'v1\n{}\n{"orders":{"0":-5}}', "has an offset -5"),
        (b'v1\n{}\n{"orders":{"0":5.5}}', "has an offset 5.5"),
        (b'v1\n{}\n{"orders":{"0":NaN}}', "NaN is not a number"),
        (b"v1\n{}\n\xff\xfe", "it is not UTF-8"),
        (b"v1\n{}\n" + b"[" * 100_000, "the offsets of a source cannot be read"),
    ],
)
def test_a_damaged_offsets_file_says_why(content: bytes, flaw: str) -> None:
    found = parse_offsets(3, content)
    assert found.flaw is not None
    assert flaw in found.flaw


@pytest.mark.parametrize("content", [b"v1", b"v1\n", b"v1\n{}", b'v2\n{"stateUniqueIds":{}}', b'v3\n{"sinkMetadataMap":{}}'])
def test_commits_of_all_versions_are_read(content: bytes) -> None:
    assert parse_commit(1, content).flaw is None


@pytest.mark.parametrize("content", [b"", b"v2\n{}", b"v3\n{}", b"v4\n{}", b"v1\n{", b"v1\n7"])
def test_damaged_commits_are_not(content: bytes) -> None:
    assert parse_commit(1, content).flaw is not None


@pytest.mark.parametrize("content", [b"", b"{}", b'{"id":7}', b'{"id":"6aa4', b'{"id":"not an id"}', b"[]"])
def test_metadata_without_an_id_is_refused(content: bytes) -> None:
    found = parse_metadata(content)
    assert found.query_id is None
    assert found.flaw


def test_initial_offsets_begin_with_a_zero_byte() -> None:
    content = b'\0v1\n{"orders":{"0":5}}'
    assert parse_initial_offsets(content, source=2).marks == {(2, "orders", 0): 5}
    for damaged in (content[1:], content[:1], b"", content + b"\n{}"):
        assert parse_initial_offsets(damaged).flaw


def test_a_checksum_that_differs_is_a_flaw() -> None:
    crc = checksum_file(OFFSETS)
    assert parse_offsets(0, OFFSETS, crc).checksum == "matches"
    assert parse_offsets(0, OFFSETS + b"\n-", crc).flaw == "its .crc does not match"
