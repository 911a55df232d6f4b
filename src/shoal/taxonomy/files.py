"""Taxonomies on disk: (child, parent) pairs from any supported file, its form told by its content."""

from __future__ import annotations

import csv
import io
import json
import re
from itertools import pairwise
from pathlib import Path

from shoal.errors import InputError, OutputError, needs_extra
from shoal.taxonomy.links import parents_of_nested

Pairs = list[tuple[str, str]]

# As much of a file as it takes to tell its form.
_OPENING = 4096
_HEADER_WORDS = {"child", "concept", "leaf", "value", "narrower"}
_DELIMITERS = (";", "\t", ",", "|")
_RDF_ENDINGS = {
    ".owl": "xml",
    ".rdf": "xml",
    ".ttl": "turtle",
    ".nt": "nt",
    ".n3": "n3",
    ".jsonld": "json-ld",
}
_XML = re.compile(r"\s*<(\?xml|rdf:RDF|!DOCTYPE|!--)")
_TURTLE = re.compile(r"\s*(#[^\n]*\n\s*)*(@prefix|@base|PREFIX\s|BASE\s|<[a-z]+:)", re.IGNORECASE)


def read_pairs(path: Path) -> Pairs:
    """The links of a taxonomy file of any form.

    Raises:
        InputError: the file is missing, unreadable or holds no taxonomy.
        MissingExtraError: it is RDF, and rdflib is not installed.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError("it-cannot-be-read", reason=error.strerror or error) from None
    if not content.strip():
        raise InputError("it-is-empty")
    rdf_form = rdf_format(path, content[:_OPENING].decode("utf-8-sig", "replace"))
    if rdf_form is not None:
        with needs_extra("rdf", "files in OWL, SKOS or other RDF need"):
            from shoal.taxonomy.rdf import rdf_pairs

        return rdf_pairs(content, rdf_form)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("not-utf-8-text") from None
    if text.lstrip().startswith("{"):
        return json_pairs(text)
    return csv_pairs(text)


def rdf_format(path: Path, text: str) -> str | None:
    """rdflib's name of the syntax, or None for other files.

    >>> rdf_format(Path("a.owl"), "@prefix : <x#> ."), rdf_format(Path("a.csv"), "a,b")
    ('turtle', None)
    """
    if _XML.match(text):
        return "xml"
    if path.suffix.lower() not in (".csv", ".tsv", ".txt", ".json") and _TURTLE.match(text):
        return "nt" if path.suffix.lower() == ".nt" else "turtle"
    return _RDF_ENDINGS.get(path.suffix.lower())


def json_pairs(text: str) -> Pairs:
    """Links of nested JSON objects and arrays.

    >>> json_pairs('{"*": ["a", "b"]}')
    [('*', ''), ('a', '*'), ('b', '*')]
    """
    try:
        nested = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise InputError("not-valid-json", reason=error) from None
    return [(child, parent or "") for child, parent in parents_of_nested(nested).items()]


def csv_pairs(text: str) -> Pairs:
    """Links of a CSV: rows child,parent, or rows of a leaf, its parent, and so on up to the root.

    Two cells in a row mean the same in both forms. A first row that has no cell in common with the others is a header.
    In the long form a name repeated along its row is one concept, and empty cells at the end are ignored.

    >>> csv_pairs("child,parent\\nx,a\\na,\\n")
    [('x', 'a'), ('a', '')]
    >>> csv_pairs("x;a;*\\ny;a;*\\n*;*;*\\n")
    [('x', 'a'), ('a', '*'), ('y', 'a'), ('a', '*'), ('*', '')]
    """
    rows = _cells(text)
    later = {cell for row in rows[1:] for cell in row if cell}
    named = rows[0][0].casefold() in _HEADER_WORDS
    if (len(rows) > 2 or named) and not later & set(rows[0]):
        rows = rows[1:]
    pairs: Pairs = []
    for number, row in enumerate(rows, start=1):
        while row and not row[-1]:
            row.pop()
        if not all(row):
            raise InputError("row-links-empty-name-before", row=number, name=row[-1])
        line = [cell for place, cell in enumerate(row) if place == 0 or cell != row[place - 1]]
        pairs += pairwise(line) if len(line) > 1 else [(line[0], "")]
    return pairs


def _cells(text: str) -> list[list[str]]:
    """Cells without blanks around them, split at the first delimiter that parts every row or nearly so."""
    best: list[list[str]] = []
    most = 0
    for delimiter in _DELIMITERS:
        reader = csv.reader(io.StringIO(text), delimiter=delimiter, skipinitialspace=True)
        try:
            rows = [[cell.strip() for cell in row] for row in reader if any(cell.strip() for cell in row)]
        except csv.Error as error:
            raise InputError("not-valid-csv-file", reason=error) from None
        parted = sum(len(row) > 1 for row in rows)
        if parted > most:
            best, most = rows, parted
    if not best:
        raise InputError("it-has-one-column-only")
    return best


def write_pairs(path: Path, pairs: Pairs) -> None:
    """A CSV with the header child,parent, written aside and renamed."""
    aside = path.with_name(path.name + ".part")
    try:
        with aside.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(("child", "parent"))
            writer.writerows(pairs)
        aside.replace(path)
    except OSError as error:
        aside.unlink(missing_ok=True)
        raise OutputError("cannot-write-taxonomy", path=path, reason=error.strerror or error) from None
