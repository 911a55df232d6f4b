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
from shoal.text import Message

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
        Message("because-fitted-to-records"),
        {"sensitivity": ("local", "cluster")},
    ),
    Case(
        "dp",
        Message("because-own-cluster"),
        {"stability": ("record", "private")},
    ),
    # sums of ranks telescope, choices of concepts do not: each of the moved clusters would cost the whole ε
    Case(
        "dp",
        Message("because-fixed-ranks"),
        {"stability": ("rank",), "linked": (False,), "nominal": (False,)},
    ),
    Case("dp-given-partition", Message("because-clusters-fixed")),
)
_BY_CLOSENESS = Claim(
    (
        Case("probabilistic-k-anonymity", Message("because-values-stay-in-group"), {"t": (None,)}),
        Case("t-closeness", Message("because-bucket-shares")),
    )
)

ENTRIES: dict[str, Entry] = {
    "anatomy": Entry(_BY_CLOSENESS, ("kanonymity", "ANATOMY")),
    "centroids": Entry(
        Claim((Case("k-anonymity", Message("because-one-value")),), shows_gaps=True),
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
                    Message("because-one-cluster-paid"),
                    {"composition": ("parallel",)},
                ),
                Case("dp", Message("because-all-clusters-paid")),
            ),
            proofs=("insensitive",),
        ),
        ("insensitive", "INSENSITIVE"),
    ),
    "moments": Entry(
        Claim(
            (
                Case("none", Message("because-no-noise"), {"sensitivity": ("none",)}),
                Case(
                    "idp-given-partition",
                    Message("because-eigenvectors-move"),
                    {"form": ("eigen",)},
                ),
                # covariances of rank groups do not telescope as their sums do
                Case(
                    "dp-given-partition",
                    Message("because-moments-given-clusters"),
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
                    Message("because-rows-from-noisy-pairs"),
                    {"pure": (True,)},
                ),
                Case("approximate-dp", Message("because-rows-from-noisy-pairs-in-rho")),
            ),
            blocks=Message("contrasts-have-own-noise"),
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
                    Message("because-empty-cells-fit-any"),
                    {"missing_as": ("wildcard",)},
                ),
                Case("k-anonymity", Message("because-same-quasi-identifiers")),
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
            blocks=Message("boxes-share-epsilon"),
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
