"""Mechanisms by name: how a described table and a budget become a protected table."""

from collections.abc import Iterator, Mapping
from importlib import import_module

from shoal.mechanisms.base import Mechanism, Progress, Rebuilt


class _OnDemand(Mapping[str, Mechanism]):
    """Looks like a dictionary of mechanisms; each is loaded when it is first asked for, for a program needs one."""

    def __init__(self, places: Mapping[str, tuple[str, str]]) -> None:
        self._places = places

    def __getitem__(self, name: str) -> Mechanism:
        module, attribute = self._places[name]
        mechanism: Mechanism = getattr(import_module(f"shoal.mechanisms.{module}"), attribute)
        return mechanism

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


MECHANISMS: Mapping[str, Mechanism] = _OnDemand(
    {
        "anatomy": ("kanonymity", "ANATOMY"),
        "centroids": ("kanonymity", "CENTROIDS"),
        "clusters": ("clusters", "CLUSTERS"),
        "insensitive": ("insensitive", "INSENSITIVE"),
        "moments": ("moments", "MOMENTS"),
        "pairs": ("pairs", "PAIRS"),
        "swap-mdav": ("kanonymity", "SWAP_MDAV"),
        "swap-ranking": ("kanonymity", "SWAP_RANKING"),
        "t-closeness": ("kanonymity", "T_CLOSENESS"),
        "tree": ("tree", "TREE"),
    }
)

__all__ = ["MECHANISMS", "Mechanism", "Progress", "Rebuilt"]
