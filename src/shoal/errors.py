"""Every error and warning of Shoal: a code that programs branch on, and the facts of its sentence.

The sentence is rendered last, by `shoal.text`: for the library, or for the command line with its flags.
"""

from __future__ import annotations

import difflib
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from shoal.text import Flag, Message, render, way_out

# optional parts of the installation; pyproject.toml says what each brings, 'all' brings all of them
Extra = Literal["excel", "files", "learn", "rdf", "server", "spark", "studio"]

_PACKAGE = Path(__file__).resolve().parent


class CodeAndFacts:
    """What errors and warnings have in common.

    Attributes:
        code: what kind of problem it is, a word that stays the same when sentences change.
        facts: what the sentence is about; `column`, `row` (counted from 1), `option`, `found`, `allowed` and `hint`
            mean the same in all of them.
    """

    code: str
    facts: Mapping[str, Any]

    def rendered(self, flag: Flag | None = None) -> str:
        """The sentence, with the flags of the command line if they are given."""
        return render(self.code, self.facts, flag)

    def __str__(self) -> str:
        return self.rendered()


class ShoalError(CodeAndFacts, Exception):
    """Base of all errors raised on purpose. The command line prints it as one line and exits with 2.

    >>> error = InputError("infinite", column="age", row=3)
    >>> str(error)
    "column 'age' has an infinite value in row 3: correct or remove it."
    >>> error.code, error.column, error.row, error.fix
    ('infinite', 'age', 3, 'correct or remove it.')
    """

    kind: ClassVar[str] = "refused"

    def __init__(self, code: str, /, **facts: Any) -> None:
        super().__init__(code)
        self.code, self.facts = code, facts

    @classmethod
    def saying(cls, message: Message) -> Self:
        """The error that says this."""
        return cls(message.code, **message.facts)

    @property
    def message(self) -> Message:
        """What it says, for those who tell it without raising it."""
        return Message(self.code, self.facts)

    @property
    def column(self) -> str | None:
        """The column it is about, None for none."""
        found: str | None = self._known("column")
        return found

    @property
    def row(self) -> int | None:
        """The row it is about, counted from 1."""
        found: int | None = self._known("row")
        return found

    @property
    def option(self) -> str | None:
        """The option of the library that is wrong, or that is the way out."""
        found: str | None = self._known("option")
        return found

    @property
    def fix(self) -> str:
        """The way out in words; empty where there is none."""
        return way_out(self.code, self.facts) or self._known("fix") or ""

    def _known(self, fact: str) -> Any:
        """A fact of its own, or of the error that it passes on as its reason."""
        found, reason = self.facts.get(fact), self.facts.get("reason")
        return getattr(reason, fact) if found is None and isinstance(reason, ShoalError) else found

    @property
    def problems(self) -> tuple[ShoalError, ...]:
        """The problems one by one: this one, unless several were found at once."""
        return (self,)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        facts = {name: getattr(self, name) for name in ("code", "column", "row", "option", "fix")}
        return {"sentence": str(self), **facts, "facts": plain_facts(self.facts)}


def plain_facts(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Facts as values for JSON; what JSON has no value for is spelled out.

    >>> from fractions import Fraction
    >>> plain_facts({"found": Fraction(1, 2), "allowed": ("a", "b"), "row": 3})
    {'found': '1/2', 'allowed': ['a', 'b'], 'row': 3}
    """
    return {name: _plain_fact(value) for name, value in facts.items()}


def _plain_fact(value: Any) -> Any:
    if isinstance(value, (tuple, list, set, frozenset)):
        return [_plain_fact(one) for one in value]
    if isinstance(value, Mapping):
        return {str(name): _plain_fact(one) for name, one in value.items()}
    if hasattr(value, "item"):
        # a number of numpy
        return value.item()
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


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

    def __init__(self, code: str = "cancelled", /, **facts: Any) -> None:
        super().__init__(code, **facts)


class ProblemsError(InputError, OptionError):
    """Several problems that were found at once; the sentence has a line for each."""

    kind = "problems"

    def __init__(self, problems: Sequence[ShoalError]) -> None:
        super().__init__("problems")
        self.args = (tuple(problems),)  # what a copy is made from

    @property
    def message(self) -> Message:
        return Message.of(self.code, problems=tuple(problem.message for problem in self.problems))

    def rendered(self, flag: Flag | None = None) -> str:
        return self.message.rendered(flag)

    @property
    def fix(self) -> str:
        return ""

    @property
    def problems(self) -> tuple[ShoalError, ...]:
        found: tuple[ShoalError, ...] = self.args[0]
        return found


class Problems:
    """Collects what is wrong, so that a caller reads all of it at once.

    >>> problems = Problems()
    >>> for name in ("age", "rent"):
    ...     with problems.collected():
    ...         raise InputError("infinite", column=name, row=1)
    >>> problems.raise_all()
    Traceback (most recent call last):
    shoal.errors.ProblemsError: column 'age' has an infinite value in row 1: correct or remove it.
    column 'rent' has an infinite value in row 1: correct or remove it.
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


class ShoalWarning(CodeAndFacts, UserWarning):
    """Base of all warnings; facts as one mapping are for those that make it anew from its arguments."""

    def __init__(self, code: str, known: Mapping[str, Any] | None = None, /, **facts: Any) -> None:
        self.code, self.facts = code, {**(known or {}), **facts}
        super().__init__(code, self.facts)


class LeftOutWarning(ShoalWarning):
    """Columns were left out of a release without anybody having said so."""


class ExposedWarning(ShoalWarning):
    """Private values lie, while a release is made, where others may be able to read them."""


class JournalWarning(ShoalWarning):
    """The journal of use could not be written, or knows the same records under another name."""


def closest(word: object, known: Iterable[str]) -> str | None:
    """The known word that was probably meant; None when nothing is close.

    >>> closest("FEDTAXX", ["FEDTAX", "FICA"]), closest("nope", ["income"])
    ('FEDTAX', None)
    """
    return next(iter(difflib.get_close_matches(str(word), list(known), n=1, cutoff=0.65)), None)


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
        raise MissingExtraError("missing-extra", who=who, extra=extra, command=install_words(extra)) from None


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
