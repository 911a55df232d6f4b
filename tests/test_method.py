"""A method is data: settings are read in one place, and what does not fit is refused with what does."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from fractions import Fraction
from typing import Any

import pytest

import shoal
from shoal.errors import OptionError
from shoal.mechanisms import MECHANISMS
from shoal.method.presets import PRESETS, preset
from shoal.method.settings import SETTINGS
from shoal.method.stages import PARTITIONS


@pytest.mark.parametrize("method", PRESETS.values(), ids=PRESETS)
def test_every_preset_is_made_of_known_stages(method: Any) -> None:
    assert method.partition in PARTITIONS
    assert method.mechanism in MECHANISMS
    assert method.paper
    assert set(method.adjustable) <= set(SETTINGS)
    assert preset(method.name) is method


def test_listing_matches_the_table_of_presets() -> None:
    assert [info.name for info in shoal.methods()] == list(PRESETS)
    for info in shoal.methods():
        assert tuple(info.parameters) == PRESETS[info.name].adjustable
        assert set(info.to_dict()) == {"name", "paper", "about", "claim", "parameters"}


def test_configuring_makes_a_new_value() -> None:
    method = preset("mdav-dp")
    configured = method.configure(epsilon="0.1", k=7, normalise="zscore", groups=[["a"], ["b", "c"]])
    assert (configured.epsilon, configured.k, configured.groups) == (Fraction(1, 10), 7, (("a",), ("b", "c")))
    assert (method.epsilon, method.normalise) == (None, "domain")
    with pytest.raises(FrozenInstanceError):
        configured.k = 1  # type: ignore[misc]


def test_weights_are_kept_as_exact_numbers() -> None:
    configured = preset("laplace").configure(epsilon=1, split={"a": 0.1, "b": "2.5"})
    assert dict(configured.split) == {"a": Fraction(1, 10), "b": Fraction(5, 2)}
    assert configured.settings()["split"] == {"a": Fraction(1, 10), "b": Fraction(5, 2)}


def test_settings_are_the_adjustable_ones() -> None:
    configured = preset("ranking-dp").configure(epsilon=1)
    assert configured.settings() == {
        "epsilon": Fraction(1),
        "clip": True,
        "generalise": False,
        "k": 50,
        "split": "equal",
        "remainder": "middle",
        "link": True,
        "noise": "laplace",
    }
    other = preset("ranking-dp").configure(epsilon=1, noise="box")
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
        ("mdav-dp", {"optimise": "interval"}, "optimise is for noise=staircase"),
        (
            "laplace",
            {"k": 5},
            "'laplace' has no groups, and so no k: leave k out, or name a method that has groups",
        ),
        ("laplace", {"kk": 5}, "no option 'kk'"),
        ("laplace", {"doman": 5}, "no option 'doman'"),
        ("laplace", {"split": 5}, "split must be"),
        ("laplace", {"split": {"a": "x"}}, "split weight of column 'a'"),
        ("laplace", {"clip": "no"}, "clip must be True or False"),
        ("ranking-dp", {"link": 0}, "link must be True or False"),
        ("ranking-dp", {"remainder": "midle"}, "Did you mean 'middle'"),
        ("ranking-dp", {"remainder": []}, "remainder"),
        ("ranking-dp", {"k": 0}, "at least 1"),
        ("ranking-dp", {"k": 2.5}, "whole number"),
        ("ranking-dp", {"k": True}, "whole number"),
        ("ranking-dp", {"k": "5"}, "whole number"),
        ("ranking-dp", {"k": float("nan")}, "whole number"),
        ("ranking-dp", {"k": float("inf")}, "whole number"),
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
        preset(name).configure(**{"epsilon": 1, **options})


def test_unknown_methods_get_a_hint() -> None:
    with pytest.raises(
        OptionError, match=r"no method 'mdav_dp'; 'shoal methods' lists them. Did you mean 'mdav-dp'"
    ):
        preset("mdav_dp")


@pytest.mark.parametrize(
    ("groups", "word"),
    [
        ([["a", "x"]], "'x', which is not protected"),
        ([["a"], ["a", "b"]], "'a' twice"),
        ([["a"]], "leaves out column 'b'"),
    ],
)
def test_groups_cover_every_column_once(groups: list[list[str]], word: str) -> None:
    method = preset("mdav-dp").configure(epsilon=1, groups=groups)
    with pytest.raises(OptionError, match=word):
        method.resolve_groups(["a", "b"])


def test_groups_by_default() -> None:
    assert preset("mdav-dp").resolve_groups(["a", "b"]) == (("a", "b"),)
    assert preset("ranking-dp").resolve_groups(["a", "b"]) == (("a",), ("b",))


def test_clusters_of_one_never_involve_another_record() -> None:
    assert preset("mdav-dp").configure(epsilon=1, k=1).stability == "record"
    assert preset("mdav-dp").configure(epsilon=1, k=2).stability == "data"
    assert preset("mdav-dp").configure(epsilon=1, k=1, partition="given").stability == "caller"
    assert preset("ranking-dp").configure(epsilon=1, k=2).stability == "rank"
    assert preset("laplace").configure(epsilon=1).stability == "record"
