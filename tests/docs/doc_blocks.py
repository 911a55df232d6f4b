"""Find the fenced blocks of a documentation page, each with how a test should treat it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = tuple(sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]))

_OPENING = re.compile(r"^(?P<indent>[ \t>]*)(?P<fence>`{3,}|~{3,})(?P<info>[^`\n]*)$")
_COMMENT = re.compile(r"^[ \t>]*<!--\s*not run\b(?P<rest>.*?)-->\s*$")
_TITLE = re.compile(r"""\btitle=(["'])(?P<name>.+?)\1""")


class PageError(AssertionError):
    """A block that cannot be tested as it is written; the message names page and line."""


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the file it is said to be, its text, its line, and why it is not run."""

    language: str
    title: str | None
    text: str
    line: int
    not_run: str | None


@dataclass(frozen=True)
class Command:
    """A shell command of a console block and the output shown after it."""

    text: str
    shown: str


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks_of(text: str, where: str) -> list[Block]:
    """All fenced blocks of a page, whatever their language and however far they are indented."""
    found: list[Block] = []
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        opening = _OPENING.match(lines[at])
        if opening is None:
            if _COMMENT.match(lines[at]):
                following = lines[at + 1] if at + 1 < len(lines) else ""
                if _OPENING.match(following) is None:
                    raise PageError(
                        f"{where}, line {at + 1}: 'not run' has to stand directly before its block"
                    )
            at += 1
            continue
        indent, fence = opening["indent"], opening["fence"]
        closing = re.compile(
            rf"^{re.escape(indent.rstrip())}[ \t]*{re.escape(fence[0])}{{{len(fence)},}}[ \t]*$"
        )
        end = next((i for i in range(at + 1, len(lines)) if closing.match(lines[i])), None)
        if end is None:
            raise PageError(f"{where}, line {at + 1}: this block is never closed")
        info = opening["info"].strip()
        title = _TITLE.search(info)
        inner = [line[len(indent) :] for line in lines[at + 1 : end]]
        found.append(
            Block(
                language=info.split()[0].lower() if info else "",
                title=title["name"] if title else None,
                text="".join(f"{line}\n" for line in inner),
                line=at + 1,
                not_run=_reason(lines[at - 1] if at else "", f"{where}, line {at}"),
            )
        )
        at = end + 1
    return found


def _reason(line: str, where: str) -> str | None:
    comment = _COMMENT.match(line)
    if comment is None:
        return None
    reason = comment["rest"].strip()
    if not reason.startswith(":") or len(reason[1:].split()) < 2:
        raise PageError(f"{where}: a block that is not run says why: <!-- not run: it would ... -->")
    return reason[1:].strip()


def blocks(page: Path) -> list[Block]:
    return blocks_of(page.read_text("utf-8"), name_of(page))


def prose(text: str, where: str = "") -> str:
    """The page without its fenced blocks, the lines kept."""
    lines = text.splitlines()
    for block in blocks_of(text, where):
        height = block.text.count("\n") + 2
        lines[block.line - 1 : block.line - 1 + height] = [""] * height
    return "\n".join(lines)


def commands(text: str) -> Iterator[Command]:
    """Lines after `$ ` with their continuations and here-documents; everything else is output."""
    lines = text.splitlines()
    command: list[str] = []
    shown: list[str] = []
    while lines:
        line = lines.pop(0)
        if not line.startswith("$ "):
            shown.append(line)
            continue
        if command:
            yield Command("\n".join(command), "\n".join(shown))
        elif any(before.strip() for before in shown):
            raise PageError(f"a console block begins with a command after '$ ', not with '{shown[0]}'")
        command, shown = [line[2:]], []
        while command[-1].endswith("\\"):
            command.append(lines.pop(0))
        if here := re.search(r"<<-?\s*['\"]?(\w+)['\"]?", line):
            while command[-1] != here[1]:
                command.append(lines.pop(0))
    if command:
        yield Command("\n".join(command), "\n".join(shown))
    else:
        raise PageError("a console block needs at least one command after '$ '")
