"""Hostile taxonomies, which would hang, fill the memory or load other files, are refused at once in one line."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from shoal import Taxonomy
from shoal.errors import InputError

_NESTED = "".join("<!ENTITY e{} '{}'>".format(n, f"&e{n - 1};" * 10) for n in range(1, 10))
BOMB = f"<?xml version='1.0'?><!DOCTYPE e [<!ENTITY e0 'lol'>{_NESTED}]><e>&e9;</e>"
HEAD = "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>"
DECLARED = "declares a document type"


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("nested.owl", BOMB, DECLARED),
        (
            "external.rdf",
            f'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/hostname">]>{HEAD}&x;</rdf:RDF>',
            DECLARED,
        ),
        ("outside.rdf", f'<!DOCTYPE a SYSTEM "http://example.org/a.dtd">{HEAD}</rdf:RDF>', DECLARED),
        ("late.owl", f'<?xml version="1.0"?><!--{"x" * 100_000}--><!DOCTYPE a []>{HEAD}</rdf:RDF>', DECLARED),
        (
            "context.jsonld",
            '{"@context": "http://example.org/context", "@id": "a"}',
            "@context is an address",
        ),
        ("import.jsonld", '{"@context": {"@import": "http://example.org/c"}, "@id": "a"}', "has an @import"),
    ],
)
def test_what_would_load_or_make_more_is_refused_at_once(
    name: str, content: str, says: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(content)
    started = time.process_time()
    with pytest.raises(InputError, match=says) as refused:
        Taxonomy.load(path)
    assert time.process_time() - started < 5
    assert str(refused.value).startswith(f"the taxonomy '{path}': ")
    assert "\n" not in str(refused.value)


def test_a_document_type_in_another_encoding_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "wide.owl"
    path.write_bytes(
        f'<?xml version="1.0" encoding="utf-16"?><!DOCTYPE a []>{HEAD}</rdf:RDF>'.encode("utf-16")
    )
    with pytest.raises(InputError, match=DECLARED):
        Taxonomy.load(path)
