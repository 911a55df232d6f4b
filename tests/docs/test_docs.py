"""The documentation is complete: its table of methods is the library's, its links work, no name is missing."""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import re
import typing
import unicodedata
from pathlib import Path

import pytest

import shoal

from .doc_blocks import PAGES, ROOT, blocks, name_of
from .doc_blocks import prose as without_blocks


def listed_methods() -> list[list[str]]:
    section = (ROOT / "docs" / "methods.md").read_text("utf-8").split("## All methods")[1].split("\n## ")[0]
    return [
        [cell.strip(" `") for cell in line.strip("|").split(" | ")]
        for line in section.splitlines()
        if line.startswith("| `")
    ]


def covered(cell: str) -> list[str]:
    """The names of a grouped row: `xm-1` to `xm-13` stands for thirteen methods."""
    ends = re.fullmatch(r"(\D+)(\d+)` to `\1(\d+)", cell)
    return (
        [cell] if ends is None else [f"{ends[1]}{number}" for number in range(int(ends[2]), int(ends[3]) + 1)]
    )


def test_the_table_of_all_methods_is_that_of_the_library() -> None:
    known = [info for info in shoal.methods() if not info.name.startswith("xm-")]
    rows = [row for row in listed_methods() if not row[0].startswith("xm-")]
    assert rows == [[info.name, info.about, info.claim, info.paper] for info in known]


def test_its_grouped_rows_have_the_claims_of_all_their_methods() -> None:
    rows = [row for row in listed_methods() if row[0].startswith("xm-")]
    claims = {info.name: info.claim for info in shoal.methods() if info.name.startswith("xm-")}
    assert [(name, row[2]) for row in rows for name in covered(row[0])] == list(claims.items())


def method_sections() -> dict[str, str]:
    """The section of docs/methods.md that explains each method: one of its own, or one that lists it in a table."""
    text = (ROOT / "docs" / "methods.md").read_text("utf-8")
    whole = re.split(r"^#{2,3} ", text, flags=re.MULTILINE)[1:]
    sections = [section for section in whole if not section.startswith("All methods")]
    found: dict[str, str] = {}
    for section in sections:
        title = section.partition("\n")[0]
        for name in [
            *re.findall(r"^`([\w-]+)`$", title),
            *re.findall(r"^\| `([\w-]+)` \|", section, re.MULTILINE),
        ]:
            found.setdefault(name, section)
    return found


@pytest.mark.parametrize("name", [info.name for info in shoal.methods()])
def test_every_method_is_explained_with_its_formula(name: str) -> None:
    sections = method_sections()
    assert name in sections, f"docs/methods.md has no section on {name}"
    formulas = re.findall(r"\n\n((?: {4,}\S.*\n)+)\n", sections[name])
    assert formulas, f"the section on {name} has no formula"


def documented() -> set[str]:
    """Full names on the page of the reference, by the place where each is defined."""
    text = (ROOT / "docs" / "reference.md").read_text("utf-8")
    names = set()
    for name, options in re.findall(r"^::: (\S+)\n((?: {4,}.*\n?)*)", text, re.MULTILINE):
        members = re.search(r"members: \[(.*)\]", options)
        names |= {f"{name}.{member}" for member in members[1].split(", ")} if members else {name}
    return {defined_at(looked_up(name)) for name in names}


def looked_up(name: str) -> object:
    """The object behind a full name; where a function and its module share one, the function."""
    module, _, member = name.rpartition(".")
    found = getattr(importlib.import_module(module), member, None)
    return importlib.import_module(name) if found is None else found


def defined_at(thing: object) -> str:
    if inspect.ismodule(thing):
        return thing.__name__
    return f"{getattr(thing, '__module__', '')}.{getattr(thing, '__qualname__', '')}"


def public_things() -> list[object]:
    """What `shoal.__all__` names; for the modules among it, what they name."""
    things = [getattr(shoal, name) for name in shoal.__all__ if name != "__version__"]
    modules = [thing for thing in things if inspect.ismodule(thing)]
    return [thing for thing in things if not inspect.ismodule(thing)] + [
        getattr(module, name) for module in modules for name in module.__all__
    ]


def test_the_reference_has_every_public_name() -> None:
    missing = {defined_at(thing) for thing in public_things()} - documented()
    assert not missing, f"docs/reference.md lacks {sorted(missing)}"


# carried along by a release for its own saving, of no use to callers
_INTERNAL = {"shoal.columns.declaration.Declaration", "shoal.io.statistical_files.Codebook"}


def classes_in(hint: object) -> set[type]:
    own = isinstance(hint, type) and hint.__module__.startswith("shoal.")
    inner = (classes_in(part) for part in typing.get_args(hint))
    return ({hint} if own else set()).union(*inner)  # type: ignore[arg-type]


def hints_of(thing: object) -> list[object]:
    """Types in the signature of a function, in the fields of a class and in the signatures of its methods."""
    parts = [thing]
    if isinstance(thing, type):
        open_members = [value for name, value in vars(thing).items() if not name.startswith("_")]
        parts += [value.fget if isinstance(value, property) else value for value in open_members]
    found: list[object] = []
    for part in parts:
        # a name that is imported for the type checker only cannot be looked up here; those are of other packages
        with contextlib.suppress(NameError, TypeError):
            found += typing.get_type_hints(getattr(part, "__func__", part)).values()
    return found


def test_the_reference_has_every_class_that_public_functions_hand_out() -> None:
    handed_out = {
        defined_at(each) for thing in public_things() for hint in hints_of(thing) for each in classes_in(hint)
    }
    assert {"shoal.mechanisms.registry.MethodInfo", "shoal.release.protection.Release"} <= handed_out
    missing = handed_out - documented() - _INTERNAL
    assert not missing, f"docs/reference.md lacks {sorted(missing)}"


def test_the_reference_has_every_name_that_a_page_imports() -> None:
    imported = set()
    for page in PAGES:
        for block in blocks(page):
            for node in ast.walk(ast.parse(block.text if block.language == "python" else "")):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("shoal"):
                    imported |= {defined_at(looked_up(f"{node.module}.{each.name}")) for each in node.names}
    assert len(imported) >= 20
    assert imported <= documented(), f"docs/reference.md lacks {sorted(imported - documented())}"


def test_the_reference_lists_every_command() -> None:
    from typer.main import get_command

    from shoal.cli import app

    text = (ROOT / "docs" / "reference.md").read_text("utf-8")
    listed = re.findall(r"^\| `shoal ([\w-]+)` \|", text, re.MULTILINE)
    assert sorted(listed) == sorted(get_command(app).commands)  # type: ignore[attr-defined]


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) < 150


def test_no_message_of_the_package_points_into_a_clone() -> None:
    """An installed package has no docs/ beside it; docstrings may name pages, as they are read in a clone."""
    found = []
    for path in sorted((ROOT / "src").rglob("*.py")):
        text = path.read_text("utf-8")
        if "docs/" not in text and "README" not in text:
            continue  # reading the code of all of them takes seconds
        tree = ast.parse(text)
        docstrings = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and node.body
            and isinstance(node.body[0], ast.Expr)
        }
        found += [
            f"{path.name}:{node.lineno}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in docstrings
            and re.search(r"\bdocs/[\w/-]+\.md|README\.md", node.value)
        ]
    assert found == []


def slug(heading: str) -> str:
    """The anchor that the documentation builder gives a heading."""
    plain = re.sub(r"[`*]|\[([^]]*)\]\([^)]*\)", r"\1", heading)
    ascii_only = unicodedata.normalize("NFKD", plain).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", ascii_only).strip().lower())


def prose(page: Path) -> str:
    return without_blocks(page.read_text("utf-8"), name_of(page))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if target.startswith(("http://", "https://", "mailto:")):
            continue
        name, _, anchor = target.partition("#")
        linked = (page.parent / name).resolve() if name else page
        assert linked.exists(), f"{page.name} links to {target}, which does not exist"
        if anchor:
            anchors = {slug(h) for h in re.findall(r"^#+ (.+)$", prose(linked), re.MULTILINE)}
            assert anchor in anchors, f"{page.name} links to {target}, but there is no such heading"


def test_every_page_is_in_the_navigation_and_the_navigation_in_the_folder() -> None:
    listed = set(re.findall(r":\s+(\S+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE))
    present = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    assert listed == present, "every page in docs/ belongs into the nav of mkdocs.yml, and only those"
