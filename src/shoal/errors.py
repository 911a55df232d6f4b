"""Every error Shoal raises on purpose. One sentence each: what was found, where, and the way out."""

from __future__ import annotations

import difflib
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

# optional parts of the installation; pyproject.toml says what each brings, 'all' brings all of them
Extra = Literal["excel", "files", "learn", "rdf", "server"]

_PACKAGE = Path(__file__).resolve().parent


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


class MissingExtraError(ShoalError, ImportError):
    """What was asked for needs packages that are not installed; the message says how to install them."""


class LeftOutWarning(UserWarning):
    """Columns were left out of a release without anybody having said so."""


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """A hint to append to an error, empty when nothing is close.

    >>> did_you_mean("FEDTAXX", ["FEDTAX", "FICA"]), did_you_mean("nope", ["income"])
    (" Did you mean 'FEDTAX'?", '')
    """
    close = difflib.get_close_matches(str(word), list(known), n=1, cutoff=0.65)
    return f" Did you mean '{close[0]}'?" if close else ""


@contextmanager
def needs_extra(extra: Extra, who: str) -> Iterator[None]:
    """Around imports of optional packages: a missing one becomes one line that says how to install it.

    Args:
        extra: the extra that brings the packages.
        who: subject and verb of the sentence: "the query server needs".

    Raises:
        MissingExtraError: a package is not installed. A module of Shoal that is missing is another error.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "shoal":
            raise
        raise MissingExtraError(f"{who} the extra '{extra}': {install_words(extra)}.") from None


def install_words(extra: Extra, package: Path = _PACKAGE) -> str:
    """The command that installs an extra: of the installed package, or of the checkout that the package lies in.

    >>> install_words("files", Path("/usr/lib/python3/site-packages/shoal")).endswith("pip install 'shoal[files]'")
    True
    """
    checkout = package.parent.parent
    if package.parent.name != "src" or not (checkout / "pyproject.toml").is_file():
        pip = "pip" if _is_ours("pip") else f"{sys.executable} -m pip"
        return f"{pip} install 'shoal[{extra}]'"
    interpreter = Path(sys.executable)
    if _is_ours("python"):
        interpreter = Path("python")
    elif interpreter.is_relative_to(checkout):
        interpreter = interpreter.relative_to(checkout)
    return f"{interpreter} -m pip install -e '.[{extra}]' in the folder '{checkout}'"


def _is_ours(program: str) -> bool:
    """Whether a program's bare name runs the one of this environment: not so if nobody activated it."""
    found = shutil.which(program)
    return found is not None and Path(found).parent == Path(sys.executable).parent
