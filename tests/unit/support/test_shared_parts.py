"""Which tests each process of one run gets."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.support.shared_parts import WITH_BOTH_FORMATS, WITHOUT_SESSION, SharedParts
from xdist.remote import Producer

TESTS = [
    "tests/airflow/test_a.py::test_one",
    "tests/spark/test_a.py::test_one",
    "tests/spark/test_pauses.py::test_one",
    "tests/spark/test_z.py::test_one",
    "tests/spark/test_edits.py::test_one",
    "tests/spark/test_z.py::test_two",
    "tests/spark/test_standalone.py::test_one",
    "tests/airflow/test_b.py::test_two",
    "tests/chaos/test_c.py::test_one",
    "tests/chaos/test_c.py::test_two",
    "tests/integration/test_i.py::test_one",
    "tests/local/test_l.py::test_one",
    "tests/local/test_l.py::test_two[a::b]",
    "tests/local/test_l.py::test_three",
    "tests/local/test_l.py::test_four",
]


class Process:
    """A process that runs what it is given at once."""

    def __init__(self, number: int) -> None:
        self.gateway = SimpleNamespace(id=f"gw{number}")
        self.given: list[str] = []
        self.shutting_down = False

    def send_runtest_some(self, indexes: list[int]) -> None:
        self.given += [TESTS[index] for index in indexes]

    def shutdown(self) -> None:
        self.shutting_down = True


def run(count: int) -> list[list[str]]:
    """Return what each of so many processes has run at the end, one test each in turn."""
    option = SimpleNamespace(loadscopereorder=False)
    config: Any = SimpleNamespace(option=option, getvalue=lambda name: ["popen"] * count if name == "tx" else None)
    parts = SharedParts(config, Producer("test", enabled=False))
    processes: list[Any] = [Process(number) for number in range(count)]
    for process in processes:
        parts.add_node(process)
        parts.add_node_collection(process, TESTS)
    parts.schedule()
    done = [0] * count
    while any(number < len(process.given) for number, process in zip(done, processes, strict=True)):
        for at, process in enumerate(processes):
            if done[at] < len(process.given):
                parts.mark_test_complete(process, TESTS.index(process.given[done[at]]))
                done[at] += 1
    return [process.given for process in processes]


def test_the_last_process_begins_with_what_shares_nothing_and_what_shares_a_part_stays_together() -> None:
    *others, last = run(3)
    assert last and all("/local/" in test for test in last)
    assert others[0][0] == "tests/airflow/test_a.py::test_one", "what takes long begins at once"
    given = [*others, last]
    for part in (
        "tests/airflow/",
        "tests/chaos/test_c.py",
        "tests/spark/test_z.py",
        ("tests/spark/test_pauses.py", "tests/spark/test_edits.py"),
    ):
        assert len([one for one in given if any(test.startswith(part) for test in one)]) == 1
    assert sorted(test for one in given for test in one) == sorted(TESTS)


def test_each_file_is_where_its_sessions_are() -> None:
    folder = Path(__file__).parents[3]
    files = sorted((folder / "tests" / "spark").glob("test_*.py"))
    assert len(files) > 50 and {*WITHOUT_SESSION, *WITH_BOTH_FORMATS} <= {str(file.relative_to(folder)) for file in files}
    for file in files:
        text, name = file.read_text(encoding="utf-8"), str(file.relative_to(folder))
        has_session = "session: SparkSession" in text
        has_both_formats = "pool: ProcessPoolExecutor" in text and "def pool(" not in text
        assert has_both_formats == (name in WITH_BOTH_FORMATS), name
        assert (has_session or has_both_formats) == (name not in WITHOUT_SESSION), name


def test_one_process_runs_all() -> None:
    assert [sorted(one) for one in run(1)] == [sorted(TESTS)]
