"""Every error Shoal raises on purpose. One sentence each: what was found, where, and the way out."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class ShoalError(Exception):
    """Base of all errors raised on purpose. The command line prints it as one line and exits with 2."""


class InputError(ShoalError, ValueError):
    """The table does not fit: a missing file, text where numbers belong, a value outside its domain."""


class OptionError(ShoalError, ValueError):
    """An option has a value that cannot be used: ε ≤ 0, k > n, an unknown method."""


class ClaimError(ShoalError, ValueError):
    """The requested release would need a privacy claim that does not hold."""


class OutputError(ShoalError, OSError):
    """The result cannot be written where it was asked for."""


class LeftOutWarning(UserWarning):
    """Columns were left out of a release without anybody having said so."""


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """A hint to append to an error, empty when nothing is close.

    >>> did_you_mean("FEDTAXX", ["FEDTAX", "FICA"]), did_you_mean("nope", ["income"])
    (" Did you mean 'FEDTAX'?", '')
    """
    close = difflib.get_close_matches(str(word), list(known), n=1, cutoff=0.65)
    return f" Did you mean '{close[0]}'?" if close else ""
