"""The texts of a page as rows: claims, published numbers and errors, and sections, in TOML files beside the code.

A row may have gaps (`{}`, `{:.0%}`); the code that computes the values fills them in, in order.
`{hits}` stands for the number of examined cases that confirm a claim.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from string import Formatter
from typing import Any, get_args

import numpy as np

from papers.study import Claim, ClaimVerdict, Erratum, Number, counted, judged

Hits = ClaimVerdict | bool | np.bool_ | Iterable[bool | np.bool_]
# stands between the parts of a row while its gaps are filled: no text has it
_BETWEEN = "\x1f"


def judging(file: str) -> Callable[..., Claim]:
    """The function that judges the statements of a file.

    It takes the key of a statement, what decides about it, and the values of its gaps.
    """
    return partial(judge, file)


def judge(file: str, key: str, hits: Hits, *values: object) -> Claim:
    """A statement with what was found and the verdict.

    Args:
        file: The rows, such as "mdai2017/texts".
        key: The statement's.
        hits: Whether it is true, or in which cases, or a verdict.
        values: For the gaps in where it stands, what it says and what was found.
    """
    row = rows(file)["claims"][key]
    known = hits if isinstance(hits, str | bool | np.bool_) else [bool(hit) for hit in hits]
    in_words = counted(known) if isinstance(known, list) else ""
    where, said, found = _filled(
        (row.get("where", ""), row["said"], row.get("found", "{}")), values, hits=in_words
    )
    return Claim(where, said, found, _verdict(known))


def _verdict(hits: Hits) -> ClaimVerdict:
    """True or false of one case, of several, or said already.

    >>> _verdict(True), _verdict([True, False]), _verdict("not tested")
    ('holds', 'holds partly', 'not tested')
    """
    if isinstance(hits, str):
        assert hits in get_args(ClaimVerdict), hits
        return hits
    if isinstance(hits, bool | np.bool_):
        return "holds" if hits else "fails"
    return judged(map(bool, hits))


def untested(file: str) -> list[Claim]:
    """Statements of a file that nothing here can decide, each with the reason."""
    return [Claim(row["where"], row["said"], row["why"], "not tested") for row in rows(file)["untested"]]


def numbering(file: str) -> Callable[..., Number]:
    """The function that puts what was found beside the printed numbers of a file."""
    return partial(number, file)


def number(
    file: str, key: str, found: float, *values: object, error: float = 0.0, logarithm: bool = False
) -> Number:
    """A printed number beside what was found, with its standard error; `values` fill its gaps."""
    row = rows(file)["numbers"][key]
    where, what, why = _filled((row["where"], row["what"], row.get("why", "")), values)
    return Number(where, what, row["printed"], found, error, why, row.get("logarithm", logarithm))


def wording(file: str) -> Callable[..., tuple[str, str]]:
    """The function that gives title and text of a section of a file, its gaps filled."""
    return partial(heading, file)


def heading(file: str, key: str, *values: object) -> tuple[str, str]:
    row = rows(file)["sections"][key]
    title, text = _filled((row["title"], row["text"]), values)
    return title, text


def printed_errors(
    file: str, values: Mapping[str, Sequence[object]] | None = None, part: str = ""
) -> list[Erratum]:
    """The printed errors of a file, or of a part of it, in its order.

    Args:
        file: The rows, such as "mdai2017/texts".
        values: For the gaps, by the error's key.
        part: Its errors lie in tables of this name.
    """
    known = values or {}
    listed = rows(file)["errata"]
    return [
        Erratum(*_filled((row["where"], row["printed"], row["right"], row["shown"]), known.get(key, ())))
        for key, row in (listed[part] if part else listed).items()
    ]


def _filled(texts: Sequence[str], values: Sequence[object], **named: str) -> list[str]:
    """Texts with their gaps filled, each value used once.

    >>> _filled(("section {}", "{:.0%} of {{k}}"), (3, 0.25))
    ['section 3', '25% of {k}']
    """
    return _Gaps().vformat(_BETWEEN.join(texts), values, named).split(_BETWEEN)


class _Gaps(Formatter):
    """Fills gaps, and takes a value too many for a mistake."""

    def check_unused_args(self, used_args: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        if any(place not in used_args for place in range(len(args))):
            raise IndexError(f"more values than gaps: {args}")


@cache
def rows(file: str) -> dict[str, Any]:
    """All rows of a file: tables `sections`, `numbers`, `claims` and `errata` by key, or what was printed."""
    with (Path(__file__).parent / f"{file}.toml").open("rb") as lines:
        return tomllib.load(lines)
