"""One hostile file stops nobody: reading it ends soon, says what is wrong on lines of its own, and hides no other pipeline."""

from __future__ import annotations

import time

import pytest
from tests.support.streams.pipeline_files import SMALL, settings

from lakebound.settings import Settings
from lakebound.spec.claims import named, one_name_per_server
from lakebound.spec.load import MOST_LINES, LoadedPipelines, load_pipelines

__all__ = ["settings"]
GOOD = SMALL.replace("NAME", "orders")
OTHER = GOOD.replace("orders", "other")
TOKENS = (
    'connection: {bootstrap_servers: "127.0.0.1:9092", tls: true, sasl: {mechanism: OAUTHBEARER, token_url: "%s", '
    "client_id: a, client_secret: {env: LAKEBOUND_SECRET_A}}}"
)
MOST_SECONDS = 20
"""On a loaded machine. Each of these took minutes, or had no end, before it was bounded."""


@pytest.mark.parametrize(
    "value",
    [
        *(
            '!!int ""',
            '!!float ""',
            '!!bool "x"',
            '!!timestamp "x"',
            "1" + ":1" * 20_000,
            "1" + ":1" * 3000 + ".5",
            ".inf",
            ".nan",
        ),
        *("9" * 30, '"\\ud800"', '"\\e]0;title\\a"', '"\\x9b31m"', '"a\\u202eb"'),
    ],
)
@pytest.mark.parametrize("place", ["description: {}", "? {}\n: 1"])
def test_a_value_that_is_none_is_a_mistake_of_its_file(settings: Settings, value: str, place: str) -> None:
    _refused(settings, GOOD + place.format(value))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("freshness: 1s", f'freshness: "{"9" * 400}m"'),
        ("127.0.0.1:9092", ","),
        ("a STRING", f'"a {"ARRAY<" * 1000}INT{">" * 1000}"'),
        ("a STRING", f'"a {"STRUCT<a: " * 20_000}INT{">" * 20_000}"'),
        *(
            (GOOD.splitlines()[2], TOKENS % address)
            for address in ("https://127.0.0.1:99999999/", "https://127.0.0.1:x/", "https://127.0.0.1:²/")
        ),
        *(
            ("freshness: 1s", f"freshness: 1s\n{field}")
            for field in (
                *("limits: {outage_seconds: 1e300}", 'limits: {outage_seconds: "inf"}', "limits: {lease_ttl_seconds: 1e17}"),
                "limits: {max_failed_starts: 2147483649}",
                *("maintenance: {every_seconds: 1e12}", "maintenance: {orphans: {min_age_seconds: 1e12}}"),
                *("thresholds: {stall_seconds: 1e11}", 'limits: {max_records_per_batch: "99999999999999999999"}'),
            )
        ),
    ],
)
def test_a_number_or_a_depth_without_end_is_a_mistake_of_its_file(settings: Settings, old: str, new: str) -> None:
    assert old in GOOD
    _refused(settings, GOOD.replace(old, new))


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/tty", "/proc/self/mem", "/proc/kmsg"])
def test_a_link_to_a_device_is_not_read(settings: Settings, device: str) -> None:
    (settings.pipelines / "orders.yaml").symlink_to(device)
    _refused(settings, None)


def test_a_link_to_a_file_is_followed_as_kubernetes_mounts_files(settings: Settings) -> None:
    (settings.pipelines.parent / "data").write_text(GOOD)
    (settings.pipelines / "orders.yaml").symlink_to("../data")

    assert load_pipelines(settings).specs.keys() == {"orders"}


@pytest.mark.parametrize(
    "more",
    [
        "description: " + "x" * 2_000_000,
        "owners: [" + ",".join(f"t{number}" for number in range(99_000)) + "]",
        "\n".join(f"k{number}: 1" for number in range(2000)),
        f'spark: {{conf: {{spark.task.cpus: "://{":" * 100_000}"}}}}',
    ],
)
def test_a_file_that_would_take_long_is_refused_soon(settings: Settings, more: str) -> None:
    begun = time.process_time()
    lines = _refused(settings, GOOD + more)
    assert time.process_time() - begun < MOST_SECONDS
    assert len(lines) <= MOST_LINES + 1


def test_two_files_that_write_to_the_same_topics_are_told_soon(settings: Settings) -> None:
    topics = "to_topics: [" + ", ".join(f"{{topic: t{number}}}" for number in range(500)) + "]\n"
    begun = time.process_time()
    (settings.pipelines / "orders.yaml").write_text(GOOD + topics)
    (settings.pipelines / "other.yaml").write_text(OTHER + topics)
    loaded = load_pipelines(settings)
    assert time.process_time() - begun < MOST_SECONDS
    assert not loaded.specs


@pytest.mark.parametrize("name", ["a\\n/srv/other.yaml:1: forged", "k" * 5000])
def test_a_name_makes_no_line_of_its_own_and_no_long_one(settings: Settings, name: str) -> None:
    places = ('? "{}"\n: 1', 'reference: {{? "{}" : {{format: csv}}}}', 'spark: {{conf: {{? "{}" : "1"}}}}')
    for place in places:
        for line in _refused(settings, GOOD + place.format(name)):
            assert "\n" not in line
            assert len(line) < 2500


def test_the_name_of_a_file_sends_nothing_to_a_terminal(settings: Settings) -> None:
    (settings.pipelines / "x\x1b[31m\n.yaml").write_text(GOOD)
    _refused(settings, None)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("kafka:09092", "kafka:9092"),
        ("[2001:db8:0:0::1]:1", "[2001:DB8::1]:1"),
        ("kafka.:1", "KAFKA:1"),
        ("[0::1]:2", "localhost:2"),
    ],
)
def test_a_server_is_one_however_it_is_written(one: str, other: str) -> None:
    assert named(one) == named(other)


def test_many_servers_are_named_soon_and_as_before() -> None:
    begun = time.process_time()
    names = one_name_per_server([(f"h{number}:1", f"h{number + 1}:1") for number in range(5000)])
    assert time.process_time() - begun < MOST_SECONDS
    assert set(names.values()) == {"h0:1"}
    assert one_name_per_server([("b",), ("a",), (), ("a", "b")]) == {"a": "a", "b": "a"}


def _refused(settings: Settings, text: str | None) -> list[str]:
    """Return the mistakes of a file beside which there is a right one; they are lines that anything can show."""
    (settings.pipelines / "other.yaml").write_text(OTHER)
    if text is not None:
        (settings.pipelines / "orders.yaml").write_text(text)
    loaded: LoadedPipelines = load_pipelines(settings)
    assert loaded.specs.keys() == {"other"}
    assert loaded.problems
    for line in loaded.problems:
        assert not any(ord(char) < 32 or 127 <= ord(char) < 160 for char in line)
        line.encode()
    return loaded.problems
