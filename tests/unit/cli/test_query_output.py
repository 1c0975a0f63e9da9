"""What `lakebound query` reads and prints of records that anybody may have sent."""

from __future__ import annotations

import csv
import io
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebound.cli.query import _print, csv_cell
from lakebound.inspection.query import Answer, QueryOfFilesError, run_query

FILE_QUERIES = [
    "select * from read_csv('{file}')",
    "select * from READ_CSV ('{file}')",
    "select * from \"read_csv\"('{file}')",
    "select '--' as a, * from read_csv('{file}')",
    "select '/*', * from read_csv/* /* */ */('{file}')",
    "with x as (select * from read_ndjson('{file}')) select * from x",
    "select (select max(a) from read_parquet('http://169.254.169.254/latest'))",
    "select 1 where exists (select 1 from read_ipc('{file}'))",
    "explain select * from\n read_csv\n('{file}')",
]


@pytest.mark.parametrize("sql", FILE_QUERIES)
def test_a_query_reads_no_file_and_no_address(tmp_path: Path, sql: str) -> None:
    file = tmp_path / "secret.csv"
    file.write_text("a\nhunter2\n")
    with pytest.raises(QueryOfFilesError, match="reads only the pipelines' tables"):
        run_query(sql.format(file=file), {})


def test_every_function_of_polars_that_reads_files_is_known(tmp_path: Path) -> None:
    import polars as pl

    for name in ("avro", "csv", "database", "delta", "excel", "iceberg", "ipc", "json", "lines", "ndjson", "parquet", "xml"):
        for verb in ("read", "scan"):
            with pytest.raises(Exception) as error:
                pl.SQLContext({}).execute(f"select * from {verb}_{name}('{tmp_path}/none')").collect()
            if "not a supported table function" not in str(error.value):
                with pytest.raises(QueryOfFilesError):
                    run_query(f"select * from {verb}_{name}('x')", {})


@given(st.text(alphabet=st.characters(codec="utf-8")))
def test_no_text_does_anything_to_a_terminal_or_a_spreadsheet(value: str) -> None:
    cell = csv_cell(value)
    assert not cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"))
    assert all(char.isprintable() or char in "\n\t" or char.isspace() or char in "\u200c\u200d" for char in cell)
    assert not {"\x1b", "\r", "\x07", "\x9b"} & {*cell}


def test_numbers_stay_numbers_and_raw_is_what_was_sent(capsys: pytest.CaptureFixture[str]) -> None:
    values = (-5, -0.5, Decimal("-1.50"), '=HYPERLINK("http://evil.test")', "\x1b]0;x\x07", b"-1", None, True, ["=1"])
    columns = tuple((name, "String") for name in ("=a", *"bcdefghi"))
    _print(Answer(columns, (values,), is_cut=False), as_csv=True, as_json=False, as_it_is=False)
    names, shown = csv.reader(io.StringIO(capsys.readouterr().out))
    assert names[0] == "'=a"
    assert shown == ["-5", "-0.5", "-1.50", '\'=HYPERLINK("http://evil.test")', "\\x1b]0;x\\x07", "'-1", "", "true", '["=1"]']
    _print(Answer(columns, (values,), is_cut=False), as_csv=True, as_json=False, as_it_is=True)
    names, raw = csv.reader(io.StringIO(capsys.readouterr().out))
    assert names[0] == "=a" and raw[3:6] == ['=HYPERLINK("http://evil.test")', "\x1b]0;x\x07", "-1"]
