"""Whatever stands in a file of the state, the page answers: a file that is not Lakebound's is named, and hides no other."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.responses import Response
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.airflow.shown_history import write_history
from tests.support.airflow.shown_pipelines import shown_settings, write_many
from tests.support.streams.long_form import examples

from lakebound.control.crash_loop import CrashLoop
from lakebound.control.desired import change_desired
from lakebound.control.folder import MOST_BYTES, ControlFolder, write_json
from lakebound.control.progress import readable_progress
from lakebound.control.quarantine_samples import QuarantineSample, write_samples
from lakebound.control.table_history import (
    MOST_PROBLEMS,
    MOST_TARGETS,
    Grain,
    RewindTarget,
    TableHistory,
    read_table_history,
    write_table_history,
)
from lakebound.settings import Settings
from lakebound.spec.load import load_pipelines
from lakebound_airflow.page.answers import Data, Fragment
from lakebound_airflow.page.charts.fragment import charts_fragment
from lakebound_airflow.page.charts.periods import PERIODS
from lakebound_airflow.page.charts.reading import read_history
from lakebound_airflow.page.charts.sparklines import Sparklines
from lakebound_airflow.page.coverage import coverage_rows, read_ledger
from lakebound_airflow.page.html_tables import MOST_TOLD, TOLD_CHARS, exact_moment, moment, told
from lakebound_airflow.page.ledger_fragment import ledger_fragment
from lakebound_airflow.page.overview import overview_of
from lakebound_airflow.page.pipeline_view import pipeline_view
from lakebound_airflow.page.quality import read_quality
from lakebound_airflow.page.quality_fragment import quality_fragment
from lakebound_airflow.page.samples_fragment import samples_fragment
from lakebound_airflow.page.state import read_kept_samples, read_newest_incidents, read_states
from lakebound_airflow.page.table_fragment import table_fragment
from lakebound_airflow.page.table_view import read_table_view

NAME = "pipeline_003"
TABLE = f"delta:lake.{NAME}"
DEEP = "[" * 5000 + "]" * 5000
WHOLE = (DEEP, '{"a":' * 5000, "", "null", "[]", "{", "\ud800".encode("utf-8", "surrogatepass"), '{"at": "\\ud800"}', "7")
"""What may stand there in place of the whole file."""
LEAVES = (
    *("1e999", "-1e999", "NaN", "1e300", "-1e300", "-1", "0", str(10**400), str(2**64), '"\\ud800"', '"\\udfff x"', "null"),
    *("true", "[]", "{}", "[[[[[[]]]]]]", json.dumps("x" * 5000), DEEP),
)
"""What may stand there in place of one value."""


def places(body: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield where the values of a JSON body are."""
    yield path
    parts = body.items() if isinstance(body, dict) else enumerate(body) if isinstance(body, list) else ()
    for key, value in list(parts)[:40]:
        yield from places(value, (*path, key))


def changed(body: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Return the body with another value at a place."""
    if not path:
        return value
    if isinstance(body, dict):
        return {key: changed(one, path[1:], value) if key == path[0] else one for key, one in body.items()}
    return [changed(one, path[1:], value) if number == path[0] else one for number, one in enumerate(body)]


class Shown:
    """A pipeline with every file that the page reads, and the page over it."""

    def __init__(self, folder: Path) -> None:
        self.settings: Settings = shown_settings(folder)
        write_many(self.settings, 4)
        self.control, self.now = ControlFolder(self.settings.home, NAME), time.time()
        write_history(self.control, self.now)
        change_desired(self.control, "running", reason="wanted", by="ada")
        loop = CrashLoop(ends=("a",), at=self.now - 60, reason="it fails")
        write_json(self.control.crash_loop, loop.model_dump(mode="json"))
        write_samples(self.control, [QuarantineSample("not_json", self.now, "orders", 0, 7, error="e", value="v")])
        self.loaded = load_pipelines(self.settings)
        self._shorten()
        found = [file for file in self.settings.home.rglob("*.json*") if file.is_file() and file.suffix != ".lock"]
        self.files = [file for file in found if file.is_relative_to(self.control.folder) or "alerts" in file.parts]
        self.texts = {file: file.read_bytes() for file in self.files}

    def _shorten(self) -> None:
        """Leave a few of each kind: more make it slow, and change nothing."""
        for file in sorted(self.control.folder.glob("incidents/*.json"))[1:]:
            file.unlink()
        for file in self.control.folder.rglob("*.jsonl"):
            file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[-3:]))
        ledger = json.loads(self.control.recent_ledger.read_bytes())
        self.control.recent_ledger.write_text(json.dumps({**ledger, "batches": ledger["batches"][-2:]}))
        histories = json.loads(self.control.table_history.read_bytes())
        short = {table: {**one, "targets": one["targets"][-3:]} for table, one in list(histories.items())[:2]}
        self.control.table_history.write_text(json.dumps(short))

    def put_back(self) -> None:
        for file, text in self.texts.items():
            file.write_bytes(text)

    def answers(self, changed_file: Path | None = None) -> list[str]:
        """Return what the routes of the page answer, those that read a file; raises where one would be an error."""
        routes: dict[str, Callable[[], list[Response]]] = {
            "recent-ledger.json": self._ledger,
            "quarantine-samples.json": self._samples,
            "table-history.json": self._table,
            "health.jsonl": lambda: [*self._charts(), *self._quality(), *self._table()],
            "maintenance.jsonl": lambda: [*self._charts(), *self._table()],
            "history.jsonl": lambda: [*self._quality(), *self._table()],
            "progress.json": lambda: [*self._views(), *self._ledger(), *self._quality(), *self._charts()],
        }
        if changed_file is None:
            asked = (self._views, self._charts, self._ledger, self._quality, self._samples, self._table)
            found = [answer for ask in asked for answer in ask()]
        elif changed_file.parent.name == "rollups":
            found = [*self._charts(), *self._quality()]
        else:
            is_chart = changed_file.parent.name in ("incidents", "outcomes")
            found = [*routes.get(changed_file.name, self._views)(), *(self._charts() if is_chart else ())]
        return [bytes(answer.body).decode() for answer in found]

    def _views(self) -> list[Response]:
        states, problems = read_states([NAME], self.settings, self.loaded, {}, self.now)
        incidents, unread = read_newest_incidents(NAME, self.settings)
        view = pipeline_view(states[0], incidents, [*problems, *unread], [], self.now, sees_values=True)
        return [Data(overview_of(states, problems, self.now).model_dump(mode="json")), Data(view)]

    def _charts(self) -> list[Response]:
        lines = Sparklines().read(self.settings.home, [NAME], self.now)
        drawn = charts_fragment(read_history(self.control, PERIODS[0], self.now), PERIODS[0], self.now)
        return [Data({name: line.model_dump() for name, line in lines.items()}), Fragment(drawn)]

    def _ledger(self) -> list[Response]:
        ledger, torn = read_ledger(self.control)
        return [Fragment(ledger_fragment(coverage_rows(ledger, readable_progress(self.control)), ledger, torn))]

    def _quality(self) -> list[Response]:
        return [Fragment(quality_fragment(read_quality(self.control, self.now)))]

    def _samples(self) -> list[Response]:
        samples, lost = read_kept_samples(self.control, 3, self.now)
        return [Fragment(samples_fragment(samples, 3, lost))]

    def _table(self) -> list[Response]:
        view = read_table_view(self.control, TABLE, self.loaded.specs[NAME])
        return [Fragment(table_fragment(view, self.now))]


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    return Shown(tmp_path_factory.mktemp("hostile"))


def test_every_file_that_the_page_reads_is_among_those_that_are_changed(shown: Shown) -> None:
    shown.put_back()
    names = {file.name for file in shown.files}
    assert names >= {
        *("desired.json", "progress.json", "submission.json", "recent-ledger.json", "quarantine-samples.json", "doctor.json"),
        *("table-history.json", "health.jsonl", "maintenance.jsonl", "history.jsonl", "10s.jsonl", "1h.jsonl", "state.json"),
    }
    assert all("cannot be read" not in answer for answer in shown.answers())


def test_a_file_of_nonsense_makes_no_error(shown: Shown) -> None:
    for file in shown.files:
        for text in WHOLE:
            file.write_bytes(text if isinstance(text, bytes) else text.encode())
            shown.answers(file)
        file.write_bytes(shown.texts[file])


@settings(max_examples=examples(100))
@given(st.data())
def test_no_value_in_a_file_makes_an_error(shown: Shown, data: st.DataObject) -> None:
    shown.put_back()
    file = data.draw(st.sampled_from(shown.files), label="file")
    lines = shown.texts[file].splitlines() if file.suffix == ".jsonl" else [shown.texts[file]]
    number = data.draw(st.integers(0, len(lines) - 1), label="line")
    body = json.loads(lines[number])
    for path in data.draw(st.lists(st.sampled_from([*places(body)]), min_size=1, max_size=2), label="places"):
        mark = "a place of its own"
        text = json.dumps(changed(body, path, mark)).replace(json.dumps(mark), data.draw(st.sampled_from(LEAVES)))
        lines[number] = text.encode()
        file.write_bytes(b"\n".join(lines))
        shown.answers(file)


@pytest.mark.parametrize(
    ("path", "leaf"),
    [
        (("recent", "over_seconds"), "1e999"),
        (("recent", "over_seconds"), "NaN"),
        (("recent", "quarantined"), str(10**400)),
        (("newest_record_ms",), str(10**400)),
        (("high_water_marks", "orders", "0"), str(10**400)),
    ],
)
def test_no_number_of_the_progress_makes_an_error(shown: Shown, path: tuple[str, ...], leaf: str) -> None:
    shown.put_back()
    file = next(file for file in shown.files if file.name == "progress.json")
    file.write_text(json.dumps(changed(json.loads(shown.texts[file]), path, "here")).replace('"here"', leaf))
    shown.answers(file)
    shown.put_back()


def test_a_bad_file_of_findings_is_named_and_bad_texts_of_facts_are_cleaned(shown: Shown) -> None:
    shown.put_back()
    doctor = shown.control.findings / "doctor.json"
    assert isinstance(doctor, Path)
    for text in (DEEP, "x" * (MOST_BYTES + 1)):
        doctor.write_text(text)
        assert "doctor.json cannot be read" in shown.answers(doctor)[1]
    body = json.loads(shown.texts[doctor])
    body["findings"][0] |= {"what": "half \ud800", "evidence": {"seen \udc80": "half \udc80", "ratio": float("nan")}}
    doctor.write_text(json.dumps(body))
    pipeline = json.loads(shown.answers(doctor)[1])
    assert {"name": "seen ?", "value": "half ?"} in pipeline["findings"][0]["facts"]
    assert {"name": "ratio", "value": "nan"} in pipeline["findings"][0]["facts"]
    assert pipeline["findings"][0]["what"] == "half ?"
    shown.put_back()


def test_a_name_in_other_bytes_is_no_error(shown: Shown) -> None:
    shown.put_back()
    odd = os.fsencode(str(shown.control.findings)) + b"/\xff.json"
    with open(odd, "w") as file:
        file.write("{")
    try:
        assert "cannot be read" in shown.answers()[1]
        bytes(Fragment(told([os.fsdecode(odd)])).body).decode()
    finally:
        os.unlink(odd)


@given(st.floats() | st.integers(-(10**20), 10**20))
def test_every_number_is_a_moment_or_a_dash(at: float) -> None:
    for words in (moment(at), exact_moment(at)):
        assert words == "–" or words.split("-")[0].isdigit()


def test_a_history_of_somebody_else_is_cut(shown: Shown) -> None:
    one = RewindTarget(5.0, "1")
    history = TableHistory(9.0, (one,) * (MOST_TARGETS + 50), 9, (Grain(1.0),) * 99, ("x" * 9000,) * 99)
    write_table_history(shown.control, {TABLE: history})
    found = read_table_history(shown.control)[TABLE]
    assert len(found.targets) == MOST_TARGETS and len(found.problems) == MOST_PROBLEMS and len(found.grains) < 99
    assert max(map(len, found.problems)) <= 400
    shown.put_back()
    lines = told(["x" * 9000] * 200)
    assert lines.count("<li>") == MOST_TOLD + 1 and "and 150 more" in lines and len(lines) < 60 * (TOLD_CHARS + 20)
