"""Read taxonomies from OWL, SKOS and other RDF documents."""

from __future__ import annotations

from io import BytesIO
from urllib.parse import unquote

from rdflib import Graph, Literal, URIRef
from rdflib.namespace import OWL, RDF, RDFS, SKOS
from rdflib.term import Node

from shoal.errors import InputError
from shoal.taxonomy.documents import check_json_ld, check_xml

_VOCABULARIES = tuple(str(vocabulary) for vocabulary in (OWL, RDF, RDFS, SKOS))


def rdf_pairs(content: bytes, form: str) -> list[tuple[str, str]]:
    """Links of an RDF document.

    A link is rdfs:subClassOf, the class of an individual, skos:broader or skos:narrower. A concept is named by its
    skos:prefLabel or rdfs:label, preferably in English, otherwise by the end of its address. Links to owl:Thing and to
    a SKOS scheme count only where there would be several roots without them. Links implied by others are dropped (x
    below a below b makes x below b redundant).

    Raises:
        InputError: not RDF, without links, or with two concepts of one name.
    """
    if form == "xml":
        check_xml(content)
    elif form == "json-ld":
        check_json_ld(content)
    graph = Graph()
    try:
        graph.parse(source=BytesIO(content), format=form)
    except Exception as error:  # every parser of rdflib raises its own errors
        reason = " ".join(str(error).split())[:120]
        raise InputError("cannot-read-rdf", form=form, reason=reason) from None
    above: dict[URIRef, set[URIRef]] = {}
    for child, parent in _links(graph):
        above.setdefault(child, set()).add(parent)
        above.setdefault(parent, set())
    tops = _tops(graph)
    for child, _ in tops:
        above.setdefault(child, set())
    if sum(not parents for parents in above.values()) > 1:
        for child, parent in tops:
            if not above[child]:
                above[child].add(parent)
                above.setdefault(parent, set())
    if not above:
        raise InputError("links-no-concepts")
    names = _names(graph, list(above))
    pairs = []
    for child in sorted(above):
        parents = _closest(child, above)
        pairs += [(names[child], names[parent]) for parent in sorted(parents)] or [(names[child], "")]
    return pairs


def _links(graph: Graph) -> set[tuple[URIRef, URIRef]]:
    found = [
        *graph.subject_objects(RDFS.subClassOf),
        *graph.subject_objects(SKOS.broader),
        *((child, parent) for parent, child in graph.subject_objects(SKOS.narrower)),
    ]
    found += [(thing, kind) for thing, kind in graph.subject_objects(RDF.type) if not _built_in(kind)]
    # unnamed classes are conditions, not concepts
    return {
        (child, parent)
        for child, parent in found
        if isinstance(child, URIRef)
        and isinstance(parent, URIRef)
        and child != parent
        and not _built_in(parent)
    }


def _tops(graph: Graph) -> list[tuple[URIRef, URIRef]]:
    found = [
        *((child, OWL.Thing) for child in graph.subjects(RDFS.subClassOf, OWL.Thing)),
        *graph.subject_objects(SKOS.topConceptOf),
        *((child, scheme) for scheme, child in graph.subject_objects(SKOS.hasTopConcept)),
    ]
    return sorted(
        {(child, top) for child, top in found if isinstance(child, URIRef) and isinstance(top, URIRef)}
    )


def _built_in(node: Node) -> bool:
    return str(node).startswith(_VOCABULARIES)


def _closest(child: URIRef, above: dict[URIRef, set[URIRef]]) -> set[URIRef]:
    """The parents that are not ancestors of another parent."""
    parents = above[child]
    if len(parents) < 2:
        return parents
    implied: set[URIRef] = set()
    for parent in parents:
        waiting, seen = list(above[parent]), {parent}
        while waiting:
            node = waiting.pop()
            if node not in seen:
                seen.add(node)
                waiting += above[node]
        implied |= seen - {parent}
    # in a cycle every link is implied: the check of the tree reports it
    return parents - implied or parents


def _names(graph: Graph, concepts: list[URIRef]) -> dict[URIRef, str]:
    names = {concept: _name(graph, concept) for concept in concepts}
    owners: dict[str, URIRef] = {}
    for concept, name in sorted(names.items()):
        if name in owners:
            raise InputError("one-name-for-several", concepts=[owners[name], concept], name=name)
        owners[name] = concept
    return names


def _name(graph: Graph, concept: URIRef) -> str:
    for predicate in (SKOS.prefLabel, RDFS.label):
        labels = [node for node in graph.objects(concept, predicate) if isinstance(node, Literal)]
        ranked = sorted(labels, key=lambda node: (_language_rank(node), str(node)))
        if ranked and str(ranked[0]).strip():
            return str(ranked[0]).strip()
    address = str(concept).rstrip("/#")
    return unquote(address.rpartition("#")[2] if "#" in address else address.rpartition("/")[2])


def _language_rank(node: Literal) -> int:
    language = (node.language or "").lower()
    return 0 if not language else 1 if language.split("-")[0] == "en" else 2
