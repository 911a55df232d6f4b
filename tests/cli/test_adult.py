"""The complete Adult table and its example schema: every kind of column, taxonomies and gaps, by the command."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import csv as arrow_csv
from typer.testing import CliRunner

import shoal
from shoal.cli import app
from shoal.errors import OptionError
from tests.conftest import data_file

EXAMPLE = Path(__file__).parents[2] / "examples" / "adult.toml"
METHODS = ("insensitive-dp", "ranking-dp", "tree-dp")
# columns with a gap somewhere
WITH_GAPS = ("workclass", "occupation", "native_country")


@pytest.fixture
def adult() -> Path:
    return data_file("adult.csv")


def raw_rows(path: Path, step: int, target: Path) -> None:
    """Every step-th row as UCI writes it, with a header: a blank after each comma, a question mark for a gap."""
    with path.open(encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    lines = [", ".join(cell or "?" for cell in row) for row in rows[::step]]
    target.write_text("\n".join([",".join(header), *lines]) + "\n", "utf-8")


def run(data: Path, method: str, out: Path, *more: str) -> dict[str, Any]:
    command = ["protect", str(data), "--schema", str(EXAMPLE), "--epsilon", "1"]
    done = CliRunner().invoke(app, [*command, "--method", method, "--out", str(out), *more])
    assert done.exit_code == 0, done.output
    statement: dict[str, Any] = json.loads((out / "statement.json").read_text("utf-8"))
    return statement


def check_release(data: pa.Table, rows: int, gap: str) -> None:
    schema = shoal.Schema.load(EXAMPLE)
    assert data.num_rows == rows
    assert data.column_names == [name for name in schema.names if name != "fnlwgt"]
    for attribute in schema.attributes:
        if attribute.kind in ("nominal", "ordinal"):
            values = set(data[attribute.name].to_pylist())
            tree = attribute.tree
            allowed = set(attribute.ordered if tree is None else tree.values)
            # a gap is written as the input writes it
            allowed = (allowed - {"(missing)"}) | ({gap} if "(missing)" in allowed else set())
            assert values <= allowed, attribute.name
        elif attribute.role != "weight":
            assert attribute.lo is not None
            assert attribute.hi is not None
            found = data[attribute.name].to_numpy()
            assert attribute.lo <= found.min() <= found.max() <= attribute.hi


@pytest.mark.parametrize("method", METHODS)
def test_a_sample_as_uci_writes_it(method: str, adult: Path, tmp_path: Path) -> None:
    raw_rows(adult, 40, tmp_path / "adult.csv")
    statement = run(tmp_path / "adult.csv", method, tmp_path / "out", "--na", "?")
    check_release(arrow_csv.read_csv(tmp_path / "out" / "data.csv"), 815, gap="?")
    assert statement["publishable"]
    assert statement["model"] == ("dp-given-partition" if method == "ranking-dp" else "dp")
    assert sum(statement["spending"].values()) == pytest.approx(1)
    assert statement["attributes"]["native_country"]["domain"] == "42 values of a taxonomy with 58 concepts"


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_the_complete_table(method: str, adult: Path, tmp_path: Path) -> None:
    statement = run(adult, method, tmp_path / "out")
    released = arrow_csv.read_csv(tmp_path / "out" / "data.csv")
    check_release(released, 32_561, gap="")
    assert statement["publishable"]
    if method == "tree-dp":
        # frequent values stay frequent, and gaps are among them
        for name in (*WITH_GAPS, "sex", "income"):
            before, after = (_shares(table[name]) for table in (arrow_csv.read_csv(adult), released))
            assert max(abs(before.get(v, 0) - after.get(v, 0)) for v in before | after) < 0.03, name


def _shares(column: pa.ChunkedArray) -> dict[str, float]:
    return {each["values"]: each["counts"] / len(column) for each in column.value_counts().to_pylist()}


def test_a_schema_may_name_the_folder_of_its_taxonomies_by_a_variable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shoal.Taxonomy.flat(["a", "b"]).save(tmp_path / "tree.csv")
    text = '[[attribute]]\nname = "x"\ntaxonomy = "${WHERE}/tree.csv"\n'
    (tmp_path / "schema.toml").write_text(text)
    monkeypatch.delenv("WHERE", raising=False)
    with pytest.raises(OptionError, match=r"'x': .* needs the environment variable WHERE, which is not set"):
        shoal.Schema.load(tmp_path / "schema.toml")
    monkeypatch.setenv("WHERE", str(tmp_path))
    assert shoal.Schema.load(tmp_path / "schema.toml")["x"].tree == shoal.Taxonomy.flat(["a", "b"])


def test_the_example_holds_every_value_of_the_table(adult: Path) -> None:
    """Values come from the documentation of the data set; a slip of the pen would show here."""
    schema = shoal.Schema.load(EXAMPLE)
    table = arrow_csv.read_csv(adult)
    assert tuple(schema.names) == tuple(table.column_names)
    for attribute in schema.attributes:
        tree = attribute.tree
        if tree is not None:
            tree.check([value or None for value in table[attribute.name].to_pylist()], attribute.name)
