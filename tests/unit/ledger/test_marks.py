from __future__ import annotations

from lakebound.ledger.lost import LostRange
from lakebound.ledger.marks import debt, highest, lag, loss, lowest, lowest_of_all, passed_by_retention, unlanded
from lakebound.ledger.topics import TopicFacts


def facts(earliest: dict[int, int], latest: dict[int, int]) -> TopicFacts:
    return TopicFacts("id-1", earliest, latest)


def test_lag_is_what_lies_between_the_marks_and_the_ends() -> None:
    assert lag({"a": {0: 5, 1: 7}, "b": {0: 0}}, {"a": {0: 9, 1: 7}, "b": {0: 2}}) == 6


def test_without_any_mark_the_lag_is_not_known() -> None:
    assert lag({}, {"a": {0: 9}}) is None
    assert lag({"a": {}}, {"a": {0: 9}}) is None


def test_a_partition_of_which_a_mark_or_an_end_is_not_known_does_not_lag() -> None:
    assert lag({"a": {0: 5}}, {"a": {0: 9, 1: 100}, "b": {0: 100}}) == 4
    assert lag({"a": {0: 5, 1: 5}, "b": {0: 5}}, {"a": {0: 9}}) == 4


def test_a_mark_beyond_the_end_takes_nothing_from_the_lag_of_others() -> None:
    assert lag({"a": {0: 50, 1: 0}}, {"a": {0: 9, 1: 3}}) == 3


def test_what_a_table_never_held_is_unlanded_from_the_beginning_in_kafka() -> None:
    assert unlanded({}, {"a": facts({0: 4, 1: 0}, {0: 9, 1: 3})}) == 8
    assert unlanded({"a": {0: 7}}, {"a": facts({0: 4, 1: 0}, {0: 9, 1: 3}), "gone": None}) == 5


def test_what_kafka_has_deleted_is_lost_and_no_longer_unlanded() -> None:
    topics = {"a": facts({0: 40, 1: 0}, {0: 90, 1: 3}), "gone": None}
    marks = {"a": {0: 30, 1: 3, 2: 1}, "gone": {0: 1}, "unasked": {0: 1}}
    assert unlanded(marks, topics) == 50
    (lost,) = passed_by_retention(marks, topics)
    assert lost == LostRange(topic="a", partition=0, start=30, end=40)
    assert loss([lost, lost]) == 20
    assert loss([]) == 0


def test_debt_is_what_was_reached_beyond_the_start_where_both_are_known() -> None:
    assert debt({"a": {0: 5, 1: 5}, "b": {0: 1}}, {"a": {0: 9, 1: 2, 2: 100}, "c": {0: 100}}) == 4


def test_extreme_marks() -> None:
    several = [{"a": {0: 5, 1: 7}}, {"a": {0: 3}, "b": {0: 1}}]
    assert highest(several) == {"a": {0: 5, 1: 7}, "b": {0: 1}}
    assert lowest(several) == {"a": {0: 3, 1: 7}, "b": {0: 1}}
    assert lowest_of_all(several) == {"a": {0: 3}, "b": {}}
    assert highest([]) == lowest([]) == lowest_of_all([]) == {}
