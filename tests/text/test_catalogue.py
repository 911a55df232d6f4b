"""Messages are data: every code has its sentence, every sentence its facts, and no program reads a sentence."""

from __future__ import annotations

import ast
import json
import re
import string
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import shoal
from shoal.cli.command import flag
from shoal.errors import ShoalError, ShoalWarning
from shoal.text import Message, catalogue, render, way_out

PACKAGE = Path(shoal.__file__).parent
ROOMS = PACKAGE / "text" / "en"
# what an error knows without being told
_OWN_FACTS: Mapping[str, frozenset[str]] = {"problems": frozenset({"problems"})}


@cache
def modules() -> Mapping[str, ast.Module]:
    return {
        path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text("utf-8"))
        for path in sorted(PACKAGE.rglob("*.py"))
    }


@cache
def speaking() -> frozenset[str]:
    """Names of the classes whose first argument is a code; those with arguments of their own say it themselves."""
    own = {
        node.name
        for tree in modules().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        and any(isinstance(part, ast.FunctionDef) and part.name == "__init__" for part in node.body)
    }
    bases: dict[str, set[str]] = {}
    for tree in modules().values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                bases.setdefault(node.name, set()).update(
                    part.id for part in node.bases if isinstance(part, ast.Name)
                )
    found = {ShoalError.__name__, ShoalWarning.__name__}
    while more := {name for name, above in bases.items() if above & found} - found:
        found |= more
    told = {ShoalError.__name__, ShoalWarning.__name__, "CancelledError"}
    return frozenset(name for name in found if name in told or name not in own)


def calls() -> Iterator[tuple[str, ast.Call, tuple[str, ...]]]:
    """Every call with the codes that its first argument can be; none where it is not a literal."""
    for name, tree in modules().items():
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            made = node.func.value if _name(node.func) == "of" else node.func  # type: ignore[attr-defined]
            if _name(made) in speaking() | {"Message"}:
                yield name, node, _codes(node.args[0])


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _codes(node: ast.expr) -> tuple[str, ...]:
    if isinstance(node, ast.IfExp):
        return (*_codes(node.body), *_codes(node.orelse))
    return (node.value,) if isinstance(node, ast.Constant) and isinstance(node.value, str) else ()


def placeholders(code: str) -> set[str]:
    """The facts that a template needs."""
    return {
        name for part in catalogue()[code] for _, name, _, _ in string.Formatter().parse(part) if name
    } - _OWN_FACTS.get(code, frozenset())


def given(call: ast.Call) -> set[str] | None:
    """The facts that a call gives by name; None where it unpacks some, or passes a mapping that is made elsewhere."""
    if any(keyword.arg is None for keyword in call.keywords):
        return None
    if _name(call.func) == "Message" and len(call.args) > 1:
        facts = call.args[1]
        if not isinstance(facts, ast.Dict) or not all(isinstance(key, ast.Constant) for key in facts.keys):
            return None
        return {str(key.value) for key in facts.keys if isinstance(key, ast.Constant)}
    return {str(keyword.arg) for keyword in call.keywords}


def test_every_code_is_in_the_catalogue_with_its_facts() -> None:
    unknown, lacking = [], []
    for name, call, codes in calls():
        where = f"{name}:{call.lineno}"
        for code in codes:
            if code not in catalogue():
                unknown.append((where, code))
                continue
            facts = given(call)
            if facts is not None and not placeholders(code) <= facts:
                lacking.append((where, code, sorted(placeholders(code) - facts)))
    assert unknown == []
    assert lacking == []


def test_every_code_of_the_catalogue_is_used() -> None:
    """As a literal, or put together: from a word and another code, f"about-{code}", or from two literals."""
    nodes = [node for tree in modules().values() for node in ast.walk(tree)]
    literals = {
        node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    forms = {_form(node) for node in nodes if isinstance(node, ast.JoinedStr)} - {""}
    left = [
        code
        for code in sorted(set(catalogue()) - literals)
        if not _in_two(code, literals) and not any(re.fullmatch(form, code) for form in forms)
    ]
    assert left == []


def _form(node: ast.JoinedStr) -> str:
    """A regular expression of the codes that a text with other codes in it can be; empty where it is none."""
    words = [str(part.value) for part in node.values if isinstance(part, ast.Constant)]
    plain = all(re.fullmatch("[a-z0-9-]+", word) for word in words)
    if not plain or not any(re.search("[a-z]{2}", word) for word in words):
        return ""
    return "".join(
        re.escape(str(part.value)) if isinstance(part, ast.Constant) else ".+" for part in node.values
    )


def _in_two(code: str, literals: set[str]) -> bool:
    parts = code.split("-")
    return any(
        any(first in literals for first in ("-".join(parts[:cut]), "-".join(parts[:cut]) + "-"))
        and any(last in literals for last in ("-".join(parts[cut:]), "-" + "-".join(parts[cut:])))
        for cut in range(1, len(parts))
    )


def test_codes_are_unique_and_plain() -> None:
    """A code that two rooms have would be that of the last, without a word."""
    found = [
        code
        for room in sorted(ROOMS.glob("*.json"))
        for code, _ in json.loads(room.read_text("utf-8"), object_pairs_hook=list)
    ]
    assert [code for code, times in Counter(found).items() if times > 1] == []
    assert [code for code in found if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", code)] == []


def sample(code: str) -> dict[str, Any]:
    """Made-up facts of a template, each of a form that it can be written in."""
    facts: dict[str, Any] = {}
    for part in catalogue()[code]:
        for _, name, spec, conversion in string.Formatter().parse(part):
            if name:
                facts[name] = facts.get(name) or _sample(spec or "", conversion)
    return facts


def _sample(spec: str, conversion: str | None) -> Any:
    if spec.partition(" ")[0] in ("list", "and", "or", "clauses", "lines"):
        return ("one", "two")
    if spec == "guess":
        return "near"
    return 3 if spec else repr("text") if conversion else "word"


@pytest.mark.parametrize("dialect", [None, flag], ids=["library", "command line"])
def test_every_code_renders_without_leftover_marks(dialect: Any) -> None:
    for code in catalogue():
        sentence = render(code, sample(code), dialect)
        assert sentence, code
        assert not set("«»") & set(sentence), code
        way_out(code, sample(code))


def _raised() -> Iterator[tuple[str, ast.Call]]:
    for name, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and _name(node.func) in speaking() and node.args:
                yield name, node


def test_no_error_is_made_from_a_sentence() -> None:
    found = [
        f"{name}:{call.lineno}"
        for name, call in _raised()
        if isinstance(call.args[0], ast.JoinedStr) or any(" " in code for code in _codes(call.args[0]))
    ]
    assert found == []


# methods that search a text or cut it
_CUTTING = frozenset(
    {
        "startswith",
        "endswith",
        "find",
        "index",
        "partition",
        "rpartition",
        "split",
        "splitlines",
        "replace",
        "removeprefix",
        "removesuffix",
        "rstrip",
        "lstrip",
        "strip",
        "count",
    }
)
_OF_RE = frozenset({"match", "search", "fullmatch", "findall", "sub", "split"})
# names that errors and what they say go by
_ERRORS = frozenset(
    {"error", "problem", "refused", "caught", "failure", "note", "remark", "warning", "message"}
)
_SENTENCES = frozenset({"sentence", "notes", "remarks", "warnings", "advice", "rendered"})
# where the sentence of somebody else is read: a place, and whose it is
ALLOWED: Mapping[str, str] = {
    "io/text_files.py": "pyarrow says in words where a line of CSV ends too early",
    "io/binary_files.py": "libraries that read spreadsheets say why in several lines",
    "io/files.py": "pyarrow has the type that it cannot read in quotes",
    "io/common.py": "libraries that unpack say why in several lines",
    "kernels.py": "numba says why in several lines",
    "query/server/folder.py": "pyarrow says why in several lines",
    "engines/spark.py": "Spark has the traceback of a task in its message",
    "taxonomy/rdf.py": "rdflib says why in several lines",
    "text/sentences.py": "the room that writes sentences begins them with a capital",
}


def _speaks(node: ast.expr) -> bool:
    """Whether an expression is what an error or a note says."""
    if isinstance(node, ast.Call):
        inner = node.func
        if _name(inner) == "str" and node.args:
            return _name(node.args[0]) in _ERRORS or _speaks(node.args[0])
        return isinstance(inner, ast.Attribute) and (inner.attr == "rendered" or _speaks(inner.value))
    if isinstance(node, ast.Subscript):
        return _speaks(node.value)
    if isinstance(node, ast.JoinedStr):
        return any(isinstance(part, ast.FormattedValue) and _speaks(part.value) for part in node.values)
    if isinstance(node, ast.Name):
        return node.id in {"note", "remark", "sentence"}
    return isinstance(node, ast.Attribute) and node.attr in _SENTENCES


def read_sentences(tree: ast.AST) -> Iterator[int]:
    """Lines where a program compares, searches or cuts a sentence."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            searched = [
                side
                for operator, side in zip(node.ops, node.comparators, strict=True)
                if isinstance(operator, (ast.In, ast.NotIn))
            ]
            equal = any(isinstance(operator, (ast.Eq, ast.NotEq)) for operator in node.ops)
            told = any(isinstance(side, ast.Constant) and side.value for side in sides)
            if any(map(_speaks, searched)) or (equal and told and any(map(_speaks, sides))):
                yield node.lineno
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            by_re = _name(node.func.value) == "re" and node.func.attr in _OF_RE
            if (
                any(map(_speaks, node.args))
                if by_re
                else (node.func.attr in _CUTTING and _speaks(node.func.value))
            ):
                yield node.lineno
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice) and _speaks(node.value):
            yield node.lineno


def test_no_program_reads_a_sentence() -> None:
    found = [
        f"{name}:{line}"
        for name, tree in modules().items()
        if name not in ALLOWED
        for line in read_sentences(tree)
    ]
    assert found == []
    assert [name for name in ALLOWED if not any(read_sentences(modules()[name]))] == []


@pytest.mark.parametrize(
    "program",
    [
        'if "missing" in str(error):\n    pass',
        'if "is not released" not in note:\n    pass',
        'words = str(error).replace(str(path), "name")',
        'reason = str(problem).rstrip(".")',
        'if release.notes[0].startswith("column"):\n    pass',
        're.sub("a", "b", error.rendered(flag))',
        "said = pure.sentence[:-1]",
        'if str(error) == "gone.":\n    pass',
    ],
)
def test_the_check_sees_a_program_that_reads(program: str) -> None:
    assert list(read_sentences(ast.parse(program))) == [1]


@pytest.mark.parametrize(
    "program",
    ["print(str(error))", 'if error.code == "gone":\n    pass', 'f"{error}"', "if note in notes:\n    pass"],
)
def test_the_check_lets_others_be(program: str) -> None:
    assert list(read_sentences(ast.parse(program))) == []


def test_a_message_inside_a_message_is_spelled_alike() -> None:
    inner = Message("in-memory")
    outer = Message.of("engine-works-through-table-parts", engine="local", obstacle=inner, option="engine")
    assert str(outer) == "engine 'local' processes a table in parts: engine=memory."
    assert outer.rendered(flag) == "engine 'local' processes a table in parts: --engine memory."
