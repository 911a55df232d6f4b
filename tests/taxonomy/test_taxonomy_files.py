"""Every form of taxonomy file leads to the same tree, and a broken file to one clear sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from shoal.errors import InputError, OutputError
from shoal.taxonomy import Taxonomy
from shoal.taxonomy.tree import csv_pairs

from .taxonomy_oracle import trees

TREE = Taxonomy.from_dict({"Any": {"Animal": ["cat", "dog"], "Plant": ["oak tree"]}})

PAIRS = "cat,Animal\ndog,Animal\noak tree,Plant\nAnimal,Any\nPlant,Any\n"
LONG = "cat;Animal;Any\ndog;Animal;Any\noak tree;Plant;Any\n"
TURTLE_OPENING = """
@prefix : <http://example.org/things#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
"""
CLASSES = """
:Animal a owl:Class ; rdfs:subClassOf :Any, owl:Thing, [ a owl:Restriction ] .
:Plant rdfs:subClassOf :Any .
:cat rdfs:subClassOf :Animal, :Any .
:dog a owl:NamedIndividual, :Animal .
:o rdfs:subClassOf :Plant ; rdfs:label "oak tree"@en, "Eiche"@de .
"""
CONCEPTS = """
:1 skos:prefLabel "Any"@en .
:2 skos:prefLabel "Animal" ; skos:broader :1 ; skos:narrower :c .
:3 skos:prefLabel "Plant" ; skos:broader :1 .
:c skos:prefLabel "cat" .
:d skos:prefLabel "dog" ; skos:broader :2 .
:o skos:prefLabel "oak tree", "Eiche"@de ; skos:broader :3 .
"""
XML = """<?xml version="1.0"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:owl="http://www.w3.org/2002/07/owl#"
     xmlns:rdfs="http://www.w3.org/2000/01/rdf-schema#" xml:base="http://example.org/t">
  <owl:Class rdf:about="#Any"/>
  <owl:Class rdf:about="#Animal"><rdfs:subClassOf rdf:resource="#Any"/></owl:Class>
  <owl:Class rdf:about="#Plant"><rdfs:subClassOf rdf:resource="#Any"/></owl:Class>
  <owl:Class rdf:about="#cat"><rdfs:subClassOf rdf:resource="#Animal"/></owl:Class>
  <owl:NamedIndividual rdf:about="#dog"><rdf:type rdf:resource="#Animal"/></owl:NamedIndividual>
  <owl:NamedIndividual rdf:about="#oak%20tree"><rdf:type rdf:resource="#Plant"/></owl:NamedIndividual>
</rdf:RDF>
"""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pairs.csv", PAIRS),
        ("headed.csv", "child,parent\n" + PAIRS),
        ("rooted.csv", "Any,\n" + PAIRS),
        ("quoted.csv", PAIRS.replace("oak tree", '"oak tree"').replace(",", " , ")),
        ("marked.csv", "\ufeff" + PAIRS.replace("\n", "\r\n")),
        ("tabs.txt", PAIRS.replace(",", "\t")),
        ("long.csv", LONG),
        ("long-headed.csv", "species;kingdom;all\n" + LONG),
        ("long-commas.csv", LONG.replace(";", ",")),
        ("long-with-groups.csv", LONG + "Animal;Animal;Any\nAny;Any;Any\n"),
        ("ragged.csv", "cat;Animal;Any;\ndog;Animal;Any\noak tree;Plant;Any\nAny\n"),
        ("tree.json", '{"Any": {"Animal": ["cat", "dog"], "Plant": {"oak tree": null}}}'),
        ("classes.ttl", TURTLE_OPENING + CLASSES),
        ("classes.owl", TURTLE_OPENING + CLASSES),
        ("concepts.ttl", TURTLE_OPENING + CONCEPTS),
        ("classes.rdf", XML),
        ("no-ending", XML),
    ],
)
def test_every_form_of_file_leads_to_the_same_tree(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, "utf-8", newline="")
    assert Taxonomy.load(tmp_path / name) == TREE


@given(trees())
def test_saved_trees_come_back(tmp_path_factory: pytest.TempPathFactory, tree: Taxonomy) -> None:
    path = tmp_path_factory.mktemp("saved") / "tree.csv"
    tree.save(path)
    again = Taxonomy.load(path)
    assert (again.labels, again.parents) == (tree.labels, tree.parents)


def test_names_with_delimiters_quotes_and_other_alphabets_come_back(tmp_path: Path) -> None:
    tree = Taxonomy.from_dict({"root; all": {'a,"b"': ["é", "中", "x|y"]}})
    tree.save(tmp_path / "odd.csv")
    assert Taxonomy.load(tmp_path / "odd.csv") == tree
    Taxonomy.from_dict({"alone": {}}).save(tmp_path / "one.csv")
    assert Taxonomy.load(tmp_path / "one.csv").labels == ("alone",)


def test_several_tops_hang_below_thing_or_the_scheme_if_the_file_says_so(tmp_path: Path) -> None:
    path = tmp_path / "tops.ttl"
    path.write_text(TURTLE_OPENING + ":a rdfs:subClassOf owl:Thing . :b rdfs:subClassOf owl:Thing, :c . ")
    with pytest.raises(InputError, match="2 roots, 'Thing' and 'c'"):
        Taxonomy.load(path)
    path.write_text(TURTLE_OPENING + ":a rdfs:subClassOf owl:Thing . :b rdfs:subClassOf owl:Thing . ")
    assert Taxonomy.load(path).to_dict() == {"Thing": {"a": {}, "b": {}}}
    path.write_text(TURTLE_OPENING + ":s skos:hasTopConcept :a, :b . :c skos:broader :b .")
    assert Taxonomy.load(path).to_dict() == {"s": {"a": {}, "b": {"c": {}}}}


def test_a_header_is_told_from_a_link() -> None:
    assert csv_pairs("value,group\nx,a\n") == [("x", "a")]
    assert csv_pairs("town,area\nx,a\ny,a\n") == [("x", "a"), ("y", "a")]
    # two rows without a word that says so are two links
    assert csv_pairs("x,a\ny,b\n") == [("x", "a"), ("y", "b")]


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("a.csv", "", "it is empty"),
        ("a.csv", "x\ny\n", "only one column"),
        ("a.csv", "x;;a\ny;b;a\n", "row 1 of the links has an empty name before 'a'"),
        ("a.csv", "x;a;*\nx;b;*\n", "'x' has more than one parent"),
        ("a.csv", "x,a\na,b\nb,a\n", "cycle"),
        ("a.json", '{"a": ', "not valid JSON"),
        ("a.owl", "<?xml version='1.0'?><broken>", "cannot be read as RDF"),
        ("a.ttl", "@prefix : <x#> . :a :b", "cannot be read as RDF"),
        ("a.ttl", TURTLE_OPENING, "contains no links between concepts"),
        ("a.ttl", TURTLE_OPENING + ":x rdfs:subClassOf :a, :b . :a rdfs:subClassOf :b. :b rdfs:subClassOf :a.", "more"),
        ("a.ttl", TURTLE_OPENING + ":x rdfs:subClassOf :a, :b . :a rdfs:subClassOf :r. :b rdfs:subClassOf :r.",
         "'x' has more than one parent .*'a' and 'b'"),
        ("a.ttl", TURTLE_OPENING + ":x rdfs:subClassOf :a . <http://other.org/x> rdfs:subClassOf :a .",
         "have the same name, 'x'"),
    ],
)  # fmt: skip
def test_broken_files_are_refused_with_their_name_and_reason(
    tmp_path: Path, name: str, text: str, reason: str
) -> None:
    (tmp_path / name).write_text(text, "utf-8")
    with pytest.raises(InputError, match=f"the taxonomy '.*{name}': .*{reason}"):
        Taxonomy.load(tmp_path / name)


def test_files_that_cannot_be_read_or_written_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere.csv': it cannot be read"):
        Taxonomy.load(tmp_path / "nowhere.csv")
    (tmp_path / "latin.csv").write_bytes("é,a\n".encode("latin-1"))
    with pytest.raises(InputError, match="not UTF-8"):
        Taxonomy.load(tmp_path / "latin.csv")
    with pytest.raises(OutputError, match="cannot write the taxonomy"):
        TREE.save(tmp_path / "no" / "folder.csv")
    assert not list(tmp_path.glob("**/*.part"))


def test_files_may_be_in_the_encoding_they_declare(tmp_path: Path) -> None:
    text = XML.replace('"1.0"', '"1.0" encoding="ISO-8859-1"').replace("dog", "chïen")
    (tmp_path / "latin.owl").write_bytes(text.encode("latin-1"))
    assert "chïen" in Taxonomy.load(tmp_path / "latin.owl").values
