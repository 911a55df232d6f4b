"""What is declared about columns on the command line: text such as `age=0:120` comes in, domains and types leave."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from shoal.columns.kinds import ISO_DAY
from shoal.decimals import exact
from shoal.errors import OptionError
from shoal.text import Message


def parse_domains(texts: Iterable[str]) -> dict[str, tuple[Decimal | str, Decimal | str]]:
    """Domains from command-line text `column=lo:hi`, with the decimals that were written; dates are left as text.

    >>> parse_domains(["FICA=0:12000", "rent=0.00:900.00"])
    {'FICA': (Decimal('0'), Decimal('12000')), 'rent': (Decimal('0.00'), Decimal('900.00'))}
    """
    domains: dict[str, tuple[Decimal | str, Decimal | str]] = {}
    for text in texts:
        name, equals, bounds = text.rpartition("=")
        lo, colon, hi = bounds.partition(":")
        if not (equals and colon and name):
            raise OptionError("domain-not-form-column-lo-hi", text=text)
        if name in domains:
            raise OptionError("domain-names-column-twice", column=name)
        what = Message.of("bound-of-domain", text=text)
        first, last = (side if ISO_DAY.match(side) else _number(side, what) for side in (lo, hi))
        domains[name] = (first, last)
    return domains


def _number(text: str, what: Message) -> Decimal:
    exact(text, what)
    return Decimal(text.strip())


def parse_types(texts: Iterable[str]) -> dict[str, str]:
    """Types from command-line text `column=type`, such as age=integer or income=decimal:2.

    >>> parse_types(["income=decimal:2"])
    {'income': 'decimal:2'}
    """
    found: dict[str, str] = {}
    for text in texts:
        name, equals, type = text.rpartition("=")
        if not (equals and name and type):
            raise OptionError("type-not-form-column-type", text=text)
        if name in found:
            raise OptionError("type-names-column-twice", column=name)
        found[name] = type
    return found
