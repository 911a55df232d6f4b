"""The table of mechanisms: where the code of each is, and what it promises, as data.

The code is loaded when it is first run, for a program needs one of them; what is promised is known without it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from shoal.method.claims import Case, Claim
from shoal.origin import Outside

if TYPE_CHECKING:
    from shoal.mechanisms.base import Mechanism


@dataclass(frozen=True, slots=True)
class Entry:
    """A mechanism: its claim, and where it is.

    Attributes:
        place: module and name, for the package's own; `mechanism` for one from outside.
        outside: whose it is, None for the package's own.
        in_parts: how an engine does it, a function of `shoal.release.engines.methods`; empty where none can, `stage`
            where that is a matter of the partition stage.
        columnwise: an engine does it where every column is treated by itself.
    """

    claim: Claim
    place: tuple[str, str] | None = None
    mechanism: Mechanism | None = None
    outside: Outside | None = None
    in_parts: str = ""
    columnwise: bool = False

    def load(self) -> Mechanism:
        if self.mechanism is not None:
            return self.mechanism
        assert self.place is not None
        module, attribute = self.place
        mechanism: Mechanism = getattr(import_module(f"shoal.mechanisms.{module}"), attribute)
        return mechanism


_BY_STABILITY = (
    Case(
        "idp-given-partition",
        "noise is calibrated to the actual records, and protects those against their neighbours only",
        {"sensitivity": ("local", "cluster")},
    ),
    Case(
        "dp",
        "a replaced record touches its own cluster of one, or boxes that the budget pays for",
        {"stability": ("record", "private")},
    ),
    # sums of ranks telescope, choices of concepts do not: each of the moved clusters would cost the whole ε
    Case(
        "dp",
        "clusters at fixed ranks of one attribute: what one record moves adds up to the width of the domain",
        {"stability": ("rank",), "linked": (False,), "nominal": (False,)},
    ),
    Case("dp-given-partition", "clusters may move with the record, and are taken as fixed"),
)
_BY_CLOSENESS = Claim(
    (
        Case("probabilistic-k-anonymity", "values stay among the k rows of a group", {"t": (None,)}),
        Case("t-closeness", "every bucket of values has nearly its share of the table in every group"),
    )
)

ENTRIES: dict[str, Entry] = {
    "anatomy": Entry(_BY_CLOSENESS, ("kanonymity", "ANATOMY")),
    "centroids": Entry(
        Claim((Case("k-anonymity", "quasi-identifiers of a group are one value"),), shows_gaps=True),
        ("kanonymity", "CENTROIDS"),
    ),
    "clusters": Entry(
        Claim(_BY_STABILITY, proofs=("sums", "individual", "missing")),
        ("clusters", "CLUSTERS"),
        in_parts="stage",
    ),
    "insensitive": Entry(
        Claim(
            (
                Case(
                    "none",
                    "as published, ε pays for one cluster of those that move",
                    {"composition": ("parallel",)},
                ),
                Case(
                    "dp", "every cluster changes by one record at most, and the budget pays for all of them"
                ),
            ),
            proofs=("insensitive",),
        ),
        ("insensitive", "INSENSITIVE"),
    ),
    "moments": Entry(
        Claim(
            (
                Case("none", "there is no noise", {"sensitivity": ("none",)}),
                Case(
                    "idp-given-partition",
                    "eigenvectors move as far as the actual records let them",
                    {"form": ("eigen",)},
                ),
                # covariances of rank groups do not telescope as their sums do
                Case(
                    "dp-given-partition",
                    "moments beyond the mean are protected with the clusters taken as fixed",
                    {"moments": (1, 2)},
                ),
                *_BY_STABILITY,
            ),
            proofs=("moments",),
        ),
        ("moments", "MOMENTS"),
        in_parts="by_moments",
        columnwise=True,
    ),
    "pairs": Entry(
        Claim(
            (
                Case(
                    "dp",
                    "cuts, counts and contrasts of pairs are noisy, and rows are drawn from nothing else",
                    {"pure": (True,)},
                ),
                Case("approximate-dp", "the same, and all of them are paid for in ρ"),
            ),
            blocks="every contrast has the noise that fits it",
            proofs=("pairs", "record-noise", "gaussian", "missing"),
        ),
        ("pairs", "PAIRS"),
        in_parts="by_pairs",
    ),
    "suppress": Entry(
        Claim(
            (
                Case(
                    "none",
                    "an empty cell fits any value, so that a few of them can hide that a row is unique",
                    {"missing_as": ("wildcard",)},
                ),
                Case("k-anonymity", "rows of a group have the same quasi-identifiers, empty cells included"),
            ),
            shows_gaps=True,
            free=True,
        ),
        ("suppression", "SUPPRESS"),
    ),
    "swap-mdav": Entry(_BY_CLOSENESS, ("kanonymity", "SWAP_MDAV")),
    "swap-ranking": Entry(_BY_CLOSENESS, ("kanonymity", "SWAP_RANKING"), in_parts="by_swap", columnwise=True),
    "t-closeness": Entry(_BY_CLOSENESS, ("kanonymity", "T_CLOSENESS")),
    "tree": Entry(
        Claim(
            _BY_STABILITY,
            blocks="a replaced record changes the counts of two boxes at several levels, and all of them share ε",
            proofs=("tree", "missing"),
        ),
        ("tree", "TREE"),
        in_parts="by_tree",
    ),
}


class _OnDemand(Mapping[str, "Mechanism"]):
    """Looks like a dictionary of mechanisms; each is loaded when it is first asked for."""

    def __getitem__(self, name: str) -> Mechanism:
        return ENTRIES[name].load()

    def __iter__(self) -> Iterator[str]:
        return iter(ENTRIES)

    def __len__(self) -> int:
        return len(ENTRIES)


MECHANISMS: Mapping[str, Mechanism] = _OnDemand()
