"""The packages of Shoal, the cost of a change, and one traced call of `shoal protect`: writes results/architecture.md.

    python -m tools.architecture [--out results/architecture.md]
    python -m tools.architecture --measure

The walk follows an actual run: it notes every function of Shoal that the call entered; a call from a package to one
above it in the order of the layers (pyproject.toml, which `make lint` enforces for imports) would lead back.

With `--measure`, sizes of the code are printed beside their goals. A size above its goal has a limit that may only
fall: a size above its limit is an error, which `make lint` checks.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import contextlib
import inspect
import os
import sys
import tempfile
import threading
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any
from unittest import mock

from tools.results import RESULTS

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "shoal"
_HEAD = """\
# Architecture in figures

Written by `python -m tools.architecture`. The architecture itself is described in [one page](../docs/architecture.md).

"""


@dataclass
class Walk:
    """The functions that a call entered.

    Attributes:
        modules: the functions first entered of each module, in the order of the modules.
        hops: calls from one package to another, with how often each was made.
    """

    modules: dict[str, list[str]] = field(default_factory=dict)
    hops: dict[tuple[str, str], int] = field(default_factory=dict)

    def watch(self, frame: FrameType, event: str, argument: Any) -> None:
        module = frame.f_globals.get("__name__", "")
        # bodies of modules and classes run when they are imported
        is_function = frame.f_code.co_flags & inspect.CO_OPTIMIZED
        if event != "call" or not is_function or not module.startswith("shoal."):
            return
        functions = self.modules.setdefault(module, [])
        name = frame.f_code.co_qualname
        public = not any(part.startswith(("_", "<")) for part in name.split("."))
        if public and len(functions) < 3 and name not in functions:
            functions.append(name)
        caller = frame.f_back
        while caller is not None and not caller.f_globals.get("__name__", "").startswith("shoal."):
            caller = caller.f_back
        if caller is not None:
            pair = package_of(caller.f_globals["__name__"]), package_of(module)
            # a package may call what was passed to it, such as a progress callback
            if pair[0] != pair[1] and "." not in name:
                self.hops[pair] = self.hops.get(pair, 0) + 1

    @property
    def switches(self) -> int:
        """How often the package changes along the modules, in the order in which they are entered."""
        return sum(package_of(one) != package_of(other) for one, other in pairwise(self.modules))


def package_of(module: str) -> str:
    return module.split(".")[1]


def layers() -> list[str]:
    """The packages from the top layer to the bottom."""
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    contracts = tomllib.loads(text)["tool"]["importlinter"]["contracts"]
    ordered = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [name.strip() for layer in ordered for name in layer.split("|")]


def walk_of(work: Callable[[], Any]) -> Walk:
    walk = Walk()
    # long work runs in a separate thread
    threading.setprofile(walk.watch)
    sys.setprofile(walk.watch)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return walk


def protect_once() -> Walk:
    """One call of the command on a small synthetic table."""
    from shoal.cli import run
    from shoal.io import write
    from shoal.survey import survey, survey_schema

    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        write(survey(400), place / "survey.csv")
        survey_schema().save(place / "survey.toml")
        words = ["protect", str(place / "survey.csv"), "--schema", str(place / "survey.toml")]
        words += ["--columns", "age,income", "--method", "ranking-dp", "--epsilon", "1", "--k", "20"]
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
            # once in advance, so that no import happens on the way
            run([*words, "--out", str(place / "first")])
            return walk_of(lambda: run([*words, "--out", str(place / "release")]))


# as many columns as a first release may have, and of every kind in the survey
_COLUMNS = ("age", "sex", "region", "income", "tax")


def protect_by_default(folder: Path) -> Walk:
    """The command with its default method."""
    from shoal.cli import run
    from shoal.io import write
    from shoal.survey import survey, survey_schema

    write(survey(400), folder / "survey.csv")
    survey_schema().save(folder / "survey.toml")
    words = ["protect", str(folder / "survey.csv"), "--schema", str(folder / "survey.toml")]
    words += ["--columns", ",".join(_COLUMNS), "--epsilon", "1"]
    with open(os.devnull, "w") as nowhere, contextlib.ExitStack() as silent:
        silent.enter_context(contextlib.redirect_stdout(nowhere))
        silent.enter_context(contextlib.redirect_stderr(nowhere))
        # once in advance, so that no import happens on the way
        run([*words, "--out", str(folder / "first")])
        return walk_of(lambda: run([*words, "--out", str(folder / "release")]))


def protect_in_library() -> Walk:
    import shoal
    from shoal.survey import survey, survey_schema

    people, schema = survey(400), survey_schema()

    def work() -> None:
        shoal.protect(people, schema, "pairs-dp", 1, columns=_COLUMNS)

    work()
    return walk_of(work)


def question(folder: Path) -> Walk:
    """One question to a server, after a first one."""
    from shoal.query import DatasetSettings, Limits, new_token, write_dataset
    from shoal.query.server.folder import TOKENS_FILE
    from shoal.query.server.state import Config
    from shoal.survey import survey, survey_schema

    settings = DatasetSettings(ceiling=Fraction(2), description="A small survey.")
    write_dataset(folder / "survey", settings, survey_schema(), survey(300))
    token = new_token(folder / TOKENS_FILE, "ada", "analyst")
    walk = Walk()
    # threads of the server start with the first question: they are traced, but it does not count
    threading.setprofile(walk.watch)
    try:
        asyncio.run(_ask(Config(folder, limits=Limits(pace=0, rate=0, patience=240)), token, walk))
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return walk


async def _ask(config: Any, token: str, walk: Walk) -> None:
    import httpx

    from shoal.query.server.app import create_app

    application = create_app(config)
    api = application._api
    async with (
        api.router.lifespan_context(api),
        httpx.AsyncClient(transport=httpx.ASGITransport(application), base_url="http://server") as client,
    ):
        for column in ("income", "tax"):
            walk.modules.clear()
            walk.hops.clear()
            sys.setprofile(walk.watch)
            reply = await client.post(
                "/v1/datasets/survey/answers",
                json={"kind": "mean", "column": column, "epsilon": "0.5"},
                headers={"Authorization": f"Bearer {token}"},
            )
            sys.setprofile(None)
            if reply.status_code != 200:
                raise SystemExit(f"the server did not answer: {reply.text}")


# sizes of the code

# packages that nothing is built on
_ON_TOP = ("cli", "studio")


@dataclass(frozen=True)
class Limit:
    """The goal of a size, and its limit until then.

    Attributes:
        most: its last measured value, where that is above the goal; it may only fall.
    """

    what: str
    goal: int
    most: int


LIMITS: Mapping[str, Limit] = {
    # the sizes with rules, intervals, units, matrices and strata; before these 218, 31, 80,200 and 17
    "modules": Limit("modules", 195, 199),
    "doors": Limit("doors (`__init__.py`)", 29, 33),
    "lines": Limit("lines of Python", 65_000, 92_400),
    "longest": Limit("lines of the longest module", 850, 850),
    "imported": Limit("rooms that others are built on", 17, 18),
    "past": Limit("modules imported past a door", 0, 0),
    "command": Limit("modules entered by `shoal protect`", 60, 70),
    "library": Limit("modules entered by `shoal.protect`", 42, 45),
    "question": Limit("modules entered by one question to a server", 22, 22),
    "switches": Limit("changes of room in one `shoal protect`", 30, 50),
}


def sources(package: Path) -> dict[str, Path]:
    """The modules of a package by name, with each `__init__` under the name of its package."""
    return {
        ".".join((package.name, *path.relative_to(package).with_suffix("").parts)).removesuffix(
            ".__init__"
        ): path
        for path in sorted(package.rglob("*.py"))
    }


def imports_across(package: Path) -> set[str]:
    """Modules imported in another package, or in another top-level module, inside functions too."""
    modules = sources(package)
    return {
        imported
        for importer, path in modules.items()
        for imported in _imported(ast.parse(path.read_text("utf-8")), modules)
        if imported.split(".")[1:2] != importer.split(".")[1:2]
    }


def _imported(tree: ast.AST, modules: Mapping[str, Path]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module in modules:
            for name in node.names:
                full = f"{node.module}.{name.name}"
                yield full if full in modules else node.module
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name in modules)


def static_sizes(package: Path) -> dict[str, int]:
    """Sizes visible in the source code."""
    modules = sources(package)
    lines = {name: len(path.read_text("utf-8").splitlines()) for name, path in modules.items()}
    doors = {name for name, path in modules.items() if path.name == "__init__.py"}
    across = imports_across(package) - {package.name, *(f"{package.name}.{name}" for name in _ON_TOP)}
    return {
        "modules": len(modules) - len(doors),
        "doors": len(doors),
        "lines": sum(lines.values()),
        "longest": max(lines.values()),
        "imported": len(across & doors),
        "past": sum(name.count(".") > 1 for name in across),
    }


def sizes() -> dict[str, int]:
    """All sizes; measuring them makes three calls."""
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.dict(os.environ, SHOAL_JOURNAL=f"{folder}/journal"),
    ):
        command, library = protect_by_default(Path(folder)), protect_in_library()
        asked = question(Path(folder) / "served")
    return {
        **static_sizes(PACKAGE),
        "command": len(command.modules),
        "library": len(library.modules),
        "question": len(asked.modules),
        "switches": command.switches,
    }


def judged(found: Mapping[str, int], limits: Mapping[str, Limit]) -> tuple[list[str], list[str]]:
    """Lines with all sizes, and the sizes above their limits."""
    width = max(len(limit.what) for limit in limits.values())
    lines = [f"{'':{width}}  {'size':>7}  {'goal':>7}  {'limit':>7}"]
    wrong = []
    for name, limit in limits.items():
        size = found[name]
        most = f"{limit.most:>7,}" if limit.most > limit.goal else ""
        lines.append(f"{limit.what:{width}}  {size:>7,}  {limit.goal:>7,}  {most}".rstrip())
        if size > max(limit.most, limit.goal):
            wrong.append(f"{limit.what}: {size:,}, at most {max(limit.most, limit.goal):,} before.")
    return lines, wrong


def about(module: str) -> str:
    """The first sentence of a module's docstring."""
    path = PACKAGE.joinpath(*module.split(".")[1:])
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    text = ast.get_docstring(ast.parse(source.read_text("utf-8"))) or ""
    return " ".join(text.split("\n\n")[0].split())


def lines_of(name: str) -> int:
    path = PACKAGE / name
    files = path.rglob("*.py") if path.is_dir() else [path.with_suffix(".py")]
    return sum(len(file.read_text("utf-8").splitlines()) for file in files)


@dataclass(frozen=True)
class Cost:
    """The cost of adding something.

    Attributes:
        takes: the entries, as text.
        words: the existing names, such as all noises.
        table: the module with the entries.
        compared: the attributes and variables by which code would compare a name, such as `kind`.
    """

    change: str
    takes: str
    words: tuple[str, ...] = ()
    table: str = ""
    compared: tuple[str, ...] = ()


def costs() -> tuple[Cost, ...]:
    from shoal.columns.kinds import KINDS
    from shoal.evaluation.measures import ranked_by
    from shoal.mechanisms.registry import method_class, names
    from shoal.noise.families import NOISES
    from shoal.report.pages import SECTIONS

    return (
        Cost(
            "a method",
            "a class in `mechanisms`, with its `Claim`, and its place in `mechanisms/registry.py`",
            names(),
            "mechanisms/registry.py",
            ("name",),
        ),
        Cost(
            "a mechanism",
            "the module with the work of a method, which its class names",
            tuple(dict.fromkeys(method_class(name).mechanism for name in names())),
            compared=("mechanism",),
        ),
        Cost(
            "a kind of column",
            "a `ColumnKind` in `columns/kinds.py`; a reader and a writer in `columns/column.py` if it is stored anew",
            KINDS,
            "columns/kinds.py",
            ("kind",),
        ),
        Cost(
            "a noise",
            "a `NoiseFamily` in `noise/families.py`",
            tuple(NOISES),
            "noise/families.py",
            ("noise",),
        ),
        Cost(
            "a file format",
            "a record in `io/formats.py`",
            ("csv", "parquet", "stata", "spss"),
            "io/formats.py",
            ("format", "kind", "written"),
        ),
        Cost(
            "a measure",
            "a `Measure` in `evaluation/measures.py`",
            tuple(ranked_by()),
            "evaluation/measures.py",
            ("utility", "name"),
        ),
        Cost(
            "a setting",
            "a field of the class of its method; in `SHARED` of `mechanisms/parameter_fields.py` if several have it",
            table="mechanisms/parameter_fields.py",
        ),
        Cost(
            "a section of the report",
            "a `Section` in `report/pages.py` and a template",
            tuple(SECTIONS),
            "report/pages.py",
            ("id",),
        ),
        Cost(
            "an engine",
            "`release/publication.py` chooses it; what it does is a runner like `engines/runner.py`",
        ),
        Cost("an interface on top", "a call of `shoal.publish`"),
    )


def comparisons(asking: tuple[str, ...], words: tuple[str, ...]) -> dict[str, int]:
    """Modules that compare an attribute or a variable of such a name with one of these words, and how often."""
    found: dict[str, int] = {}
    for module, sides, constants in _all_comparisons(PACKAGE):
        if not sides.isdisjoint(asking) and not constants.isdisjoint(words):
            found[module] = found.get(module, 0) + 1
    return found


@cache
def _all_comparisons(package: Path) -> list[tuple[str, set[str], set[str]]]:
    """Every comparison of the code: its module, the names on its sides, the texts in it."""
    found = []
    for path in sorted(package.rglob("*.py")):
        module = str(path.relative_to(package))
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Compare):
                sides = (node.left, *node.comparators)
                parts = (part for side in sides for part in ast.walk(side))
                asked = {getattr(side, "attr", getattr(side, "id", "")) for side in sides}
                texts = {p.value for p in parts if isinstance(p, ast.Constant) and isinstance(p.value, str)}
                found.append((module, asked, texts))
    return found


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def cost_lines() -> list[str]:
    lines = [
        "## What a change costs",
        "",
        "What it takes to add one, and how often code still compares with a name instead of asking the record of that "
        "name.",
        "",
        "| one more | what it takes | compared by name |",
        "| --- | --- | --- |",
    ]
    for cost in costs():
        asked = ""
        if cost.compared:
            found = comparisons(cost.compared, cost.words)
            found.pop(cost.table, None)
            asked = (
                "nowhere"
                if not found
                else f"{_times(sum(found.values()))}: " + ", ".join(f"`{module}`" for module in found)
            )
        lines.append(f"| {cost.change} | {cost.takes} | {asked} |")
    return [*lines, ""]


def back_hops(walk: Walk) -> list[tuple[str, str]]:
    """Calls from a package to one above it."""
    order = {name: place for place, name in enumerate(layers())}
    return [
        (caller, called)
        for caller, called in walk.hops
        if order.get(called, 0) < order.get(caller, len(order))
    ]


def page() -> str:
    walk = protect_once()
    text = [
        _HEAD + "## Packages",
        "",
        "From the bottom layer up: a package may import those above it in this table.",
        "",
    ]
    text += ["| package | what it is for | lines |", "| --- | --- | --- |"]
    for name in reversed(layers()):
        text.append(f"| `{name}` | {about(f'shoal.{name}')} | {lines_of(name)} |")
    text += ["", *cost_lines()]
    command = "shoal protect survey.csv --schema survey.toml --columns age,income --method ranking-dp --epsilon 1 -k 20"
    text += ["## One call, module by module", ""]
    text += [f"What `{command}` enters, in the order in which it gets there:", ""]
    text += ["| module | what it is for | enters by |", "| --- | --- | --- |"]
    for module, functions in walk.modules.items():
        if not functions:
            continue
        names = ", ".join(f"`{name}`" for name in functions)
        text.append(f"| `{module.removeprefix('shoal.')}` | {about(module)} | {names} |")
    hops = back_hops(walk)
    calls = sum(walk.hops.values())
    text += [
        "",
        f"Of {len(walk.hops)} pairs of packages whose functions called each other, {calls} times in all, ",
    ]
    if hops:
        text[-1] += "these lead back: " + ", ".join(f"{caller} to {called}" for caller, called in hops) + "."
    else:
        text[-1] += "none leads back: every call goes from a package to one of a lower layer."
    return "\n".join(text) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS / "architecture.md")
    parser.add_argument("--measure", action="store_true", help="print sizes beside their goals and limits")
    arguments = parser.parse_args()
    if arguments.measure:
        lines, wrong = judged(sizes(), LIMITS)
        print("\n".join(lines))
        if wrong:
            raise SystemExit("\n".join(["", "Larger than before:", *wrong]))
        return
    arguments.out.write_text(page(), "utf-8")
    print(f"Written to {arguments.out}.")


if __name__ == "__main__":
    main()
