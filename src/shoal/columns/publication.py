"""The [publication] table of a schema: who publishes a release, for whom and for what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import date
from typing import Any

from shoal import summaries
from shoal.display import displayed
from shoal.errors import OptionError, closest

# the sectors that the registry of deployments knows
SECTORS = ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance")
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "sector": SECTORS,
    "releases": ("one", "many"),
    "data_source": ("static", "dynamic"),
}
_LISTS = ("curators", "authors")
_DAYS = ("date", "review_by")


@displayed(summaries.of_publication)
@dataclass(frozen=True, slots=True)
class Publication:
    """What the publisher says about a publication; everything is optional, and nothing of it can be checked.

    Attributes:
        name: of the data product.
        purpose: what it is meant to be used for.
        curators: who publishes it.
        region: which region the data describe.
        recipients: for whom it is: the public, or whoever else may have it.
        date: of publication, such as 2027-03-01.
        review_by: until when the assessment of its risks holds.
        other_releases: about the same people, in words.
        releases: one, or many over time.
        data_source: static, or dynamic where new records come in.
        actors: who sees which data, and who is trusted with what.
        security: how the original records are kept and who has access.
        justification: why these parameters were chosen.
        sources: links to documents about it.
        authors: of the record in a registry.
        slug: of its address in a registry.

    >>> Publication.from_dict({"name": "Rents 2027", "curators": ["Office"], "date": "2027-03-01"}).date
    '2027-03-01'
    """

    name: str = ""
    description: str = ""
    purpose: str = ""
    curators: tuple[str, ...] = ()
    region: str = ""
    sector: str = ""
    date: str = ""
    recipients: str = ""
    contact: str = ""
    other_releases: str = ""
    releases: str = ""
    data_source: str = ""
    review_by: str = ""
    actors: str = ""
    security: str = ""
    justification: str = ""
    sources: str = ""
    notes: str = ""
    authors: tuple[str, ...] = ()
    slug: str = ""

    @classmethod
    def from_dict(cls, raw: object) -> Publication:
        """The table [publication] of a schema, checked.

        Raises:
            OptionError: one line that names the key.
        """
        if raw is None:
            return cls()
        if not isinstance(raw, Mapping):
            raise OptionError("publication-must-be-a-table")
        return cls(**{_known(key): _value(key, value) for key, value in raw.items()})

    def to_dict(self) -> dict[str, Any]:
        """Plain values, empty ones left out."""
        found = {one.name: getattr(self, one.name) for one in fields(self)}
        return {
            name: list(value) if isinstance(value, tuple) else value for name, value in found.items() if value
        }


def _known(key: str) -> str:
    names = [one.name for one in fields(Publication)]
    if key not in names:
        raise OptionError("publication-unknown-key", key=key, hint=closest(key, names))
    return key


def _value(key: str, value: Any) -> Any:
    if key in _LISTS:
        named = [value] if isinstance(value, str) else value
        if not isinstance(named, (list, tuple)) or not all(isinstance(one, str) and one for one in named):
            raise OptionError("publication-names", key=key, found=value)
        return tuple(named)
    if key in _DAYS and isinstance(value, date):
        return value.isoformat()[:10]
    if not isinstance(value, str):
        raise OptionError("publication-text", key=key, found=value)
    if key in _DAYS:
        try:
            return date.fromisoformat(value).isoformat()
        except ValueError:
            raise OptionError("publication-day", key=key, found=value) from None
    if key in _CHOICES and value not in _CHOICES[key]:
        allowed = _CHOICES[key]
        hint = closest(value, allowed)
        raise OptionError("publication-choice", key=key, found=value, allowed=allowed, hint=hint)
    return " ".join(value.split())
