"""Mutations of a source text: find where a small wrong change can be made, and make it.

A mutation changes a few characters of one line: another operator, a comparison that includes its bound or is
reversed, a removed negation, a constant off by one. Errors' texts, types and documentation are left alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

MODULE = "<module>"
_ARITHMETIC: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "+"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "//"),
    ast.Pow: ("**", "*"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
}
_COMPARISONS: dict[type[ast.cmpop], tuple[str, tuple[str, ...]]] = {
    ast.Lt: ("<", ("<=", ">")),
    ast.LtE: ("<=", ("<", ">=")),
    ast.Gt: (">", (">=", "<")),
    ast.GtE: (">=", (">", "<=")),
    ast.Eq: ("==", ("!=",)),
    ast.NotEq: ("!=", ("==",)),
    ast.Is: ("is", ("is not",)),
    ast.IsNot: ("is not", ("is",)),
    ast.In: ("in", ("not in",)),
    ast.NotIn: ("not in", ("in",)),
}


@dataclass(frozen=True, order=True)
class Mutant:
    """A wrong change, identified so that it is found again when its function has moved to another file.

    Attributes:
        room: Part of the package it is drawn from, whose tests it runs against.
        path: File, from the root of the checkout.
        line: Number of the line when the mutant was drawn; for the reader.
        function: Qualified name of the function around it, or `MODULE`.
        text: The whole line, without the white space around it.
        occurrence: Which of the function's lines of this text, from 0.
        column: Characters of `text` before the change.
        original: The characters there.
        mutated: What replaces it.
    """

    room: str
    path: str
    line: int
    function: str
    text: str
    occurrence: int
    column: int
    original: str
    mutated: str

    @property
    def changed(self) -> str:
        """The line with the change applied."""
        return self.text[: self.column] + self.mutated + self.text[self.column + len(self.original) :]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def mutants(room: str, root: Path, path: str) -> list[Mutant]:
    """Every mutant of a file."""
    source = (root / path).read_text("utf-8")
    lines = source.splitlines()
    spans = functions(source)
    found = []
    for line, column, original, mutated in _changes(ast.parse(source), lines):
        text = lines[line - 1].strip()
        function = _around(spans, line)
        same = [
            number for number in _lines_of(spans, function, len(lines)) if lines[number - 1].strip() == text
        ]
        start = len(lines[line - 1]) - len(lines[line - 1].lstrip())
        found.append(
            Mutant(room, path, line, function, text, same.index(line), column - start, original, mutated)
        )
    return sorted(set(found))


def mutated(source: str, mutant: Mutant) -> str | None:
    """The source with the mutant's change applied, or None if its line does not exist.

    >>> one = Mutant("noise", "a.py", 2, "f", "return x + 1", 0, 9, "+", "-")
    >>> mutated("def f(x):\\n    return x + 1\\n", one)
    'def f(x):\\n    return x - 1\\n'
    >>> mutated("def g(x):\\n    return x + 1\\n", one) is None
    True
    """
    spans, lines = functions(source), source.splitlines(keepends=True)
    inside = _lines_of(spans, mutant.function, len(lines))
    same = [number for number in inside if lines[number - 1].strip() == mutant.text]
    if mutant.occurrence >= len(same):
        return None
    number = same[mutant.occurrence] - 1
    lines[number] = lines[number].replace(mutant.text, mutant.changed, 1)
    return "".join(lines)


def functions(source: str) -> dict[str, tuple[int, int]]:
    """Qualified name of every function -> its first and last line.

    >>> functions("class A:\\n    def f(self):\\n        pass\\n")
    {'A.f': (2, 3)}
    """
    found: dict[str, tuple[int, int]] = {}

    def walk(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{prefix}{child.name}"
                # a property and its setter share a name: the second is told apart by a number
                while name in found:
                    name += "'"
                if not isinstance(child, ast.ClassDef):
                    found[name] = (child.lineno, child.end_lineno or child.lineno)
                walk(child, f"{name}.")
            else:
                walk(child, prefix)

    walk(ast.parse(source), "")
    return found


def _around(spans: dict[str, tuple[int, int]], line: int) -> str:
    """The innermost function that holds a line."""
    around = [(first, name) for name, (first, last) in spans.items() if first <= line <= last]
    return max(around)[1] if around else MODULE


def _lines_of(spans: dict[str, tuple[int, int]], function: str, total: int) -> list[int]:
    if function == MODULE:
        return [line for line in range(1, total + 1) if _around(spans, line) == MODULE]
    if function not in spans:
        return []
    first, last = spans[function]
    return [line for line in range(first, last + 1) if _around(spans, line) == function]


def _changes(tree: ast.Module, lines: list[str]) -> Iterator[tuple[int, int, str, str]]:
    """Line, column (in characters), what stands there and what to put instead."""
    for node in _behaviour(tree):
        for line, column, original, changed in _of_node(node, lines):
            # positions of the syntax tree count bytes
            yield line, len(lines[line - 1].encode()[:column].decode()), original, changed


def _behaviour(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below that affect behaviour: no types, decorators, messages, or strings."""
    skipped: set[int] = set()
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        skipped = {id(node.args), id(node.returns), *map(id, node.decorator_list)}
    elif isinstance(node, ast.ClassDef):
        skipped = {*map(id, node.decorator_list), *map(id, node.bases), *map(id, node.keywords)}
    elif isinstance(node, ast.AnnAssign):
        skipped = {id(node.annotation)}
    for child in ast.iter_child_nodes(node):
        if id(child) in skipped or isinstance(child, ast.Raise | ast.Assert | ast.JoinedStr):
            continue
        # neither changes a result of code that is right
        if isinstance(child, ast.keyword) and child.arg in ("strict", "copy"):
            continue
        yield child
        yield from _behaviour(child)


def _of_node(node: ast.AST, lines: list[str]) -> Iterator[tuple[int, int, str, str]]:
    if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        if not _wordy(node.left) and not _wordy(node.right) and not _union(node):
            original, changed = _ARITHMETIC[type(node.op)]
            yield from _between(node.left, node.right, original, (changed,), lines)
    elif isinstance(node, ast.Compare):
        for left, sign, right in zip(
            [node.left, *node.comparators], node.ops, node.comparators, strict=False
        ):
            original, others = _COMPARISONS[type(sign)]
            yield from _between(left, right, original, others, lines)
    elif isinstance(node, ast.BoolOp):
        original, changed = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            yield from _between(left, right, original, (changed,), lines)
    elif isinstance(node, ast.UnaryOp):
        dropped = {ast.Not: "not ", ast.USub: "-"}.get(type(node.op), "")
        if dropped and lines[node.lineno - 1].encode()[node.col_offset :].startswith(dropped.encode()):
            yield node.lineno, node.col_offset, dropped, ""
    elif isinstance(node, ast.Constant):
        yield from _constant(node, lines)


def _wordy(node: ast.expr) -> bool:
    """A text or a literal list: adding to it is not arithmetic."""
    return isinstance(node, ast.JoinedStr | ast.List | ast.Tuple) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    )


def _union(node: ast.BinOp) -> bool:
    """A union of types, such as that of an alias."""
    names = [side.id for side in (node.left, node.right) if isinstance(side, ast.Name)]
    return isinstance(node.op, ast.BitOr) and any(name[0].isupper() for name in names)


def _between(
    left: ast.expr, right: ast.expr, original: str, others: tuple[str, ...], lines: list[str]
) -> Iterator[tuple[int, int, str, str]]:
    """An operator stands after the left operand; where a line break lies between, it is left alone."""
    line, start = left.end_lineno or 0, left.end_col_offset or 0
    if line != right.lineno:
        return
    gap = lines[line - 1].encode()[start : right.col_offset].decode()
    place = gap.find(original)
    # a comment or a bracket in between is fine; anything else is not understood
    if place < 0 or gap.strip("() ").strip() != original:
        return
    for changed in others:
        yield line, start + place, original, changed


def _constant(node: ast.Constant, lines: list[str]) -> Iterator[tuple[int, int, str, str]]:
    if node.end_lineno != node.lineno:
        return
    original = lines[node.lineno - 1].encode()[node.col_offset : node.end_col_offset].decode()
    if isinstance(node.value, bool):
        yield node.lineno, node.col_offset, original, str(not node.value)
    elif isinstance(node.value, int):
        yield node.lineno, node.col_offset, original, str(node.value + 1)
        if node.value > 0:
            yield node.lineno, node.col_offset, original, str(node.value - 1)
    elif isinstance(node.value, float):
        yield node.lineno, node.col_offset, original, repr(node.value * 2 if node.value else 1.0)
