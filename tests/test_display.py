"""No value prints facts about the records by default: not in a notebook, not in a log, not in a traceback.

Everything that callers can hold is made from marked records, and whatever can be reached from it is asked to show
itself.
"""

from __future__ import annotations

import dataclasses
import importlib
import pickle
import pkgutil
import pprint
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any
from unittest.mock import patch

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray
from rich.pretty import pretty_repr

import shoal
from shoal.auditing import auditor
from shoal.display import DisplaySummary, as_html, as_text, displayed
from shoal.io import read
from shoal.mechanisms.kanonymity.grouping_algorithms import close_groups, diversify
from shoal.mechanisms.kanonymity.swap_algorithms import dissect, swap_ranking
from shoal.query.facts import prepare as prepare_queries
from shoal.release.protection import prepare
from shoal.tuning.grid import SettingMeasure
from tests.support.repeatable import words_of

N = 97
CLIPPED = 13
TOWNS = ("Zyqaville", "Quorbury", "Xanthorpe")
# the ends of the domain and settings must not be mistaken for records
DOMAINS: dict[str, Any] = {"income": (0, 900_000), "rent": ("0.00", "60000.00"), "town": list(TOWNS)}
LONGEST = 2000


def marked() -> pa.Table:
    """Records whose values would be recognised anywhere."""
    rng = np.random.default_rng(5)
    income = 731_000 + rng.permutation(N) * 7 + 3
    rent = np.round(51_000 + rng.permutation(N) * 11.25 + 0.5, 2)
    rent[:CLIPPED] = 77_777.25
    town = [TOWNS[i % 3] for i in range(N)]
    who = [f"ID-QX-{i:03}" for i in range(N)]
    return pa.table({"income": income, "rent": rent, "town": town, "who": who})


def texts_of(frame: Any) -> set[str]:
    """Every value of a table, in the ways it could be printed."""
    table = nw.from_native(frame, eager_only=True)
    found: set[str] = set()
    for name in table.columns:
        for value in table[name].to_list():
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                found |= {text for text in (str(value), f"{value:g}", f"{value:.1f}") if len(text) > 4}
            elif value is not None:
                found.add(str(value))
    return found


MARKS = texts_of(marked()) | set(TOWNS)


def protect(method: str, **options: Any) -> shoal.Release:
    columns = options.pop("columns", ["income", "rent"])
    domains = (
        {name: DOMAINS[name] for name in columns} if "domains" not in options else options.pop("domains")
    )
    return shoal.protect(marked(), method=method, columns=columns, domains=domains, outside="clip", **options)


SCHEMA = shoal.Schema.from_dict(
    {
        "attribute": [
            {"name": "income", "lo": 0, "hi": 900_000, "role": "quasi-identifier"},
            {"name": "rent", "lo": "0.00", "hi": "60000.00"},
            {"name": "who", "kind": "nominal", "role": "identifier"},
        ]
    }
)


OPTIONS: dict[str, Any] = {"method": "ranking-dp", "epsilon": "1", "k": 5, "outside": "clip"}
TUNING: dict[str, Any] = {"schema": SCHEMA, "epsilon": "1", "outside": "clip", "ks": [5, 11]}
AUDITED: dict[str, Any] = {"runs": 100, "seed": 1, "workers": 1, "outside": "clip"}


def income() -> NDArray[np.int64]:
    return np.asarray(marked()["income"])


def release() -> shoal.Release:
    return shoal.protect(marked(), SCHEMA, **OPTIONS)


# one of everything that a caller can hold
def audit(**options: Any) -> Any:
    """An audit of one pair of neighbours: the search for the best one takes most of the time."""
    with patch.multiple(auditor, _FEWEST_PAIRS=1, _FINALISTS=1):
        return shoal.audit(marked(), SCHEMA, "laplace", "1", **options)


MAKERS: dict[str, Callable[[], Any]] = {
    "laplace": lambda: protect("laplace", epsilon="1"),
    "mdav-dp": lambda: protect("mdav-dp", epsilon="1", k=5, columns=["income", "rent", "town"]),
    "ranking-dp": lambda: protect("ranking-dp", epsilon="1", k=5, link=False),
    "tree-dp": lambda: protect("tree-dp", epsilon="1"),
    "xm-3": lambda: protect("xm-3", epsilon="1", k=5),
    "seeded": lambda: protect("ranking-dp", epsilon="1", k=5, seed=3),
    "domain from data": lambda: protect(
        "mdav-dp", epsilon="1", k=5, domains=None, domain_from_data=1.5, columns=["income"]
    ),
    "values from data": lambda: protect("laplace", epsilon="1", domains={}, columns=["town"]),
    "k-anonymity": lambda: shoal.protect(marked(), SCHEMA, "k-anonymity", k=5, outside="clip"),
    "swap-mdav": lambda: shoal.protect(marked(), SCHEMA, "swap-mdav", k=5, outside="clip"),
    "anatomy": lambda: shoal.protect(marked(), SCHEMA, "anatomy", k=5, outside="clip"),
    "preparation": lambda: prepare(read(marked()), SCHEMA, **OPTIONS),
    "evaluation": lambda: shoal.evaluate(marked(), release()),
    "attack": lambda: shoal.attack(marked().select(["income", "rent"]), release().data, seed=1),
    "risk": lambda: shoal.risk(marked(), ["town", "rent"], household="who", sensitive=["income"]),
    "check": lambda: shoal.check(marked(), ["town"], sensitive=["income"]),
    "tuning": lambda: shoal.tune(marked(), **TUNING, methods=["ranking-dp"], fast=True),
    "private tuning": lambda: shoal.tune(marked(), **TUNING, link=False, private="1"),
    "audit": lambda: audit(columns=["income"], **AUDITED),
    "schema": lambda: shoal.Schema.infer(marked()),
    "partition": lambda: shoal.partition.mdav(income(), 5),
    "queries": lambda: prepare_queries(marked(), SCHEMA),
    "swap": lambda: swap_ranking([income()], 5),
    "dissected": lambda: dissect(
        {"income": income()},
        {"town": np.array(marked()["town"].to_pylist())},
        shoal.partition.mdav(income(), 5),
    ),
    "close groups": lambda: close_groups(income()[:, None], np.arange(N) % 3, 2, 5),
    "joined groups": lambda: diversify(
        shoal.partition.mdav(income(), 5), income()[:, None], [np.arange(N) % 3], 3
    ),
}


@cache
def made(name: str) -> Any:
    # whichever test asks first
    with words_of(f"{__name__} {name}"):
        return MAKERS[name]()


def attributes(value: Any) -> list[str]:
    """Fields, properties and whatever else a value keeps."""
    names = [field.name for field in dataclasses.fields(value)] if dataclasses.is_dataclass(value) else []
    for kind in type(value).__mro__:
        names += [n for n, held in vars(kind).items() if isinstance(held, (property, cached_property))]
    return [*names, *getattr(value, "__dict__", {})]


def reached(value: Any, path: str, seen: set[int]) -> Iterator[tuple[str, Any]]:
    """Values of Shoal's own types that attributes, lists and mappings lead to."""
    if id(value) in seen or isinstance(value, (type, FunctionType, ModuleType, str, bytes)):
        return
    seen.add(id(value))
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from reached(key, f"{path}[{key!r} as key]", seen)
            yield from reached(item, f"{path}[{key!r}]", seen)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for place, item in enumerate(value):
            yield from reached(item, f"{path}[{place}]", seen)
    elif type(value).__module__.split(".")[0] == "shoal":
        yield path, value
        for name in attributes(value):
            try:
                held = getattr(value, name)
            except (AttributeError, shoal.ShoalError):
                continue  # not there for this value
            yield from reached(held, f"{path}.{name}", seen)


def shown(value: Any) -> dict[str, str]:
    """Everything that prints a value without having been asked for its content."""

    def fail(held: Any) -> None:
        raise RuntimeError("something else went wrong")

    try:
        fail(value)
    except RuntimeError as error:
        report = traceback.TracebackException.from_exception(error, capture_locals=True)
    texts = {
        "repr": repr(value),
        "pprint": pprint.pformat(value),
        "rich": pretty_repr(value),
        "traceback": re.sub(r'File ".*"', "", "".join(report.format())),
        "in a list": repr([value]),
    }
    if not isinstance(value, SettingMeasure):  # a number with its interval, for the tables of a tuning
        texts |= {"str": str(value), "format": f"{value}"}
    if hasattr(value, "_repr_html_"):
        texts["html"] = value._repr_html_()
    return texts


def published(root: Any) -> set[str]:
    """What HTML may show: values of a table that is published."""
    if not isinstance(root, shoal.Release) or not root.statement.publishable:
        return set()
    return texts_of(root.data)


@pytest.mark.parametrize("name", MAKERS)
def test_nothing_that_is_reached_prints_a_record(name: str) -> None:
    root = made(name)
    found = list(reached(root, name, set()))
    assert found
    private = set(MARKS)
    if isinstance(root, shoal.Release):
        private |= texts_of(root.data)
        if root.aligned is not None:
            private |= texts_of(root.aligned)
    for path, value in found:
        for how, text in shown(value).items():
            rest = text
            # a released 14388.42 holds the digits of an unrounded 14388.4 that stays inside
            for allowed in sorted(published(root), key=len, reverse=True) if how == "html" else ():
                rest = rest.replace(allowed, "")
            leaked = sorted(mark for mark in private if mark in rest)
            assert not leaked, f"{how} of {path} ({type(value).__name__}) prints {leaked[:3]}: {text[:300]}"
            if how == "repr":
                assert len(text) < LONGEST, f"repr of {path} ({type(value).__name__}) is {len(text)} long"


@pytest.mark.parametrize("name", MAKERS)
def test_private_counts_are_not_printed(name: str) -> None:
    for path, value in reached(made(name), name, set()):
        for how in ("repr", "str", "html"):
            text = shown(value).get(how, "")
            assert not re.search(rf"\b{CLIPPED}\b", re.sub(r"<t[dh]>.*?</t[dh]>", "", text)), (
                f"{how} of {path}: {text}"
            )


def test_every_public_type_has_a_repr_of_its_own() -> None:
    for name in shoal.__all__:
        kind = getattr(shoal, name)
        if isinstance(kind, type) and dataclasses.is_dataclass(kind):
            assert "__create_fn__" not in kind.__repr__.__qualname__, name
            assert kind.__repr__.__module__ == "shoal.display", name


def test_a_release_says_what_is_promised_and_its_shape() -> None:
    text = repr(made("laplace"))
    assert "Differential privacy of the original records with ε = 1 per row" in text
    assert "Verdict: publish with these limits." in text
    assert f"{N} rows, 2 columns (income, rent)" in text
    seeded = repr(made("seeded"))
    assert "Verdict: do not publish. A seed was set" in seeded
    assert f"{N} rows" not in seeded
    assert "<td>" not in made("seeded")._repr_html_()


def test_a_release_on_disk_shows_no_path(tmp_path: Path) -> None:
    pq.write_table(marked(), tmp_path / "marked.parquet")
    found = shoal.publish(
        tmp_path / "marked.parquet", SCHEMA, out=tmp_path / "out", engine="local", **OPTIONS
    ).release
    for text in (repr(found), found._repr_html_()):
        assert "2 columns (income, rent)" in text
        assert str(tmp_path) not in text


def test_what_is_measured_says_that_it_is_internal() -> None:
    for name, words in {
        "evaluation": r"<Evaluation of 2 columns, \d+ measures: internal, .*; see \.to_dict\(\) or \.table\(\)>",
        "tuning": r"<Tuning of 2 settings: internal, .*",
        "audit": r"<Audit of laplace, original view, 100 runs: internal, .*",
        "attack": r"<AttackReport: internal, .*",
        "partition": r"<Partition: internal, .*",
    }.items():
        assert re.fullmatch(words, repr(made(name))), repr(made(name))
    assert "was selected from 2 settings" in repr(made("private tuning"))


@pytest.mark.parametrize("library", [pa.table, pd.DataFrame, pl.DataFrame])
def test_html_shows_the_head_of_the_released_table_escaped(library: Any) -> None:
    name = "<script>alert(1)</script>"
    values = library({name: list(range(40)), "label": ["<b>x</b>", "y&z"] * 20})
    domains = {name: (0, 39), "label": ["<b>x</b>", "y&z"]}
    release = shoal.protect(values, method="laplace", epsilon="5", domains=domains)
    text = release._repr_html_()
    assert text.count("<tr>") == 6
    assert "&lt;script&gt;" in text
    for raw in ("<script>", "<b>", "y&z"):
        assert raw not in text


def test_long_names_and_many_columns_stay_short() -> None:
    columns = {f"{'column ' * 60}{i}": list(range(20)) for i in range(60)}
    release = shoal.protect(
        pa.table(columns), method="laplace", epsilon="5", domains=dict.fromkeys(columns, (0, 20))
    )
    for _, value in reached(release, "release", set()):
        assert len(repr(value)) < LONGEST
    assert len(release._repr_html_()) < 20_000


@pytest.mark.parametrize("name", ["laplace", "mdav-dp", "evaluation", "schema", "partition", "audit"])
def test_pickles_and_dictionaries_are_as_before(name: str) -> None:
    held = made(name)
    if isinstance(held, shoal.Release):
        held = held.statement
    again = pickle.loads(pickle.dumps(held))
    assert repr(again) == repr(held)
    for field in dataclasses.fields(held):
        before, after = getattr(held, field.name), getattr(again, field.name)
        assert np.array_equal(before, after) if isinstance(before, np.ndarray) else before == after
    assert set(dataclasses.asdict(held)) == {field.name for field in dataclasses.fields(held)}


def test_a_type_that_prints_its_fields_would_be_found() -> None:
    @dataclasses.dataclass(frozen=True)
    class Leaky:
        town: str

    assert any(mark in text for text in shown(Leaky(TOWNS[0])).values() for mark in MARKS)
    safe = displayed(lambda value: DisplaySummary("Safe"))(Leaky)
    assert not any(mark in text for text in shown(safe(TOWNS[0])).values() for mark in MARKS)


def test_texts_are_cut() -> None:
    summary = DisplaySummary("t" * 500, ("l" * 500,), pa.table({"c" * 500: ["v" * 500]}))
    assert len(as_text(summary)) < 610
    assert len(as_html(summary)) < 800


@cache
def own_types() -> tuple[type, ...]:
    """Every class of the package that prints its fields by itself if nobody prevents it."""
    found = []
    for module in pkgutil.walk_packages(shoal.__path__, "shoal."):
        if module.name.endswith("__main__"):
            continue
        held = vars(importlib.import_module(module.name))
        found += [
            kind
            for kind in held.values()
            if isinstance(kind, type)
            and kind.__module__ == module.name
            and (dataclasses.is_dataclass(kind) or (issubclass(kind, tuple) and hasattr(kind, "_fields")))
        ]
    return tuple(found)


def holds_arrays(kind: type, annotation: str) -> bool:
    """Whether a field is declared to hold arrays or tables, and not functions of them."""
    if "Callable" in annotation:
        return False
    named = vars(sys.modules[kind.__module__])
    tables = {"NDArray", "ArrayLike", "DataFrame", "Table", "Series", "RecordBatch"}
    return any(
        word in tables or "ndarray" in repr(named.get(word)) for word in re.findall(r"\w+", annotation)
    )


def test_no_type_of_the_package_prints_arrays_or_tables_that_it_holds() -> None:
    """Each type is made of marked arrays, whatever its fields are, and asked to show itself."""
    marks, checked = income(), 0
    for kind in own_types():
        if dataclasses.is_dataclass(kind):
            declared = {field.name: str(field.type) for field in dataclasses.fields(kind)}
            value = object.__new__(kind)
        else:
            declared = {name: str(kind.__annotations__.get(name, "")) for name in kind._fields}  # type: ignore[attr-defined]
            value = tuple.__new__(kind, [marks] * len(declared))
        arrays = {name for name, annotation in declared.items() if holds_arrays(kind, annotation)}
        if not arrays:
            continue
        if dataclasses.is_dataclass(kind):
            for name in declared:
                object.__setattr__(value, name, marks if name in arrays else "")
        checked += 1
        try:
            text = repr(value)
        except (AttributeError, TypeError, ValueError, KeyError, IndexError):
            continue  # a summary that asks for more than arrays: the values of a run are looked at below
        assert not any(str(mark) in text for mark in marks), (
            f"{kind.__module__}.{kind.__name__}: {text[:200]}"
        )
    assert checked > 100


RUNS: dict[str, Callable[[Path], Any]] = {
    **{
        name: lambda folder, name=name: MAKERS[name]()  # type: ignore[misc]
        for name in sorted(MAKERS.keys() - {"seeded", "private tuning", "preparation", "values from data"})
    },
    "pairs-dp": lambda folder: protect("pairs-dp", epsilon="1", columns=["income", "rent", "town"]),
    "suppress": lambda folder: shoal.protect(marked(), SCHEMA, "suppress", k=3, outside="clip"),
    "internal report": lambda folder: release().save(folder / "out", folder / "in.html", original=marked()),
    "local engine": lambda folder: on_engine(folder, "tree-dp"),
    "local engine, ranks": lambda folder: on_engine(folder, "ranking-dp", k=5),
}


def on_engine(folder: Path, method: str, **more: Any) -> Any:
    pq.write_table(marked(), folder / "marked.parquet")
    domains = {name: DOMAINS[name] for name in ("income", "rent")}
    said = {"columns": list(domains), "domains": domains, "outside": "clip", "engine": "local"}
    inside = folder / "internal.html"
    return shoal.publish(
        folder / "marked.parquet",
        method=method,
        epsilon=1,
        out=folder / "out",
        internal=inside,
        **said,
        **more,
    )


@pytest.mark.parametrize("name", RUNS)
def test_nothing_that_a_run_makes_on_its_way_prints_a_record(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every value of every type that is made while a release is, internal ones included."""
    seen: list[Any] = []

    def noting(before: Callable[..., None]) -> Callable[..., None]:
        def init(self: Any, *given: Any, **named: Any) -> None:
            before(self, *given, **named)
            if len(seen) < 20_000:
                seen.append(self)

        return init

    for kind in own_types():
        if dataclasses.is_dataclass(kind):
            monkeypatch.setattr(kind, "__init__", noting(kind.__init__))  # type: ignore[misc]
    with words_of(f"{__name__} run {name}"):
        RUNS[name](tmp_path)
    assert seen
    incomes = {str(value) for value in income()}
    names = {value for value in marked()["who"].to_pylist()}
    rents = {text for text in texts_of(marked().select(["rent"])) if "." in text}
    ahead: set[str] = set()
    for value in seen:
        text = repr(value)
        leaked = sorted(mark for mark in incomes | names | rents if mark in text)
        if leaked:
            ahead.add(f"{type(value).__module__}.{type(value).__name__} prints {leaked[:2]}: {text[:150]}")
    assert not ahead, "\n".join(sorted(ahead))
