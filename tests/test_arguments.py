"""Argument names are consistent: old names still work with one notice, and a single name is a list of one."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.cli.program import run
from shoal.errors import OptionError
from shoal.evaluation import learn
from shoal.journal import Journal
from shoal.ledger import Register
from shoal.mechanisms import method_class
from shoal.mechanisms import names as method_names
from shoal.noise import Seeded
from shoal.noise.choice import categorical_centroids
from shoal.partition import Partition
from shoal.privacy import Adjacency
from shoal.query.facts import DatasetFacts, prepare

PAGE = Path(__file__).parents[1] / "docs" / "reference.md"
DOMAINS = {"age": (0, 100)}
# words that the arguments and attributes on the right replaced
OLD_WORDS = {
    "confidential": "sensitive",
    "keys": "quasi_identifiers",
    "quasi": "quasi_identifiers",
    "secret": "sensitive",
}


def people() -> pa.Table:
    rng = np.random.default_rng(11)
    return pa.table(
        {
            "age": rng.integers(20, 26, 40),
            "town": rng.choice(["A", "B", "C"], 40),
            "pay": rng.integers(0, 9, 40),
            "ill": rng.choice(["no", "yes"], 40),
        }
    )


PEOPLE = people()
SCHEMA = shoal.Schema((shoal.Attribute("age", lo=Fraction(0), hi=Fraction(100)),))
TREE = shoal.Taxonomy.flat(["a", "b"])


def attacked(**named: Any) -> Any:
    return shoal.attack(PEOPLE, PEOPLE, attempts=20, seed=3, **named).to_dict()


def checked(**named: Any) -> Any:
    return shoal.check(PEOPLE, **{"quasi_identifiers": ["age"], **named}).to_dict()


def centroids(**named: Any) -> Any:
    return categorical_centroids(
        [0, 0, 1], TREE.encode(["a", "b", "b"]), 2, TREE, Fraction(1), Seeded(1), **named
    ).tolist()


# a call, its old words and their new ones, with a value
RENAMED: dict[str, tuple[Callable[..., Any], dict[str, tuple[str, Any]]]] = {
    "check": (
        lambda **named: shoal.check(PEOPLE, **named).to_dict(),
        {
            "quasi": ("quasi_identifiers", ["age", "town"]),
        },
    ),
    "check, sensitive": (checked, {"confidential": ("sensitive", ["ill", "pay"])}),
    "check, both": (
        lambda **named: shoal.check(PEOPLE, **named).to_dict(),
        {"quasi": ("quasi_identifiers", ["age"]), "confidential": ("sensitive", ["ill"])},
    ),
    "risk": (
        lambda **named: shoal.risk(PEOPLE, **named).to_dict(),
        {"keys": ("quasi_identifiers", ["age", "town"])},
    ),
    "attack": (attacked, {"secret": ("sensitive", "ill")}),
    "check in memory": (
        lambda **named: shoal.evaluation.check(PEOPLE, **named).to_dict(),
        {"quasi": ("quasi_identifiers", ["age"]), "confidential": ("sensitive", ["ill"])},
    ),
    "risk in memory": (
        lambda **named: shoal.evaluation.risk(PEOPLE, **named).to_dict(),
        {"keys": ("quasi_identifiers", ["age"])},
    ),
    "attack in memory": (
        lambda **named: shoal.evaluation.attack(PEOPLE, PEOPLE, seed=1, attempts=20, **named).to_dict(),
        {"secret": ("sensitive", "ill")},
    ),
    "prepare": (
        lambda **named: prepare(PEOPLE, SCHEMA, **named).facts.to_dict(),
        {"neighbours": ("adjacency", "add-remove")},
    ),
    "DatasetFacts": (
        lambda **named: DatasetFacts(SCHEMA, **named).to_dict(),
        {"neighbours": ("adjacency", "add-remove")},
    ),
    "Register": (
        lambda **named: Register("people", ceiling=None, **named),
        {"neighbours": ("adjacency", "replace-one")},
    ),
    "categorical_centroids": (centroids, {"neighbours": ("adjacency", "add-remove")}),
}


@pytest.mark.parametrize("name", RENAMED)
def test_an_old_word_gives_the_same_and_one_warning_that_names_the_new(name: str) -> None:
    call, words = RENAMED[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        wanted = call(**dict(words.values()))
    with pytest.warns(DeprecationWarning, match="is now called") as caught:
        found = call(**{old: value for old, (_, value) in words.items()})
    assert found == wanted
    said = [str(warning.message) for warning in caught]
    assert len(said) == len(words)
    for line, (old, (new, _)) in zip(said, words.items(), strict=True):
        assert line.endswith(f": the argument '{old}' is now called '{new}'.")
        assert "\n" not in line
    assert {Path(warning.filename) for warning in caught} == {Path(__file__)}


@pytest.mark.parametrize("name", RENAMED)
def test_an_old_word_beside_its_new_one_is_refused(name: str) -> None:
    call, words = RENAMED[name]
    for old, (new, value) in words.items():
        with pytest.raises(OptionError) as caught:
            call(**dict(words.values()), **{old: value})
        assert (caught.value.code, caught.value.option) == ("argument-by-both-names", new)
        assert f"got both '{new}' and '{old}'" in str(caught.value)
        assert "\n" not in str(caught.value)


def test_an_old_word_beside_the_same_argument_by_its_place_is_refused() -> None:
    with pytest.raises(OptionError, match="check got both 'quasi_identifiers' and 'quasi', its old name"):
        shoal.check(PEOPLE, ["age"], quasi=["town"])  # type: ignore[call-arg]
    with pytest.raises(OptionError, match="Register got both 'adjacency' and 'neighbours'"):
        Register("people", "add-remove", None, neighbours="replace-one")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("made", "old", "new"),
    [
        (lambda: shoal.check(PEOPLE, "age", "ill"), "quasi", "quasi_identifiers"),
        (lambda: shoal.check(PEOPLE, "age", "ill"), "confidential", "sensitive"),
        (lambda: shoal.risk(PEOPLE, "age"), "keys", "quasi_identifiers"),
        (lambda: shoal.risk(PEOPLE, "age").figures, "keys", "quasi_identifiers"),
        (lambda: shoal.attack(PEOPLE, PEOPLE, seed=1)["inference of ill"], "secret", "sensitive"),
        (lambda: Register("people", "add-remove", None), "neighbours", "adjacency"),
        (lambda: prepare(PEOPLE, SCHEMA).facts, "neighbours", "adjacency"),
        (lambda: shoal.MdavDP(epsilon="1", k=3), "neighbours", "adjacency"),
        (lambda: shoal.KAnonymity, "neighbours", "adjacency"),
    ],
)
def test_an_old_attribute_reads_the_same_with_one_warning(
    made: Callable[[], Any], old: str, new: str
) -> None:
    found = made()
    wanted = getattr(found, new)
    with pytest.warns(DeprecationWarning, match="is now called") as caught:
        assert getattr(found, old) == wanted
    name = (found if isinstance(found, type) else type(found)).__name__
    assert [str(warning.message) for warning in caught] == [f"{name}.{old} is now called {name}.{new}."]


def test_a_statement_reads_its_adjacency_in_words_by_the_old_name() -> None:
    for method, words in (
        (
            "laplace",
            "replace-one: adjacent data sets differ in one record, and the number of records is public",
        ),
        ("k-anonymity", None),
    ):
        options: dict[str, Any] = {"k": 2} if method == "k-anonymity" else {"epsilon": 1}
        statement = shoal.protect(PEOPLE, method=method, columns="age", domains=DOMAINS, **options).statement
        with pytest.warns(DeprecationWarning, match="is now called PrivacyStatement.adjacency") as caught:
            assert statement.neighbours == words
        assert len(caught) == 1
        # the files keep their keys
        assert statement.to_dict()["neighbours"] == words


def test_the_adjacency_of_a_method_is_that_of_its_option() -> None:
    for name in method_names():
        cls = method_class(name)
        assert isinstance(cls.adjacency, Adjacency)
        if "neighbours" not in cls.parameters():
            assert cls.adjacency == "replace-one"
    assert shoal.PairsDP.adjacency == shoal.PairsDP(epsilon="1").adjacency == "add-remove"
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        chosen = shoal.PairsDP(epsilon="1", neighbours="replace-one")
        assert chosen.adjacency is Adjacency.REPLACE_ONE
        # the option keeps its word, in recipes too
        assert chosen.settings()["neighbours"] == chosen.neighbours == "replace-one"


def test_a_method_from_outside_that_sets_the_old_attribute_is_warned_and_heard() -> None:
    with pytest.warns(DeprecationWarning, match=r"Hidden\.neighbours is now called Hidden\.adjacency"):

        class Hidden(shoal.Method):
            name: ClassVar[str] = "hidden"
            about: ClassVar[str] = "for a test"
            neighbours = "add-remove"

    assert Hidden.adjacency == Hidden().adjacency == "add-remove"
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)

        class Shown(shoal.Method):
            name: ClassVar[str] = "shown"
            about: ClassVar[str] = "for a test"
            adjacency = Adjacency.ADD_REMOVE

    assert Shown().adjacency.hides_size


def journal(folder: Path) -> Journal:
    return Journal.open(folder / "journal.jsonl")


def noted(folder: Path, columns: Any) -> Any:
    kept = journal(folder)
    kept.note("viewed", dataset="people", columns=columns)
    kept.declare_same("people", columns)
    return [entry.columns for entry in kept.entries()], kept.recorded("people", columns=columns)


# calls that are told about one column, as a list or by its name alone
SINGLE: dict[str, Callable[[Any, Path], Any]] = {
    "check, quasi_identifiers": lambda one, _: shoal.check(PEOPLE, one, "ill").to_dict(),
    "check, sensitive": lambda one, _: shoal.check(PEOPLE, "town", one).to_dict(),
    "risk, quasi_identifiers": lambda one, _: shoal.risk(PEOPLE, one).to_dict(),
    "risk, sensitive": lambda one, _: shoal.risk(PEOPLE, "town", sensitive=one).to_dict(),
    "risk, interactions": lambda one, _: shoal.risk(PEOPLE, ["age", "town"], interactions=[one]).to_dict(),
    "attack, columns": lambda one, _: attacked(columns=one),
    "attack, sensitive": lambda one, _: attacked(sensitive=one),
    "evaluate": lambda one, _: shoal.evaluate(PEOPLE, PEOPLE, columns=one).to_dict(),
    "evaluate, learning": lambda one, _: learn(PEOPLE, PEOPLE, "ill", columns=one),
    "estimates": lambda one, _: shoal.estimates(PEOPLE, columns=one).to_dict(),
    "expected_noise": lambda one, _: shoal.expected_noise(epsilon=1, n=100, columns=one, domains=DOMAINS),
    "protect": lambda one, _: shoal.protect(
        PEOPLE, method="laplace", epsilon=1, columns=one, domains=DOMAINS, seed=4
    ).statement.to_dict(),
    "publish": lambda one, folder: shoal.publish(
        PEOPLE, method="laplace", epsilon=1, columns=one, domains=DOMAINS, seed=4, out=folder / "out"
    ).release.statement.to_dict(),
    "rehearse": lambda one, _: (
        shoal.rehearse(method="laplace", epsilon=1, columns=one, domains=DOMAINS, people=50).original.names
    ),
    "rehearse on a table": lambda one, _: (
        shoal.rehearse(SCHEMA, method="laplace", epsilon=1, columns=one, on=PEOPLE).original.names
    ),
    "tune": lambda one, _: shoal.tune(
        PEOPLE, epsilon=1, methods=["laplace"], fast=True, columns=one, domains=DOMAINS
    ).to_dict(),
    "audit": lambda one, _: shoal.audit(
        PEOPLE, method="laplace", epsilon=1, columns=one, domains=DOMAINS, runs=100, seed=1, workers=1
    ).to_dict(),
    "Partition.from_labels": lambda one, _: Partition.from_labels([0, 1], one).columns,
    "journal": lambda one, folder: noted(folder, one),
}


@pytest.mark.parametrize("name", SINGLE)
def test_a_single_name_is_a_list_of_one(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = []
    for which, one in (("listed", ["age"]), ("alone", "age")):
        folder = tmp_path / which
        folder.mkdir()
        monkeypatch.setenv("SHOAL_JOURNAL", str(folder / "uses.jsonl"))
        places.append(SINGLE[name](one, folder))
    assert places[0] == places[1]


def test_single_names_of_methods_are_lists_of_one_too() -> None:
    found = [
        shoal.tune(PEOPLE, epsilon=1, methods=one, fast=True, columns="age", domains=DOMAINS).to_dict()
        for one in ("laplace", ["laplace"])
    ]
    assert found[0] == found[1]


def test_several_sensitive_columns_are_each_inferred() -> None:
    both = attacked(sensitive=["ill", "pay"])["attacks"]
    assert [one["attack"] for one in both][-2:] == ["inference of pay", "inference of ill"]
    for name in ("ill", "pay"):
        alone = attacked(sensitive=name)["attacks"]
        assert alone[-1] in both
    with pytest.raises(OptionError, match="sensitive 'pya' is not among the attacked columns"):
        attacked(sensitive=["ill", "pya"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["check", "{data}"], "name the columns that an intruder may know (--quasi)."),
        (["check", "{data}", "--quasi", "age", "--l", "2"], "name one (--confidential)."),
        (["risk", "{data}"], "name the columns that an intruder may know (--keys)"),
        (["attack", "{data}", "{data}", "--secret", "pya"], "--secret 'pya' is not among the attacked"),
        (["attack", "{data}", "{data}", "--columns", "ill", "--secret", "ill"], "--secret 'ill' is the only"),
    ],
)
def test_the_command_line_keeps_its_own_words(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import pyarrow.csv

    data = tmp_path / "people.csv"
    pyarrow.csv.write_csv(PEOPLE, data)
    assert run([word.format(data=data) for word in words]) == 2
    assert said in capsys.readouterr().err


# --- no old word comes back


@dataclass(frozen=True)
class Public:
    """Something that scripts may rely on."""

    name: str
    thing: Any


def public() -> Iterator[Public]:
    """What `import shoal` brings, and what the reference documents, with the methods of classes."""
    named = [f"shoal.{name}" for name in shoal.__all__]
    named += re.findall(r"^::: (\S+)", PAGE.read_text("utf-8"), re.MULTILINE)
    seen: set[int] = set()
    for name in named:
        thing = _found(name)
        things = [(name, thing)]
        if isinstance(thing, ModuleType):
            things = [
                (f"{name}.{own}", getattr(thing, own)) for own in vars(thing) if not own.startswith("_")
            ]
        for called, one in things:
            if not callable(one) or id(one) in seen or not one.__module__.startswith("shoal"):
                continue
            seen.add(id(one))
            yield Public(called, one)
            if inspect.isclass(one):
                for own, raw in vars(one).items():
                    method = raw.__func__ if isinstance(raw, (classmethod, staticmethod)) else raw
                    if inspect.isfunction(method) and not own.startswith("_"):
                        yield Public(f"{called}.{own}", method)


def _found(name: str) -> Any:
    parts = name.split(".")
    for place in range(len(parts), 0, -1):
        try:
            thing: Any = import_module(".".join(parts[:place]))
        except ImportError:
            continue
        for part in parts[place:]:
            thing = getattr(thing, part)
        return thing
    raise AssertionError(name)


def old_words(thing: Any) -> set[str]:
    """The old words among the arguments, and in the documentation of arguments and attributes."""
    try:
        arguments = set(inspect.signature(thing).parameters)
    except (TypeError, ValueError):
        arguments = set()
    described = set(re.findall(r"^ {4,8}(\w+): ", inspect.getdoc(thing) or "", re.MULTILINE))
    found = (arguments | described) & set(OLD_WORDS)
    if "neighbours" in arguments and not (inspect.isclass(thing) and issubclass(thing, shoal.Method)):
        # an option of methods, whose word recipes keep; and in an audit, records that are neighbours
        found.add("neighbours")
    return found


def test_no_public_signature_has_an_old_word() -> None:
    things = list(public())
    assert len(things) > 300
    found = {one.name: words for one in things if (words := old_words(one.thing))}
    assert found == {"shoal.Audit": {"neighbours"}}


def test_the_walk_would_notice() -> None:
    def bad(table: Any, keys: Any, *, neighbours: str) -> None: ...

    assert old_words(bad) == {"keys", "neighbours"}
    assert "shoal.check" in {one.name for one in public()}
    assert list(inspect.signature(shoal.check).parameters)[:3] == ["table", "quasi_identifiers", "sensitive"]
