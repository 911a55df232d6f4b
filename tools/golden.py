"""Compare what Shoal does in two checkouts byte by byte, to check that a change of structure changes nothing else.

    make golden [BASE=HEAD] [WORDS=1]
    python -m tools.golden BEFORE AFTER [--only WORD ...] [--keep FOLDER] [--words]

BEFORE and AFTER are checkouts or commits of this repository. Every preset and its variants release tables with whole
numbers, decimals, dates, ordinal and nominal columns, gaps, weights, several rows for a person and strata, in memory
and in parts. Compared are the files of every bundle, what the terminal shows, exit statuses, JSON, the help of every
command, and errors with their codes and facts. Each call begins with an empty journal. Durations are left out.

With `--words`, differences in wording are ignored: every sentence of the catalogue is recorded as its code and facts.
It compares data, statements, recipes, logs, errors, JSON and exit statuses; of the terminal output and reports,
the message codes and the numbers in tables; of help, the options.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import html
import importlib
import io
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

ROOT = Path(__file__).resolve().parents[1]
SEED = ("--seed", "7")
ROWS = 240
# a duration or a rate differs from run to run
_DURATION = re.compile(r"\b\d+(?:\.\d+)? (?:ms|s|seconds?|min|minutes?|h|hours?)\b")
_SHOWN_LINES = 12
# files with moments or keys in them
_RANDOM = (".sqlite", ".xlsx", ".journal", ".key")


# the tables


def _people(seed: int = 7) -> list[dict[str, Any]]:
    """Two or three rows for most persons; incomes follow from age and hours, savings from incomes."""
    draw = random.Random(seed)
    rows: list[dict[str, Any]] = []
    while len(rows) < ROWS:
        person, region = f"P{len(rows):04d}", draw.choice(("north", "south", "east", "west"))
        for _ in range(draw.randint(1, 3)):
            age, hours = draw.randint(18, 90), draw.choice((0, 20, 35, 40, 40, 40, 60))
            income = min(100_000, int(draw.expovariate(1 / (500 * (hours + 5)))))
            rows.append(
                {
                    "person": person,
                    "age": age,
                    "hours": hours,
                    "height": f"{min(2.2, max(1.4, draw.gauss(1.72, 0.1))):.2f}",
                    "since": f"{draw.randint(2000, 2025)}-{draw.randint(1, 12):02d}-{draw.randint(1, 28):02d}",
                    "education": draw.choice(("none", "school", "school", "degree")),
                    "region": region,
                    "income": income,
                    "savings": min(500_000, int(income * draw.random() * age / 20)),
                    "weight": f"{draw.uniform(1, 40):.1f}",
                }
            )
    return rows[:ROWS]


def _numeric(lo: Any, hi: Any, step: Any, role: str) -> tuple[str, ...]:
    kind = "decimal" if step == '"0.01"' else "integer"
    return (
        'kind = "numeric"',
        f'type = "{kind}"',
        f'role = "{role}"',
        f"lo = {lo}",
        f"hi = {hi}",
        f"step = {step}",
    )


_QUASI, _HIDDEN = "quasi-identifier", "confidential"
_ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "person": ('kind = "nominal"', 'type = "text"', 'role = "unit"', "max_rows = 3"),
    "age": _numeric(0, 90, 1, _QUASI),
    "hours": _numeric(0, 80, 1, _QUASI),
    "height": _numeric('"1.40"', '"2.20"', '"0.01"', _QUASI),
    "since": ('kind = "date"', 'type = "date"', f'role = "{_QUASI}"', "lo = 2000-01-01", "hi = 2025-12-31"),
    "education": (
        'kind = "ordinal"',
        'type = "text"',
        f'role = "{_QUASI}"',
        'ordered = ["none", "school", "degree"]',
    ),
    "region": (
        'kind = "nominal"',
        'type = "text"',
        f'role = "{_QUASI}"',
        'values = ["north", "south", "east", "west"]',
    ),
    "income": _numeric(0, 100_000, 1, _QUASI),
    "savings": _numeric(0, 500_000, 1, _HIDDEN),
    "weight": ('kind = "numeric"', 'type = "decimal"', 'role = "weight"'),
}
_NUMBERS = ("age", "hours", "income", "savings")
_MIXED = ("age", "height", "since", "education", "region", "savings")
# columns of each table, and of these the ones with gaps
_TABLES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "numbers": (_NUMBERS, ()),
    "mixed": (_MIXED, ()),
    "gaps": (_MIXED, ("age", "height", "region", "savings")),
    "weighted": ((*_NUMBERS, "weight"), ()),
    "persons": (("person", *_MIXED), ()),
}


def write_tables(folder: Path) -> None:
    """Every table as CSV and Parquet, and its schema."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    rows = _people()
    for name, (columns, gaps) in _TABLES.items():
        draw = random.Random(name)
        lines = [",".join(columns)]
        for row in rows:
            empty = {column for column in gaps if draw.random() < 0.08}
            lines.append(",".join("" if column in empty else str(row[column]) for column in columns))
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n", "utf-8")
        texts = {column: pa.string() for column in columns if column in ("person", "education", "region")}
        options = csv.ConvertOptions(column_types=texts, strings_can_be_null=True, null_values=[""])
        parquet.write_table(
            csv.read_csv(folder / f"{name}.csv", convert_options=options), folder / f"{name}.parquet"
        )
        attributes = [
            "\n".join(
                ["[[attribute]]", f'name = "{column}"', *_ATTRIBUTES[column], 'source = "questionnaire"']
            )
            for column in columns
        ]
        (folder / f"{name}.toml").write_text("\n\n".join(attributes) + "\n", "utf-8")
    (folder / "empty.csv").write_text(",".join(_NUMBERS) + "\n", "utf-8")
    (folder / "text.csv").write_text("age,hours,income,savings\n30,40,much,1\n", "utf-8")
    (folder / "outside.csv").write_text("age,hours,income,savings\n30,40,1,1\n130,40,1,1\n", "utf-8")


# the calls


def _protect(table: str, method: str, *options: str, suffix: str = "csv") -> tuple[str, ...]:
    given = (f"{table}.{suffix}", "--schema", f"{table}.toml", "--method", method, *options)
    return ("protect", *given, *SEED, "--out", "out")


_EPSILON, _K = ("--epsilon", "1"), ("--k", "10")
_BOTH = (*_EPSILON, "--k", "20")
_WITHOUT_K = ("pairs-dp", "laplace", "tree-dp", "optimal-dp")
_WITHOUT_EPSILON: dict[str, tuple[str, ...]] = {
    "k-anonymity": _K,
    "swap-mdav": _K,
    "swap-ranking": _K,
    "suppress": ("--k", "3"),
    "anatomy": _K,
    "t-closeness": (*_K, "--t", "2"),
}


def _usual(method: str) -> tuple[str, ...]:
    if method in _WITHOUT_EPSILON or method.startswith("xm-b"):
        return _WITHOUT_EPSILON.get(method, ("--k", "20"))
    if method == "insensitive-dp":
        return (*_EPSILON, "--k", "40")
    return _EPSILON if method in _WITHOUT_K else _BOTH


def cases(methods: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The calls, by the name under which a difference is reported."""
    found = {f"preset {name}": _protect("numbers", name, *_usual(name)) for name in methods}
    strong = [name for name in methods if not name.startswith("xm-")]
    found |= {f"mixed {name}": _protect("mixed", name, *_usual(name)) for name in strong}
    found |= {f"persons {name}": _protect("persons", name, *_usual(name)) for name in strong}
    found |= {
        f"gaps {name} {policy}": _protect("gaps", name, *_usual(name), "--missing", policy)
        for name, policy in [
            *((name, "separate") for name in ("pairs-dp", "k-anonymity")),
            *((name, "keep") for name in ("k-anonymity", "suppress", "swap-ranking")),
            *((name, "drop") for name in ("pairs-dp", "laplace", "k-anonymity")),
            *((name, "category") for name in ("pairs-dp", "tree-dp", "laplace")),
            ("pairs-dp", "error"),
        ]
    }
    found |= {
        f"weighted {name}": _protect("weighted", name, *_usual(name))
        for name in ("pairs-dp", "mdav-dp", "k-anonymity", "suppress")
    }
    found |= {
        f"local {table} {name}": _protect(table, name, *_usual(name), "--engine", "local", suffix="parquet")
        for table, names in {
            "numbers": (*strong, "xm-1", "xm-4"),
            "mixed": ("pairs-dp", "ranking-dp", "tree-dp"),
        }.items()
        for name in names
    }
    found["gaps mdav-dp separate"] = _protect(
        "gaps", "mdav-dp", *_EPSILON, "--k", "2", "--missing", "separate"
    )
    variants: dict[str, tuple[str, str, tuple[str, ...]]] = {
        "pairs-dp with delta": ("mixed", "pairs-dp", (*_EPSILON, "--delta", "1e-6")),
        "pairs-dp replace-one": ("mixed", "pairs-dp", (*_EPSILON, "--neighbours", "replace-one")),
        "pairs-dp triples": ("numbers", "pairs-dp", (*_EPSILON, "--triples")),
        "pairs-dp declared rows": ("numbers", "pairs-dp", (*_EPSILON, "--rows", "200")),
        "pairs-dp target": ("mixed", "pairs-dp", (*_EPSILON, "--target", "savings>1000")),
        "pairs-dp columns": ("mixed", "pairs-dp", (*_EPSILON, "--columns", "age,region")),
        "pairs-dp large epsilon": ("numbers", "pairs-dp", ("--epsilon", "20")),
        "tree-dp replace-one": ("mixed", "tree-dp", (*_EPSILON, "--neighbours", "replace-one")),
        "tree-dp centroid": ("numbers", "tree-dp", (*_EPSILON, "--rebuild", "centroid")),
        "tree-dp normal": (
            "numbers",
            "tree-dp",
            (*_EPSILON, "--rebuild", "normal", "--cuts", "2", "--depth", "2"),
        ),
        "tree-dp shares": (
            "numbers",
            "tree-dp",
            (*_EPSILON, "--shares", "cuts=1,intervals=1,leaves=2,means=1"),
        ),
        "laplace split": ("numbers", "laplace", (*_EPSILON, "--split", "proportional")),
        "laplace weights": ("numbers", "laplace", (*_EPSILON, "--split", "age=2,hours=1,income=1,savings=1")),
        "laplace no clip": ("numbers", "laplace", (*_EPSILON, "--no-clip")),
        "mdav-dp vmdav": ("numbers", "mdav-dp", (*_BOTH, "--partition", "vmdav", "--gamma", "0.2")),
        "mdav-dp box": ("numbers", "mdav-dp", (*_BOTH, "--noise", "box")),
        "mdav-dp staircase": (
            "numbers",
            "mdav-dp",
            (*_BOTH, "--noise", "staircase", "--optimise", "interval"),
        ),
        "mdav-dp k 1": ("numbers", "mdav-dp", (*_EPSILON, "--k", "1")),
        "mdav-dp zscore": ("numbers", "mdav-dp", (*_BOTH, "--normalise", "zscore")),
        "mdav-dp groups": ("numbers", "mdav-dp", (*_BOTH, "--groups", "age,hours;income,savings")),
        "mdav-dp strata": ("mixed", "mdav-dp", (*_BOTH, "--strata", "region")),
        "mdav-dp tuned": ("numbers", "mdav-dp", (*_BOTH, "--tuned", "k")),
        "mdav-dp optimal split": ("numbers", "mdav-dp", (*_BOTH, "--split", "optimal")),
        "ranking-dp no link": ("numbers", "ranking-dp", (*_BOTH, "--no-link")),
        "ranking-dp remainder": ("numbers", "ranking-dp", (*_BOTH, "--remainder", "last")),
        "optimal-dp no link": ("numbers", "optimal-dp", (*_EPSILON, "--no-link")),
        "idp-ls floor": ("numbers", "idp-ls", (*_BOTH, "--floor", "2")),
        "insensitive-dp parallel": (
            "numbers",
            "insensitive-dp",
            (*_EPSILON, "--k", "40", "--composition", "parallel"),
        ),
        "insensitive-dp single": ("numbers", "insensitive-dp", (*_EPSILON, "--k", "40", "--order", "single")),
        "insensitive-dp hamming": (
            "numbers",
            "insensitive-dp",
            (*_EPSILON, "--k", "40", "--corners", "hamming"),
        ),
        "k-anonymity l": ("mixed", "k-anonymity", (*_K, "--l", "3")),
        "k-anonymity t": ("mixed", "k-anonymity", (*_K, "--t-emd", "0.3")),
        "k-anonymity strata": ("mixed", "k-anonymity", (*_K, "--strata", "region")),
        "k-anonymity too large": ("mixed", "k-anonymity", ("--k", "1000")),
        "swap-mdav uninformed": ("mixed", "swap-mdav", (*_K, "--intruder", "uninformed")),
        "swap-ranking sizes": ("mixed", "swap-ranking", (*_K, "--sizes", "savings=20")),
        "suppress combinations": ("mixed", "suppress", ("--k", "3", "--combinations", "age,region=4")),
        "suppress importance": ("mixed", "suppress", ("--k", "3", "--importance", "region=5")),
        "suppress wildcard": ("mixed", "suppress", ("--risk", "0.3", "--missing-as", "wildcard")),
        "suppress strata": ("mixed", "suppress", ("--k", "2", "--strata", "region")),
        "anatomy t": ("mixed", "anatomy", (*_K, "--t", "2")),
        "anatomy confidential": ("mixed", "anatomy", (*_K, "--group-by", "confidential")),
        "xm-4 weights": ("numbers", "xm-4", (*_BOTH, "--weights", "0.6,0.4")),
        "xm-8 full": ("numbers", "xm-8", (*_BOTH, "--coskewness", "full")),
        "xm-2 insensitive": ("numbers", "xm-2", (*_BOTH, "--partition", "insensitive")),
        "xm-2 statistics": ("numbers", "xm-2", (*_BOTH, "--statistics")),
        "xm-2 ranking": ("numbers", "xm-2", (*_BOTH, "--partition", "ranking")),
        "domains from data": ("numbers", "laplace", (*_EPSILON, "--domain-from-data", "1.5")),
    }
    found |= {f"variant {name}": _protect(*head, *options) for name, (*head, options) in variants.items()}
    shown: dict[str, tuple[str, ...]] = {
        "json pairs-dp": (*_protect("mixed", "pairs-dp", *_EPSILON), "--json"),
        "json evaluated": (*_protect("mixed", "k-anonymity", *_K), "--evaluate", "--json"),
        "evaluated": (*_protect("mixed", "mdav-dp", *_BOTH), "--evaluate", "--all"),
        "internal": (*_protect("numbers", "tree-dp", *_EPSILON), "--internal", "internal.html"),
        "ledger": (
            *_protect("numbers", "pairs-dp", *_EPSILON),
            "--ledger",
            "ledger.sqlite",
            "--dataset",
            "people",
        ),
        "format parquet": (*_protect("mixed", "pairs-dp", *_EPSILON), "--format", "parquet"),
        "format excel": (*_protect("mixed", "pairs-dp", *_EPSILON), "--format", "excel"),
        "methods": ("methods",),
        "methods json": ("methods", "--json"),
        "schema drafted": ("schema", "mixed.csv"),
        "schema checked": ("schema", "mixed.csv", "--check", "--schema", "mixed.toml"),
        "risk": ("risk", "mixed.csv", "--schema", "mixed.toml"),
        "risk json": ("risk", "mixed.csv", "--schema", "mixed.toml", "--json"),
        "check": ("check", "mixed.csv", "--schema", "mixed.toml", "--k", "2"),
        "evaluate": ("evaluate", "numbers.csv", "numbers.csv"),
    }
    found |= {f"shown {name}": call for name, call in shown.items()}
    wrong: dict[str, tuple[str, ...]] = {
        "no file": ("protect", "nowhere.csv", "--epsilon", "1", "--out", "out"),
        "no schema": ("protect", "numbers.csv", "--epsilon", "1", "--out", "out"),
        "no method": _protect("numbers", "mdvav-dp", *_BOTH),
        "no epsilon": _protect("numbers", "mdav-dp", *_K),
        "no k": _protect("numbers", "mdav-dp", *_EPSILON),
        "epsilon zero": _protect("numbers", "pairs-dp", "--epsilon", "0"),
        "epsilon text": _protect("numbers", "pairs-dp", "--epsilon", "one"),
        "delta large": _protect("numbers", "pairs-dp", *_EPSILON, "--delta", "0.5"),
        "k too large": _protect("numbers", "mdav-dp", *_EPSILON, "--k", "999"),
        "k negative": _protect("numbers", "mdav-dp", *_EPSILON, "--k", "-3"),
        "foreign option": _protect("numbers", "pairs-dp", *_EPSILON, "--gamma", "0.2"),
        "unknown option": _protect("numbers", "pairs-dp", *_EPSILON, "--colour", "red"),
        "unknown column": _protect("numbers", "pairs-dp", *_EPSILON, "--columns", "agee,income"),
        "unknown split": _protect("numbers", "laplace", *_EPSILON, "--split", "fair"),
        "split without column": _protect("numbers", "laplace", *_EPSILON, "--split", "agee=2"),
        "strata unknown": _protect("mixed", "mdav-dp", *_BOTH, "--strata", "nowhere"),
        "gaps": _protect("gaps", "laplace", *_EPSILON),
        "domain turned": ("protect", "numbers.csv", "--domain", "age=90:0", "--epsilon", "1", "--out", "out"),
        "domain text": ("protect", "numbers.csv", "--domain", "age=a:b", "--epsilon", "1", "--out", "out"),
        "l out of reach": _protect("mixed", "k-anonymity", *_K, "--l", "500"),
        "t out of reach": _protect("mixed", "t-closeness", *_K, "--t", "0"),
        "spark without master": _protect("numbers", "mdav-dp", *_BOTH, "--engine", "sparc"),
        "rows zero": _protect("numbers", "pairs-dp", *_EPSILON, "--rows", "0"),
        "empty table": ("protect", "empty.csv", "--schema", "numbers.toml", *_EPSILON, *SEED, "--out", "out"),
        "text in numbers": (
            "protect",
            "text.csv",
            "--schema",
            "numbers.toml",
            *_EPSILON,
            *SEED,
            "--out",
            "out",
        ),
        "outside": ("protect", "outside.csv", "--schema", "numbers.toml", *_EPSILON, *SEED, "--out", "out"),
        "risk without keys": ("risk", "numbers.csv"),
        "check without k": ("check", "mixed.csv", "--schema", "mixed.toml"),
        "config missing": ("protect", "numbers.csv", "--config", "nowhere.toml", "--out", "out"),
    }
    return found | {f"wrong {name}": call for name, call in wrong.items()}


def library_errors(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Errors of the library for the same mistakes: their sentences, codes and facts."""
    import shoal

    numbers, mixed = folder / "numbers.csv", folder / "mixed.csv"
    schema = {path: shoal.Schema.load(path.with_suffix(".toml")) for path in (numbers, mixed)}
    calls: dict[str, Mapping[str, Any]] = {
        "epsilon zero": {"epsilon": 0},
        "epsilon missing": {},
        "method unknown": {"method": "pairs", "epsilon": 1},
        "k missing": {"method": "mdav-dp", "epsilon": 1},
        "k too large": {"method": "mdav-dp", "epsilon": 1, "k": 999},
        "k text": {"method": "mdav-dp", "epsilon": 1, "k": "many"},
        "option unknown": {"epsilon": 1, "colour": "red"},
        "option of another": {"epsilon": 1, "gamma": 0.2},
        "split unknown": {"method": "laplace", "epsilon": 1, "split": "fair"},
        "split column": {"method": "laplace", "epsilon": 1, "split": {"agee": 1}},
        "columns unknown": {"epsilon": 1, "columns": ["agee"]},
        "domains unknown": {"epsilon": 1, "domains": {"agee": (0, 1)}},
        "outside narrow": {"epsilon": 1, "domains": {"age": (0, 30)}},
        "strata unknown": {"method": "mdav-dp", "epsilon": 1, "k": 5, "strata": ["nowhere"]},
        "weights many": {"method": "xm-2", "epsilon": 1, "k": 20, "weights": [1, 2, 3, 4]},
        "seed negative": {"epsilon": 1, "seed": -1},
        "engine unknown": {"epsilon": 1, "engine": "cloud"},
        "delta large": {"epsilon": 1, "delta": "0.1"},
        "missing unknown": {"epsilon": 1, "missing": "guess"},
        "outside unknown": {"epsilon": 1, "outside": "cut"},
    }
    found: dict[str, list[dict[str, Any]]] = {}
    for path in (numbers, mixed):
        for name, options in calls.items():
            try:
                shoal.protect(path, schema=schema[path], **options)
                found[f"{path.stem}: {name}"] = []
            except shoal.ShoalError as error:
                found[f"{path.stem}: {name}"] = [one.to_dict() for one in error.problems]
            except (TypeError, ValueError) as error:
                found[f"{path.stem}: {name}"] = [{"sentence": f"{type(error).__name__}: {error}"}]
    return found


# sentences as codes and facts

# around what is said by a code: no sentence and no table has them
_OPENS, _CLOSES = "\N{MATHEMATICAL LEFT WHITE SQUARE BRACKET}", "\N{MATHEMATICAL RIGHT WHITE SQUARE BRACKET}"
# facts that differ between runs
_TIMED = re.compile("(seconds|duration|elapsed|took|rate)$")
_DURATIONS = ("time-second", "time-seconds", "time-minutes", "time-hours")
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


@contextlib.contextmanager
def as_codes() -> Iterator[None]:
    """Every sentence is its code and facts while this lasts; it is worded all the same, which has to be possible."""
    from shoal import errors

    sentences = _sentences()
    worded = sentences.render

    def render(code: str, facts: Mapping[str, Any], flag: Any = None) -> str:
        sentence = worded(code, facts, flag)
        return _coded(code, facts) if code in sentences.catalogue() else sentence

    def way_out(code: str, facts: Mapping[str, Any]) -> str:
        return _coded(f"way out of {code}", facts)

    with contextlib.ExitStack() as patched:
        for room in (sentences, errors):
            patched.enter_context(mock.patch.object(room, "render", render))
            patched.enter_context(mock.patch.object(room, "way_out", way_out))
        yield


def _sentences() -> Any:
    """The module that renders sentences, by the name it has in the state that is recorded."""
    try:
        return importlib.import_module("shoal.text.sentences")
    except ModuleNotFoundError:
        return importlib.import_module("shoal.text.render")


def _coded(code: str, facts: Mapping[str, Any]) -> str:
    if code in _DURATIONS:
        return "<duration>"
    said = "".join(f" {name}={_fact(name, value)}" for name, value in sorted(facts.items()))
    return f"{_OPENS}{code}{said}{_CLOSES}"


def _fact(name: str, value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_fact(name, one) for one in value)}]"
    if isinstance(value, (set, frozenset)):
        return _fact(name, sorted(value, key=str))
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {_fact(str(key), one)}' for key, one in value.items())}}}"
    if isinstance(value, (int, float)) and _TIMED.match(name):
        return "<duration>"
    return _ADDRESS.sub("", str(value))


def said_by_codes(text: str) -> list[str]:
    """What is said by codes in a text, in order; one that was cut off reaches to the end of its line.

    >>> said_by_codes(f"Done: {_OPENS}a of={_OPENS}b{_CLOSES}{_CLOSES}. {_OPENS}c")
    ['a of=⟦b⟧', 'c']
    """
    found = []
    for line in text.splitlines():
        depth = start = 0
        for place, sign in enumerate(line):
            if sign == _OPENS:
                start = start if depth else place + 1
                depth += 1
            elif sign == _CLOSES and depth:
                depth -= 1
                if not depth:
                    found.append(line[start:place])
        if depth:
            found.append(line[start:])
    return found


def without_words(name: str, data: bytes) -> bytes:
    """What is compared of a recorded file when words do not count.

    Args:
        name: path of the file in the recording.
    """
    path = Path(name)
    if path.name == "terminal.txt":
        return _of_terminal(data.decode("utf-8"), help=path.parent.name.startswith("help")).encode()
    if path.suffix == ".html":
        return "\n".join(_of_page(data.decode("utf-8"))).encode()
    if path.suffix == ".toml":
        return "\n".join(_without_comments(data.decode("utf-8"))).encode()
    if path.name == "statement.json":
        return "\n".join(_of_json(data.decode("utf-8"))).encode()
    return data


def _of_json(text: str) -> list[str]:
    """Lines of JSON without the edition of the sentences and without help."""
    return json.dumps(_without_help(json.loads(text)), indent=1, ensure_ascii=False).splitlines()


def _without_help(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_help(one) for one in value]
    if not isinstance(value, dict):
        return value
    # a method as `shoal methods --json` lists it: names of its parameters count, their help does not
    if value.keys() >= {"about", "parameters"}:
        value = {name: one for name, one in value.items() if name != "about"}
        value["parameters"] = sorted(value["parameters"])
    return {
        name: _without_help({n: v for n, v in one.items() if n != "words"} if name == "versions" else one)
        for name, one in value.items()
    }


def _of_terminal(text: str, *, help: bool) -> str:
    out, _, errors = text.partition("\n-- errors --\n")
    status, _, out = out.partition("\n\n")
    if help:
        options = sorted(set(re.findall(r"^[^\w-]*(--?[a-z][a-z-]*)", out, re.MULTILINE)))
        return "\n".join([status, *options])
    said = sorted(said_by_codes(errors))
    for read, kept in ((json.loads, _of_json), (tomllib.loads, _without_comments)):
        with contextlib.suppress(ValueError):
            read(out)
            return "\n".join([status, *kept(out), *said])
    return "\n".join([status, *sorted(said_by_codes(out)), *said])


def _of_page(page: str) -> list[str]:
    cells = re.findall(r"<td[^>]*>(.*?)</td>", page, re.DOTALL)
    numbers = [number for cell in cells for number in re.findall(r"\d[\d.,]*", re.sub("<[^>]*>", "", cell))]
    return [*numbers, *sorted(said_by_codes(html.unescape(page)))]


def _without_comments(document: str) -> list[str]:
    return [line.partition("  #")[0] for line in document.splitlines() if not line.lstrip().startswith("#")]


# one checkout


def record(out: Path, only: Sequence[str], *, words: bool = False) -> None:
    """Run every case with the package that this interpreter finds; each gets a folder with all its output.

    Args:
        words: only these may differ, so sentences are recorded as codes and facts.
    """
    with tempfile.TemporaryDirectory(prefix="golden-") as noted:
        plain = {
            # what is said by codes is not broken into lines
            "COLUMNS": "100000" if words else "100",
            "NO_COLOR": "1",
            "TERM": "dumb",
            "SHOAL_JOURNAL": str(Path(noted) / "journal"),
        }
        with mock.patch.dict(os.environ, plain), as_codes() if words else contextlib.nullcontext():
            _record(out, only)


def _record(out: Path, only: Sequence[str]) -> None:
    import shoal
    from shoal.cli import app, run

    tables = out / "tables"
    tables.mkdir(parents=True)
    write_tables(tables)
    methods = [method.name for method in shoal.methods()]
    commands = [command.name for command in app.registered_commands if command.name]
    calls = cases(methods) | {f"help {name}": (name, "--help") for name in commands}
    calls |= {"help": ("--help",), "help protect all": ("protect", "--help-all")}
    for name, call in calls.items():
        if only and not any(word in name for word in only):
            continue
        folder = out / name.replace(" ", "_")
        shutil.copytree(tables, folder)
        given = [path.name for path in folder.iterdir()]
        journal = Path(os.environ["SHOAL_JOURNAL"])
        said, complained = io.StringIO(), io.StringIO()
        with (
            contextlib.chdir(folder),
            contextlib.redirect_stdout(said),
            contextlib.redirect_stderr(complained),
        ):
            status = run(list(call))
        for file in given:
            (folder / file).unlink()
        _keep_journal(journal, folder)
        text = f"exit {status}\n\n{said.getvalue()}\n-- errors --\n{complained.getvalue()}"
        text = text.replace(str(folder.resolve()), "")
        (folder / "terminal.txt").write_text(_DURATION.sub("<duration>", text), "utf-8")
    shutil.rmtree(tables)
    if not only or any(word in "library errors" for word in only):
        with tempfile.TemporaryDirectory() as made:
            write_tables(Path(made))
            found = library_errors(Path(made))
        # apart, because sentences and codes do not change in the same moves
        sentences = {name: [one.pop("sentence") for one in problems] for name, problems in found.items()}
        for file, content in (("library_sentences.json", sentences), ("library_errors.json", found)):
            text = json.dumps(content, indent=1, ensure_ascii=False, sort_keys=True).replace(made, "")
            (out / file).write_text(text, "utf-8")


def _keep_journal(journal: Path, folder: Path) -> None:
    """Keep what a call noted in the journal, without random parts and times, and clear it for the next call."""
    if journal.exists():
        lines = [json.loads(line) for line in journal.read_text("utf-8").splitlines()]
        kept = [{key: line[key] for key in line if key not in ("id", "at", "table")} for line in lines]
        for line in kept:
            line["facts"].pop("charge", None)
        text = "\n".join(json.dumps(line, ensure_ascii=False) for line in kept)
        (folder / "journal.jsonl").write_text(text.replace(str(folder), ""), "utf-8")
    for path in journal.parent.iterdir():
        path.unlink()


@contextlib.contextmanager
def checkout(given: str) -> Iterator[Path]:
    """A folder with this state of the code: an existing folder, or a commit checked out temporarily."""
    if Path(given).is_dir():
        yield Path(given).resolve()
        return
    with tempfile.TemporaryDirectory(prefix="golden-") as made:
        packed = subprocess.run(["git", "-C", str(ROOT), "archive", given], capture_output=True, check=False)
        if packed.returncode:
            raise SystemExit(f"'{given}' is neither a folder nor a commit of this repository.")
        subprocess.run(["tar", "-x", "-C", made], input=packed.stdout, check=True)
        yield Path(made)


def started(code: Path, out: Path, only: Sequence[str], *, words: bool = False) -> subprocess.Popen[bytes]:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(code / "src"), str(ROOT)]),
        "PYTHONHASHSEED": "0",
        "OPENBLAS_NUM_THREADS": "1",
        "NUMBA_NUM_THREADS": "1",
    }
    command = [sys.executable, "-m", "tools.golden", "--record", str(out), "--only", *only]
    command += ["--words"] if words else []
    # the calls of this checkout, with the package of the other
    return subprocess.Popen(command, env=environment, cwd=ROOT)


# two checkouts


@dataclass(frozen=True)
class Difference:
    """A file that is not the same, or only there on one side."""

    name: str
    lines: tuple[str, ...]


def differences(
    before: Path, after: Path, gained: Sequence[str] = (), *, words: bool = False
) -> list[Difference]:
    """Every file of one side beside that of the other.

    Args:
        gained: keys that a statement may have afterwards and did not have before.
        words: these may differ; both sides were recorded so.
    """
    sides = [
        {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
        for root in (before, after)
    ]
    found = [Difference(name, ("only before",)) for name in sides[0] - sides[1]]
    found += [Difference(name, ("only after",)) for name in sides[1] - sides[0]]
    for name in sides[0] & sides[1]:
        one, other = (root.joinpath(name).read_bytes() for root in (before, after))
        if gained and Path(name).name == "statement.json":
            one, other = (_without(data, gained) for data in (one, other))
        if words:
            one, other = (without_words(name, data) for data in (one, other))
        if one == other or Path(name).suffix in _RANDOM:
            continue
        try:
            old, new = (data.decode("utf-8").splitlines() for data in (one, other))
            lines = tuple(difflib.unified_diff(old, new, "before", "after", lineterm="", n=1))
        except UnicodeDecodeError:
            lines = (f"{len(one):,} bytes before, {len(other):,} after",)
        found.append(Difference(name, lines))
    return sorted(found, key=lambda one: one.name)


def _without(data: bytes, keys: Sequence[str]) -> bytes:
    statement = json.loads(data)
    return json.dumps({key: value for key, value in statement.items() if key not in keys}).encode()


def unreleased(folder: Path, methods: Sequence[str]) -> list[str]:
    """Methods that no case of a recording releases, so that nothing is compared for them."""
    made = {path.parent.parent.name for path in folder.glob("*/out/statement.json")}
    return [name for name in methods if not any(name in case.split("_") for case in made)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkouts", nargs="*", metavar="BEFORE AFTER", help="folders or commits")
    parser.add_argument(
        "--only", nargs="*", default=[], metavar="WORD", help="cases whose name has one of these"
    )
    parser.add_argument(
        "--gained", nargs="*", default=[], metavar="KEY", help="keys that a statement.json may gain"
    )
    parser.add_argument(
        "--words", action="store_true", help="words may differ: compare codes, facts and data"
    )
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep what was recorded in a new folder")
    parser.add_argument("--record", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.record:
        record(arguments.record, arguments.only, words=arguments.words)
        return
    if len(arguments.checkouts) != 2:
        parser.error("name two checkouts or commits, BEFORE and AFTER.")
    with contextlib.ExitStack() as stack:
        keep = arguments.keep or stack.enter_context(tempfile.TemporaryDirectory(prefix="golden-"))
        before, after = (Path(keep).resolve() / side for side in ("before", "after"))
        codes = [stack.enter_context(checkout(given)) for given in arguments.checkouts]
        running = [
            started(code, side, arguments.only, words=arguments.words)
            for code, side in zip(codes, (before, after), strict=True)
        ]
        if any([one.wait() for one in running]):
            raise SystemExit("a recording failed: see above.")
        import shoal

        found = differences(before, after, arguments.gained, words=arguments.words)
        for one in found:
            print(f"\n{one.name}")
            print("\n".join(f"  {line}" for line in one.lines[:_SHOWN_LINES]))
        calls, bundles = (
            len(list(after.glob(pattern))) for pattern in ("*/terminal.txt", "*/out/statement.json")
        )
        bare = [] if arguments.only else unreleased(after, [method.name for method in shoal.methods()])
        if bare:
            print(f"never released, so not compared: {', '.join(bare)}")
        print(f"{calls} calls, {bundles} bundles, {len(found)} files differ")
    sys.exit(bool(found or bare))


if __name__ == "__main__":
    main()
