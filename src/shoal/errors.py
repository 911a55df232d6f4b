"""Every error Shoal raises on purpose. One sentence each: what was found, where, and the way out.

The same is there as data, for a page that marks a field or a program that goes on by itself. Sentences use the words
of the library: a command line puts its own options in their place when it prints.
"""

from __future__ import annotations

import difflib
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Literal

# optional parts of the installation; pyproject.toml says what each brings, 'all' brings all of them
Extra = Literal["excel", "files", "learn", "rdf", "server", "spark", "studio"]

_PACKAGE = Path(__file__).resolve().parent


class ShoalError(Exception):
    """Base of all errors raised on purpose. The command line prints it as one line and exits with 2.

    Attributes:
        code: what kind of problem it is, a word that stays the same when sentences change.
        column: the column it is about, None for none.
        row: the row, counted from 1 as sentences do.
        option: the option of the library that is wrong, or that is the way out.
        fix: the way out in words; empty where there is none.

    >>> error = InputError("column 'age' has an infinite value in row 3: correct or remove it.", code="infinite")
    >>> error.code, error.column, error.row, error.fix
    ('infinite', 'age', 3, 'correct or remove it.')
    """

    kind: ClassVar[str] = "refused"

    def __init__(
        self,
        sentence: str,
        *,
        code: str | None = None,
        column: str | None = None,
        row: int | None = None,
        option: str | None = None,
        fix: str | None = None,
    ) -> None:
        super().__init__(sentence)
        # sentences are written by one rule, so what is not said apart can be read off
        self.code = code or self.kind
        self.column = _first(_COLUMN, sentence) if column is None else column
        found = _first(_ROW, sentence) if row is None else row
        self.row = None if found is None else int(found)
        named = _first(_OPTION, sentence) if isinstance(self, OptionError) else None
        self.option = named if option is None else option
        self.fix = _way_out(sentence) if fix is None else fix

    @property
    def problems(self) -> tuple[ShoalError, ...]:
        """The problems one by one: this one, unless several were found at once."""
        return (self,)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        facts = {name: getattr(self, name) for name in ("code", "column", "row", "option", "fix")}
        return {"sentence": str(self), **facts}


_COLUMN = re.compile(r"\bcolumn '([^']+)'")
_ROW = re.compile(r"\brow (\d+)\b")
# "split 'fair' is not one of ...", "k = 9 is larger than ..."
_OPTION = re.compile(
    r"^(?:there is no option '(\w+)'|(?!column\b|row\b)([a-z]\w*) (?:'[^']*' |= \S+ )?"
    r"(?:is|must|needs|takes|names|leaves|works|reads)\b)"
)


def _first(pattern: re.Pattern[str], sentence: str) -> str | None:
    found = pattern.search(sentence)
    return None if found is None else next(group for group in found.groups() if group is not None)


def _way_out(sentence: str) -> str:
    """What follows the last colon, or a guess at what was meant.

    >>> _way_out("k is 9, the table has 4 rows: give a smaller k."), _way_out("no 'x'. Did you mean 'y'?")
    ('give a smaller k.', "Did you mean 'y'?")
    """
    _, guess, rest = sentence.rpartition(" Did you mean ")
    if guess:
        return f"Did you mean {rest}"
    return sentence.rpartition(": ")[2] if ": " in sentence else ""


class InputError(ShoalError, ValueError):
    """The table does not fit: a missing file, text where numbers belong, a value outside its domain."""

    kind = "input"


class OptionError(ShoalError, ValueError):
    """An option has a value that cannot be used: ε ≤ 0, k > n, an unknown method."""

    kind = "option"


class ClaimError(ShoalError, ValueError):
    """The requested release would need a privacy claim that does not hold."""

    kind = "claim"


class OutputError(ShoalError, OSError):
    """The result cannot be written where it was asked for."""

    kind = "output"


class MissingExtraError(ShoalError, ImportError):
    """What was asked for needs packages that are not installed; the message says how to install them."""

    kind = "missing-extra"


class CancelledError(ShoalError):
    """Long work was told to stop. Nothing is left half written; raise it in `progress` to stop any work."""

    kind = "cancelled"

    def __init__(self, sentence: str = "cancelled, nothing was written.") -> None:
        super().__init__(sentence)


class ProblemsError(InputError, OptionError):
    """Several problems that were found at once; the sentence has a line for each."""

    kind = "problems"

    def __init__(self, problems: Sequence[ShoalError]) -> None:
        super().__init__("")
        self.args = (tuple(problems),)  # what a copy is made from

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)

    @property
    def problems(self) -> tuple[ShoalError, ...]:
        found: tuple[ShoalError, ...] = self.args[0]
        return found


class Problems:
    """Collects what is wrong, so that a caller reads all of it at once.

    >>> problems = Problems()
    >>> for name in ("age", "rent"):
    ...     with problems.collected():
    ...         raise InputError(f"column '{name}' is empty: leave it out.")
    >>> problems.raise_all()
    Traceback (most recent call last):
    shoal.errors.ProblemsError: column 'age' is empty: leave it out.
    column 'rent' is empty: leave it out.
    """

    def __init__(self) -> None:
        self._found: list[ShoalError] = []

    def __bool__(self) -> bool:
        return bool(self._found)

    @property
    def found(self) -> tuple[ShoalError, ...]:
        return tuple(self._found)

    def add(self, error: ShoalError) -> None:
        self._found += error.problems

    @contextmanager
    def collected(self) -> Iterator[None]:
        """Note an error instead of raising it."""
        try:
            yield
        except CancelledError:
            raise
        except ShoalError as error:
            self.add(error)

    def raise_all(self) -> None:
        """Raise what was found: nothing, the one error, or all of them as one."""
        if len(self._found) == 1:
            raise self._found[0]
        if self._found:
            raise ProblemsError(self._found)


class LeftOutWarning(UserWarning):
    """Columns were left out of a release without anybody having said so."""


class ExposedWarning(UserWarning):
    """Private values lie, while a release is made, where others may be able to read them."""


class JournalWarning(UserWarning):
    """The journal of use could not be written, or knows the same records under another name."""


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
