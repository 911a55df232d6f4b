"""Every error and warning of Shoal: a code that programs branch on, and the facts for its sentence.

The sentence is rendered last, by `shoal.text`, either for the library or for the command line with its flags.
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

# optional parts of the installation; pyproject.toml lists what each installs, 'all' installs all of them
Extra = Literal["excel", "files", "learn", "rdf", "server", "spark", "studio"]

_PACKAGE = Path(__file__).resolve().parent


class CodeAndFacts:
    """What errors and warnings have in common: a code and facts.

    Attributes:
        code: the kind of problem; stays the same when sentences are reworded.
        facts: what the sentence is about; `column`, `row` (counted from 1), `option`, `found`, `allowed` and `hint`
            mean the same in all of them.
    """

    code: str
    facts: Mapping[str, Any]

    def rendered(self, flag: Flag | None = None) -> str:
        """The sentence, with command-line flags if `flag` is given."""
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
        """The error with this message."""
        return cls(message.code, **message.facts)

    @property
    def message(self) -> Message:
        """The message, for callers that report it without raising."""
        return Message(self.code, self.facts)

    @property
    def column(self) -> str | None:
        """The column concerned, or None."""
        found: str | None = self._known("column")
        return found

    @property
    def row(self) -> int | None:
        """The row concerned, counted from 1."""
        found: int | None = self._known("row")
        return found

    @property
    def option(self) -> str | None:
        """The option of the library that is wrong, or that solves the problem."""
        found: str | None = self._known("option")
        return found

    @property
    def fix(self) -> str:
        """What to do, in words; may be empty."""
        return way_out(self.code, self.facts) or self._known("fix") or ""

    def _known(self, fact: str) -> Any:
        """A fact of this error, or of the error it gives as its reason."""
        found, reason = self.facts.get(fact), self.facts.get("reason")
        return getattr(reason, fact) if found is None and isinstance(reason, ShoalError) else found

    @property
    def problems(self) -> tuple[ShoalError, ...]:
        """The individual problems: this one, unless several were found at once."""
        return (self,)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        facts = {name: getattr(self, name) for name in ("code", "column", "row", "option", "fix")}
        return {"sentence": str(self), **facts, "facts": plain_facts(self.facts)}


def plain_facts(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Facts as JSON values; types that JSON lacks become text.

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
        # a numpy scalar
        return value.item()
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


class InputError(ShoalError, ValueError):
    """The table does not fit: a missing file, text in a numeric column, a value outside its domain."""

    kind = "input"


class OptionError(ShoalError, ValueError):
    """An option has a value that cannot be used: ε ≤ 0, k > n, an unknown method."""

    kind = "option"


class ClaimError(ShoalError, ValueError):
    """The requested release would need a privacy claim that does not hold."""

    kind = "claim"


class OutputError(ShoalError, OSError):
    """The result cannot be written to the requested place."""

    kind = "output"


class MissingExtraError(ShoalError, ImportError):
    """The request needs packages that are not installed; the message says how to install them."""

    kind = "missing-extra"


class CancelledError(ShoalError):
    """Long work was cancelled, leaving nothing half written. Raise it in `progress` to cancel any work."""

    kind = "cancelled"

    def __init__(self, code: str = "cancelled", /, **facts: Any) -> None:
        super().__init__(code, **facts)


class ProblemsError(InputError, OptionError):
    """Several problems found at once; the sentence has one line for each."""

    kind = "problems"

    def __init__(self, problems: Sequence[ShoalError]) -> None:
        super().__init__("problems")
        self.args = (tuple(problems),)  # the arguments for copying and pickling

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
    """Collects problems, so that the caller sees all of them at once.

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
        """Record an error instead of raising it."""
        try:
            yield
        except CancelledError:
            raise
        except ShoalError as error:
            self.add(error)

    def raise_all(self) -> None:
        """Raise what was collected: nothing, the single error, or all of them as one."""
        if len(self._found) == 1:
            raise self._found[0]
        if self._found:
            raise ProblemsError(self._found)


class ShoalWarning(CodeAndFacts, UserWarning):
    """Base of all warnings; facts may also be one mapping, for code that rebuilds a warning from its arguments."""

    def __init__(self, code: str, known: Mapping[str, Any] | None = None, /, **facts: Any) -> None:
        self.code, self.facts = code, {**(known or {}), **facts}
        super().__init__(code, self.facts)


class LeftOutWarning(ShoalWarning):
    """Columns were left out of a release without an explicit declaration."""


class ExposedWarning(ShoalWarning):
    """While a release is made, private values are stored where others may be able to read them."""


class JournalWarning(ShoalWarning):
    """The journal of use could not be written, or knows the same records under another name."""


def closest(word: object, known: Iterable[str]) -> str | None:
    """The known word that was probably meant, or None.

    >>> closest("FEDTAXX", ["FEDTAX", "FICA"]), closest("nope", ["income"])
    ('FEDTAX', None)
    """
    return next(iter(difflib.get_close_matches(str(word), list(known), n=1, cutoff=0.65)), None)


@contextmanager
def needs_extra(extra: Extra, who: str) -> Iterator[None]:
    """Turn a failed import of an optional package into one line that says how to install it.

    Args:
        extra: the extra that installs the packages.
        who: subject and verb of the sentence, such as "the query server needs".

    Raises:
        MissingExtraError: a package is not installed. A missing module of Shoal itself is a different error.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "shoal":
            raise
        raise MissingExtraError("missing-extra", who=who, extra=extra, command=install_words(extra)) from None


def install_words(extra: Extra, package: Path = _PACKAGE) -> str:
    """The command that installs an extra, for the installed package or for the checkout that contains it.

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
    """Whether a bare program name runs this environment's program; not so if the environment is not activated."""
    found = shutil.which(program)
    return found is not None and Path(found).parent == Path(sys.executable).parent
