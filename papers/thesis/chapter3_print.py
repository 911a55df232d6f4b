"""Tables 3.6 to 3.11 of the thesis, from chapter3-printed.toml."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from papers.texts import rows

_PRINTED = rows("thesis/chapter3-printed")
SIZES: tuple[int, ...] = tuple(_PRINTED["sizes"])
METHODS = ("MDAV-ID", "MDAV-SWAP", "IR-SWAP")
RUNS: int = _PRINTED["runs"]
ATTRIBUTES, FIRST_PROTECTED = 13, 6
# mean and standard deviation by data set and method, one pair per k
CHANGES: Mapping[str, Mapping[str, tuple[tuple[str, str], ...]]] = {
    data: {
        method: tuple(zip(means.split(), deviations.split(), strict=True))
        for method, (means, deviations) in by_method.items()
    }
    for data, by_method in _PRINTED["changes"].items()
}
# mean change of IR-SWAP on EIA by k
PROTOTYPE_RANKING: Mapping[int, str] = {int(k): text for k, text in _PRINTED["prototype_ranking"].items()}


def filled(text: str) -> str:
    """A number with the zeros that print leaves out: two digits that count, and two places after the point.

    >>> filled(".2"), filled("1"), filled("-.0011"), filled(".05")
    ('.20', '1.00', '-.0011', '.050')
    """
    whole, _, places = text.partition(".")
    short = 2 - len(places.lstrip("0")) if whole in ("", "-") else 2 - len(places)
    return f"{whole}.{places}{'0' * max(short, 0)}"


def cells(table: str) -> Iterator[tuple[int, int, str]]:
    """Row, column (of A1 .. A13, from 0) and text of every printed correlation."""
    for row, line in enumerate(_PRINTED["correlations"][table].strip().splitlines()):
        texts = line.split()
        for column, text in zip(range(ATTRIBUTES - len(texts), ATTRIBUTES), texts, strict=True):
            yield row, column, filled(text)
