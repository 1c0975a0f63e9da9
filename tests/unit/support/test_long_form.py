"""The short form of a test with several parameters: few cases, in which each value of each parameter is."""

from __future__ import annotations

from itertools import product

import pytest
from tests.support.streams import long_form
from tests.support.streams.long_form import covering, each_value_once, short_form

FORMATS, LANES, MOMENTS = ("delta", "iceberg"), ("direct", "driver", "cluster"), (1, 2, 3, 4, 5)


@pytest.mark.parametrize("parameters", [(FORMATS, LANES), (LANES, MOMENTS), (FORMATS, LANES, MOMENTS), (LANES, LANES)])
def test_each_value_of_each_parameter_comes_and_no_more_cases_than_the_longest_has_values(
    parameters: tuple[tuple[object, ...], ...],
) -> None:
    cases = [*product(*parameters)]
    taken = [cases[at] for at in covering([frozenset(enumerate(case)) for case in cases])]
    assert len(taken) == max(map(len, parameters))
    for number, values in enumerate(parameters):
        assert {case[number] for case in taken} == {*values}
        times = [sum(case[number] == value for case in taken) for value in values]
        assert max(times) - min(times) <= 1, "one value is beside all others"


def test_cases_that_are_no_product_keep_each_value_and_their_order() -> None:
    cases = [("direct", "a"), ("direct", "b"), ("driver", "b"), ("cluster", "a"), ("direct", "c")]
    taken = [cases[at] for at in covering([frozenset(case) for case in cases])]
    assert {value for case in taken for value in case} == {"direct", "driver", "cluster", "a", "b", "c"}
    assert taken == [case for case in cases if case in taken] and len(taken) < len(cases)


def test_the_long_form_has_all_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [*product(FORMATS, LANES)]
    monkeypatch.setattr(long_form, "LONG_FORM", True)
    assert short_form(cases, lambda case: case) == cases
    monkeypatch.setattr(long_form, "LONG_FORM", False)
    assert len(short_form(cases, lambda case: case)) == 3
    assert short_form([], lambda case: case) == []


@each_value_once
@pytest.mark.parametrize(
    "lane", ["direct", "driver", pytest.param("cluster", marks=pytest.mark.skip("as in the long form alone"))]
)
@pytest.mark.parametrize("table_format", FORMATS)
def test_of_a_marked_test_few_cases_run(request: pytest.FixtureRequest, table_format: str, lane: str) -> None:
    own = request.node.nodeid.partition("[")[0]
    running = [one for one in request.session.items if one.nodeid.startswith(f"{own}[") and "cluster" not in one.nodeid]
    assert len(running) <= (4 if long_form.LONG_FORM else 2), "what is skipped anyway stands for no value of others"
