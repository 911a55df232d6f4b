"""Contracts for import-linter: packages are imported through their exports, and samplers only where an account pays."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output

ROOT = Path(__file__).resolve().parents[1] / "src"


def room(module: str) -> str:
    """The package or module of `shoal` that a module belongs to."""
    return module.split(".")[1] if "." in module else ""


def deep_imports(graph: ImportGraph) -> list[tuple[str, str]]:
    """Imports of a module within another package, rather than of the package itself."""
    return sorted(
        (importer, imported)
        for importer in graph.modules
        for imported in graph.find_modules_directly_imported_by(importer)
        if room(importer) != room(imported) and imported.count(".") > 1
    )


def imported_names(path: Path, module: str) -> set[str]:
    """Names that a file imports from a module or from modules below it."""
    return {
        name.name
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(module)
        for name in node.names
    }


class Doors(Contract):
    """Contract: a package is imported through its `__init__`, which lists its exports."""

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        found = deep_imports(graph)
        return ContractCheck(kept=not found, metadata={"found": found})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for importer, imported in check.metadata["found"]:
            output.print_error(f"{importer} imports {imported}: import shoal.{room(imported)} instead")


class Samplers(Contract):
    """Contract: named samplers are imported only in packages that spend through an accountant."""

    samplers: Any = fields.ListField(subfield=fields.StringField())
    rooms: Any = fields.ListField(subfield=fields.StringField())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        found = [
            (path.relative_to(ROOT).as_posix(), sorted(names))
            for path in sorted((ROOT / "shoal").rglob("*.py"))
            if path.relative_to(ROOT / "shoal").parts[0] not in self.rooms
            if (names := imported_names(path, "shoal.noise") & set(self.samplers))
        ]
        return ContractCheck(kept=not found, metadata={"found": found})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for place, names in check.metadata["found"]:
            output.print_error(f"{place} imports {', '.join(names)}, where no account pays for noise")
