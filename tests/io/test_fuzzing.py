"""Readers on thousands of generated files: a table or a one-line error, never a traceback, and correct values."""

from __future__ import annotations

import csv
import gzip
import io
import tempfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import feather, parquet

from shoal.columns.schema import Schema
from shoal.errors import ShoalError
from shoal.io import read, write
from shoal.io.text_files import Conventions

Check = Callable[..., None]
QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture]


def quick_and_slow(
    check: Check, quick: int, slow: int, *files: st.SearchStrategy[Any]
) -> tuple[Check, Check]:
    """The same property for a few hundred files in `make test` and for thousands in `make test-all`."""

    def test(examples: int) -> Check:
        return settings(max_examples=examples, deadline=None, suppress_health_check=QUIET)(
            given(*files)(check)
        )

    return test(quick), pytest.mark.slow(test(slow))


def content_of(path: Path, **told: Any) -> dict[str, list[Any]] | str:
    """The cells of a file, or the line that refuses it."""
    try:
        table = read(path, **told)
        Schema.draft(table)
        return {name: table.series(name).to_list() for name in table.names}
    except ShoalError as error:
        line = str(error)
        assert line
        assert "Traceback" not in line
        return line


def in_a_file(content: bytes, ending: str, **told: Any) -> dict[str, list[Any]] | str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"fuzz{ending}"
        path.write_bytes(content)
        return content_of(path, **told)


# what goes wrong in files of text: signs of all kinds, halves of characters, marks, bytes of no text
SIGNS = st.sampled_from(
    [*",;\t|^ \"'\n\r.-+0123456789eE%=@#/:", "\r\n", "NA", "nan", "é", "ñ", "\ufeff", "\u00a0", "€"]
)
PIECES = st.one_of(
    SIGNS.map(str.encode), st.binary(max_size=4), st.text(max_size=6).map(lambda text: text.encode())
)
MESS = st.lists(PIECES, max_size=60).map(b"".join)
TOLD = st.fixed_dictionaries(
    {},
    optional={
        "encoding": st.sampled_from(["latin-1", "windows-1252", "utf-16", "utf-8", "shift_jis"]),
        "separator": st.sampled_from([",", ";", "tab", "^", " "]),
        "decimal": st.sampled_from([".", ","]),
        "thousands": st.sampled_from(["", " ", "'"]),
        "quote": st.sampled_from(['"', "'", "none"]),
        "date_format": st.sampled_from(["DD.MM.YYYY", "YYYY/MM/DD"]),
    },
)


def told_or_none(told: dict[str, Any]) -> dict[str, Any] | None:
    try:
        Conventions.of(told)
    except ShoalError:
        return None
    return told


def _mess(content: bytes, told: dict[str, Any]) -> None:
    in_a_file(b"a,b\n" + content, ".csv", conventions=told_or_none(told))
    in_a_file(content, ".csv", conventions=told_or_none(told))


CELLS = st.one_of(
    st.sampled_from(
        [
            "",
            "NA",
            "7",
            "0.5",
            "35.000",
            "1,5",
            "1984-05-31",
            "31.05.1984",
            "true",
            "x",
            "0123",
            "1e400",
            "inf",
        ]
    ),
    st.text(st.characters(codec="utf-8"), max_size=8),
    st.integers().map(str),
    st.floats().map(str),
    st.dates().map(str),
)


ROWS = st.lists(st.lists(CELLS, min_size=2, max_size=3), min_size=1, max_size=12)


def _cells(rows: list[list[str]], separator: str) -> None:
    text = io.StringIO()
    csv.writer(text, delimiter=separator).writerows(rows)
    in_a_file(text.getvalue().encode(), ".csv")
    in_a_file(gzip.compress(text.getvalue().encode()), ".csv.gz")


NESTED = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
LINES = st.lists(st.one_of(st.text(max_size=20), NESTED), max_size=6)


def _json(lines: list[Any]) -> None:
    import json

    content = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    in_a_file(content.encode("utf-8", "surrogatepass"), ".jsonl")


def _sound(ending: str) -> bytes:
    table = pa.table({"a": [1, 2, None], "b": ["x", "ñ", ""], "c": [1.5, None, 2.5]})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"sound{ending}"
        if ending == ".parquet":
            parquet.write_table(table, path)
        elif ending == ".feather":
            feather.write_feather(table, str(path))
        else:
            write(table, path)
        return path.read_bytes()


SOUND = {ending: _sound(ending) for ending in (".xlsx", ".parquet", ".feather", ".csv.gz", ".csv.zst")}


def _broken(ending: str, data: st.DataObject) -> None:
    """Sound files with bytes changed, cut off or put in between."""
    content = bytearray(SOUND[ending])
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, max(len(content) - 1, 0)))
        change = data.draw(st.sampled_from(["flip", "cut", "insert"]))
        if change == "flip" and content:
            content[place] ^= data.draw(st.integers(1, 255))
        elif change == "cut":
            del content[place:]
        else:
            content[place:place] = data.draw(st.binary(min_size=1, max_size=8))
    in_a_file(bytes(content), ending)


NAMES = st.lists(
    st.text(st.characters(codec="latin-1", exclude_categories=("Cc", "Zs")), min_size=1, max_size=6),
    min_size=2,
    max_size=4,
    unique=True,
)


def _told(data: st.DataObject, names: list[str], separator: str, encoding: str, quote: str) -> None:
    """Texts that are told to be texts come back as they were written, whatever they hold."""
    if separator in quote or any(name.startswith("sep=") or not name.strip() for name in names):
        return
    cell = st.text(st.characters(codec="latin-1", exclude_characters="\0\r"), max_size=6)
    rows = data.draw(
        st.lists(st.lists(cell, min_size=len(names), max_size=len(names)), min_size=1, max_size=6)
    )
    text = io.StringIO()
    writer = csv.writer(
        text, delimiter=separator, quotechar=quote, quoting=csv.QUOTE_ALL, lineterminator="\n"
    )
    writer.writerows([names, *rows])
    told = {"separator": separator, "encoding": encoding, "quote": quote}
    found = in_a_file(
        text.getvalue().encode(encoding), ".csv", types=dict.fromkeys(names, "text"), conventions=told
    )
    assert found == {name: [row[place] for row in rows] for place, name in enumerate(names)}


VALUES = st.lists(st.decimals(-(10**9), 10**9, places=2, allow_nan=False), min_size=1, max_size=8)
SIGN_PAIRS = st.sampled_from([(".", ""), (",", ""), (",", "."), (".", ","), (",", " "), (".", "'")])


def _numbers(values: list[Decimal], signs: tuple[str, str]) -> None:
    """Numbers written with signs that are told are the numbers that were written."""
    decimal, thousands = signs
    texts = [
        f"{value:,.2f}".replace(",", "\0").replace(".", decimal).replace("\0", thousands) for value in values
    ]
    content = "x;y\n" + "".join(f"{text};a\n" for text in texts)
    found = in_a_file(content.encode(), ".csv", conventions={"decimal": decimal, "thousands": thousands})
    assert isinstance(found, dict), found
    assert found["x"] == [float(value) for value in values]
    # and where nothing is told, they are these numbers or none at all
    guessed = in_a_file(content.encode(), ".csv")
    if isinstance(guessed, dict) and all(isinstance(number, int | float) for number in guessed["x"]):
        assert guessed["x"] == [float(value) for value in values]


test_mess_is_read_or_refused, test_much_mess_is_read_or_refused = quick_and_slow(_mess, 150, 3000, MESS, TOLD)
test_cells_are_read_or_refused, test_many_cells_are_read_or_refused = quick_and_slow(
    _cells, 100, 2000, ROWS, st.sampled_from(",;\t")
)
test_json_is_read_or_refused, test_much_json_is_read_or_refused = quick_and_slow(_json, 100, 1500, LINES)
test_broken_files_are_read_or_refused, test_many_broken_files_are_read_or_refused = quick_and_slow(
    _broken, 60, 1500, st.sampled_from(list(SOUND)), st.data()
)
test_texts_come_back, test_many_texts_come_back = quick_and_slow(
    _told,
    80,
    1500,
    st.data(),
    NAMES,
    st.sampled_from(";\t^|,"),
    st.sampled_from(["latin-1", "utf-8", "utf-16"]),
    st.sampled_from("\"'"),
)
test_numbers_come_back, test_many_numbers_come_back = quick_and_slow(_numbers, 80, 1500, VALUES, SIGN_PAIRS)


@pytest.mark.parametrize("ending", [".parquet", ".feather"])
def test_a_file_with_one_wrong_bit_is_read_or_refused(ending: str) -> None:
    """The highest bit of every byte in turn: lengths become negative, and texts are no texts any more."""
    for place in range(len(SOUND[ending])):
        content = bytearray(SOUND[ending])
        content[place] ^= 0x80
        in_a_file(bytes(content), ending)
