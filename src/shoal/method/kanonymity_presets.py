"""The presets of the k-anonymity family, one entry each. None of them has an ε."""

from __future__ import annotations

from shoal.columns.kinds import KINDS
from shoal.method.method import Method

KANONYMITY_PRESETS: tuple[Method, ...] = (
    Method(
        name="k-anonymity",
        paper="the thesis, chapter 3 (MDAV-ID)",
        about="clusters of records close in the quasi-identifiers, which are replaced by the middle of the cluster",
        mechanism="centroids",
        partition="mdav",
        grouping="joint",
        k=5,
        kinds=KINDS,
        adjustable=("k", "l", "t_emd", "generalise", "normalise", "partition", "gamma"),
    ),
    Method(
        name="swap-mdav",
        paper="the thesis, chapter 3 (MDAV-SWAP)",
        about="confidential values swapped among records that are close in what an intruder knows",
        mechanism="swap-mdav",
        partition="mdav",
        grouping="joint",
        rebuild="swap",
        k=5,
        kinds=KINDS,
        adjustable=("k", "sizes", "l", "intruder", "normalise"),
    ),
    Method(
        name="swap-ranking",
        paper="the thesis, chapter 3 (IR-SWAP)",
        about="each confidential column swapped among neighbours in rank",
        mechanism="swap-ranking",
        partition="ranking",
        grouping="each",
        rebuild="swap",
        k=50,
        kinds=KINDS,
        adjustable=("k", "sizes", "l", "remainder"),
    ),
    Method(
        name="t-closeness",
        paper="the thesis, chapter 7",
        about="confidential values swapped in groups where every bucket of values has nearly its share of the table",
        mechanism="t-closeness",
        partition="mdav",
        grouping="joint",
        rebuild="swap",
        k=10,
        t=2,
        kinds=KINDS,
        adjustable=("k", "t", "normalise"),
    ),
    Method(
        name="anatomy",
        paper="the thesis, chapter 7",
        about="two tables linked by group: what an intruder may know, and how often confidential values occur",
        mechanism="anatomy",
        partition="mdav",
        grouping="joint",
        rebuild="none",
        k=10,
        kinds=KINDS,
        adjustable=("k", "t", "l", "t_emd", "group_by", "normalise", "partition", "gamma"),
    ),
)
