"""A method is a class: parameters are read in one place, and what does not fit is refused with what does."""

from __future__ import annotations

import inspect
import pickle
from dataclasses import FrozenInstanceError, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import shoal
from shoal.errors import OptionError
from shoal.mechanisms.cluster_methods import MdavDP, RankingDP
from shoal.mechanisms.method import Method
from shoal.mechanisms.partition_stage import PARTITIONS
from shoal.mechanisms.registry import class_of, configured, method_class, names

CLASSES = {name: method_class(name) for name in names()}
every_method = pytest.mark.parametrize("cls", CLASSES.values(), ids=CLASSES)


@every_method
def test_every_method_is_made_of_known_stages(cls: type[Method]) -> None:
    assert cls.partition in PARTITIONS
    assert cls.mechanism
    assert cls.paper
    assert cls.outside is None
    assert method_class(cls.name) is cls
    assert class_of(cls.example()) is class_of(cls.name) is cls


@every_method
def test_a_method_is_made_again_from_its_settings(cls: type[Method]) -> None:
    made = cls.example()
    assert cls.configure(**made.settings()) == made
    assert replace(made) == made
    assert pickle.loads(pickle.dumps(made)) == made
    assert list(made.settings()) == [name for name in cls.parameters() if name in made.settings()]


@every_method
def test_a_class_reads_like_documentation(cls: type[Method]) -> None:
    said = inspect.getdoc(cls) or ""
    assert said[0].isupper()
    assert "\nArgs:\n" in said
    for name, known in cls.parameters().items():
        assert f"    {name}: " in said
        assert " ".join(known.sentence().split()) in " ".join(said.split())
    assert max(map(len, said.partition("Args:")[2].splitlines())) <= 100


def test_every_class_is_exported_by_the_package() -> None:
    exported = {getattr(shoal, name) for name in shoal.__all__ if name[0].isupper()}
    numbered = shoal.CrossMoment
    assert numbered in exported
    assert {cls for cls in CLASSES.values() if not issubclass(cls, numbered)} <= exported
    assert {cls for cls in CLASSES.values() if issubclass(cls, numbered)} == {
        numbered.of(name.removeprefix("xm-")) for name in names() if name.startswith("xm-")
    }


def test_listing_matches_the_classes() -> None:
    assert [info.name for info in shoal.methods()] == list(CLASSES)
    for info in shoal.methods():
        assert tuple(info.parameters) == tuple(CLASSES[info.name].parameters())
        assert set(info.to_dict()) == {"name", "paper", "about", "claim", "parameters"}


def test_configuring_makes_a_new_value() -> None:
    made = MdavDP(epsilon="0.1", k=7, normalise="zscore", groups=[["a"], ["b", "c"]])
    assert (made.epsilon, made.k, made.groups) == (Fraction(1, 10), 7, (("a",), ("b", "c")))
    other = replace(made, normalise="domain")
    assert (other.epsilon, other.normalise, made.normalise) == (Fraction(1, 10), "domain", "zscore")
    with pytest.raises(FrozenInstanceError):
        made.k = 1  # type: ignore[misc]
    with pytest.raises(TypeError):
        MdavDP("0.1")  # type: ignore[misc]


def test_weights_are_kept_as_exact_numbers() -> None:
    made = shoal.Laplace(epsilon=1, split={"a": 0.1, "b": "2.5"})
    assert dict(made.split) == {"a": Fraction(1, 10), "b": Fraction(5, 2)}
    assert made.settings()["split"] == {"a": Fraction(1, 10), "b": Fraction(5, 2)}


def test_settings_are_the_parameters() -> None:
    assert RankingDP(epsilon=1).settings() == {
        "epsilon": Fraction(1),
        "clip": True,
        "generalise": False,
        "k": 50,
        "split": "equal",
        "remainder": "middle",
        "link": True,
        "noise": "laplace",
    }
    other = RankingDP(epsilon=1, noise="box")
    assert {name: other.settings()[name] for name in ("noise", "optimise")} == {
        "noise": "box",
        "optimise": "variance",
    }


@pytest.mark.parametrize(
    ("name", "options", "word"),
    [
        ("laplace", {"epsilon": None}, "epsilon is missing"),
        ("laplace", {"noise": "staircase"}, "'laplace' has no option 'noise'"),
        ("tree-dp", {"noise": "staircase"}, "'tree-dp' has no option 'noise'"),
        ("mdav-dp", {"noise": "stairs"}, "Did you mean 'staircase'"),
        ("mdav-dp", {"noise": "box", "optimise": "size"}, "optimise 'size' is not one of variance, interval"),
        ("mdav-dp", {"optimise": "interval"}, "optimise applies to noise=staircase"),
        (
            "laplace",
            {"k": 5},
            "'laplace' forms no groups, so k does not apply: leave k out, or use a method that forms groups",
        ),
        ("laplace", {"kk": 5}, "unknown option 'kk'"),
        ("laplace", {"doman": 5}, "unknown option 'doman'"),
        ("laplace", {"split": 5}, "split must be"),
        ("laplace", {"split": {"a": "x"}}, "split weight of column 'a'"),
        ("laplace", {"clip": "no"}, "clip must be True or False"),
        ("ranking-dp", {"link": 0}, "link must be True or False"),
        ("ranking-dp", {"remainder": "midle"}, "Did you mean 'middle'"),
        ("ranking-dp", {"remainder": []}, "remainder"),
        ("ranking-dp", {"k": 0}, "at least 1"),
        ("ranking-dp", {"k": 2.5}, "k must be an integer"),
        ("ranking-dp", {"k": True}, "k must be an integer"),
        ("ranking-dp", {"k": "5"}, "k must be an integer"),
        ("ranking-dp", {"k": float("nan")}, "k must be an integer"),
        ("ranking-dp", {"k": float("inf")}, "k must be an integer"),
        ("mdav-dp", {"normalise": "z-score"}, "Did you mean 'zscore'"),
        ("mdav-dp", {"groups": "ab"}, "list of non-empty lists"),
        ("mdav-dp", {"groups": ["ab"]}, "list of non-empty lists"),
        ("mdav-dp", {"groups": [[]]}, "list of non-empty lists"),
        ("mdav-dp", {"groups": 3}, "list of non-empty lists"),
        ("mdav-dp", {"partition": "ranking"}, "not one of mdav, vmdav, given"),
        ("mdav-dp", {"partition": []}, "partition"),
    ],
)
def test_settings_that_do_not_fit_are_refused(name: str, options: dict[str, Any], word: str) -> None:
    with pytest.raises(OptionError, match=word):
        configured(name, **{"epsilon": 1, **options})


def test_unknown_methods_get_a_hint() -> None:
    with pytest.raises(
        OptionError,
        match=r"unknown method 'mdav_dp'; 'shoal methods' lists all methods. Did you mean 'mdav-dp'",
    ):
        method_class("mdav_dp")


@pytest.mark.parametrize(
    ("groups", "word"),
    [
        ([["a", "x"]], "'x', which is not protected"),
        ([["a"], ["a", "b"]], "'a' more than once"),
        ([["a"]], "does not contain column 'b'"),
    ],
)
def test_groups_cover_every_column_once(groups: list[list[str]], word: str) -> None:
    method = MdavDP(epsilon=1, groups=groups)
    with pytest.raises(OptionError, match=word):
        method.resolve_groups(["a", "b"])


def test_groups_by_default() -> None:
    assert MdavDP(epsilon=1).resolve_groups(["a", "b"]) == (("a", "b"),)
    assert RankingDP(epsilon=1).resolve_groups(["a", "b"]) == (("a",), ("b",))


def test_clusters_of_one_never_involve_another_record() -> None:
    assert configured("mdav-dp", epsilon=1, k=1).stability == "record"
    assert configured("mdav-dp", epsilon=1, k=2).stability == "data"
    assert configured("mdav-dp", epsilon=1, k=1, partition="given").stability == "caller"
    assert configured("ranking-dp", epsilon=1, k=2).stability == "rank"
    assert configured("laplace", epsilon=1).stability == "record"


DOMAINS = {"a": (0, 9), "b": (0, 9)}


def small() -> pa.Table:
    return pa.table({"a": [row % 10 for row in range(40)], "b": [row % 7 for row in range(40)]})


def test_a_configured_method_is_taken_wherever_a_name_is(tmp_path: Path) -> None:
    table, method = small(), shoal.MdavDP(epsilon="1", k=5)
    named: dict[str, Any] = {"method": "mdav-dp", "epsilon": "1", "k": 5, "domains": DOMAINS}
    one = shoal.protect(table, None, method, seed=3, domains=DOMAINS)
    assert one.data.equals(shoal.protect(table, seed=3, **named).data)
    assert one.method == method
    shoal.publish(table, None, method, seed=3, out=tmp_path / "one", domains=DOMAINS)
    shoal.publish(table, seed=3, out=tmp_path / "two", **named)
    for file in ("statement.json", "method.toml"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()
    assert shoal.expected_noise(None, method, n=40, domains=DOMAINS) == shoal.expected_noise(n=40, **named)
    assert shoal.rehearse(None, method, people=40, domains=DOMAINS).release.method == method
    column, laplace = {"domains": {"a": (0, 9)}, "columns": ["a"]}, shoal.Laplace(epsilon=1)
    found = shoal.audit(table, None, laplace, runs=200, seed=1, workers=1, **column)
    again = shoal.audit(table, None, "laplace", 1, runs=200, seed=1, workers=1, **column)
    assert found.bound == again.bound


def test_options_beside_a_configured_method_are_those_that_it_has() -> None:
    method = shoal.MdavDP(epsilon="1", k=5)
    assert shoal.protect(small(), None, method, k=5, domains=DOMAINS, seed=1).method == method
    with pytest.raises(OptionError) as refused:
        shoal.protect(small(), None, method, k=6, domains=DOMAINS, seed=1)
    assert refused.value.code == "method-configured-before"
    assert refused.value.option == "k"
    assert "MdavDP(k=...)" in str(refused.value)


def test_the_docstring_of_a_method_says_what_its_parameters_are() -> None:
    said = shoal.PairsDP.__doc__ or ""
    assert all(f"{name}: " in said for name in shoal.PairsDP.parameters())
