"""The tables of the offices' figures, read once."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv

from tests.conftest import data_file, offices_file
from tools import offices

KEYS = {"K4": offices.KEYS4, "K6": offices.KEYS6, "KN": offices.KEYS_MISSING}


@cache
def figures(name: str) -> Any:
    return json.loads(offices_file(f"{name}.json").read_text("utf-8"))


@cache
def records(name: str) -> dict[str, NDArray[Any]]:
    """Figures of each record."""
    table = csv.read_csv(offices_file(f"csv/{name}.csv"))
    return {column: table[column].to_numpy() for column in table.column_names}


@cache
def people(name: str) -> pa.Table:
    """Rows of Adult by the name that the figures have for them: a1, a5, a30, a5n."""
    data_file("adult.csv")
    rows = {"a1": 1000, "a5": 5000, "a5n": 5000, "a30": None}[name]
    return offices.adult(rows, complete=name != "a5n")


@cache
def census_numbers(columns: tuple[str, ...]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Some columns of Census, and the stratum of each row."""
    data_file("census.csv")
    table = offices.census()
    values = np.column_stack([table[name].to_numpy() for name in columns]).astype(np.float64)
    return values, table["stratum"].to_numpy()
