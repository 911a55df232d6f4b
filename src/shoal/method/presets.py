"""Every published method by name, one entry each. A new paper is a new entry plus, at most, a new stage."""

from __future__ import annotations

from typing import Any

from shoal.columns.kinds import KINDS, ORDERED_KINDS
from shoal.errors import OptionError, closest
from shoal.method.kanonymity_presets import KANONYMITY_PRESETS
from shoal.method.method import Method
from shoal.method.moment_presets import MOMENT_PRESETS

# the strongest promise that a whole table of every kind can have
DEFAULT_METHOD = "pairs-dp"
_ALWAYS = ("epsilon", "clip")
_NOISE = ("noise", "optimise")
_INDIVIDUAL = ("k", "split", "remainder", "floor", "groups", "partition", "normalise", "gamma", "strata")

PRESETS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            name="pairs-dp",
            paper="ours, noise fitted to what one record can do",
            about="contrasts of all pairs of attributes over private cuts, rows drawn to agree with them",
            partition="boxes",
            grouping="joint",
            mechanism="pairs",
            kinds=KINDS,
            neighbours="add-remove",
            adjustable=("epsilon", "delta", "neighbours", "rows", "target", "triples"),
        ),
        Method(
            name="laplace",
            paper="the baseline of MDAI-2017 and PSD-2014",
            about="noise on every value by itself, no grouping",
            partition="alone",
            grouping="joint",
            split="equal",
            kinds=KINDS,
            adjustable=(*_ALWAYS, "generalise", "split"),
        ),
        Method(
            name="mdav-dp",
            paper="MDAI-2017, MDAV+DP",
            about="clusters of similar records, noise on the cluster means",
            partition="mdav",
            grouping="joint",
            split="equal",
            k=50,
            kinds=KINDS,
            adjustable=(
                *_ALWAYS,
                "generalise",
                "k",
                "split",
                "groups",
                "normalise",
                "partition",
                "gamma",
                "strata",
                *_NOISE,
            ),
        ),
        Method(
            name="ranking-dp",
            paper="MDAI-2017, IR_MDAV+DP; PSD-2014",
            about="each attribute ranked by itself, noise on the means of k consecutive values",
            partition="ranking",
            grouping="each",
            split="equal",
            k=50,
            kinds=KINDS,
            adjustable=(*_ALWAYS, "generalise", "k", "split", "remainder", "link", "strata", *_NOISE),
        ),
        Method(
            name="optimal-dp",
            paper="ours, the variable sizes left open by MDAI-2017",
            about="each attribute cut into runs of values where the expected error is least, noise on their means",
            partition="optimal",
            grouping="each",
            split="equal",
            k=3,
            kinds=ORDERED_KINDS,
            adjustable=(*_ALWAYS, "k", "split", "link", "strata", *_NOISE),
        ),
        Method(
            name="idp-ls",
            paper="the iDP paper, iDP-LS",
            about="each attribute ranked by itself, noise as large as one record of the actual table can move a mean",
            partition="ranking",
            grouping="each",
            split="equal",
            sensitivity="local",
            k=50,
            kinds=ORDERED_KINDS,
            adjustable=(*_ALWAYS, *_INDIVIDUAL),
        ),
        Method(
            name="idp-cbls",
            paper="the iDP paper, iDP-CBLS",
            about="the same without the extremes of a cluster, so that noise follows the spread inside it",
            partition="ranking",
            grouping="each",
            split="equal",
            sensitivity="cluster",
            k=15,
            kinds=ORDERED_KINDS,
            adjustable=(*_ALWAYS, *_INDIVIDUAL),
        ),
        Method(
            name="insensitive-dp",
            paper="the thesis, chapter 6, its composition corrected",
            about="clusters that change by at most one record each when one is replaced, noise on all their means",
            partition="insensitive",
            grouping="joint",
            mechanism="insensitive",
            split="equal",
            kinds=KINDS,
            adjustable=(*_ALWAYS, "generalise", "k", "split", "composition", "order", "corners", *_NOISE),
        ),
        Method(
            name="tree-dp",
            paper="ours, the differential privacy the papers were after",
            about="boxes of a tree of private medians, rows drawn from noisy counts and means",
            partition="boxes",
            grouping="joint",
            mechanism="tree",
            rebuild="uniform",
            kinds=KINDS,
            adjustable=("epsilon", "generalise", "cuts", "depth", "shares", "rebuild", "neighbours", "rows"),
        ),
        *KANONYMITY_PRESETS,
        *MOMENT_PRESETS,
    )
}


def preset(name: str) -> Method:
    """A published method by its name."""
    if name not in PRESETS:
        raise OptionError("there-no-method-shoal-methods-lists", name=name, hint=closest(str(name), PRESETS))
    return PRESETS[name]


def taken_by(setting: str, most: int = 3) -> tuple[str, ...]:
    """The methods that take a setting, those of one paper under one word; nothing where that are more than a few.

    >>> taken_by("cuts"), taken_by("match"), taken_by("epsilon")
    (('tree-dp',), ('xm-*',), ())
    """
    takers = [name for name, method in PRESETS.items() if setting in method.adjustable]
    families = tuple(dict.fromkeys("xm-*" if name.startswith("xm-") else name for name in takers))
    return families if len(families) <= most else ()


def configured(name: str, **options: Any) -> Method:
    """A published method with its settings.

    A private tree has boxes, noise and a claim of its own. Moments on top of it are sums and sums of squares in the
    boxes, so that an xm method with partition=tree is `tree-dp`, which keeps them.

    >>> configured("xm-6", epsilon=1, partition="tree").name
    'tree-dp'
    """
    method = preset(name)
    if options.get("partition") != "tree" or not method.as_tree:
        return method.configure(**options)
    if method.moments > 1 or method.form != "coefficients" or method.sensitivity == "none":
        raise OptionError("method-cannot-have-partition-tree", name=name)
    if options.get("k") is not None:
        raise OptionError("partition-tree-no-k")
    settings = {option: value for option, value in options.items() if option != "partition"}
    rebuild = "normal" if method.moments else "centroid"
    return PRESETS["tree-dp"].configure(**{"rebuild": rebuild, **settings})
