"""Which tables, and which predicates of each version, the readers are asked about; and what became of their answers."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from tests.support.readers.bugs import Question, known_bug
from tests.support.readers.predicates import Predicate, Semantics, expected, predicates, sample
from tests.support.readers.tables import SHAPES, Format, Generated, Shape, Stage
from tests.support.streams.long_form import ALL_READERS, READERS_SEED

Answer = list[int] | str
"""Ids, or an error's text."""


@dataclass
class Tally:
    """What was asked, and what went wrong.

    Attributes:
        queries: Answers that were judged.
        unjudged: Answers that a known bug of the reader may have spoilt.
        columns: Columns of the table, fields of structs counted one by one.
        wrong: A line per wrong answer.
    """

    queries: int = 0
    unjudged: int = 0
    columns: int = 0
    wrong: list[str] = field(default_factory=list)

    def properties(self) -> Mapping[str, int]:
        """Return what the summary adds up."""
        return {"queries": self.queries, "unjudged": self.unjudged, "columns": self.columns}


def shapes(table_format: Format, count: int) -> tuple[Shape, ...]:
    """Return all tables of a format, or so many of them by the seed."""
    all_of_them = SHAPES[table_format]
    if ALL_READERS:
        return all_of_them
    return tuple(random.Random(f"{READERS_SEED} {table_format}").sample(all_of_them, count))


def questions(table: Generated, stage: Stage, count: int) -> list[Predicate]:
    """Return all predicates of a version, or so many of them by the seed."""
    asked = list(predicates(stage))
    return asked if ALL_READERS else sample(asked, count, f"{READERS_SEED} {table.spec.id} {stage.name}")


def judge(
    tally: Tally,
    reader: str,
    semantics: Semantics,
    questions_and_answers: Iterator[tuple[Question, Answer]],
) -> None:
    """Note the answers of a reader that are not those of the unfiltered rows."""
    for question, answer in questions_and_answers:
        if known_bug(reader, question) is not None:
            tally.unjudged += 1
            continue
        tally.queries += 1
        right = expected(question.predicate, question.stage.rows, semantics)
        if answer != right:
            where = f"{reader}: {question.table.spec.id} {question.stage.name}: {question.predicate}"
            tally.wrong.append(f"{where}: found {answer}, not {right}")


def answered(
    table: Generated, stage: Stage, asked: list[Predicate], find: Callable[[Predicate], Answer]
) -> Iterator[tuple[Question, Answer]]:
    """Yield what a reader answers; an error is an answer, too."""
    for predicate in asked:
        try:
            answer = find(predicate)
        except Exception as exc:
            answer = f"{type(exc).__name__}: {exc}"
        yield Question(table, stage, predicate), answer
