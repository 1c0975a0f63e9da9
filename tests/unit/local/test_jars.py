"""Jars are used only if their sums are the recorded ones."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from lakebound.local import jars as jars_module
from lakebound.local.jars import ChecksumError, JarDifference, compare, ensure, format_sums, found_sums, ivy_command, parse_sums

RIGHT = {"spark/a-1.jar": b"bytes of a", "broker/b-2.jar": b"bytes of b"}
REPOSITORY = Path(__file__).resolve().parents[3]


@pytest.fixture
def sums(tmp_path: Path) -> Path:
    file = tmp_path / "jars.sha256"
    file.write_text(format_sums({name: hashlib.sha256(content).hexdigest() for name, content in RIGHT.items()}))
    return file


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "jars"


def fill(content: dict[str, bytes]) -> Callable[[Path], None]:
    def resolve(folder: Path) -> None:
        for name, data in content.items():
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            if not file.exists():
                file.write_bytes(data)

    return resolve


def never(folder: Path) -> None:
    raise AssertionError(f"nothing needs to be resolved into {folder}")


def test_compare_names_missing_wrong_and_extra() -> None:
    difference = compare({"m": "1", "w": "2", "r": "3"}, {"w": "x", "r": "3", "e": "4"})

    assert difference == JarDifference(missing=("m",), wrong=("w",), extra=("e",))
    assert difference.refused == ("w", "e")


def test_equal_sums_are_no_difference() -> None:
    assert not compare({"a": "1"}, {"a": "1"})


def test_sums_survive_being_written_and_read() -> None:
    sums = {"spark/a-1.jar": "0" * 64, "broker/b-2.jar": "f" * 64}

    assert parse_sums(format_sums(sums)) == sums


@pytest.mark.parametrize("text", ["", "abc  spark/a.jar\n", f"{'0' * 64} spark/a.jar\n", "<html>\n"])
def test_a_list_in_another_format_is_refused(text: str) -> None:
    with pytest.raises(ChecksumError):
        parse_sums(text)


def test_a_right_folder_runs_nothing(folder: Path, sums: Path) -> None:
    fill(RIGHT)(folder)

    ensure(folder, sums, never)


def test_an_empty_folder_is_filled(folder: Path, sums: Path) -> None:
    ensure(folder, sums, fill(RIGHT))

    assert set(found_sums(folder)) == set(RIGHT)


@pytest.mark.parametrize(
    ("fetched", "named"),
    [
        ({**RIGHT, "spark/a-1.jar": b"somebody else's bytes"}, "the SHA-256 sum of spark/a-1.jar is not"),
        ({**RIGHT, "broker/c-3.jar": b"unasked"}, "broker/c-3.jar is not in the list"),
        ({"spark/a-1.jar": RIGHT["spark/a-1.jar"]}, "broker/b-2.jar is missing"),
    ],
)
def test_what_is_fetched_wrong_is_refused_and_out_of_the_way(
    folder: Path, sums: Path, fetched: dict[str, bytes], named: str
) -> None:
    with pytest.raises(ChecksumError, match=re.escape(named)):
        ensure(folder, sums, fill(fetched))

    recorded = parse_sums(sums.read_text())
    assert all(recorded.get(name) == found for name, found in found_sums(folder).items())


def test_a_jar_changed_later_is_moved_aside_and_fetched_again(folder: Path, sums: Path) -> None:
    fill(RIGHT)(folder)
    (folder / "spark/a-1.jar").write_bytes(b"changed")
    said: list[str] = []

    ensure(folder, sums, fill(RIGHT), said.append)

    assert (folder / "spark/a-1.jar").read_bytes() == RIGHT["spark/a-1.jar"]
    assert [file.read_bytes() for file in folder.parent.glob("refused-jars/*/spark/a-1.jar")] == [b"changed"]
    assert any("spark/a-1.jar" in line for line in said)


def test_a_stranger_in_a_complete_folder_is_moved_aside_without_a_download(folder: Path, sums: Path) -> None:
    fill({**RIGHT, "spark/stranger.jar": b"?"})(folder)

    ensure(folder, sums, never)

    assert set(found_sums(folder)) == set(RIGHT)


def test_a_wrong_download_does_not_stay_in_ivys_cache(folder: Path, sums: Path) -> None:
    cached = jars_module.ivy_cache(folder) / "org" / "a" / "jars" / "a-1.jar"
    cached.parent.mkdir(parents=True)
    cached.write_bytes(b"somebody else's bytes")

    with pytest.raises(ChecksumError):
        ensure(folder, sums, fill({**RIGHT, "spark/a-1.jar": cached.read_bytes()}))

    assert not cached.exists()


def test_main_answers_one_and_the_sentence_for_a_wrong_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LAKEBOUND_JARS", str(tmp_path / "jars"))
    (tmp_path / "sums").write_text("nonsense\n")

    assert jars_module.main(["--sums", str(tmp_path / "sums")]) == 1
    assert "line 1 of the list of sums" in capsys.readouterr().err


def test_ivy_gets_its_cache_and_layout_beside_the_jars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    command = ivy_command(Path("/p/ivy-2.jar"), Path("/r/ivy.xml"), Path("/c/jars"))

    assert command[:3] == ["java", "-jar", "/p/ivy-2.jar"]
    assert command[command.index("-cache") + 1] == "/c/ivy"
    assert command[command.index("-retrieve") + 1] == "/c/jars/[conf]/[artifact]-[revision](-[classifier]).[ext]"
    assert command[-1] == "-sync"


def test_the_committed_list_holds_what_ivy_xml_asks_for() -> None:
    recorded = parse_sums((REPOSITORY / "jars.sha256").read_text())
    asked = re.findall(r'<dependency [^>]*name="([^"]+)" rev="([^"]+)" conf="(\w+)->', (REPOSITORY / "ivy.xml").read_text())

    assert len(asked) >= 7
    assert {f"{conf}/{name}-{revision}.jar" for name, revision, conf in asked} <= recorded.keys()
